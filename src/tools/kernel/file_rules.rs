//! The files that a confined program can reach, as rules of Landlock.

use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::tools::bounds::Bounds;

/// What q needs of Landlock: the sixth revision, of Linux 6.12, holds signals and abstract sockets, too.
const NEEDED: ABI = ABI::V6;

/// Where programs and libraries are. What a system lacks of it is passed over.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
];

/// What programs need of the system's settings, and nothing that may be private.
const SETTINGS: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/locale.gen",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    // The bundles of CAs. A rule for a directory does not hold for what its links lead to, so each link is here, too.
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/crypto-policies",
    "/var/lib/ca-certificates",
    "/etc/gitconfig",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/manpath.config",
];

/// Devices and facts about the machine that can be read; none is about a process.
const FACTS: &[&str] = &[
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random",
];

/// Returns what Landlock lets happen to files.
pub fn file_rules(
    bounds: &Bounds,
    program: &Path,
    scratch: Option<&Path>,
) -> Result<RulesetCreated, String> {
    let all = AccessFs::from_all(NEEDED);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(|error| lacking(&error))?;
    let reads = AccessFs::from_read(NEEDED);
    // A device that root makes would lead around all of this.
    let writes = all & !(AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock);
    let of_program = AccessFs::ReadFile | AccessFs::Execute;
    for (path, access) in access_of_all() {
        let path = Path::new(path);
        if let Ok(file) = PathFd::new(path) {
            allow(&mut rules, path, file.as_fd(), access)?;
        }
    }
    let program = bounds.real_program(program)?;
    let own_file = open_without_links(&program)?;
    allow(&mut rules, &program, own_file.as_fd(), of_program)?;
    if let Some(path) = scratch {
        let file = PathFd::new(path).map_err(|error| error.to_string())?;
        allow(&mut rules, path, file.as_fd(), writes)?;
    }
    for (paths, access) in [(&bounds.read, reads), (&bounds.write, writes)] {
        for path in paths {
            let file = open_without_links(&path.real)
                .map_err(|reason| format!("{}: {reason}", path.written.display()))?;
            allow(&mut rules, &path.real, file.as_fd(), access)?;
        }
    }
    Ok(rules)
}

