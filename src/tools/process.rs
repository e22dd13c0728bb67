//! The process of a server or a command: lines to it and from it, and its end together with its group.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::confined::Confined;
use super::protocol::MAX_MESSAGE;
use crate::scratch::Scratch;
use crate::threads::{self, lock};
use crate::unix::{self, Signal};
use crate::wait::wait_until;

/// How many of the last lines of a server's standard error are kept, and how much of each.
const MAX_KEPT_LINES: usize = 20;
const MAX_KEPT_LINE: usize = 500;

/// How long a group may take to end after each step.
const GRACE_PERIOD: Duration = Duration::from_millis(300);

/// How long what has been killed may take to end, and its temporary directory to be removed, when q ends.
const KILL_TIMEOUT: Duration = Duration::from_millis(50);

/// How long a server may take after the end of its input if a call may have changed something.
const GRACE_PERIOD_AFTER_CHANGES: Duration = Duration::from_secs(2);

/// A step that ends a process, or makes it end.
#[derive(Debug, Clone, Copy)]
pub enum EndStep {
    CloseInput,
    /// To its whole group.
    Send(Signal),
}

/// How a process is ended: each step, and how long its group may take to end before the next one.
pub type EndSteps = &'static [(EndStep, Duration)];

/// Ends a server.
const SERVER: EndSteps = &[
    (EndStep::CloseInput, GRACE_PERIOD),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends a server of which a call may have changed something.
const SERVER_AFTER_CHANGES: EndSteps = &[
    (EndStep::CloseInput, GRACE_PERIOD_AFTER_CHANGES),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends a command. It may have to end first what it has begun elsewhere, as `psql` cancels its query.
pub const COMMAND: EndSteps = &[
    (EndStep::Send(Signal::INT), GRACE_PERIOD),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends what a process has left running that has ended by itself.
const LEFTOVERS: EndSteps = &[(EndStep::Send(Signal::KILL), GRACE_PERIOD)];

/// Returns the signal that asks a process to end for which there is no time, because the run ends.
fn first_signal(steps: EndSteps) -> Signal {
    let mut signals = steps.iter().filter_map(|(step, _)| match step {
        EndStep::Send(signal) => Some(*signal),
        EndStep::CloseInput => None,
    });
    signals.next().unwrap_or(Signal::TERM)
}

/// How much of a line is passed over after what is read of it.
const MAX_SKIPPED: usize = 100_000_000;

/// The most bytes of a line of a server.
pub const MAX_LINE: usize = MAX_MESSAGE + MAX_SKIPPED;

/// A line that a program has written.
pub struct WrittenLine {
    /// Its first bytes, without its end.
    pub bytes: Vec<u8>,
    /// Whether it goes on beyond what is passed over.
    pub is_endless: bool,
}

/// How long to wait for the rest of what a process has written before it ended. Something that it has left running may hold
/// the pipe open.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Prints a line that a server writes to its standard error, for `-v`. Runs on any thread.
pub type ReportLine = Arc<dyn Fn(&str) + Send + Sync>;

/// The process groups of all servers and commands, for the thread that handles signals.
#[derive(Debug, Clone, Default)]
pub struct ProcessGroups(Arc<Mutex<RunningGroups>>);

/// The groups, as the threads share them.
#[derive(Debug, Default)]
struct RunningGroups {
    groups: Vec<Group>,
    /// Since when q is about to end. From then on, no group is started.
    closed: Option<Instant>,
    /// How many temporary directories of groups that have ended are being removed.
    removing: usize,
}

#[derive(Debug)]
struct Group {
    /// That of the process that leads it.
    id: u32,
    /// The signal that asks it to end.
    stop: Signal,
    /// Whether it is a server that has not listed its tools yet, or a command.
    is_starting: bool,
    /// The temporary directory of its program, which is removed once nothing of the group is left.
    scratch: Option<Scratch>,
}

impl RunningGroups {
    fn has(&self, id: u32) -> bool {
        self.groups.iter().any(|group| group.id == id)
    }

    /// Returns the temporary directory of the group, which [`ProcessGroups::remove`] takes without the lock.
    #[must_use]
    fn forget(&mut self, id: u32) -> Option<Scratch> {
        let index = self.groups.iter().position(|group| group.id == id)?;
        let scratch = self.groups.swap_remove(index).scratch?;
        self.removing += 1;
        Some(scratch)
    }
}

impl ProcessGroups {
    /// Asks every group to end, and lets no more start.
    pub fn terminate(&self) {
        self.signal_all(|group| group.stop);
    }

    /// Asks a group to end, unless it has ended.
    fn terminate_one(&self, id: u32) {
        for group in &lock(&self.0).groups {
            if group.id == id {
                unix::signal_group(id, group.stop);
            }
        }
    }

    /// Asks the servers that are still starting to end.
    pub fn terminate_starting(&self) {
        for group in &lock(&self.0).groups {
            if group.is_starting {
                unix::signal_group(group.id, group.stop);
            }
        }
    }

    /// Ends every group, and lets no more start. Groups that were asked to end get a moment for it.
    pub fn kill(&self) {
        let closed = lock(&self.0).closed;
        let waited = closed.map_or(Duration::ZERO, |since| since.elapsed());
        let is_left = |group: &Group| {
            unix::reap_group(group.id);
            unix::is_group_left(group.id)
        };
        wait_until(GRACE_PERIOD.saturating_sub(waited), || {
            !lock(&self.0).groups.iter().any(is_left)
        });
        self.signal_all(|_| Signal::KILL);
        self.remove_scratch(is_left);
    }

    /// Removes the temporary directory of a group that has ended. The lock is free meanwhile, because it may take long.
    fn remove(&self, scratch: Option<Scratch>) {
        if let Some(scratch) = scratch {
            drop(scratch);
            lock(&self.0).removing -= 1;
        }
    }

    /// Removes the temporary directories of groups that have been killed, which takes a moment, and waits for those that are
    /// being removed.
    fn remove_scratch(&self, is_left: impl Fn(&Group) -> bool) {
        let has_scratch = |group: &Group| group.scratch.is_some() && is_left(group);
        wait_until(KILL_TIMEOUT, || {
            let running = lock(&self.0);
            running.removing == 0 && !running.groups.iter().any(has_scratch)
        });
        let mut left = Vec::new();
        for group in &mut lock(&self.0).groups {
            left.extend(group.scratch.take());
        }
        for scratch in left {
            scratch.remove_within(KILL_TIMEOUT);
        }
    }

    fn signal_all(&self, signal: impl Fn(&Group) -> Signal) {
        let mut running = lock(&self.0);
        running.closed.get_or_insert_with(Instant::now);
        for group in &running.groups {
            unix::signal_group(group.id, signal(group));
        }
    }

    /// Does not return once a signal is about to end q: a server ended by that signal has not failed.
    pub fn park_if_terminating(&self) {
        let is_closed = lock(&self.0).closed.is_some();
        if is_closed {
            threads::wait_for_the_end();
        }
    }
}

/// How much memory may be taken by texts that a process has not read.
const MAX_WAITING: usize = 4 << 20;

/// About how much memory a text takes besides its bytes.
const TEXT: usize = 64;

/// The way to a process's standard input. A thread writes, because a process that does not read would block it.
#[derive(Debug, Clone)]
pub struct Input {
    queue: mpsc::Sender<Option<String>>,
    /// The memory of the texts that wait to be written.
    waiting: Arc<AtomicUsize>,
}

impl Input {
    pub fn start(mut stdin: ChildStdin) -> io::Result<Input> {
        let (queue, texts) = mpsc::channel::<Option<String>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        threads::start(move || {
            while let Ok(Some(text)) = texts.recv() {
                if stdin.write_all(text.as_bytes()).is_err() {
                    // Nobody reads any more.
                    return;
                }
                counted.fetch_sub(text.len() + TEXT, Ordering::Relaxed);
            }
        })?;
        Ok(Input { queue, waiting })
    }

    /// Sends a text, unless the process has closed its input. Returns false if too much waits already.
    #[must_use]
    pub fn send(&self, text: String) -> bool {
        let size = text.len() + TEXT;
        let before = self.waiting.fetch_add(size, Ordering::Relaxed);
        let has_room = before == 0 || before + size <= MAX_WAITING;
        // Where the process has closed its input, nothing is taken from the count any more.
        if has_room && self.queue.send(Some(text)).is_ok() {
            return true;
        }
        self.waiting.fetch_sub(size, Ordering::Relaxed);
        has_room
    }

    /// Closes the input after what has been sent.
    fn close(&self) {
        let _ = self.queue.send(None);
    }
}

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct Program {
    pub file: PathBuf,
    /// The program and its arguments as they are configured; no shell reads them.
    pub command: Vec<String>,
    /// Its environment; it gets no other variables.
    pub environment: Vec<(String, OsString)>,
    /// Where it starts; `None` for the temporary directory of a confined program.
    pub directory: Option<PathBuf>,
    /// `None` if it may do all that the user may do.
    pub confined: Option<Confined>,
}

/// A running process with its own process group. It is among the groups until nothing of it is left, or nothing more can be
/// done about it. Dropping it asks the group to end, and [`ProcessGroups::kill`] waits for that.
#[derive(Debug)]
pub struct Process {
    pub leader: Child,
    id: u32,
    groups: ProcessGroups,
    /// `None` for a command, whose input the caller writes.
    input: Option<Input>,
    /// The last lines of standard error. The thread that reads them has a reference of its own until it ends.
    errors: Arc<Mutex<Vec<String>>>,
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
        let mut process =
            Process::spawn(program, &program.command, Stdio::piped(), SERVER, groups)?;
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
        let errors = Arc::clone(&process.errors);
        threads::start(move || read_errors(stderr, &errors, &report))?;
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

    /// Starts a program with this argv as the leader of a new session and group, which these steps end. The caller takes its
    /// pipes from `leader`.
    pub fn spawn(
        program: &Program,
        argv: &[String],
        stdin: Stdio,
        steps: EndSteps,
        groups: &ProcessGroups,
    ) -> io::Result<Process> {
        let mut command = Command::new(&program.file);
        // Its name as it is configured, but with the home directory in place of `~`: a Python of its own looks next to it.
        command.arg0(program.command.first().unwrap_or(&argv[0]));
        command.args(&argv[1..]);
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        command.env_clear();
        command.envs(program.environment.iter().cloned());
        command.stdin(stdin);
        command.stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        // Locked until the group is known, so that a signal cannot miss it.
        let mut running = lock(&groups.0);
        if running.closed.is_some() {
            return Err(io::Error::other("q is about to end"));
        }
        unix::in_own_session(&mut command);
        let (leader, scratch) = match &program.confined {
            Some(confined) => {
                let variables = &program.environment;
                let (leader, scratch) = confined.spawn(command, program.file.clone(), variables)?;
                (leader, Some(scratch))
            }
            None => (command.spawn()?, None),
        };
        let id = leader.id();
        running.groups.push(Group {
            id,
            stop: first_signal(steps),
            is_starting: true,
            scratch,
        });
        Ok(Process {
            leader,
            id,
            groups: groups.clone(),
            input: None,
            errors: Arc::default(),
            steps,
        })
    }

    /// Sends a text to a server. Returns false if too much waits already.
    #[must_use]
    pub fn send(&self, text: String) -> bool {
        self.input.as_ref().is_none_or(|input| input.send(text))
    }

    /// Learns that a call of a server runs that may change something.
    pub fn may_change(&mut self) {
        self.steps = SERVER_AFTER_CHANGES;
    }

    /// Learns that the server has listed its tools.
    pub fn has_started(&self) {
        for group in &mut lock(&self.groups.0).groups {
            group.is_starting &= group.id != self.id;
        }
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
            self.is_gone();
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
        for (step, timeout) in steps {
            if self.is_gone() {
                return;
            }
            match (step, &self.input) {
                (EndStep::Send(signal), _) => unix::signal_group(self.id, *signal),
                (EndStep::CloseInput, Some(input)) => input.close(),
                (EndStep::CloseInput, None) => (),
            }
            wait_until(*timeout, || self.is_gone());
        }
        // All of the group were killed, but some may still be listed: not every system reaps orphans.
        let scratch = lock(&self.groups.0).forget(self.id);
        self.groups.remove(scratch);
    }

    /// Returns the last lines of standard error; of a process that still runs, those written so far.
    pub fn lines(&self) -> Vec<String> {
        if !lock(&self.groups.0).has(self.id) {
            let is_read = || Arc::strong_count(&self.errors) == 1;
            wait_until(DRAIN_TIMEOUT, is_read);
        }
        lock(&self.errors).clone()
    }

    /// Whether nothing of the group is left, which is found out while it is among the groups. Reaps its leader.
    fn is_gone(&mut self) -> bool {
        // Locked, because the system may reuse the id as soon as nothing of the group is left.
        let mut running = lock(&self.groups.0);
        let has_ended = !matches!(self.leader.try_wait(), Ok(None));
        if running.has(self.id) && has_ended && !unix::is_group_left(self.id) {
            let scratch = running.forget(self.id);
            drop(running);
            self.groups.remove(scratch);
            return true;
        }
        !running.has(self.id)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.groups.terminate_one(self.id);
    }
}

/// Reads standard error to its end, so that the process never waits for it.
fn read_errors(stderr: ChildStderr, kept: &Mutex<Vec<String>>, report: &ReportLine) {
    let mut stderr = BufReader::new(stderr);
    while let Some(line) = read_line(&mut stderr, MAX_KEPT_LINE) {
        let text = String::from_utf8_lossy(&line.bytes);
        // Where the line is cut within a character, its end would not look like the beginning of a secret.
        let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        report(text);
        let mut kept = lock(kept);
        if kept.len() == MAX_KEPT_LINES {
            kept.remove(0);
        }
        kept.push(text.to_owned());
    }
}

/// Returns the next line, or `None` after the last one. At most `limit` bytes of it are kept. What follows a line that is endless
/// is the rest of it.
fn read_line(from: &mut impl BufRead, limit: usize) -> Option<WrittenLine> {
    let mut line = WrittenLine {
        bytes: Vec::new(),
        is_endless: false,
    };
    let mut limited = from.by_ref().take(limit as u64);
    let count = limited.read_until(b'\n', &mut line.bytes).ok()?;
    if line.bytes.ends_with(b"\n") {
        line.bytes.pop();
    } else if count == limit {
        let mut rest = from.take(MAX_SKIPPED as u64);
        rest.skip_until(b'\n').ok()?;
        line.is_endless = rest.limit() == 0;
    }
    (count > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ProcessGroups {
        pub fn is_empty(&self) -> bool {
            lock(&self.0).groups.is_empty()
        }
    }

    /// A process that runs a shell script, and the lines that it writes; they end with its standard output.
    fn shell(script: &str, groups: &ProcessGroups) -> (Process, mpsc::Receiver<String>) {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = Program {
            file: "/bin/sh".into(),
            command,
            environment,
            directory: Some("/".into()),
            confined: None,
        };
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
    fn lines_of_a_process_are_cut_at_the_limit() {
        for (written, lines) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a\nbc\n", &["a", "bc"]),
            ("1234\n12345\n123456789\n1", &["1234", "1234", "1234", "1"]),
        ] {
            for capacity in [1, 3, 100] {
                let mut from = BufReader::with_capacity(capacity, written.as_bytes());
                let mut read = Vec::new();
                while let Some(line) = read_line(&mut from, 4) {
                    read.push(String::from_utf8(line.bytes).expect("text"));
                }
                assert_eq!(read, lines, "{written:?}");
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_read_forever() {
        let mut from = BufReader::with_capacity(1 << 20, io::repeat(b'x'));
        let line = read_line(&mut from, 4).expect("a line");
        assert!(line.is_endless);
        assert_eq!(line.bytes, b"xxxx");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_id_of_a_process_stays_taken_until_its_group_is_forgotten() {
        let (mut process, _lines) = shell("exit 3", &ProcessGroups::default());
        assert!(wait_until(Duration::from_secs(120), || process.has_ended()));
        assert!(unix::is_group_left(process.id), "it is not reaped");
        let status = process.end_after(Duration::ZERO).expect("a status");
        assert_eq!(status.code(), Some(3));
        assert!(process.groups.is_empty());
    }

    #[test]
    fn a_process_that_ends_with_its_input_is_not_signalled() {
        let script = "trap 'exit 7' TERM; while read -r line; do :; done; exit 3";
        let (process, _lines) = shell(script, &ProcessGroups::default());
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
                process.may_change();
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
    fn children_that_a_process_leaves_behind_are_ended() {
        let (process, lines) = shell(
            "sleep 1000 <&- & echo left; exit 0",
            &ProcessGroups::default(),
        );
        assert_eq!(lines.recv().expect("a line"), "left");
        assert!(end(process).0.expect("a status").success());
    }

    #[test]
    fn sending_to_a_process_that_does_not_read_does_not_block() {
        let (process, lines) = shell("echo ready; exec sleep 1000", &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "ready");
        let long = "x".repeat(1 << 20);
        let taken = (0..100).filter(|_| process.send(long.clone()));
        // The text that is being written counts, too.
        assert_eq!(taken.count(), MAX_WAITING / (long.len() + TEXT));
        process.groups.terminate();
        end(process);
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
        let command = ["/bin/sh", "-c", "echo ready; wc -l"]
            .map(str::to_owned)
            .to_vec();
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = Program {
            file: "/bin/sh".into(),
            command,
            environment,
            directory: Some("/".into()),
            confined: None,
        };
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
    fn the_last_lines_of_standard_error_are_kept() {
        let script = "awk 'BEGIN { for (i = 1; i <= 40; i++) printf \"%d:%0999d\\n\\n\", i, 0 }' >&2; echo done";
        let (mut process, lines) = shell(script, &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "done");
        process.end();
        let kept = process.lines();
        let numbers: Vec<&str> = kept
            .iter()
            .map(|line| line.split(':').next().expect("a word"))
            .collect();
        let expected = "21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40";
        assert_eq!(numbers.join(" "), expected);
        assert!(kept.iter().all(|line| line.len() == MAX_KEPT_LINE));
    }

    #[test]
    fn standard_error_is_read_however_long_its_lines_are() {
        let script = "head -c 250000000 /dev/zero | tr '\\0' x >&2 && echo >&2 && echo the end >&2 && echo done";
        let (mut process, lines) = shell(script, &ProcessGroups::default());
        assert_eq!(lines.recv().expect("a line"), "done");
        process.end();
        let kept = process.lines();
        assert_eq!(kept.last().map(String::as_str), Some("the end"), "{kept:?}");
        assert!(kept.len() <= 4, "{kept:?}");
    }

    #[test]
    fn a_line_of_standard_error_is_not_kept_with_half_a_character() {
        let (mut process, lines) = shell(
            "printf '%0499dé.\\n' 0 >&2; echo done",
            &ProcessGroups::default(),
        );
        assert_eq!(lines.recv().expect("a line"), "done");
        process.end();
        assert_eq!(process.lines(), ["0".repeat(MAX_KEPT_LINE - 1)]);
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
        let program = Program {
            file: "/bin/sleep".into(),
            command: ["sleep", "1000"].map(str::to_owned).to_vec(),
            environment: Vec::new(),
            directory: Some("/".into()),
            confined: None,
        };
        let spawned = Process::spawn(&program, &program.command, Stdio::null(), COMMAND, &groups);
        let mut process = spawned.expect("a process");
        groups.terminate();
        let status = process.end_after(Duration::from_secs(120)).expect("an end");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(Signal::INT.as_raw()), "its own first signal");
        let error = Process::start(&program, &groups, |_, _| true, Arc::new(|_: &str| ()))
            .expect_err("no process");
        assert_eq!(error.to_string(), "q is about to end");
    }
}
