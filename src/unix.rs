//! All system calls that need unsafe code, for processes, terminals and files.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Unsets a variable that is empty. Only for the beginning of the program, before any thread is started.
pub fn unset_if_empty(variable: &str) {
    if std::env::var_os(variable).is_some_and(|value| value.is_empty()) {
        // SAFETY: there is no other thread that could read the environment at the same time.
        unsafe { std::env::remove_var(variable) };
    }
}

/// Lets large blocks of memory return to the system as soon as they are free. By default the GNU C library keeps blocks up to
/// 32 MB for each of its threads, once such a block was freed, so that one large message takes the memory of several.
pub fn give_memory_back() {
    // SAFETY: the call has no conditions. Where it fails, more memory is kept.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// How many seconds local time is ahead of UTC at a moment, which is in seconds since 1970. `TZ` may set the time zone.
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

/// Whether a signal is ignored, as in programs that `nohup` or a shell's `&` starts.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: `sigaction` is plain data, for which zeroes are a value; without a new action the call only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether standard input has bytes to read already.
pub fn stdin_has_bytes() -> bool {
    let mut count: libc::c_int = 0;
    // SAFETY: the call only writes the number, which outlives it; on a descriptor of another kind it fails.
    let result = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::FIONREAD, &raw mut count) };
    result == 0 && count > 0
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: the call has no conditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sets the time of a file to now, by the clock of its file system. If that fails, the file keeps its time.
pub fn touch(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        // SAFETY: the path ends in NUL and outlives the call; without times the call sets both to now.
        unsafe {
            libc::utimensat(
                libc::AT_FDCWD,
                path.as_ptr(),
                std::ptr::null(),
                libc::AT_SYMLINK_NOFOLLOW,
            )
        };
    }
}

/// Renames a file or a link, unless something has the new name already: then the error is `AlreadyExists`. Not every system
/// and file system can do that.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let (old, new) = (from.as_ptr(), to.as_ptr());
    // SAFETY: the paths end in NUL and outlive the call.
    #[cfg(target_vendor = "apple")]
    let result = unsafe { libc::renamex_np(old, new, libc::RENAME_EXCL) };
    // SAFETY: as above. Older C libraries have no function for this call.
    #[cfg(not(target_vendor = "apple"))]
    let result = unsafe {
        let (here, flags) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
        libc::syscall(libc::SYS_renameat2, here, old, here, new, flags)
    };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Other systems have no such call.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sends a signal to a process group; the signal 0 only checks that the group exists. Returns false if the group has no
/// process left that this user may signal.
pub fn signal_group(leader: i32, signal: i32) -> bool {
    // 0 would mean the group of this process, and 1 every process.
    if leader <= 1 {
        return false;
    }
    // SAFETY: the call has no conditions.
    let result = unsafe { libc::kill(-leader, signal) };
    result == 0
}

/// Makes the program the leader of a new session without a terminal, and of a new process group. SIGINT ends it, even if q was
/// started in the background of a script, where shells ignore it.
pub fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: before the program is executed, this makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

/// Reaps the children of this process that have ended and belong to a group.
pub fn reap_group(leader: i32) {
    if leader <= 1 {
        return;
    }
    let status = std::ptr::null_mut();
    // SAFETY: without a place for the status the call has no conditions.
    while unsafe { libc::waitpid(-leader, status, libc::WNOHANG) } > 0 {}
}

/// The columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: usize,
    pub rows: usize,
}

/// The size of a terminal that does not report its own.
impl Default for TerminalSize {
    fn default() -> TerminalSize {
        TerminalSize {
            columns: 80,
            rows: 24,
        }
    }
}

/// The size of a terminal, or the default if it does not report its own.
pub fn terminal_size(terminal: &impl AsRawFd) -> TerminalSize {
    // SAFETY: `winsize` is plain data, for which zeroes are a value; the call only fills it.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size);
        size
    };
    // The call fails for a file that is no terminal, and leaves the zeroes.
    if size.ws_col == 0 || size.ws_row == 0 {
        return TerminalSize::default();
    }
    TerminalSize {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
    }
}

