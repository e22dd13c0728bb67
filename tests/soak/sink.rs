//! Where the answer is shown: pipes and pseudo-terminals, read at once, slowly, or not before the end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Pipe,
    Terminal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Fast,
    /// A few hundred bytes at a time, with pauses.
    Slow,
    /// Nothing before the program has ended.
    Stalled,
}

pub struct Sink {
    form: Form,
    hurry: Arc<AtomicBool>,
    reading: JoinHandle<Vec<u8>>,
}

impl Sink {
    /// The sink, and the program's end of it.
    pub fn new(form: Form, pace: Pace) -> io::Result<(Sink, Stdio)> {
        let (own, program): (File, Stdio) = match form {
            Form::Pipe => {
                let (reader, writer) = io::pipe()?;
                (OwnedFd::from(reader).into(), writer.into())
            }
            Form::Terminal => {
                let (own, program) = terminal()?;
                (own.into(), program.into())
            }
        };
        let hurry = Arc::new(AtomicBool::new(pace == Pace::Fast));
        let reading = thread::spawn({
            let hurry = Arc::clone(&hurry);
            move || read(own, pace, &hurry)
        });
        Ok((Sink { form, hurry, reading }, program))
    }

    /// All that the program has written, once it has ended.
    pub fn finish(self) -> Vec<u8> {
        self.hurry.store(true, Ordering::Relaxed);
        let bytes = self.reading.join().expect("a reader that does not panic");
        match self.form {
            Form::Pipe => bytes,
            Form::Terminal => without_breaks(&without_carriage_returns(&bytes)),
        }
    }
}

fn read(mut file: File, pace: Pace, hurry: &AtomicBool) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let hurries = hurry.load(Ordering::Relaxed);
        if !hurries {
            thread::sleep(Duration::from_millis(1));
            if pace == Pace::Stalled {
                continue;
            }
        }
        let most = if hurries { part.len() } else { 300 };
        match file.read(&mut part[..most]) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Linux says with EIO that nobody has the terminal open any more.
            _ => return bytes,
        }
    }
}

/// The terminal's driver sends CR LF for LF.
fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let is_added = |at: usize| bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    (0..bytes.len()).filter(|at| !is_added(*at)).map(|at| bytes[at]).collect()
}

/// Lines that q has broken end in a blank; those of an answer do not.
fn without_breaks(bytes: &[u8]) -> Vec<u8> {
    let is_break = |at: usize| bytes[at] == b'\n' && at > 0 && bytes[at - 1] == b' ';
    (0..bytes.len()).filter(|at| !is_break(*at)).map(|at| bytes[at]).collect()
}

/// Both ends of a pseudo-terminal.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    /// `ptsname` returns the same buffer each time; macOS has no other call for it.
    static NAME: Mutex<()> = Mutex::new(());
    let _name = NAME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: plain system calls; the name's buffer is used by one thread at a time, and a descriptor is owned by nobody
    // else once it is known to be one.
    unsafe {
        let own = owned(libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC))?;
        let number = own.as_raw_fd();
        if libc::grantpt(number) != 0 || libc::unlockpt(number) != 0 {
            return Err(io::Error::last_os_error());
        }
        let name = libc::ptsname(number);
        if name.is_null() {
            return Err(io::Error::last_os_error());
        }
        let program = owned(libc::open(name, libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC))?;
        let size = libc::winsize { ws_row: 50, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        if libc::ioctl(number, libc::TIOCSWINSZ, &raw const size) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((own, program))
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
