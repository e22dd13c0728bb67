//! System calls about q's own process: what it was started with, its signals, memory and user, and the time zone.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Mode;
use rustix::process;

/// Unsets a variable that is empty. Only for the beginning of the program, before any thread is started.
pub fn unset_if_empty(variable: &str) {
    if std::env::var_os(variable).is_some_and(|value| value.is_empty()) {
        // SAFETY: there is no other thread that could read the environment at the same time.
        unsafe { std::env::remove_var(variable) };
    }
}

/// Whether standard output was closed when q was started.
pub fn was_stdout_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks at standard output before the standard library does, which opens `/dev/null` in the place of a closed one. Whatever is
/// written there would seem to have been written.
extern "C" fn look_at_stdout() {
    // SAFETY: the call only reads a flag of a descriptor; for a closed one it fails.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section has functions of this type, which the system's library calls before it calls the standard library. This one
// needs nothing that the standard library has to prepare.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = look_at_stdout;

/// Lets large blocks of memory return to the system as soon as they are free. By default the GNU C library keeps blocks up to
/// 32 MB for each of its threads, once such a block was freed, so that one large message takes the memory of several.
pub fn give_memory_back() {
    // SAFETY: the call has no conditions. Where it fails, more memory is kept.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Keeps the descriptors that q was started with, but for its standard ones, from every program that q starts. All that q opens
/// itself is kept from them anyway. Only for the beginning of the program.
pub fn close_on_exec() {
    // SAFETY: the call only sets a flag of descriptors, which nobody uses yet.
    #[cfg(target_os = "linux")]
    if unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    } == 0
    {
        return;
    }
    let Ok(open) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    for entry in open.flatten() {
        if let Ok(number) = entry.file_name().to_string_lossy().parse()
            && number > 2
        {
            // SAFETY: the call only sets a flag of a descriptor; for a number that is none it fails.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Lets signals arrive as usual, whatever the program that has started q does with its own: one that it blocks would be held
/// back from q forever, and where it ignores the end of its children, q could not wait for a program. Only for the beginning
/// of the program.
pub fn reset_signals() {
    // SAFETY: `sigset_t` is plain data, which the first call fills; a default action has no conditions.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Takes the owner's rights out of the mask of new files, so that this user can use what q makes. The rights of others stay
/// masked. Only for the beginning of the program.
pub fn unmask_owner() {
    // The mask can only be read by setting it.
    let mask = process::umask(Mode::empty());
    process::umask(mask.difference(Mode::RWXU));
}

/// Whether a signal is ignored, as in programs that `nohup` or a shell's `&` starts.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: `sigaction` is plain data, for which zeroes are a value; without a new action the call only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Returns the user that this process acts as.
pub fn effective_user() -> u32 {
    process::geteuid().as_raw()
}

/// Returns how many seconds local time is ahead of UTC at a moment, which is in seconds since 1970. `TZ` may set the time zone.
pub fn utc_offset(moment: i64) -> i32 {
    // SAFETY: `tm` is plain data, for which zeroes are a value; both pointers outlive the call, which only fills it. No
    // thread changes the environment meanwhile.
    let offset = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const moment, &raw mut local);
        local.tm_gmtoff
    };
    i32::try_from(offset).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn this_process_owns_its_files_and_ignores_only_what_it_is_told_to() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(
            effective_user(),
            file.metadata().expect("it is there").uid()
        );
        // The standard library ignores the first.
        assert!(is_ignored(libc::SIGPIPE) && !is_ignored(libc::SIGCHLD));
    }
}