/// Whether this process is in the foreground of its terminal, not in the background of a shell.
pub fn is_in_foreground(terminal: &File) -> bool {
    // SAFETY: the calls have no conditions; on failure they return what no process group has.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
}

/// Whether a file is the terminal that controls this process.
pub fn controls_this_process(file: &impl AsRawFd) -> bool {
    // SAFETY: the call has no conditions; it fails for any other file.
    unsafe { libc::tcgetpgrp(file.as_raw_fd()) >= 0 }
}

/// The path of a terminal's device; `None` if the file is no terminal, or its device has no path here.
pub fn terminal_path(terminal: &impl AsRawFd) -> Option<PathBuf> {
    let mut name = [0_u8; 256];
    // SAFETY: the call writes at most that many bytes into the buffer, which outlives it.
    let result =
        unsafe { libc::ttyname_r(terminal.as_raw_fd(), name.as_mut_ptr().cast(), name.len()) };
    if result != 0 {
        return None;
    }
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// Waits until a terminal or a pipe has something to read, or can never have, but not longer than `patience`.
pub fn wait_for_input(file: &File, patience: Duration) -> bool {
    let mut wanted = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the call only changes this one value, which outlives it.
    let count = unsafe { libc::poll(&raw mut wanted, 1, milliseconds) };
    // A signal may have come.
    count > 0 || (count < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted)
}

/// Ctrl-Z was typed, or SIGTSTP was sent in another way, while a [`StopRequests`] was there.
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_stop_request(_: libc::c_int) {
    STOP_REQUESTED.store(true, Ordering::Relaxed);
}

/// A time in which a request to stop (SIGTSTP) only is noted. There is one such time at once.
pub struct StopRequests {
    /// How the signal was handled before; `None` if it is ignored.
    before: Option<libc::sigaction>,
}

impl StopRequests {
    /// Begins with no request.
    pub fn hold() -> StopRequests {
        let mut held = StopRequests { before: None };
        held.begin();
        held
    }

    fn begin(&mut self) {
        if is_ignored(libc::SIGTSTP) {
            return;
        }
        STOP_REQUESTED.store(false, Ordering::Relaxed);
        // SAFETY: `sigaction` is plain data, for which zeroes are a value; the handler only sets an atomic value.
        unsafe {
            let mut noted: libc::sigaction = std::mem::zeroed();
            noted.sa_sigaction = note_stop_request as *const () as usize;
            noted.sa_flags = libc::SA_RESTART;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGTSTP, &raw const noted, &raw mut before) == 0 {
                self.before = Some(before);
            }
        }
    }

    /// Whether this process has been asked to stop.
    pub fn have_arrived(&self) -> bool {
        STOP_REQUESTED.load(Ordering::Relaxed)
    }

    /// Stops this process as if nothing had held the request back, and returns when it goes on.
    pub fn obey(&mut self) {
        self.end();
        self.begin();
    }

    /// Handles the signal as before, and passes on a request that has been noted.
    fn end(&mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        // SAFETY: the action is one that the system has given; no action is asked for.
        unsafe { libc::sigaction(libc::SIGTSTP, &raw const before, std::ptr::null_mut()) };
        if STOP_REQUESTED.swap(false, Ordering::Relaxed) {
            // SAFETY: the call has no conditions.
            unsafe { libc::raise(libc::SIGTSTP) };
        }
    }
}

impl Drop for StopRequests {
    fn drop(&mut self) {
        self.end();
    }
}

/// Forgets what was typed on a terminal before now.
pub fn discard_input(terminal: &File) {
    // SAFETY: the call has no conditions; where it fails, what was typed stays.
    unsafe { libc::tcflush(terminal.as_raw_fd(), libc::TCIFLUSH) };
}
