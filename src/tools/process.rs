//! The process of a server or a command: it is started, talks, and ends together with its group.

use std::io::{self, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::end_steps::{
    Awaited, EndStep, EndSteps, LEFTOVERS, SERVER, SERVER_AFTER_CHANGES, first_signal,
};
use super::groups::ProcessGroups;
use super::input::Input;
use super::lines::{KeptLines, ReportLine, WrittenLine, read_line};
use super::program::Program;
use super::rpc::MAX_MESSAGE;
use crate::threads;
use crate::unix;
use crate::wait::wait_until;

/// A running process with its own process group. It is among the groups until nothing of it is left, or nothing more can be
/// done about it. Dropping it asks the group to end, and [`ProcessGroups::kill`] waits for that.
#[derive(Debug)]
pub struct Process {
    pub leader: Child,
    id: u32,
    groups: ProcessGroups,
    /// `None` for a command, whose input the caller writes.
    input: Option<Input>,
    /// The last lines of its standard error.
    errors: KeptLines,
    steps: EndSteps,
}

impl Process {
    /// Starts a program. `read` gets each line of its standard output, on a thread, and is dropped at the end of it. If it
    /// returns false, the program is asked to end, and nothing more of it is read. `report` gets each line of its standard
    /// error.
    pub fn start(
        program: &Program,
        groups: &ProcessGroups,
        mut read: impl FnMut(&Input, &WrittenLine) -> bool + Send + 'static,
        report: ReportLine,
    ) -> io::Result<Process> {
        // If a later step fails, dropping this ends the process.
        let arguments = &program.arguments;
        let mut process = Process::spawn(program, arguments, Stdio::piped(), SERVER, groups)?;
        let leader = &mut process.leader;
        let pipes = (
            leader.stdin.take(),
            leader.stdout.take(),
            leader.stderr.take(),
        );
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let input = Input::start(stdin)?;
        process.input = Some(input.clone());
        process.errors.read_from(stderr, report)?;
        let (groups, id) = (groups.clone(), process.id);
        threads::start(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(line) = read_line(&mut stdout, MAX_MESSAGE) {
                if !read(&input, &line) {
                    groups.terminate_one(id);
                    return;
                }
            }
        })?;
        Ok(process)
    }

    /// Starts a program with these arguments as the leader of a new session and group, which these steps end. The caller takes its
    /// pipes from `leader`.
    pub fn spawn(
        program: &Program,
        arguments: &[String],
        stdin: Stdio,
        steps: EndSteps,
        groups: &ProcessGroups,
    ) -> io::Result<Process> {
        let mut command = Command::new(&program.file);
        // A Python of its own looks next to it.
        command.arg0(&program.name);
        command.args(arguments);
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        command.env_clear();
        command.envs(program.environment.iter().cloned());
        command.stdin(stdin);
        command.stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        unix::in_own_session(&mut command);
        let make_scratch = |ready: &mut Command| match &program.confined {
            Some(confined) => Ok(Some(confined.make_scratch(ready, &program.environment)?)),
            None => Ok(None),
        };
        let spawn = |mut ready: Command, scratch| match &program.confined {
            Some(confined) => confined.spawn(ready, program.file.clone(), scratch),
            None => ready.spawn(),
        };
        let leader = groups.start(first_signal(steps), command, make_scratch, spawn)?;
        Ok(Process {
            id: leader.id(),
            leader,
            groups: groups.clone(),
            input: None,
            errors: KeptLines::default(),
            steps,
        })
    }

    /// Sends a text to a server. Returns false if too much waits already.
    #[must_use]
    pub fn send(&self, text: String) -> bool {
        self.input.as_ref().is_none_or(|input| input.send(text))
    }

    /// Gives a server more time to end from now on, because a call runs that may change something.
    pub fn expect_changes(&mut self) {
        self.steps = SERVER_AFTER_CHANGES;
    }

    /// Notes that the server has listed its tools.
    pub fn mark_listed(&self) {
        self.groups.mark_listed(self.id);
    }

    /// Whether the process itself has ended, whatever is left of its group. Its id stays taken, so that no signal to the group
    /// can reach another one.
    pub fn has_ended(&self) -> bool {
        unix::has_ended(self.id)
    }

    /// Ends the process and its group. Returns how the process ended, if it did so by itself within this time.
    pub fn end_after(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let mut status = None;
        if wait_until(timeout, || self.has_ended()) {
            // Reaps it under the lock of the groups.
            self.groups.forget_if_gone(&mut self.leader);
            status = self.leader.try_wait().ok().flatten();
        }
        self.run_steps(if status.is_some() {
            LEFTOVERS
        } else {
            self.steps
        });
        status
    }

    /// Ends the process and its group.
    pub fn end(&mut self) {
        self.run_steps(self.steps);
    }

    /// Takes these steps, one after the other, until nothing of the group is left.
    fn run_steps(&mut self, steps: EndSteps) {
        for (step, timeout) in steps.steps {
            if self.groups.forget_if_gone(&mut self.leader) {
                return;
            }
            if steps.awaited == Awaited::Leader && self.has_ended() {
                return self.run_steps(LEFTOVERS);
            }
            match (step, &self.input) {
                (EndStep::Send(signal), _) => unix::signal_group(self.id, *signal),
                (EndStep::CloseInput, Some(input)) => input.close(),
                (EndStep::CloseInput, None) => (),
            }
            wait_until(*timeout, || {
                let is_gone = self.groups.forget_if_gone(&mut self.leader);
                is_gone || steps.awaited == Awaited::Leader && self.has_ended()
            });
        }
        // All of the group were killed, but some may still be listed: not every system reaps orphans.
        self.groups.forget(self.id);
    }

    /// Returns the last lines of standard error; of a process that still runs, those written so far.
    pub fn lines(&self) -> Vec<String> {
        if !self.groups.has(self.id) {
            self.errors.wait_for_the_last();
        }
        self.errors.so_far()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.groups.terminate_one(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Instant;

    use super::*;
    use crate::tools::end_steps::{COMMAND, GRACE_PERIOD, GRACE_PERIOD_AFTER_CHANGES};
    use crate::unix::Signal;

    /// Long enough for a busy machine.
    const SOON: Duration = Duration::from_secs(120);

    /// A process that runs a shell script, and the lines that it writes; they end with its standard output.
    fn shell(script: &str, groups: &ProcessGroups) -> (Process, mpsc::Receiver<String>) {
        let program = Program::shell(script);
        let (sender, lines) = mpsc::channel();
        let read = move |_: &Input, line: &WrittenLine| {
            let line = String::from_utf8_lossy(&line.bytes).into_owned();
            sender.send(line).is_ok()
        };
        (
            Process::start(&program, groups, read, Arc::new(|_: &str| ())).expect("a process"),
            lines,
        )
    }

    /// Whether a process of a group runs. One that has ended and waits to be reaped does not.
    fn runs(group: u32) -> bool {
        if !cfg!(target_os = "linux") {
            return unix::is_group_left(group);
        }
        let processes = fs_err::read_dir("/proc").expect("a list of processes");
        processes.flatten().any(|process| {
            let stat = fs_err::read_to_string(process.path().join("stat")).unwrap_or_default();
            // After the name, which may have blanks: state, parent, group (proc_pid_stat(5)).
            let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
            let fields: Vec<&str> = fields.split(' ').collect();
            fields.get(2).is_some_and(|id| id.parse() == Ok(group)) && fields[0] != "Z"
        })
    }

    /// Ends a process, checks that nothing is left of its group, and says how long that took.
    fn end(mut process: Process) -> (Option<ExitStatus>, Duration) {
        let start = Instant::now();
        process.end();
        let (status, took) = (process.leader.try_wait().ok().flatten(), start.elapsed());
        assert!(!runs(process.id), "something is left of the group");
        assert!(process.groups.is_empty());
        (status, took)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_id_of_a_process_stays_taken_until_its_group_is_forgotten() {
        let (mut process, _lines) = shell("exit 3", &ProcessGroups::default());
        assert!(wait_until(SOON, || process.has_ended()));
        assert!(unix::is_group_left(process.id), "it is not reaped");
        let status = process.end_after(Duration::ZERO).expect("a status");
        assert_eq!(status.code(), Some(3));
        assert!(process.groups.is_empty());
    }

    /// The steps of a server, with time enough for a busy machine to end after the first.
    const PATIENT: EndSteps = EndSteps {
        steps: &[
            (EndStep::CloseInput, SOON),
            (EndStep::Send(Signal::TERM), GRACE_PERIOD),
            (EndStep::Send(Signal::KILL), GRACE_PERIOD),
        ],
        ..SERVER
    };

    #[test]
    fn a_process_that_ends_with_its_input_is_not_signalled() {
        let script = "trap 'exit 7' TERM; echo ready; while read -r line; do :; done; exit 3";
        let (mut process, lines) = shell(script, &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "ready");
        process.steps = PATIENT;
        assert_eq!(end(process).0.expect("a status").code(), Some(3));
    }

    #[test]
    fn a_process_that_ignores_the_end_of_its_input_is_terminated() {
        let (process, lines) = shell("echo ready; exec sleep 1000", &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "ready");
        let (status, took) = end(process);
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status.expect("a status")),
            Some(Signal::TERM.as_raw())
        );
        assert!(took >= GRACE_PERIOD);
    }

    #[test]
    fn a_server_has_more_time_to_end_after_a_call_that_may_have_changed_something() {
        let took = [true, false].map(|reads| {
            let (mut process, lines) =
                shell("echo ready; exec sleep 1000", &ProcessGroups::default());
            assert_eq!(lines.recv().expect("a line"), "ready");
            if !reads {
                process.expect_changes();
            }
            let began = Instant::now();
            process.end();
            began.elapsed()
        });
        assert!(took[0] >= GRACE_PERIOD && took[1] >= GRACE_PERIOD_AFTER_CHANGES);
        assert!(took[0] < took[1], "{took:?}");
    }

    #[test]
    fn a_process_that_ignores_the_end_of_its_input_and_sigterm_is_killed() {
        let (process, lines) = shell(
            "trap '' TERM; echo ready; while :; do sleep 1000; done",
            &ProcessGroups::default(),
        );
        assert_eq!(lines.recv().expect("a line"), "ready");
        let (status, took) = end(process);
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status.expect("a status")),
            Some(Signal::KILL.as_raw())
        );
        assert!(took >= GRACE_PERIOD * 2);
    }

    #[test]
    fn what_a_command_leaves_running_that_ends_at_its_first_signal_is_killed_at_once() {
        let root = tempfile::tempdir().expect("a directory");
        let terminated = root.path().join("terminated");
        // What is left ignores the first signal, and would tell of the second one.
        let left = format!(
            "trap '' INT; trap 'echo >{}' TERM; echo ready; while :; do sleep 0.01; done",
            terminated.display()
        );
        let script = format!("trap 'exit 3' INT; ({left}) & wait");
        let (mut process, lines) = shell(&script, &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "ready");
        process.steps = EndSteps {
            // Long enough for the command to end on a busy machine.
            steps: &[
                (EndStep::Send(Signal::INT), SOON),
                (EndStep::Send(Signal::TERM), GRACE_PERIOD),
                (EndStep::Send(Signal::KILL), GRACE_PERIOD),
            ],
            ..COMMAND
        };
        assert_eq!(end(process).0.expect("a status").code(), Some(3));
        assert!(!terminated.exists());
    }

    #[test]
    fn children_that_a_process_leaves_behind_are_ended() {
        let (process, lines) = shell(
            "sleep 1000 <&- & echo left; exit 0",
            &ProcessGroups::default(),
        );
        assert_eq!(lines.recv().expect("a line"), "left");
        assert!(wait_until(SOON, || process.has_ended()));
        assert!(end(process).0.expect("a status").success());
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_read() {
        let script = "head -c 17000000 /dev/zero | tr '\\0' x; echo; echo next";
        let (_process, lines) = shell(script, &ProcessGroups::default());
        let long = lines.recv().expect("a line");
        assert_eq!(long.len(), MAX_MESSAGE);
        assert_eq!(lines.recv().expect("a line"), "next");
    }

    #[test]
    fn lines_that_a_process_does_not_read_at_once_are_not_lost() {
        let program = Program::shell("echo ready; wc -l");
        let (sender, lines) = mpsc::channel();
        let read = move |input: &Input, line: &WrittenLine| {
            if line.bytes == b"ready" {
                assert!((0..1000).all(|_| input.send("x".repeat(999) + "\n")));
                input.close();
            }
            let line = String::from_utf8_lossy(&line.bytes).into_owned();
            sender.send(line).is_ok()
        };
        let process = Process::start(
            &program,
            &ProcessGroups::default(),
            read,
            Arc::new(|_: &str| ()),
        )
        .expect("a process");
        let counted = lines.iter().nth(1).expect("a number");
        assert_eq!(counted.trim(), "1000");
        drop(process);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_a_session_of_its_own() {
        let (_process, lines) = shell(
            "echo $$; cut -d' ' -f6 /proc/$$/stat",
            &ProcessGroups::default(),
        );
        assert_eq!(
            lines.recv().expect("a process"),
            lines.recv().expect("a session")
        );
    }

    #[test]
    fn process_groups_end_on_a_signal_and_no_more_processes_start() {
        let groups = ProcessGroups::default();
        for signal in [ProcessGroups::terminate, ProcessGroups::kill] {
            let groups = ProcessGroups::default();
            let (_process, lines) = shell("echo ready; exec sleep 1000", &groups);
            assert_eq!(lines.recv().expect("a line"), "ready");
            signal(&groups);
            // The end of its output.
            lines.recv().expect_err("an end");
        }
        let program = Program::shell("exec sleep 1000");
        let arguments = &program.arguments;
        let spawned = Process::spawn(&program, arguments, Stdio::null(), COMMAND, &groups);
        let mut process = spawned.expect("a process");
        groups.terminate();
        let status = process.end_after(SOON).expect("an end");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(Signal::INT.as_raw()), "its own first signal");
        let error = Process::start(&program, &groups, |_, _| true, Arc::new(|_: &str| ()))
            .expect_err("no process");
        assert_eq!(error.to_string(), "q is about to end");
    }
}
