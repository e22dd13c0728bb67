//! Lets the kernel hold the thread that calls this, and all that it starts: Landlock for files, seccomp for system calls.

use std::env::consts::ARCH;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use libc::c_long;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::bounds::Bounds;

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

/// Returns why the kernel cannot hold a program; `None` if it can. It is tried out on a thread of its own, which ends.
pub fn what_is_missing() -> Option<String> {
    let tried = std::thread::scope(|scope| {
        let try_out = || confine(&Bounds::default(), Path::new("/dev/null"), None);
        let thread = std::thread::Builder::new().spawn_scoped(scope, try_out);
        let ended = thread.map(std::thread::ScopedJoinHandle::join);
        ended
            .map_err(|error| error.to_string())?
            .unwrap_or_else(|_| Err("it failed".to_owned()))
    });
    tried.err()
}

/// Confines this thread: from now on it and what it starts can reach the files and the network that the bounds name, their own
/// program and temporary directory, and the system's programs. The error says what is missing.
pub fn confine(bounds: &Bounds, program: &Path, scratch: Option<&Path>) -> Result<(), String> {
    give_up_rights().map_err(|error| format!("the kernel takes no rights from it: {error}"))?;
    let status = rules(bounds, program, scratch)?
        .restrict_self()
        .map_err(|error| format!("Landlock cannot hold it: {error}"))?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err("Landlock holds it in part only".to_owned());
    }
    let refused = |error: seccompiler::Error| match error {
        seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => {
            format!("the kernel takes no seccomp filter: {error}")
        }
        error => format!("the seccomp filter is wrong: {error}"),
    };
    let filters = FILTERS[usize::from(bounds.network)].get_or_init(|| filters(bounds.network));
    let filters = filters.as_ref().map_err(|reason| reason.to_owned())?;
    for filter in filters {
        apply_filter(filter).map_err(refused)?;
    }
    let starter = rustix::thread::gettid().as_raw_nonzero().get();
    let filter = signals_to(starter).map_err(|error| refused(error.into()))?;
    apply_filter(&filter).map_err(refused)
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

/// The programs that the kernel runs for each system call, without and with the network. To compile them takes time.
static FILTERS: [OnceLock<Result<[BpfProgram; 2], String>>; 2] = [const { OnceLock::new() }; 2];

fn filters(network: bool) -> Result<[BpfProgram; 2], String> {
    let filter = filter(network);
    let filter = filter.map_err(|error| format!("the seccomp filter is wrong: {error}"))?;
    Ok([numbers(), filter])
}

