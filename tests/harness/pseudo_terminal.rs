//! Pseudo-terminals, for tests, benchmarks and the soak.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Both ends of a new one with this many columns: ours, and that of programs. They are closed in every program that is
/// started, so that no other program holds the terminal open, and neither becomes the controlling terminal of this process.
pub fn open(columns: u16) -> io::Result<(File, OwnedFd)> {
    /// `ptsname` returns the same buffer each time; macOS has no other call for it.
    static NAME: Mutex<()> = Mutex::new(());
    let _name = NAME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: plain system calls; the name's buffer is used by one thread at a time, and a descriptor is owned by nobody
    // else once it is known to be one.
    let (own, program) = unsafe {
        let own = owned(libc::posix_openpt(
            libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC,
        ))?;
        let number = own.as_raw_fd();
        if libc::grantpt(number) != 0 || libc::unlockpt(number) != 0 {
            return Err(io::Error::last_os_error());
        }
        let name = libc::ptsname(number);
        if name.is_null() {
            return Err(io::Error::last_os_error());
        }
        (
            own,
            owned(libc::open(
                name,
                libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC,
            ))?,
        )
    };
    set_columns(&own, columns)?;
    Ok((own.into(), program))
}

/// Sets how many columns a terminal has.
pub fn set_columns(terminal: &impl AsRawFd, columns: u16) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: a plain system call; the size outlives it.
    match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// A descriptor that is not negative must be open and belong to nobody else.
unsafe fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: what the caller promises.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
