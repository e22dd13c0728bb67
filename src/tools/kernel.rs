//! Lets the kernel hold the thread that calls this, and all that it starts: Landlock for files, seccomp for system calls.

mod file_rules;
mod system_calls;

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use landlock::RulesetStatus;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use seccompiler::{BackendError, BpfProgram, apply_filter};

use self::file_rules::file_rules;
use super::bounds::Bounds;

/// The filters without and with the network. To compile them takes time.
static FILTERS: [OnceLock<Result<[BpfProgram; 2], String>>; 2] = [const { OnceLock::new() }; 2];

/// Returns why the kernel cannot hold a program; `None` if it can. It is tried out on a thread of its own, which ends.
pub fn what_is_missing() -> Option<String> {
    let tried = std::thread::scope(|scope| {
        let try_out = || confine(&Bounds::default(), Path::new("/dev/null"), None);
        let thread = std::thread::Builder::new().spawn_scoped(scope, try_out);
        let ended = thread.map(std::thread::ScopedJoinHandle::join);
        ended
            .map_err(|error| format!("cannot start a thread: {error}"))?
            .unwrap_or_else(|_| Err("it failed".to_owned()))
    });
    tried.err()
}

/// Confines this thread: from now on it and what it starts can reach the files and the network that the bounds name, their own
/// program and temporary directory, and the system's programs. The error says what is missing.
pub fn confine(bounds: &Bounds, program: &Path, scratch: Option<&Path>) -> Result<(), String> {
    give_up_rights().map_err(|error| format!("the kernel takes no rights from it: {error}"))?;
    let status = file_rules(bounds, program, scratch)?
        .restrict_self()
        .map_err(|error| format!("Landlock cannot hold it: {error}"))?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err("Landlock holds it in part only".to_owned());
    }
    let filters = FILTERS[usize::from(bounds.network)]
        .get_or_init(|| system_calls::filters(bounds.network).map_err(|error| wrong(&error)));
    let starter = rustix::thread::gettid().as_raw_nonzero().get();
    let no_signals = system_calls::no_signals_to(starter).map_err(|error| wrong(&error))?;
    let filters = filters.as_ref().map_err(String::clone)?;
    for filter in filters.iter().chain([&no_signals]) {
        apply_filter(filter).map_err(refused)?;
    }
    Ok(())
}

fn refused(error: seccompiler::Error) -> String {
    match error {
        seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => {
            format!("the kernel takes no seccomp filter: {error}")
        }
        error => format!("the seccomp filter is wrong: {error}"),
    }
}

fn wrong(error: &BackendError) -> String {
    format!("the seccomp filter is wrong: {error}")
}

/// What root may do and a confined program still may: what is about files and users.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Keeps a program that may read /proc from the memory and the environment of q, where its keys are. The thread that starts the
/// program is held by the same rules, so Landlock lets the program see its entries there; and whoever has CAP_PERFMON, as root has,
/// may read those of all processes.
fn give_up_rights() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut sets = capabilities(None)?;
    for set in [
        &mut sets.effective,
        &mut sets.permitted,
        &mut sets.inheritable,
    ] {
        *set &= KEPT;
    }
    set_capabilities(None, sets)?;
    Ok(())
}
