//! What the standard library does not tell of this process and its terminal.

/// Whether a signal is ignored, as `nohup` and a shell's `&` leave it to the programs that they start.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: `sigaction` is plain data, for which zeroes are a value; without a new action the call only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// The user that this process acts as.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call has no conditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// How many columns the terminal has that standard output is, if it is one.
pub(crate) fn terminal_columns() -> Option<usize> {
    // SAFETY: `winsize` is plain data, for which zeroes are a value; the call only fills it.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    };
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
