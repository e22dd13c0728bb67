//! System calls about the programs that q starts: how each begins, and the signals and ends of process groups.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};

/// Makes the program the leader of a new session without a terminal, and of a new process group. SIGINT ends it, even if q was
/// started in the background of a script, where shells ignore it.
pub fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: before the program is executed, this makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            let _ = process::setsid();
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

/// Lets the system ask the program to end when the thread that starts it ends, whatever ends this process. Only Linux can do that.
#[cfg(target_os = "linux")]
pub fn end_with_this_thread(command: &mut Command) -> &mut Command {
    let parent = process::getpid();
    // SAFETY: before the program is executed, this makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            process::set_parent_process_death_signal(Some(Signal::TERM))?;
            // From then on it would not be told.
            if process::getppid() != Some(parent) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(())
        })
    }
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub fn end_with_this_thread(command: &mut Command) -> &mut Command {
    command
}

/// The permission to run a program. A child takes it just before its program runs, and leaves its id. Until then it can be
/// withdrawn, so that nothing runs that this process does not know of, though it may know the child itself only much later: to
/// begin a program may take long, on a file system that does not answer.
#[derive(Debug)]
pub struct StartPermit {
    /// Shared with the child: [`FREE`], [`WITHDRAWN`], or the id of the child that has taken it.
    holder: NonNull<AtomicU32>,
}

/// What stands in a permit that nobody has taken. Neither is the id of a child.
const FREE: u32 = 0;
const WITHDRAWN: u32 = u32::MAX;

// SAFETY: what it points to is an atomic number, which stays where it is as long as the permit is there.
unsafe impl Send for StartPermit {}
// SAFETY: as above.
unsafe impl Sync for StartPermit {}

impl StartPermit {
    pub fn new() -> io::Result<StartPermit> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the system chooses the address. The memory has zeroes, which are a valid number.
        let memory =
            unsafe { mmap_anonymous(ptr::null_mut(), size_of::<AtomicU32>(), access, shared)? };
        let holder = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(StartPermit { holder })
    }

    /// Makes the child take it last of all. Without it, the program does not run.
    pub fn demand(self: &Arc<Self>, command: &mut Command) {
        let permit = Arc::clone(self);
        // SAFETY: before the program is executed, this makes a system call and allocates nothing.
        unsafe {
            command.pre_exec(move || permit.take());
        }
    }

    /// Returns the child that has taken it.
    pub fn holder(&self) -> Option<u32> {
        match self.number().load(Ordering::SeqCst) {
            FREE | WITHDRAWN => None,
            child => Some(child),
        }
    }

    /// Lets no child take it any more.
    pub fn withdraw(&self) {
        let _ = self.replace_free(WITHDRAWN);
    }

    fn take(&self) -> io::Result<()> {
        let own = process::getpid().as_raw_nonzero().get().unsigned_abs();
        self.replace_free(own).map_err(|_| Errno::CANCELED)?;
        Ok(())
    }

    fn replace_free(&self, new: u32) -> Result<u32, u32> {
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.number().compare_exchange(FREE, new, success, failure)
    }

    fn number(&self) -> &AtomicU32 {
        // SAFETY: the memory is there until the permit is dropped.
        unsafe { self.holder.as_ref() }
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference to the memory, and this process is the last that uses it here.
        let _ = unsafe { munmap(self.holder.as_ptr().cast(), size_of::<AtomicU32>()) };
    }
}

/// Returns the id of a process, or of the group that it leads, as the system takes it; `None` for 0, 1 and what is too large.
fn pid_of(id: u32) -> Option<Pid> {
    // Of process 1, the system would take the group for every process.
    let id = i32::try_from(id).ok().filter(|id| *id > 1);
    id.and_then(Pid::from_raw)
}

/// Sends a signal to a process group, unless it is gone.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = pid_of(leader) {
        let _ = process::kill_process_group(group, signal);
    }
}

/// Whether a process group has a process left that this user may signal, be it one that has ended and has not been reaped.
pub fn is_group_left(leader: u32) -> bool {
    pid_of(leader).is_some_and(|group| process::test_kill_process_group(group).is_ok())
}

/// Whether a process group has a process that has not ended. Where `/proc` does not tell, one that has not been reaped counts, too:
/// process 1 of a container may reap no orphans.
pub fn is_group_running(leader: u32) -> bool {
    if !is_group_left(leader) {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let mut has_ended_ones = false;
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let stat = std::fs::read(process.path().join("stat")).unwrap_or_default();
        match has_ended_in_group(&stat, leader) {
            Some(true) => has_ended_ones = true,
            Some(false) => return true,
            None => (),
        }
    }
    !has_ended_ones
}

/// Returns whether a process has ended by its `/proc/ID/stat`; `None` if it is in another group.
fn has_ended_in_group(stat: &[u8], leader: u32) -> Option<bool> {
    // The fields after the name, which may have blanks and parentheses (proc_pid_stat(5)).
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let fields = Vec::from_iter(fields.split_ascii_whitespace());
    let (state, group, threads) = (fields.first()?, fields.get(2)?, fields.get(17)?);
    let is_of_group = group.parse() == Ok(leader);
    // Other threads may run on after the first.
    is_of_group.then_some(matches!(*state, "Z" | "X") && matches!(*threads, "0" | "1"))
}

