//! Gets a key, perhaps from the command that prints it, such as a password manager's; its first line is the key.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::output::Notes;
use crate::secret::Secret;
use crate::settings::{Environment, Key, check_key, expand_home};
use crate::unix;

/// How a shell says that SIGINT has ended a command.
const ENDED_BY_INTERRUPT: i32 = 128 + libc::SIGINT;

/// How long q may take to end after Ctrl-C.
const MOMENT: Duration = Duration::from_millis(500);

/// The most bytes that a command may print: the key, and whatever a password manager keeps beside it.
const MAX_PRINTED: usize = 1_000_000;

/// How much of it is read at once.
const READ_SIZE: usize = 4 << 10;

/// How often q looks whether a command has ended while its output is open.
const POLL: Duration = Duration::from_millis(10);

/// The key of a provider or a tool server; `None` if it needs none. A command runs without a shell, and its standard error
/// passes through.
pub fn fetch(
    key: &Key,
    whose: &str,
    environment: &Environment,
    notes: &Notes,
) -> Result<Option<Secret>, Error> {
    let Key::Command(command) = key else {
        return key.read(whose, environment);
    };
    // It may ask for a password on the same terminal.
    notes.spinner().stop();
    let wrong = |what: String| Error::settings(format!("{whose}: key_cmd: {what}"));
    let program = &command[0];
    let file = expand_home(program, environment).map_err(&wrong)?;
    let mut started = Command::new(file);
    started.args(&command[1..]);
    started.stdin(Stdio::null());
    started.stdout(Stdio::piped());
    let output = output_of(started);
    let (printed, status) =
        output.map_err(|error| wrong(format!("cannot run {program}: {error}")))?;
    let Some(status) = status else {
        return Err(wrong(format!(
            "{program} printed more than {MAX_PRINTED} bytes, and was ended"
        )));
    };
    // Ctrl-C ends q as well, a moment later.
    if status.signal() == Some(libc::SIGINT) || status.code() == Some(ENDED_BY_INTERRUPT) {
        thread::sleep(MOMENT);
    }
    if !status.success() {
        let error = wrong(format!("{program} failed ({status})"));
        return Err(error.advise("run it by hand to see why"));
    }
    let printed = String::from_utf8_lossy(&printed);
    let line = printed.lines().next().unwrap_or_default().trim_end();
    if line.is_empty() {
        return Err(wrong(format!("{program} printed no key on its first line")));
    }
    let secret = Secret::new(line);
    check_key(&secret, &format!("what {program} prints for {whose}"))?;
    Ok(Some(secret))
}

/// What a command prints, and how it has ended; `None` if it printed too much, so that it was killed. Something that it has left
/// running may hold its output open, and is not waited for.
fn output_of(mut command: Command) -> io::Result<(Vec<u8>, Option<ExitStatus>)> {
    let mut running = command.spawn()?;
    let mut printed = Vec::new();
    let mut status = None;
    if let Some(stdout) = running.stdout.take() {
        let mut stdout = File::from(OwnedFd::from(stdout));
        let mut buffer = [0; READ_SIZE];
        loop {
            // Asked first: all that it has printed can be read once it has ended.
            status = running.try_wait()?;
            if status.is_some() && printed.contains(&b'\n') {
                break;
            }
            let timeout = status.map_or(POLL, |_| Duration::ZERO);
            if !unix::wait_for_input(&stdout, timeout) {
                if status.is_some() {
                    break;
                }
                continue;
            }
            let read = stdout.read(&mut buffer);
            if let Ok(count) = read {
                printed.extend_from_slice(&buffer[..count]);
            }
            if read.is_err() || printed.len() > MAX_PRINTED {
                let _ = running.kill();
                running.wait()?;
                return read.map(|_| (printed, None));
            }
            if matches!(read, Ok(0)) {
                break;
            }
        }
    }
    let status = status.map_or_else(|| running.wait(), Ok)?;
    Ok((printed, Some(status)))
}
