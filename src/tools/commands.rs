//! Runs a command that the model calls: finds its program and its files, and reads what it writes until it has ended.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::{Map, Value};

use super::outcome::Outcome;
use super::process::{Groups, POLL, Process, Program};
use super::protocol::{About, ListedTool};
use crate::argv::Invocation;
use crate::settings::Command;
use crate::unix;

/// The most bytes of a command's output that are read.
const MAX_OUTPUT: usize = 1_000_000;

/// The commands of a section, and the programs that they run.
#[derive(Clone)]
pub(crate) struct Commands(pub(super) Vec<(Command, Program)>);

impl Commands {
    /// The commands as tools.
    pub(super) fn about(&self) -> About {
        let tool = |(command, _): &(Command, Program)| ListedTool {
            name: command.name.clone(),
            description: command.about.clone(),
            schema: command.argv.schema(),
            reads: command.reads,
            is_harmless: command.reads,
        };
        About {
            tools: self.0.iter().map(tool).collect(),
            ..About::default()
        }
    }

    /// What a call would run.
    ///
    /// # Errors
    /// Why it cannot run, in words for the model.
    pub(super) fn fill(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(&Command, &Program, Invocation), String> {
        let found = self.0.iter().find(|(command, _)| command.name == tool);
        let (command, program) = found.ok_or_else(|| format!("There is no command {tool}."))?;
        let filled = command
            .argv
            .fill(arguments, |path| resolve(path, &program.folder))?;
        Ok((command, program, filled))
    }

    /// Runs a call, and returns what the model gets.
    pub(super) fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        groups: &Groups,
    ) -> Outcome {
        match self.fill(tool, arguments) {
            Ok((command, program, filled)) => run(program, &filled, command.timeout, groups),
            Err(reason) => Outcome::failed(reason),
        }
    }
}

/// The full path of a file in a folder or below it, where every link has been followed.
///
/// # Errors
/// There is no such file. The words are for the model, and do not say whether there is one elsewhere.
fn resolve(path: &str, folder: &Path) -> Result<String, String> {
    // An empty path would be the folder itself.
    let found = fs::canonicalize(folder.join(path))
        .ok()
        .filter(|_| !path.is_empty());
    let found = found
        .zip(fs::canonicalize(folder).ok())
        .filter(|(file, folder)| file.starts_with(folder));
    let found = found.and_then(|(file, _)| file.into_os_string().into_string().ok());
    found.ok_or_else(|| format!("names nothing below {}", folder.display()))
}

/// Runs a command until it ends or its time is up, and then ends what it has left running.
fn run(
    program: &Program,
    filled: &Invocation,
    patience: Option<Duration>,
    groups: &Groups,
) -> Outcome {
    let input = if filled.stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let mut process = match Process::spawn(program, &filled.argv, input, groups) {
        Ok(process) => process,
        Err(error) => {
            groups.wait_if_closed();
            let too_long = error.kind() == io::ErrorKind::ArgumentListTooLong;
            let why = if too_long {
                "its arguments are too long".to_owned()
            } else {
                error.to_string()
            };
            return Outcome::failed(format!("The command cannot be run: {why}."));
        }
    };
    let began = Instant::now();
    let mut pipes = Pipes::new(&mut process, filled.stdin.as_deref().unwrap_or_default());
    let [mut pause, longest] = POLL;
    let too_late = loop {
        let left = patience.map(|patience| patience.saturating_sub(began.elapsed()));
        if pipes.is_cut || process.has_ended() {
            break None;
        } else if left.is_some_and(|left| left.is_zero()) {
            break patience;
        }
        let has_moved = pipes.step(left.map_or(pause, |left| left.min(pause)));
        pause = if has_moved {
            POLL[0]
        } else {
            (pause * 2).min(longest)
        };
    };
    let status = process.end(Duration::ZERO);
    // What it wrote before it ended is still in the pipes.
    while pipes.step(Duration::ZERO) {}
    groups.wait_if_closed();
    outcome(too_late, status, &pipes)
}

/// The pipes to and from a command.
struct Pipes {
    /// `None` once everything has been written, or the command no longer reads it.
    input: Option<ChildStdin>,
    unwritten: Vec<u8>,
    /// Standard output and standard error; `None` once they have ended.
    outputs: [Option<File>; 2],
    read: [Vec<u8>; 2],
    /// The command wrote more than q reads.
    is_cut: bool,
}

impl Pipes {
    fn new(process: &mut Process, input: &str) -> Pipes {
        let leader = &mut process.leader;
        let outputs = [
            leader.stdout.take().map(OwnedFd::from),
            leader.stderr.take().map(OwnedFd::from),
        ];
        Pipes {
            input: leader.stdin.take().filter(|_| !input.is_empty()),
            unwritten: input.into(),
            outputs: outputs.map(|output| output.map(File::from)),
            read: [Vec::new(), Vec::new()],
            is_cut: false,
        }
    }

