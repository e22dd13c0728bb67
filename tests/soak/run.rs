//! One run of a program: how it is started, killed and waited for.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::question::SITE;

/// A run that takes longer hangs: q waits for a lock for 5 seconds at most.
pub const GUARD: Duration = Duration::from_secs(20);

/// A run. Dropping it kills whatever it started.
pub struct Run {
    child: Child,
    pub began: Instant,
}

/// How a run ended.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub hung: bool,
}

impl Run {
    /// Starts a program in a process group of its own, which a Ctrl-C for the soak does not reach.
    pub fn start(command: Command) -> io::Result<Run> {
        Run::start_to(command, Stdio::piped())
    }

    /// The same, with a standard output of its own.
    pub fn start_to(mut command: Command, stdout: Stdio) -> io::Result<Run> {
        let began = Instant::now();
        command.stdin(Stdio::null()).stdout(stdout);
        command.stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
        })?;
        Ok(Run { child, began })
    }

    pub fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
    }

    /// Sends a signal, unless the run has ended.
    pub fn signal(&mut self, signal: i32) {
        if !self.ended() {
            // SAFETY: the child has not been waited for, so the group is still its own.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
        }
    }

    /// Waits for the end. What it prints must fit into a pipe.
    pub fn finish(mut self) -> io::Result<Outcome> {
        let mut hung = false;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if self.began.elapsed() > GUARD && !hung => {
                    hung = true;
                    self.kill();
                }
                None => thread::sleep(Duration::from_micros(300)),
            }
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut stdout)?;
        }
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_end(&mut stderr)?;
        }
        Ok(Outcome {
            status,
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            hung,
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    pub fn killed(&self) -> bool {
        self.status.signal() == Some(libc::SIGKILL) && !self.hung
    }

    pub fn succeeded(&self) -> bool {
        self.status.success()
    }

    /// It failed, and said why.
    pub fn refused(&self) -> bool {
        self.status.code() == Some(1) && !self.stderr.is_empty()
    }

    /// It said more than that there was nothing to continue, that tools are not used, or which sources there are.
    pub fn has_trouble(&self) -> bool {
        let usual = [
            "there is no conversation to continue",
            "the tools of this conversation are not used",
            SITE,
        ];
        self.stderr
            .lines()
            .any(|line| !usual.iter().any(|usual| line.contains(usual)))
    }

    pub fn not_saved(&self) -> bool {
        ["not saved", "nor saved"]
            .iter()
            .any(|words| self.stderr.contains(words))
    }

    pub fn saved_on_its_own(&self) -> bool {
        self.stderr.contains("saved as a separate conversation")
    }

    /// How it ended, in a few words.
    pub fn summary(&self) -> String {
        let hung = if self.hung { ", it hung" } else { "" };
        format!("{}{hung}, stderr {:?}", self.status, self.stderr)
    }
}
