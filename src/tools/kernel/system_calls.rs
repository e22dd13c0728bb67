//! The system calls that a confined program cannot make, as programs that the kernel runs for each (pure).

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// The machine for which this q is built.
#[cfg(target_arch = "x86_64")]
const THIS_MACHINE: TargetArch = TargetArch::x86_64;
#[cfg(not(target_arch = "x86_64"))]
const THIS_MACHINE: TargetArch = TargetArch::aarch64;

/// System calls that are refused whatever their arguments are, by names that all machines have. What only one kind of machine
/// has, such as `chmod` besides `fchmodat`, is in [`REFUSED_HERE`]. A system call in neither list happens, unless [`by_number`],
/// [`refused_calls`] or [`signals_to`] refuses it.
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
const SYS_GETXATTRAT: c_long = 464;
const SYS_LISTXATTRAT: c_long = 465;
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

/// A system call that is refused, with the error EPERM, if one of these rules holds; without rules always.
type RefusedCall = (c_long, Vec<SeccompRule>);

/// Returns the programs that the kernel runs for each system call, whoever starts the confined program.
pub fn filters(network: bool) -> Result<[BpfProgram; 2], BackendError> {
    Ok([by_number(), program(refused_calls(network)?)?])
}

/// Returns a program that refuses signals to a thread of q. That which starts the confined program is held by the same rules until
/// the program has started, so Landlock lets the program signal it, and that would end q.
pub fn no_signals_to(thread: i32) -> Result<BpfProgram, BackendError> {
    program(signals_to(thread)?)
}

/// Returns the system calls that are refused by their numbers and arguments.
fn refused_calls(network: bool) -> Result<Vec<RefusedCall>, BackendError> {
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
    Ok(rules)
}

/// Returns a program that lets everything happen but these system calls. Those of other machines end the process.
fn program(refused: Vec<RefusedCall>) -> Result<BpfProgram, BackendError> {
    let filter = SeccompFilter::new(
        refused.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        THIS_MACHINE,
    )?;
    filter.try_into()
}

/// Priorities and processors of other processes, which no other rule protects. Zero is the process that calls.
fn of_other_processes() -> Result<Vec<RefusedCall>, BackendError> {
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
fn requests() -> Result<Vec<SeccompRule>, BackendError> {
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

/// Returns the system calls that signal a thread, or make it the owner of a file.
fn signals_to(thread: i32) -> Result<Vec<RefusedCall>, BackendError> {
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
    Ok(rules)
}

/// Returns when a socket is refused; without rules always.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, BackendError> {
    if !network {
        return Ok(Vec::new());
    }
    let mut others = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        others.push(is_not(0, family)?);
    }
    Ok(vec![SeccompRule::new(others)?])
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// Whether an argument has this value within a mask.
fn has_bits(argument: u8, mask: i32, value: i32) -> Result<SeccompCondition, BackendError> {
    let mask = SeccompCmpOp::MaskedEq(u64::from(mask.unsigned_abs()));
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, mask, value)
}

/// The second set of numbers that x86-64 has for its system calls (x32).
const X32: u32 = 0x4000_0000;

/// What reads extended attributes by the path of a file.
const READS_OF_ATTRIBUTES: [c_long; 6] = [
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    SYS_GETXATTRAT,
    SYS_LISTXATTRAT,
];

/// Returns the number of a system call, as the kernel shows it to a program. One that is none does not compile in a constant.
const fn shown_number(number: c_long) -> u32 {
    assert!(number >= 0 && number < u32::MAX as c_long);
    number as u32
}

const CLONE3: u32 = shown_number(libc::SYS_clone3);

