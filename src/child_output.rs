//! Runs a program for what it prints, or for its first line, within a number of bytes and a time.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::unix;
use crate::wait::GrowingPauses;

/// How much is read at once.
const READ_SIZE: usize = 4 << 10;

/// What a program may print, and how long it may take.
pub struct OutputLimits {
    pub needed: NeededOutput,
    pub bytes: usize,
    /// `None` is no limit: it may ask for a password.
    pub time: Option<Duration>,
}

/// The part of what a program prints that is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeededOutput {
    /// The first line. Something that the program has left running may print more without end.
    FirstLine,
    All,
}

/// What came of a program that was run for what it prints.
#[derive(Debug, PartialEq, Eq)]
pub enum ChildOutput {
    /// It has ended by itself. After what is needed, something that it has left running may have printed more.
    Ended(Vec<u8>, ExitStatus),
    /// It went beyond a limit, so it was killed.
    OverLimit,
}

impl ChildOutput {
    /// Runs a program, which ends with q where a signal ends that. Something that it has left running may hold its output open, and
    /// is not waited for.
    pub fn of(mut command: Command, limits: &OutputLimits) -> io::Result<ChildOutput> {
        command.stdout(Stdio::piped());
        unix::end_with_this_thread(&mut command);
        let mut running = command.spawn()?;
        let output = read_until_end(&mut running, limits);
        if !matches!(output, Ok(ChildOutput::Ended(..))) {
            let _ = running.kill();
            let _ = running.wait();
        }
        output
    }
}

fn read_until_end(running: &mut Child, limits: &OutputLimits) -> io::Result<ChildOutput> {
    let pauses = GrowingPauses::begin(limits.time);
    let stdout = running.stdout.take();
    let mut stdout = stdout.map(|stdout| File::from(OwnedFd::from(stdout)));
    let mut printed = Vec::new();
    let mut buffer = [0; READ_SIZE];
    loop {
        // Asked first: all that it has printed can be read once it has ended.
        let status = running.try_wait()?;
        let has_enough = limits.needed == NeededOutput::FirstLine && printed.contains(&b'\n');
        let mut wait = pauses.next();
        if status.is_some() {
            wait = Duration::ZERO;
        }
        let mut has_more = false;
        match &stdout {
            Some(stdout) => has_more = unix::wait_for_input(stdout, wait),
            None => thread::sleep(wait),
        }
        if let Some(status) = status
            && (has_enough || !has_more)
        {
            return Ok(ChildOutput::Ended(printed, status));
        }
        if pauses.are_over() {
            return Ok(ChildOutput::OverLimit);
        }
        if let Some(open) = &mut stdout
            && has_more
        {
            match open.read(&mut buffer) {
                Ok(0) => stdout = None,
                Ok(count) => printed.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        if printed.len() > limits.bytes {
            return Ok(ChildOutput::OverLimit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;
    use crate::wait::wait_until;

    #[test]
    fn a_program_is_read_until_it_ends_or_goes_beyond_a_limit() {
        // A script, what it has printed, and its exit status.
        let table = r"
            echo a | a␊ | 0
            true | - | 0
            printf a; exit 3 | a | 3
            echo a; exec >&-; sleep 0.05; exit 2 | a␊ | 2
            sleep 0.05; echo a; echo b | a␊b␊ | 0
            exec 3<&0; cat <&3 & echo a | a␊ | 0
            head -c 2000 /dev/zero; exec sleep 600 | over | -
            yes | over | -
            exec sleep 600 | over | -
            exec >&-; exec sleep 600 | over | -
        ";
        for [script, printed, code] in rows(table) {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stderr(Stdio::null());
            // It stays open until the program is no longer waited for, and so does what reads it.
            command.stdin(Stdio::piped());
            let mut time = Some(Duration::from_secs(120));
            if script.ends_with("exec sleep 600") && script.starts_with("exec") {
                time = Some(Duration::from_millis(50));
            }
            let limits = OutputLimits {
                needed: NeededOutput::FirstLine,
                bytes: 1000,
                time,
            };
            let found = match ChildOutput::of(command, &limits).expect(script) {
                ChildOutput::Ended(bytes, status) => {
                    let text = String::from_utf8_lossy(&bytes).replace('\n', "␊");
                    (text, status.code().map(|code| code.to_string()))
                }
                ChildOutput::OverLimit => ("over".to_owned(), None),
            };
            let code = (!code.is_empty()).then(|| code.to_owned());
            assert_eq!(found, (printed.to_owned(), code), "{script}");
        }
    }
    #[test]
    fn what_a_program_has_printed_is_read_to_its_end_or_to_the_end_of_its_first_line() {
        let long = 3 * READ_SIZE;
        for (needed, before, after, read) in [
            (NeededOutput::All, 0, 0, 1),
            (NeededOutput::All, 1, long, 2 + long),
            (NeededOutput::All, long, long, 2 * long + 1),
            (NeededOutput::FirstLine, 1, 1, 3),
            (NeededOutput::FirstLine, 1, long, READ_SIZE),
            (NeededOutput::FirstLine, long, 1, long + 2),
        ] {
            let [before, after] = [before, after].map(|count| "x".repeat(count));
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "printf '%s\n%s' \"$0\" \"$1\"", &before, &after]);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            let mut running = command.spawn().expect("a shell");
            // All of it is in the pipe then.
            assert!(wait_until(Duration::from_secs(120), || unix::has_ended(
                running.id()
            )));
            let limits = OutputLimits {
                needed,
                bytes: 10 * READ_SIZE,
                time: None,
            };
            match read_until_end(&mut running, &limits).expect("an end") {
                ChildOutput::Ended(printed, _) => {
                    assert_eq!(printed.len(), read, "{needed:?}, {}", before.len());
                }
                ChildOutput::OverLimit => panic!("{needed:?}"),
            }
        }
    }

    #[test]
    fn a_program_beyond_a_limit_is_killed_and_waited_for() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("id");
        for script in ["exec yes", "head -c 2000 /dev/zero; exec sleep 600"] {
            let mut command = Command::new("/bin/sh");
            let script = format!("echo $$ >\"$0\"; exec 2>&-; {script}");
            command
                .arg("-c")
                .arg(&script)
                .arg(&file)
                .stdin(Stdio::null());
            let limits = OutputLimits {
                needed: NeededOutput::All,
                bytes: 1000,
                time: Some(Duration::from_secs(120)),
            };
            let found = ChildOutput::of(command, &limits).expect(&script);
            assert_eq!(found, ChildOutput::OverLimit, "{script}");
            let id = std::fs::read_to_string(&file).expect("its id");
            let id = id.trim().parse().expect("a number");
            // One that was left alone would still run.
            assert!(unix::has_ended(id), "{script}");
        }
    }
}
