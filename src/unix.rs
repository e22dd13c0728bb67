//! System calls that the standard library does not have, for processes, terminals and files; all unsafe code is here.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, Timestamps, UTIME_NOW, fcntl_getfl, renameat_with,
    utimensat,
};
use rustix::io::{Errno, ioctl_fionread};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::sockopt;
use rustix::process::{self, Pid, WaitId, WaitIdOptions, WaitOptions};
use rustix::{stdio, termios};
use signal_hook::low_level;

pub use rustix::process::Signal;

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

/// Whether standard input has bytes to read already.
pub fn stdin_has_bytes() -> bool {
    ioctl_fionread(stdio::stdin()).is_ok_and(|count| count > 0)
}

/// Returns the user that this process acts as.
pub fn effective_user() -> u32 {
    process::geteuid().as_raw()
}

/// Lets the system ask whether the other end of a connection is there whenever no data has come for this long. If that
/// cannot be set, the connection works without it.
pub fn keep_alive(socket: &impl AsFd, after: Duration) {
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, after);
    let _ = sockopt::set_tcp_keepintvl(socket, after);
}

/// For how long no data has come when the system asks whether the other end of a connection is there; `None` if it never asks.
#[cfg(test)]
pub fn kept_alive(socket: &impl AsFd) -> Option<Duration> {
    let is_on = sockopt::socket_keepalive(socket).is_ok_and(|is_on| is_on);
    is_on.then(|| sockopt::tcp_keepidle(socket).unwrap_or_default())
}

/// Sets the time of a file to now, by the clock of its file system. If that fails, the file keeps its time.
pub fn touch(path: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Renames a file or a link, unless something has the new name already: then the error is `AlreadyExists`. Not every system
/// and file system can do that.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Other systems have no such call.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The process group that this process leads; `None` for what no process of this user can be.
fn group_of(leader: u32) -> Option<Pid> {
    // Of process 1, the system would take the group for every process.
    let leader = i32::try_from(leader).ok().filter(|leader| *leader > 1);
    leader.and_then(Pid::from_raw)
}

/// Sends a signal to a process group, unless it is gone.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = group_of(leader) {
        let _ = process::kill_process_group(group, signal);
    }
}

/// Whether a process group has a process left that this user may signal, be it one that has ended and has not been reaped.
pub fn is_group_left(leader: u32) -> bool {
    group_of(leader).is_some_and(|group| process::test_kill_process_group(group).is_ok())
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
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    group_of(child).is_none_or(|id| !matches!(process::waitid(WaitId::Pid(id), options), Ok(None)))
}

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

/// Whether a process is a child of this one that has not been reaped.
pub fn is_child(id: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    group_of(id).is_some_and(|id| process::waitid(WaitId::Pid(id), options).is_ok())
}

/// Reaps the children of this process that have ended and belong to a group.
pub fn reap_group(leader: u32) {
    if let Some(group) = group_of(leader) {
        while let Ok(Some(_)) = process::waitpgid(group, WaitOptions::NOHANG) {}
    }
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
pub fn terminal_size(terminal: impl AsFd) -> TerminalSize {
    match termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => TerminalSize {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        },
        _ => TerminalSize::default(),
    }
}

/// Whether a file is open for reading. To the standard library, standard input that is not is empty.
pub fn can_read(file: impl AsFd) -> bool {
    let mode = fcntl_getfl(file).map(|flags| flags & OFlags::RWMODE);
    mode != Ok(OFlags::WRONLY)
}

/// Whether this process is in the foreground of its terminal, not in the background of a shell.
pub fn is_in_foreground(terminal: &File) -> bool {
    termios::tcgetpgrp(terminal).is_ok_and(|group| group == process::getpgrp())
}

/// Whether this process is in the background of this terminal. A terminal that does not control it has no background.
pub fn is_in_background(terminal: impl AsFd) -> bool {
    termios::tcgetpgrp(terminal).is_ok_and(|group| group != process::getpgrp())
}

/// Whether a file is the terminal that controls this process.
pub fn controls_this_process(file: impl AsFd) -> bool {
    // The terminal of an outer container has a group that this process cannot name.
    !matches!(termios::tcgetpgrp(file), Err(error) if error != Errno::OPNOTSUPP)
}

/// The path of a terminal's device; `None` if the file is no terminal, or its device has no path here.
pub fn terminal_path(terminal: impl AsFd) -> Option<PathBuf> {
    let name = termios::ttyname(terminal, Vec::new()).ok()?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// Waits until a terminal or a pipe has something to read, or can never have, but not longer than `timeout`.
pub fn wait_for_input(file: &File, timeout: Duration) -> bool {
    let mut wanted = [PollFd::new(file, PollFlags::IN)];
    let limit = Timespec::try_from(timeout).ok();
    match poll(&mut wanted, limit.as_ref()) {
        Ok(count) => count > 0,
        // A signal may have come.
        Err(error) => error != Errno::INTR,
    }
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
            let _ = low_level::raise(libc::SIGTSTP);
        }
    }
}