// The instructions of a program: load a word, compare it with a constant, and end.
const LOAD: u16 = opcode(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
const IF_EQUAL: u16 = opcode(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
const IF_ANY_BIT: u16 = opcode(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K);
const END: u16 = opcode(libc::BPF_RET | libc::BPF_K);

/// Returns an instruction as the kernel has it. One that is too large does not compile.
const fn opcode(bits: u32) -> u16 {
    assert!(bits <= u16::MAX as u32);
    bits as u16
}

/// Refuses what depends on the number alone, with the error that each needs: those of x32, what reads attributes, and `clone3`,
/// whose flags no filter can read. A program that is told that there is no `clone3` takes `clone`. Other machines' system calls
/// end the program by the other filter.
fn by_number() -> BpfProgram {
    let instruction = |code: u16, jt: u8, jf: u8, k: u32| sock_filter { code, jt, jf, k };
    let error = |number: i32| libc::SECCOMP_RET_ERRNO | number.unsigned_abs();
    let mut program = vec![
        // The number is the first word of what the kernel shows.
        instruction(LOAD, 0, 0, 0),
        instruction(IF_EQUAL, 0, 1, CLONE3),
        instruction(END, 0, 0, error(libc::ENOSYS)),
    ];
    // Those of any file could be read. A program that is told that there are none goes on without them.
    for number in READS_OF_ATTRIBUTES {
        program.push(instruction(IF_EQUAL, 0, 1, shown_number(number)));
        program.push(instruction(END, 0, 0, error(libc::EOPNOTSUPP)));
    }
    if cfg!(target_arch = "x86_64") {
        program.push(instruction(IF_ANY_BIT, 0, 1, X32));
        program.push(instruction(END, 0, 0, error(libc::EPERM)));
    }
    program.push(instruction(END, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    // The architectures of linux/audit.h.
    #[cfg(target_arch = "x86_64")]
    const OWN_ARCHITECTURE: u32 = 0xC000_003E;
    #[cfg(not(target_arch = "x86_64"))]
    const OWN_ARCHITECTURE: u32 = 0xC000_00B7;
    const I386: u32 = 0x4000_0003;

    /// The thread of q that starts the program, and another process.
    const STARTER: u64 = 4711;
    const OTHER: u64 = 4712;

    /// What the kernel shows of a system call (linux/seccomp.h, struct seccomp_data).
    fn shown(architecture: u32, number: c_long, arguments: &[u64]) -> Vec<u32> {
        let mut words = vec![number as u32, architecture, 0, 0];
        for index in 0..6 {
            let argument = arguments.get(index).copied().unwrap_or_default();
            words.extend([argument as u32, (argument >> 32) as u32]);
        }
        words
    }

    /// Runs a program as the kernel does, and returns what it decides.
    fn decision(program: &BpfProgram, shown: &[u32]) -> u32 {
        let mut word = 0;
        let mut at = 0;
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match u32::from(code) {
                // Load a word, mask it, and end.
                0x20 => word = shown[k as usize / 4],
                0x54 => word &= k,
                0x06 => return k,
                // Always, and if equal, greater, not less, or if any bit is set.
                0x05 => at += k as usize,
                0x15 => at += jump(word == k),
                0x25 => at += jump(word > k),
                0x35 => at += jump(word >= k),
                0x45 => at += jump(word & k != 0),
                other => panic!("the instruction {other:#x}"),
            }
        }
    }

    /// Says what all programs together decide. The kernel takes the strictest, which as a signed number is the least.
    fn verdict(
        network: bool,
        architecture: u32,
        number: c_long,
        arguments: &[u64],
    ) -> &'static str {
        let shown = shown(architecture, number, arguments);
        let mut programs = Vec::from(filters(network).expect("filters"));
        programs.push(no_signals_to(STARTER as i32).expect("a filter"));
        let decisions = programs.iter().map(|program| decision(program, &shown));
        match decisions.min_by_key(|decision| *decision as i32) {
            Some(libc::SECCOMP_RET_ALLOW) => "allowed",
            Some(libc::SECCOMP_RET_KILL_PROCESS) => "killed",
            Some(0x0005_0001) => "EPERM",
            Some(0x0005_0026) => "ENOSYS",
            Some(0x0005_005F) => "EOPNOTSUPP",
            other => panic!("{other:x?}"),
        }
    }

    #[test]
    fn what_leads_out_of_the_bounds_is_refused_and_what_programs_need_is_not() {
        let here = |number, arguments: &[u64]| verdict(true, OWN_ARCHITECTURE, number, arguments);
        for (number, arguments, expected) in [
            // Files that are open, or that Landlock allows to open.
            (libc::SYS_openat, &[0, 0x1000, 0x241][..], "allowed"),
            (libc::SYS_read, &[3, 0x1000, 4096], "allowed"),
            (libc::SYS_write, &[1, 0x1000, 4096], "allowed"),
            (libc::SYS_execve, &[0x1000, 0x1000, 0x1000], "allowed"),
            (libc::SYS_mmap, &[0, 4096, 7, 0x22], "allowed"),
            (libc::SYS_fchmod, &[3, 0o600], "allowed"),
            (libc::SYS_fchmodat, &[0, 0x1000, 0o600], "EPERM"),
            (SYS_FCHMODAT2, &[0, 0x1000, 0o600], "EPERM"),
            // Times: of an open file, and by a path.
            (libc::SYS_utimensat, &[3, 0, 0x1000], "allowed"),
            (libc::SYS_utimensat, &[3, 0x1000, 0x1000], "EPERM"),
            (libc::SYS_utimensat, &[3, 0x10_0000_0000, 0], "EPERM"),
            // TCGETS, FIONREAD.
            (libc::SYS_ioctl, &[0, 0x5401], "allowed"),
            (libc::SYS_ioctl, &[0, 0x541B], "allowed"),
            // FIOSETOWN, SIOCSPGRP, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY. The kernel takes 32 bits of them.
            (libc::SYS_ioctl, &[3, 0x8901], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x8902], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x1_0000_8901], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x4080_6685], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x800C_6613], "EPERM"),
            // BTRFS_IOC_SUBVOL_CREATE, BTRFS_IOC_SNAP_CREATE_V2, BTRFS_IOC_SNAP_DESTROY.
            (libc::SYS_ioctl, &[3, 0x5000_940E], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x5000_9417], "EPERM"),
            (libc::SYS_ioctl, &[3, 0x5000_940F], "EPERM"),
            // FICLONE, FICLONERANGE, FIDEDUPERANGE.
            (libc::SYS_ioctl, &[3, 0x4004_9409], "allowed"),
            (libc::SYS_ioctl, &[3, 0x4020_940D], "allowed"),
            (libc::SYS_ioctl, &[3, 0xC018_9436], "allowed"),
            // A process, a thread, and a namespace of each kind.
            (libc::SYS_clone, &[0x0120_0011], "allowed"),
            (libc::SYS_clone, &[0x003D_0F00], "allowed"),
            (libc::SYS_clone, &[0x0002_0011], "EPERM"),
            (libc::SYS_clone, &[0x0200_0011], "EPERM"),
            (libc::SYS_clone, &[0x0400_0011], "EPERM"),
            (libc::SYS_clone, &[0x0800_0011], "EPERM"),
            (libc::SYS_clone, &[0x1000_0011], "EPERM"),
            (libc::SYS_clone, &[0x2000_0011], "EPERM"),
            (libc::SYS_clone, &[0x4000_0011], "EPERM"),
            (libc::SYS_clone3, &[0x1000, 88], "ENOSYS"),
            (libc::SYS_getxattr, &[0x1000], "EOPNOTSUPP"),
            (libc::SYS_llistxattr, &[0x1000], "EOPNOTSUPP"),
            (SYS_LISTXATTRAT, &[0x1000], "EOPNOTSUPP"),
            (libc::SYS_fgetxattr, &[3], "allowed"),
            (libc::SYS_unshare, &[0x1000_0000], "EPERM"),
            // A limit: to read one, to set its own, and to set that of another process.
            (libc::SYS_prlimit64, &[OTHER, 0, 0, 0x1000], "allowed"),
            (libc::SYS_prlimit64, &[0, 0, 0x1000, 0], "allowed"),
            (libc::SYS_prlimit64, &[OTHER, 0, 0x1000, 0], "EPERM"),
            (libc::SYS_prlimit64, &[OTHER, 0, 0x10_0000_0000, 0], "EPERM"),
            // Priorities: of itself, and of another process, a group or a user.
            (libc::SYS_setpriority, &[0, 0, 5], "allowed"),
            (libc::SYS_setpriority, &[0, OTHER, 5], "EPERM"),
            (libc::SYS_setpriority, &[1, 0, 5], "EPERM"),
            (libc::SYS_setpriority, &[2, 0, 5], "EPERM"),
            (libc::SYS_ioprio_set, &[1, 0, 0], "allowed"),
            (libc::SYS_ioprio_set, &[1, OTHER, 0], "EPERM"),
            (libc::SYS_ioprio_set, &[2, 0, 0], "EPERM"),
            (libc::SYS_sched_setaffinity, &[0, 8], "allowed"),
            (libc::SYS_sched_setaffinity, &[OTHER, 8], "EPERM"),
            (libc::SYS_sched_setscheduler, &[0, 3], "allowed"),
            (libc::SYS_sched_setscheduler, &[OTHER, 3], "EPERM"),
            (libc::SYS_sched_setparam, &[0, 0x1000], "allowed"),
            (libc::SYS_sched_setparam, &[OTHER, 0x1000], "EPERM"),
            (libc::SYS_sched_setattr, &[0, 0x1000], "allowed"),
            (libc::SYS_sched_setattr, &[OTHER, 0x1000], "EPERM"),
            // Signals: to others, as far as Landlock allows that, and to the thread that starts the program.
            (libc::SYS_kill, &[OTHER, 15], "allowed"),
            (libc::SYS_kill, &[STARTER, 15], "EPERM"),
            (libc::SYS_tkill, &[STARTER, 15], "EPERM"),
            (libc::SYS_tgkill, &[OTHER, STARTER, 15], "EPERM"),
            (libc::SYS_tgkill, &[OTHER, OTHER, 15], "allowed"),
            (libc::SYS_rt_sigqueueinfo, &[OTHER, 15], "allowed"),
            (libc::SYS_rt_sigqueueinfo, &[STARTER, 15], "EPERM"),
            (libc::SYS_rt_tgsigqueueinfo, &[OTHER, OTHER, 15], "allowed"),
            (libc::SYS_rt_tgsigqueueinfo, &[OTHER, STARTER, 15], "EPERM"),
            (libc::SYS_pidfd_open, &[STARTER], "EPERM"),
            (libc::SYS_pidfd_open, &[OTHER], "allowed"),
            (libc::SYS_pidfd_send_signal, &[3, 15], "EPERM"),
            // F_GETFL, F_SETOWN, F_SETOWN_EX.
            (libc::SYS_fcntl, &[3, 3], "allowed"),
            (libc::SYS_fcntl, &[3, 8, OTHER], "allowed"),
            (libc::SYS_fcntl, &[3, 8, STARTER], "EPERM"),
            (libc::SYS_fcntl, &[3, 15, 0x1000], "EPERM"),
            (libc::SYS_ptrace, &[16, OTHER], "EPERM"),
            (libc::SYS_io_uring_setup, &[1, 0x1000], "EPERM"),
        ] {
            assert_eq!(here(number, arguments), expected, "{number} {arguments:x?}");
        }
    }

    /// The numbers of system calls by their names.
    macro_rules! system_calls {
        ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
    }

    #[test]
    fn a_system_call_of_which_nothing_is_right_is_refused_whatever_its_arguments_are() {
        let refused: &[(&str, c_long)] = system_calls! {
            SYS_fchmodat SYS_fchownat SYS_setxattr SYS_lsetxattr SYS_removexattr SYS_lremovexattr
            SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_ptrace
            SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_pidfd_send_signal
            SYS_process_madvise SYS_process_mrelease SYS_migrate_pages SYS_move_pages SYS_kcmp
            SYS_inotify_add_watch SYS_keyctl SYS_add_key SYS_request_key SYS_shmget SYS_shmat
            SYS_shmctl SYS_semget SYS_semop SYS_semtimedop SYS_semctl SYS_msgget SYS_msgsnd
            SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink SYS_mount SYS_umount2 SYS_pivot_root
            SYS_chroot SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_open_tree SYS_move_mount
            SYS_mount_setattr SYS_unshare SYS_setns SYS_quotactl SYS_open_by_handle_at SYS_bpf
            SYS_perf_event_open SYS_userfaultfd SYS_init_module SYS_finit_module SYS_delete_module
            SYS_kexec_load SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_sethostname
            SYS_setdomainname SYS_settimeofday SYS_clock_settime SYS_clock_adjtime SYS_adjtimex
            SYS_syslog SYS_vhangup SYS_fanotify_init
        };
        #[cfg(target_arch = "x86_64")]
        let only_here: &[(&str, c_long)] = system_calls! {
            SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat SYS_iopl SYS_ioperm
            SYS_modify_ldt
        };
        #[cfg(not(target_arch = "x86_64"))]
        let only_here: &[(&str, c_long)] = &[];
        // Those that not every C library names.
        let unnamed = [
            ("SYS_FCHMODAT2", SYS_FCHMODAT2),
            ("SYS_SETXATTRAT", SYS_SETXATTRAT),
            ("SYS_REMOVEXATTRAT", SYS_REMOVEXATTRAT),
            ("SYS_FILE_SETATTR", SYS_FILE_SETATTR),
            ("SYS_OPEN_TREE_ATTR", SYS_OPEN_TREE_ATTR),
            ("SYS_QUOTACTL_FD", SYS_QUOTACTL_FD),
            ("SYS_KEXEC_FILE_LOAD", SYS_KEXEC_FILE_LOAD),
        ];
        for (name, number) in refused.iter().chain(only_here).chain(&unnamed) {
            for arguments in [&[][..], &[u64::MAX; 6]] {
                let found = verdict(true, OWN_ARCHITECTURE, *number, arguments);
                assert_eq!(found, "EPERM", "{name}");
            }
        }
        let count = refused.len() + only_here.len() + unnamed.len();
        assert_eq!(
            count,
            REFUSED.len() + REFUSED_HERE.len(),
            "one is in no test"
        );
    }

    #[test]
    fn a_system_call_that_programs_need_is_allowed_whatever_its_arguments_are() {
        let allowed: &[(&str, c_long)] = system_calls! {
            SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_lseek SYS_close
            SYS_close_range SYS_dup SYS_dup3 SYS_pipe2 SYS_openat SYS_openat2 SYS_statx
            SYS_newfstatat SYS_fstat SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_getdents64
            SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_linkat SYS_symlinkat SYS_ftruncate
            SYS_fallocate SYS_fsync SYS_flock SYS_fchmod SYS_fchown SYS_fsetxattr SYS_fgetxattr
            SYS_copy_file_range SYS_sendfile SYS_getcwd SYS_chdir SYS_fchdir SYS_umask SYS_mmap
            SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_brk SYS_execve SYS_execveat SYS_wait4
            SYS_waitid SYS_exit_group SYS_getpid SYS_getppid SYS_gettid SYS_getuid SYS_setsid
            SYS_setpgid SYS_rt_sigaction SYS_rt_sigprocmask SYS_sigaltstack SYS_futex SYS_nanosleep
            SYS_clock_gettime SYS_getrandom SYS_memfd_create SYS_eventfd2 SYS_epoll_create1
            SYS_epoll_ctl SYS_epoll_pwait SYS_ppoll SYS_pselect6 SYS_timerfd_create
            SYS_inotify_init1 SYS_sched_yield SYS_sched_getaffinity SYS_getrlimit SYS_getrusage
            SYS_uname SYS_sysinfo SYS_prctl SYS_seccomp SYS_landlock_create_ruleset
            SYS_landlock_add_rule SYS_landlock_restrict_self
        };
        for (name, number) in allowed {
            for arguments in [&[][..], &[u64::MAX; 6]] {
                let found = verdict(false, OWN_ARCHITECTURE, *number, arguments);
                assert_eq!(found, "allowed", "{name}");
            }
        }
    }

    #[test]
    fn sockets_are_refused_by_their_family_and_kind() {
        // The call, the domain and the type of a socket, and the verdicts without and with the network.
        let table = "
            socket | inet | stream | EPERM | allowed
            socket | inet | datagram | EPERM | allowed
            socket | inet6 | stream | EPERM | allowed
            socket | netlink | raw | EPERM | allowed
            socket | unix | stream | EPERM | EPERM
            socket | packet | raw | EPERM | EPERM
            socket | vsock | stream | EPERM | EPERM
            pair | unix | stream | allowed | allowed
            pair | unix | packets | allowed | allowed
            pair | unix | datagram | EPERM | EPERM
            pair | unix | raw | EPERM | EPERM
            pair | tipc | stream | EPERM | EPERM
        ";
        for [call, domain, kind, without, with] in rows(table) {
            let number = match call {
                "socket" => libc::SYS_socket,
                _ => libc::SYS_socketpair,
            };
            let domain = match domain {
                "inet" => libc::AF_INET,
                "inet6" => libc::AF_INET6,
                "netlink" => libc::AF_NETLINK,
                "unix" => libc::AF_UNIX,
                "packet" => libc::AF_PACKET,
                "vsock" => libc::AF_VSOCK,
                "tipc" => libc::AF_TIPC,
                other => panic!("the domain {other}"),
            };
            let kind = match kind {
                "stream" => libc::SOCK_STREAM,
                "datagram" => libc::SOCK_DGRAM,
                "packets" => libc::SOCK_SEQPACKET,
                "raw" => libc::SOCK_RAW,
                other => panic!("the type {other}"),
            };
            for flags in [0, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK] {
                let arguments = [domain as u64, (kind | flags) as u64];
                let found = [false, true]
                    .map(|network| verdict(network, OWN_ARCHITECTURE, number, &arguments));
                assert_eq!(found, [without, with], "{call} {arguments:x?}");
            }
        }
    }

    #[test]
    fn the_numbers_of_other_machines_and_of_x32_are_no_way_around_the_filters() {
        for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_ptrace] {
            assert_eq!(verdict(true, I386, number, &[]), "killed", "{number}");
        }
        if cfg!(target_arch = "x86_64") {
            for number in [libc::SYS_read, libc::SYS_ptrace, 512] {
                let number = number | c_long::from(X32);
                assert_eq!(verdict(true, OWN_ARCHITECTURE, number, &[]), "EPERM");
            }
        }
    }
}