/// Returns the paths that every confined program reaches, as far as they exist, with the access to each.
fn access_of_all() -> Vec<(&'static str, BitFlags<AccessFs>)> {
    let reads = AccessFs::from_read(NEEDED);
    let mut reached = Vec::new();
    for path in PROGRAMS.iter().chain(SETTINGS) {
        reached.push((*path, reads));
    }
    for path in FACTS {
        reached.push((*path, reads & !AccessFs::Execute));
    }
    reached.push(("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile));
    reached
}

/// Adds a rule for a path, which `file` has open.
fn allow(
    rules: &mut RulesetCreated,
    path: &Path,
    file: BorrowedFd,
    mut access: BitFlags<AccessFs>,
) -> Result<(), String> {
    if !path.is_dir() {
        access &= AccessFs::from_file(NEEDED);
    }
    let added = rules.add_rule(PathBeneath::new(file, access));
    added.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

/// Opens a path in which no part may be a symbolic link. None was when q started, but an earlier call may have put one there.
fn open_without_links(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    opened.map_err(|error| match error {
        Errno::LOOP => "a link was put there since q has started".to_owned(),
        error => io::Error::from(error).to_string(),
    })
}

/// Returns what the kernel lacks of Landlock. This thread is no use after that: only a thread that has tried learns why it
/// failed.
fn lacking(error: &dyn Display) -> String {
    let tried = Ruleset::default()
        .handle_access(AccessFs::Execute)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    let Ok(status) = tried else {
        return format!("Landlock refused: {error}");
    };
    match status.landlock {
        LandlockStatus::NotImplemented => not_implemented(),
        LandlockStatus::NotEnabled => {
            "Landlock is disabled; “landlock” belongs in the kernel's parameter lsm=".to_owned()
        }
        LandlockStatus::Available { effective_abi, .. } if effective_abi < NEEDED => format!(
            "this kernel has revision {} of Landlock, and Linux 6.12 has the revision {} that is needed",
            effective_abi as i32, NEEDED as i32
        ),
        _ => format!("Landlock refused: {error}"),
    }
}

/// Returns why there is no Landlock. The library takes most errors for a kernel without it.
fn not_implemented() -> String {
    // It asks the kernel for the revision first, and nothing after that changes the error.
    let _asked = Ruleset::default();
    let error = io::Error::last_os_error();
    match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => "this kernel has no Landlock".to_owned(),
        Some(Errno::PERM | Errno::ACCESS) => {
            "Landlock is forbidden here, as by the seccomp profile of a container".to_owned()
        }
        _ => format!("Landlock refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every confined program may do with a path: read, write, run.
    fn rights(path: &str) -> String {
        let reached = access_of_all();
        let above = reached
            .iter()
            .filter(|(above, _)| Path::new(path).starts_with(above));
        let mut access = BitFlags::default();
        for (_, allowed) in above {
            access |= *allowed;
        }
        let mut rights = String::new();
        for (letter, wanted) in [
            ('r', AccessFs::ReadFile.into()),
            ('w', AccessFs::from_write(NEEDED)),
            ('x', AccessFs::Execute.into()),
        ] {
            let has_any = !(access & wanted).is_empty();
            rights.push(if has_any { letter } else { '-' });
        }
        rights
    }

    #[test]
    fn every_confined_program_reaches_the_systems_programs_and_nothing_of_the_user() {
        for (path, expected) in [
            ("/usr/bin/env", "r-x"),
            ("/usr/lib/x.so", "r-x"),
            ("/bin/sh", "r-x"),
            ("/opt/tool/bin/x", "r-x"),
            ("/nix/store/x/bin/y", "r-x"),
            ("/etc/passwd", "r-x"),
            ("/etc/ssl/certs/x.pem", "r-x"),
            ("/etc/ssl/private/x.key", "---"),
            ("/etc/shadow", "---"),
            ("/etc/ssh/ssh_host_rsa_key", "---"),
            ("/etc/hostname", "---"),
            ("/dev/null", "rw-"),
            ("/dev/zero", "r--"),
            ("/dev/urandom", "r--"),
            ("/dev/tty", "---"),
            ("/dev/sda", "---"),
            ("/dev/shm/x", "---"),
            ("/proc/meminfo", "r--"),
            ("/proc/self/environ", "---"),
            ("/proc/1/environ", "---"),
            ("/proc/sys/kernel/random/uuid", "r--"),
            ("/proc/sys/kernel/hostname", "---"),
            ("/home/me/file", "---"),
            ("/root/.ssh/id_rsa", "---"),
            ("/tmp/file", "---"),
            ("/var/lib/x", "---"),
            ("/run/docker.sock", "---"),
            ("/sys/kernel", "---"),
            ("/", "---"),
        ] {
            assert_eq!(rights(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_opened_only_where_no_link_leads() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = std::fs::canonicalize(directory.path()).expect("a path");
        std::fs::create_dir(real.join("directory")).expect("a directory");
        std::fs::write(real.join("directory/file"), "").expect("a file");
        for (link, target) in [("to-file", "directory/file"), ("to-directory", "directory")] {
            std::os::unix::fs::symlink(target, real.join(link)).expect("a link");
        }
        let link = Some("a link was put there since q has started");
        for (path, expected) in [
            ("directory", None),
            ("directory/file", None),
            ("to-file", link),
            ("to-directory", link),
            ("to-directory/file", link),
            ("no", Some("No such file or directory (os error 2)")),
        ] {
            let opened = open_without_links(&real.join(path));
            assert_eq!(opened.err().as_deref(), expected, "{path}");
        }
    }
}