/// Returns what Landlock lets happen to files.
fn rules(
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
    for (path, access) in [
        Some((program, of_program)),
        scratch.map(|path| (path, writes)),
    ]
    .into_iter()
    .flatten()
    {
        let file = PathFd::new(path).map_err(|error| error.to_string())?;
        allow(&mut rules, path, file.as_fd(), access)?;
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

/// Returns the places that every confined program reaches, as far as they exist, with the access to each.
fn access_of_all() -> Vec<(&'static str, BitFlags<AccessFs>)> {
    let reads = AccessFs::from_read(NEEDED);
    let mut places = Vec::new();
    for path in PROGRAMS.iter().chain(SETTINGS) {
        places.push((*path, reads));
    }
    for path in FACTS {
        places.push((*path, reads & !AccessFs::Execute));
    }
    places.push(("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile));
    places
}

/// Adds a rule for a place, which `file` has open.
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

/// Opens the place of a path in which no part may be a link. It had none when q started: an earlier call may have put one there.
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
        LandlockStatus::NotImplemented => "this kernel has no Landlock".to_owned(),
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

/// System calls that are refused whatever their arguments are, by names that all machines have. What only one kind of machine
/// has, such as `chmod` besides `fchmodat`, is in [`REFUSED_HERE`]. A system call in neither list happens, unless [`filter`] has a
/// rule for its arguments.
const REFUSED: &[c_long] = &[
    // Modes, owners, times and attributes by path.
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    SYS_SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    // System calls around this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // A directory of /proc is such a descriptor, too, also of a thread of q.
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_kcmp,
    // The names of files that are made in directories that cannot be read.
    libc::SYS_inotify_add_watch,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // What others share by numbers and names that are no files.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // File systems and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    // What only root may do, and what would lead root around all of this.
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
];

/// Those that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];

#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

// Numbers that not every C library names yet. Newer system calls have the same on all machines.
const SYS_FCHMODAT2: c_long = 452;
const SYS_SETXATTRAT: c_long = 463;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_FILE_SETATTR: c_long = 469;
const SYS_QUOTACTL_FD: c_long = 443;
#[cfg(target_arch = "x86_64")]
const SYS_KEXEC_FILE_LOAD: c_long = 320;
#[cfg(not(target_arch = "x86_64"))]
const SYS_KEXEC_FILE_LOAD: c_long = 294;

// Constants of the kernel's headers (linux/ioprio.h, asm-generic/fcntl.h) that the crate libc does not name.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
const F_SETOWN_EX: libc::c_int = 15;

/// Requests of `ioctl` that are refused: two that set the owner of a socket, which gets its signals and may be any process, and two
/// that need only read a file or an empty directory to make it one that nobody can write, or an encrypted one
/// (asm-generic/sockios.h, linux/fsverity.h, linux/fscrypt.h).
const REFUSED_REQUESTS: [u64; 4] = [0x8901, 0x8902, 0x4080_6685, 0x800C_6613];

/// The requests of `ioctl` that begin with this byte are about subvolumes, which Btrfs makes and removes in any directory that can
/// be read. Landlock does not see that.
const OF_SUBVOLUMES: libc::c_int = 0x9400;

/// Those of them that all file systems know: to copy a file, or a part of one, by sharing its blocks (linux/fs.h).
const OF_SHARED_BLOCKS: [u64; 3] = [0x4004_9409, 0x4020_940D, 0xC018_9436];

/// The bits of `clone` that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Refuses system calls by their numbers and arguments, with the error EPERM. The rules of one are alternatives.
fn filter(network: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = Vec::new();
    for number in REFUSED.iter().chain(REFUSED_HERE) {
        rules.push((*number, Vec::new()));
    }
    rules.push((libc::SYS_socket, sockets(network)?));
    // A pair of the kinds that keep a connection cannot be given another address. The kernel takes a raw one for one of datagrams.
    let mut pairs = vec![SeccompRule::new(vec![is_not(0, libc::AF_UNIX)?])?];
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        pairs.push(SeccompRule::new(vec![has_bits(1, 0xf, kind)?])?);
    }
    rules.push((libc::SYS_socketpair, pairs));
    let mut clones = Vec::new();
    for bit in NAMESPACES {
        clones.push(SeccompRule::new(vec![has_bits(0, bit, bit)?])?);
    }
    rules.push((libc::SYS_clone, clones));
    // Without a path it sets the times of an open file.
    let by_path = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.push((libc::SYS_utimensat, vec![SeccompRule::new(vec![by_path])?]));
    // A limit on the processor time of another process would end it.
    let new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let of_others = SeccompRule::new(vec![is_not(0, 0)?, new_limit])?;
    rules.push((libc::SYS_prlimit64, vec![of_others]));
    rules.push((libc::SYS_ioctl, requests()?));
    rules.extend(of_other_processes()?);
    compile(rules)
}

/// Lets everything happen but what the rules refuse.
fn compile(
    rules: Vec<(c_long, Vec<SeccompRule>)>,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        ARCH.try_into()?,
    )?;
    filter.try_into()
}

/// Priorities and processors of other processes, which no other rule protects. Zero is the process that calls.
fn of_other_processes() -> Result<Vec<(c_long, Vec<SeccompRule>)>, seccompiler::BackendError> {
    let mut rules = Vec::new();
    for number in [
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
    ] {
        rules.push((number, vec![SeccompRule::new(vec![is_not(0, 0)?])?]));
    }
    // The first argument says whether the second is a process, a group or a user.
    for (number, process) in [
        (libc::SYS_setpriority, 0),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ] {
        let no_process = SeccompRule::new(vec![is_not(0, process)?])?;
        let another = SeccompRule::new(vec![is_not(1, 0)?])?;
        rules.push((number, vec![no_process, another]));
    }
    Ok(rules)
}

/// Returns the requests that are refused of open files.
fn requests() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut refused = Vec::new();
    for request in REFUSED_REQUESTS {
        let is_this = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
        refused.push(SeccompRule::new(vec![is_this])?);
    }
    let mut of_subvolumes = vec![has_bits(1, 0xFF00, OF_SUBVOLUMES)?];
    for request in OF_SHARED_BLOCKS {
        let is_another =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, request)?;
        of_subvolumes.push(is_another);
    }
    refused.push(SeccompRule::new(of_subvolumes)?);
    Ok(refused)
}

/// Refuses signals to a thread of q. The thread that starts the program is held by the same rules until it has ended, so Landlock lets
/// the program signal it, and that would end q.
fn signals_to(thread: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = Vec::new();
    for (number, argument) in [
        (libc::SYS_kill, 0),
        (libc::SYS_tkill, 0),
        (libc::SYS_tgkill, 1),
        (libc::SYS_rt_sigqueueinfo, 0),
        (libc::SYS_rt_tgsigqueueinfo, 1),
        (libc::SYS_pidfd_open, 0),
    ] {
        rules.push((number, vec![SeccompRule::new(vec![is(argument, thread)?])?]));
    }
    // The owner of a file gets its signals.
    let owner = SeccompRule::new(vec![is(1, libc::F_SETOWN)?, is(2, thread)?])?;
    let any_owner = SeccompRule::new(vec![is(1, F_SETOWN_EX)?])?;
    rules.push((libc::SYS_fcntl, vec![owner, any_owner]));
    compile(rules)
}

/// Returns when a socket is refused; without rules always.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    if !network {
        return Ok(Vec::new());
    }
    let mut others = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        others.push(is_not(0, family)?);
    }
    Ok(vec![SeccompRule::new(others)?])
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Whether an argument has this value within a mask.
fn has_bits(
    argument: u8,
    mask: i32,
    value: i32,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    let mask = SeccompCmpOp::MaskedEq(u64::from(mask.unsigned_abs()));
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, mask, value)
}

/// The second set of numbers that x86-64 has for its system calls (x32).
const X32: u32 = 0x4000_0000;

/// Refuses what depends on the number alone and is no list: those of x32, and `clone3`, whose flags no filter can read. A
/// program that is told that there is no `clone3` takes `clone`. Other machines' system calls end the program by the other
/// filter.
fn numbers() -> BpfProgram {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt,
        jf,
        k,
    };
    let jump = libc::BPF_JMP | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or_default();
    let error = |number: i32| libc::SECCOMP_RET_ERRNO | number.unsigned_abs();
    let mut program = vec![
        // The number is the first word of what the kernel shows.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(jump | libc::BPF_JEQ, 0, 1, clone3),
        instruction(end, 0, 0, error(libc::ENOSYS)),
    ];
    if cfg!(target_arch = "x86_64") {
        program.push(instruction(jump | libc::BPF_JSET, 0, 1, X32));
        program.push(instruction(end, 0, 0, error(libc::EPERM)));
    }
    program.push(instruction(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}