/// Whether a child has ended. It is not reaped, so no other process gets its id.
pub fn has_ended(child: u32) -> bool {
    !matches!(ended_without_reaping(child), Ok(None))
}

/// Whether a process is a child of this one that has not been reaped.
pub fn is_child(id: u32) -> bool {
    ended_without_reaping(id).is_ok()
}

/// Returns how a child has ended, if it has, and does not reap it. The error is for what is no child that could be reaped.
fn ended_without_reaping(id: u32) -> rustix::io::Result<Option<WaitIdStatus>> {
    let id = pid_of(id).ok_or(Errno::CHILD)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    process::waitid(WaitId::Pid(id), options)
}

/// Reaps the children of this process that have ended and belong to a group.
pub fn reap_group(leader: u32) {
    if let Some(group) = pid_of(leader) {
        while let Ok(Some(_)) = process::waitpgid(group, WaitOptions::NOHANG) {}
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::wait::wait_until;

    const MINUTES: Duration = Duration::from_secs(120);

    /// A program that waits, in a session of its own.
    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        in_own_session(&mut command).spawn().expect("sleep")
    }

    #[test]
    fn a_program_in_its_own_session_leads_a_group_that_signals_reach() {
        let mut child = sleeper();
        let id = child.id();
        let pid = pid_of(id).expect("an id");
        assert_eq!(process::getsid(Some(pid)), Ok(pid));
        assert_eq!(process::getpgid(Some(pid)), Ok(pid));
        assert!(!has_ended(id) && is_group_left(id));
        reap_group(id);
        assert!(!has_ended(id), "it has not ended");
        signal_group(id, Signal::TERM);
        assert!(wait_until(MINUTES, || has_ended(id)));
        // It still can be waited for.
        let status = child.try_wait().expect("a child").expect("it has ended");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(libc::SIGTERM)
        );
        assert!(!is_group_left(id) && has_ended(id));
    }

    #[test]
    fn sigint_ends_a_program_though_the_one_that_started_it_ignores_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -INT $$"]).stdin(Stdio::null());
        // SAFETY: before the program is executed, this makes a system call and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                Ok(())
            });
        }
        let status = in_own_session(&mut command).status().expect("sh");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(libc::SIGINT));
    }

    #[test]
    fn a_process_has_ended_with_the_last_of_its_threads() {
        let after_group = "12 0 -1 0 0 0 0 0 0 0 0 0 20 0";
        for (beginning, threads, ended) in [
            ("12 (sh) S 1 12", "1", Some(false)),
            ("13 (sh) Z 12 12", "1", Some(true)),
            ("13 (a b) S) Z 12 12", "1", Some(true)),
            ("13 (a) Z 1) S 12 12", "1", Some(false)),
            ("13 (sh) X 12 12", "0", Some(true)),
            ("13 (sh) Z 12 12", "2", Some(false)),
            ("13 (sh) Z 12 13", "1", None),
            ("13 (sh", "1", None),
        ] {
            let stat = format!("{beginning} {after_group} {threads} 0 5");
            let found = has_ended_in_group(stat.as_bytes(), 12);
            assert_eq!(found, ended, "{stat}");
        }
        assert_eq!(has_ended_in_group(b"", 12), None);
        assert_eq!(has_ended_in_group(b"12 (sh) S 1 12", 12), None);
    }

    #[test]
    fn a_process_that_has_ended_and_has_not_been_reaped_does_not_run() {
        let mut child = sleeper();
        let id = child.id();
        assert!(is_group_running(id));
        signal_group(id, Signal::KILL);
        assert!(wait_until(MINUTES, || has_ended(id)));
        assert!(is_group_left(id), "it is not reaped");
        // Elsewhere, the system does not count it.
        assert!(!is_group_running(id) || !cfg!(target_os = "linux"));
        child.wait().expect("it has not been waited for");
        assert!(!is_group_left(id) && !is_group_running(id));
    }

    #[test]
    fn a_program_runs_only_with_a_permit_that_is_not_withdrawn() {
        for is_withdrawn in [false, true] {
            let permit = Arc::new(StartPermit::new().expect("memory"));
            let mut command = Command::new("true");
            permit.demand(&mut command);
            if is_withdrawn {
                permit.withdraw();
            }
            match command.spawn() {
                Ok(mut child) => {
                    assert!(!is_withdrawn);
                    assert!(is_child(child.id()));
                    // Too late.
                    permit.withdraw();
                    assert_eq!(permit.holder(), Some(child.id()));
                    assert!(child.wait().expect("a status").success());
                    assert!(!is_child(child.id()));
                }
                Err(error) => {
                    assert!(is_withdrawn, "{error}");
                    assert_eq!(permit.holder(), None);
                }
            }
        }
    }

    #[test]
    fn the_ended_processes_of_a_group_are_reaped() {
        let mut child = sleeper();
        let id = child.id();
        signal_group(id, Signal::KILL);
        assert!(wait_until(MINUTES, || {
            reap_group(id);
            !is_group_left(id)
        }));
        child.wait().expect_err("it has been waited for");
    }

    #[test]
    fn what_cannot_be_the_id_of_a_child_is_no_group() {
        // A signal to these would reach this process's own group, or every process.
        for id in [0, 1, u32::MAX, 1 << 31] {
            assert!(pid_of(id).is_none(), "{id}");
            assert!(!is_group_left(id) && has_ended(id), "{id}");
        }
    }
}
