//! Two facts about this process that the standard library does not tell.

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