impl Drop for StopRequests {
    fn drop(&mut self) {
        self.end();
    }
}

/// Forgets what was typed on a terminal before now. If that fails, it stays.
pub fn discard_input(terminal: &File) {
    let _ = termios::tcflush(terminal, termios::QueueSelector::IFlush);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::io::{Write, pipe};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::process::{Child, Stdio};
    use std::time::SystemTime;

    use crate::wait::GrowingPauses;

    /// Says why a test is skipped. With `SKIP_NO_TEST` in the environment that is a failure.
    #[track_caller]
    pub fn skip(why: &str) {
        let is_allowed = std::env::var_os("SKIP_NO_TEST").is_none();
        assert!(is_allowed, "it would be skipped: {why}");
        // A test that passes does not show what the macros print; `.ci/run` counts these lines.
        writeln!(io::stderr(), "skipped: {why}").expect("standard error");
    }

    const MINUTES: Duration = Duration::from_secs(120);

    fn becomes(mut is_true: impl FnMut() -> bool) -> bool {
        let pauses = GrowingPauses::begin(Some(MINUTES));
        while !pauses.are_over() {
            if is_true() {
                return true;
            }
            std::thread::sleep(pauses.next());
        }
        false
    }

    /// A program that waits, in a session of its own.
    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        in_own_session(&mut command).spawn().expect("sleep")
    }

    #[test]
    fn input_is_there_if_bytes_have_come_or_none_can_come() {
        let (reader, mut writer) = pipe().expect("a pipe");
        let reader = File::from(OwnedFd::from(reader));
        assert!(!wait_for_input(&reader, Duration::ZERO));
        assert!(!wait_for_input(&reader, Duration::from_millis(5)));
        writer.write_all(b"a").expect("a byte");
        assert!(wait_for_input(&reader, MINUTES));
        let (reader, writer) = pipe().expect("a pipe");
        drop(writer);
        assert!(wait_for_input(&File::from(OwnedFd::from(reader)), MINUTES));
    }

    #[test]
    fn a_program_in_its_own_session_leads_a_group_that_signals_reach() {
        let mut child = sleeper();
        let id = child.id();
        let pid = group_of(id).expect("an id");
        assert_eq!(process::getsid(Some(pid)), Ok(pid));
        assert_eq!(process::getpgid(Some(pid)), Ok(pid));
        assert!(!has_ended(id) && is_group_left(id));
        reap_group(id);
        assert!(!has_ended(id), "it has not ended");
        signal_group(id, Signal::TERM);
        assert!(becomes(|| has_ended(id)));
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
        assert!(becomes(|| has_ended(id)));
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
        assert!(becomes(|| {
            reap_group(id);
            !is_group_left(id)
        }));
        child.wait().expect_err("it has been waited for");
    }

    #[test]
    fn what_cannot_be_the_id_of_a_child_is_no_group() {
        // A signal to these would reach this process's own group, or every process.
        for id in [0, 1, u32::MAX, 1 << 31] {
            assert!(group_of(id).is_none(), "{id}");
            assert!(!is_group_left(id) && has_ended(id), "{id}");
        }
    }

    #[test]
    fn a_rename_replaces_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let [from, to] = ["from", "to"].map(|name| root.path().join(name));
        std::fs::write(&from, "new").expect("a file");
        std::fs::write(&to, "old").expect("a file");
        let error = rename_new(&from, &to).expect_err("it is taken");
        if error.kind() == io::ErrorKind::Unsupported {
            return skip("the file system cannot refuse to replace a file");
        }
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(std::fs::read(&to).expect("a file"), b"old");
        std::fs::remove_file(&to).expect("a file");
        rename_new(&from, &to).expect("a new name");
        assert_eq!(std::fs::read(&to).expect("a file"), b"new");
        assert!(!from.exists());
    }

    #[test]
    fn touching_a_path_sets_its_own_time_and_not_that_of_what_it_links_to() {
        let root = tempfile::tempdir().expect("a directory");
        let [file, link] = ["file", "link"].map(|name| root.path().join(name));
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let made = File::create(&file).expect("a file");
        made.set_modified(long_ago).expect("a time");
        symlink("file", &link).expect("a link");
        let time = |path: &Path| {
            path.metadata()
                .and_then(|found| found.modified())
                .expect("a time")
        };
        touch(&link);
        assert_eq!(time(&file), long_ago);
        touch(&file);
        assert!(time(&file) > long_ago + Duration::from_secs(86_400 * 365));
        touch(&root.path().join("gone"));
        assert!(!root.path().join("gone").exists());
    }

    #[test]
    fn what_is_no_terminal_has_the_usual_size_and_controls_nothing() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(
            terminal_size(&file),
            TerminalSize {
                columns: 80,
                rows: 24
            }
        );
        assert_eq!(terminal_path(&file), None);
        assert!(!is_in_foreground(&file) && !is_in_background(&file));
        assert!(!controls_this_process(&file));
        discard_input(&file);
    }

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
