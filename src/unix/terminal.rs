//! System calls about terminals: their size and path, which process is in the foreground, and requests to stop.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::{process, termios};
use signal_hook::low_level;

use super::own_process::is_ignored;

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

/// The path of a terminal's device; `None` if the file is no terminal, or its device has no path here.
pub fn terminal_path(terminal: impl AsFd) -> Option<PathBuf> {
    let name = termios::ttyname(terminal, Vec::new()).ok()?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
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

/// Forgets what was typed on a terminal before now. If that fails, it stays.
pub fn discard_input(terminal: &File) {
    let _ = termios::tcflush(terminal, termios::QueueSelector::IFlush);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