    /// Reads and writes what can be read and written within this time. Returns whether that was anything.
    fn step(&mut self, patience: Duration) -> bool {
        let [output, error] = self
            .outputs
            .each_ref()
            .map(|pipe| pipe.as_ref().map(|pipe| (pipe.as_fd(), libc::POLLIN)));
        let input = self
            .input
            .as_ref()
            .map(|pipe| (pipe.as_fd(), libc::POLLOUT));
        let [output, error, input] = unix::ready([output, error, input], patience);
        for (at, _) in [output, error]
            .into_iter()
            .enumerate()
            .filter(|(_, is_ready)| *is_ready)
        {
            let mut buffer = [0; 1 << 16];
            let room = (MAX_OUTPUT - self.read[0].len() - self.read[1].len()).min(buffer.len());
            // One byte above the limit shows that there is more.
            let read = self.outputs[at]
                .as_mut()
                .map_or(Ok(0), |pipe| pipe.read(&mut buffer[..room.max(1)]));
            let count = read.unwrap_or_default();
            self.is_cut |= count > room;
            match count {
                1.. if count <= room => self.read[at].extend(&buffer[..count]),
                _ => self.outputs[at] = None,
            }
        }
        if let Some(pipe) = self.input.as_mut().filter(|_| input) {
            // A pipe that is ready takes at least this much without blocking.
            let piece = &self.unwritten[..self.unwritten.len().min(libc::PIPE_BUF)];
            let written = pipe.write(piece).unwrap_or(self.unwritten.len());
            self.unwritten.drain(..written);
            self.input = self.input.take().filter(|_| !self.unwritten.is_empty());
        }
        output || error || input
    }
}

/// What the model gets: standard output; if that is not everything, why; and if the command failed, standard error.
/// `too_late` is the limit that it did not keep, `status` how it ended by itself.
fn outcome(too_late: Option<Duration>, status: Option<ExitStatus>, pipes: &Pipes) -> Outcome {
    // The end of its pipe ends a command that writes too much.
    let status = status.filter(|_| !pipes.is_cut);
    // If q has ended it, its last character may be incomplete.
    let is_whole = too_late.is_none() && !pipes.is_cut;
    let [output, error] = pipes
        .read
        .each_ref()
        .map(|bytes| match std::str::from_utf8(bytes) {
            Err(odd) if !is_whole && odd.error_len().is_none() => &bytes[..odd.valid_up_to()],
            _ => bytes,
        });
    let [mut text, error] = [output, error].map(String::from_utf8_lossy);
    let is_error = too_late.is_some() || status.is_some_and(|status| !status.success());
    let needs_reason = is_error || output.is_empty();
    let mut marks = Vec::new();
    if [&text, &error]
        .iter()
        .any(|text| matches!(text, Cow::Owned(_)))
    {
        marks.push("what is not UTF-8 is shown as \u{fffd}".to_owned());
    }
    if pipes.is_cut {
        marks.push(format!("cut after {MAX_OUTPUT} bytes"));
    }
    match (too_late, status) {
        (Some(limit), _) => marks.push(format!(
            "ended after {} s, its timeout",
            limit.as_secs_f64()
        )),
        (None, Some(status)) if needs_reason => marks.push(status.to_string().replace(": ", " ")),
        _ => (),
    }
    if needs_reason && !error.is_empty() {
        marks.push("standard error".to_owned());
    }
    for mark in marks {
        let text = text.to_mut();
        let line_end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text.push_str(&format!("{line_end}[{mark}]\n"));
    }
    if needs_reason {
        text.to_mut().push_str(&error);
    }
    Outcome {
        text: text.into_owned(),
        is_error,
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of a command with a timeout.
    fn run(argv: &[&str], stdin: Option<&str>, patience: Duration, groups: &Groups) -> Outcome {
        let filled = Invocation {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            stdin: stdin.map(str::to_owned),
        };
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = Program {
            file: argv[0].into(),
            command: Vec::new(),
            environment,
            folder: "/".into(),
        };
        super::run(&program, &filled, Some(patience), groups)
    }

    /// The outcome of a shell script with a timeout, and how long it took.
    fn shell(script: &str, stdin: Option<&str>, seconds: u64) -> (Outcome, Duration) {
        let (began, groups) = (Instant::now(), Groups::default());
        let outcome = run(
            &["/bin/sh", "-c", script],
            stdin,
            Duration::from_secs(seconds),
            &groups,
        );
        assert!(groups.is_empty(), "something is left of the group");
        (outcome, began.elapsed())
    }

    const FOREVER: u64 = 600;
    const SOON: Duration = Duration::from_secs(120);

    #[test]
    fn output_is_read_up_to_the_limit() {
        let of = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x");
        assert_eq!(
            shell(&of(MAX_OUTPUT), None, FOREVER).0.text,
            "x".repeat(MAX_OUTPUT)
        );
        for script in [
            of(MAX_OUTPUT + 1),
            "yes".to_owned(),
            "yes é".to_owned(),
            "trap '' TERM; yes".to_owned(),
        ] {
            let (outcome, took) = shell(&script, None, FOREVER);
            let (text, mark) = outcome.text.split_once("\n[").expect("a mark");
            assert!(
                MAX_OUTPUT - text.len() < 4 && mark == "cut after 1000000 bytes]\n",
                "{script}: {mark}"
            );
            assert!(!outcome.is_error && took < SOON, "{script}: {took:?}");
        }
        let (outcome, _) = shell("yes >&2", None, FOREVER);
        assert!(
            outcome
                .text
                .starts_with("[cut after 1000000 bytes]\n[standard error]\ny\ny\n"),
            "{}",
            outcome.text
        );
    }

    #[test]
    fn output_before_a_timeout_is_kept() {
        let (outcome, took) = shell(
            "echo a; echo b >&2; trap '' TERM; printf '\\303'; sleep 600",
            None,
            1,
        );
        assert_eq!(
            outcome.text,
            "a\n[ended after 1 s, its timeout]\n[standard error]\nb\n"
        );
        assert!(outcome.is_error && took < SOON, "{took:?}");
    }
}
