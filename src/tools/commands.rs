//! Runs a command that the model calls: finds its files, and reads what it writes until it has ended.

use std::io::{self, Read};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fs_err as fs;
use serde_json::{Map, Value};

use super::about::{ListedTool, ServerInfo};
use super::bounds::Bounds;
use super::end_steps::COMMAND;
use super::failure::{Failure, FailureCause};
use super::groups::ProcessGroups;
use super::input::Input;
use super::lines::DRAIN_TIMEOUT;
use super::outcome::Outcome;
use super::process::Process;
use super::program::Program;
use crate::commands::argv::Invocation;
use crate::error::in_words;
use crate::settings::Command;
use crate::text::one_line::on_one_line;
use crate::text::size::{in_seconds, in_units};
use crate::threads::{self, lock};
use crate::wait::wait_until;

/// The most bytes of a command's output that are read.
const MAX_OUTPUT: usize = 1_000_000;

/// Represents a byte that is no text.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// How much of the output is read at once.
const READ_SIZE: usize = 1 << 16;

/// A command with the arguments of a call in their places. It has its program, so what was checked is what runs.
pub struct FilledCommand {
    /// Its name in the section.
    pub tool: String,
    program: Arc<Program>,
    /// The arguments of the program.
    arguments: Vec<String>,
    stdin: Option<String>,
    timeout: Option<Duration>,
}

/// Two are equal if they run the same: of one section, so the program follows from the name.
impl PartialEq for FilledCommand {
    fn eq(&self, other: &FilledCommand) -> bool {
        self.tool == other.tool && self.arguments == other.arguments && self.stdin == other.stdin
    }
}

impl FilledCommand {
    /// Runs the command, and returns what the model gets. The error is for the model, too.
    pub fn run(&self, groups: &ProcessGroups) -> Result<Outcome, String> {
        let stdin = self.stdin.clone();
        let ran = execute(&self.program, &self.arguments, stdin, self.timeout, groups);
        ran.map_err(|error| {
            let reason = error.to_string();
            format!("The command cannot be run: {}.", in_words(&reason))
        })
    }
}

/// A command that can be called, and the program that it runs.
pub struct RunnableCommand {
    pub command: Command,
    pub program: Arc<Program>,
}

/// The commands of a section.
pub struct Commands {
    pub runnable: Vec<RunnableCommand>,
    /// Its output tells the model about them.
    pub about: Option<Program>,
}

impl Commands {
    /// Returns the commands as tools, with what the model should know about them. Running the command that says this may take as
    /// long as `timeout`.
    pub fn about(
        &self,
        timeout: Option<Duration>,
        groups: &ProcessGroups,
    ) -> Result<ServerInfo, Failure> {
        let mut instructions = String::new();
        if let Some(program) = &self.about {
            instructions = output_of(program, timeout, groups)?;
        }
        let mut tools = Vec::new();
        for RunnableCommand { command, .. } in &self.runnable {
            tools.push(ListedTool {
                name: command.name.clone(),
                description: command.about.clone(),
                schema: Arc::new(command.argv.schema()),
                reads: command.reads,
            });
        }
        Ok(ServerInfo {
            instructions,
            tools,
            ..ServerInfo::default()
        })
    }

    /// Returns the program that a command runs.
    pub fn program(&self, tool: &str) -> Option<&Program> {
        self.find(tool).map(|found| &*found.program)
    }

    fn find(&self, tool: &str) -> Option<&RunnableCommand> {
        let mut runnable = self.runnable.iter();
        runnable.find(|runnable| runnable.command.name == tool)
    }

    /// Checks the arguments of a call, and puts them into its command. The error is for the model.
    pub fn fill(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<FilledCommand, String> {
        let Some(RunnableCommand { command, program }) = self.find(tool) else {
            return Err(format!("There is no command {tool}."));
        };
        let resolve = |path: &str| {
            // The temporary directory is empty before the command starts.
            let Some(directory) = &program.directory else {
                return Err("names nothing in the temporary directory".to_owned());
            };
            // The model must not learn whether there is such a file elsewhere.
            resolve(path, directory)
                .ok_or_else(|| format!("names nothing below {}", directory.display()))
        };
        let Invocation { argv, stdin } = command.argv.fill(arguments, resolve)?;
        Ok(FilledCommand {
            tool: tool.to_owned(),
            program: Arc::clone(program),
            // The first is the program.
            arguments: argv.into_iter().skip(1).collect(),
            stdin,
            timeout: command.timeout,
        })
    }
}

/// Returns the absolute path of a file in a directory or below it, where every link has been followed.
fn resolve(path: &str, directory: &Path) -> Option<String> {
    // An empty path would be the directory itself.
    if path.is_empty() {
        return None;
    }
    let file = fs::canonicalize(directory.join(path)).ok()?;
    let directory = fs::canonicalize(directory).ok()?;
    if !file.starts_with(directory) {
        return None;
    }
    file.into_os_string().into_string().ok()
}

/// Returns what a command without arguments writes to standard output. A failure has the last line of its error.
fn output_of(
    program: &Program,
    timeout: Option<Duration>,
    groups: &ProcessGroups,
) -> Result<String, Failure> {
    let outcome = execute(program, &program.arguments, None, timeout, groups)
        .unwrap_or_else(|error| Outcome::failed(error.to_string()));
    if outcome.is_error {
        let all = outcome.all();
        let reason = all.lines().last().unwrap_or_default();
        let what = format!("about_run failed: {reason}");
        return Err(Failure::new(FailureCause::Happened(what)));
    }
    Ok(outcome.text)
}

/// Runs a command until it ends, writes too much or its time is up, and then ends what it has left running.
fn execute(
    program: &Program,
    arguments: &[String],
    input: Option<String>,
    timeout: Option<Duration>,
    groups: &ProcessGroups,
) -> io::Result<Outcome> {
    let mut stdin = Stdio::null();
    if input.is_some() {
        stdin = Stdio::piped();
    }
    let spawned = Process::spawn(program, arguments, stdin, COMMAND, groups);
    let mut process = spawned.inspect_err(|_| groups.park_if_terminating())?;
    let leader = &mut process.leader;
    if let Some(pipe) = leader.stdin.take() {
        // The first text always has room.
        let _ = Input::start(pipe)?.send(input.unwrap_or_default());
    }
    let written = Arc::default();
    if let Some(pipe) = leader.stdout.take() {
        read_output(pipe, &written, |written| &mut written.output)?;
    }
    if let Some(pipe) = leader.stderr.take() {
        read_output(pipe, &written, |written| &mut written.error)?;
    }
    let is_in_time = wait_until(timeout, || lock(&written).is_cut || process.has_ended());
    let status = process.end_after(Duration::ZERO);
    // What it wrote before it ended may still be in the pipes.
    let is_whole = wait_until(DRAIN_TIMEOUT, || Arc::strong_count(&written) == 1);
    groups.park_if_terminating();
    let mut written = std::mem::take(&mut *lock(&written));
    written.is_open = !is_whole;
    let end = CommandEnd::new(status, timeout.filter(|_| !is_in_time), written.is_cut);
    let bounds = program.confined.as_ref().map(|confined| &confined.bounds);
    Ok(written.outcome(end, bounds))
}

/// How a command has ended.
enum CommandEnd {
    /// By itself.
    Exited(ExitStatus),
    /// By q after this time, its timeout.
    TimedOut(Duration),
    /// By q, because it wrote too much, or nobody can tell.
    Unknown,
}

impl CommandEnd {
    /// `overrun` is the timeout that the command exceeded, `is_cut` says whether it wrote too much.
    fn new(status: Option<ExitStatus>, overrun: Option<Duration>, is_cut: bool) -> CommandEnd {
        match (status, overrun) {
            // It may end because q closes its pipe.
            (Some(_), _) if is_cut => CommandEnd::Unknown,
            // It may have ended at the last moment.
            (Some(status), _) => CommandEnd::Exited(status),
            (None, Some(limit)) => CommandEnd::TimedOut(limit),
            (None, None) => CommandEnd::Unknown,
        }
    }

    /// Whether the command has failed.
    fn is_failure(&self) -> bool {
        match self {
            CommandEnd::Exited(status) => !status.success(),
            CommandEnd::TimedOut(_) => true,
            CommandEnd::Unknown => false,
        }
    }

    /// Returns the mark that says how the command ended. `needs_reason` says that the output does not tell all.
    fn mark(&self, needs_reason: bool) -> Option<String> {
        match self {
            CommandEnd::TimedOut(limit) => {
                Some(format!("ended after {}, its timeout", in_seconds(*limit)))
            }
            CommandEnd::Exited(status) if needs_reason => {
                Some(status.to_string().replace(": ", " "))
            }
            CommandEnd::Exited(_) | CommandEnd::Unknown => None,
        }
    }
}

/// The output of a command. The threads that read it have references of their own until its end.
#[derive(Default)]
struct CommandOutput {
    output: Vec<u8>,
    error: Vec<u8>,
    /// Whether the command wrote more than q reads.
    is_cut: bool,
    /// Whether something that is not of its group may still write.
    is_open: bool,
}

/// Reads a pipe on a thread, to its end or until there is too much.
fn read_output(
    mut pipe: impl Read + Send + 'static,
    written: &Arc<Mutex<CommandOutput>>,
    bytes: fn(&mut CommandOutput) -> &mut Vec<u8>,
) -> io::Result<()> {
    let written = Arc::clone(written);
    threads::start(move || {
        let mut buffer = [0; READ_SIZE];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut written = lock(&written);
            let room = MAX_OUTPUT - written.output.len() - written.error.len();
            bytes(&mut written).extend(&buffer[..count.min(room)]);
            if count > room {
                written.is_cut = true;
                return;
            }
        }
    })
}

impl CommandOutput {
    /// Returns what the model gets: standard output, and marks that say what is missing. If the command failed or wrote nothing
    /// there, its status and standard error follow. `bounds` is what the kernel let it do.
    fn outcome(self, end: CommandEnd, bounds: Option<&Bounds>) -> Outcome {
        let is_error = end.is_failure();
        let is_broken_off = self.is_cut || self.is_open;
        let output = OutputText::new(self.output, is_broken_off);
        let error = OutputText::new(self.error, is_broken_off);
        let has_odd_bytes = output.is_odd || error.is_odd;
        let is_cut = self.is_cut || output.is_cut || error.is_cut;
        let (output, error) = (output.text, error.text);
        let needs_reason = is_error || output.is_empty();
        let has_complained = output.is_empty() && !error.is_empty();

        let mut marks = marks_of_loss(has_odd_bytes, is_cut, self.is_open);
        let is_changed = !marks.is_empty() || matches!(end, CommandEnd::TimedOut(_));
        // “Permission denied” does not say that it was the confinement.
        if let Some(bounds) = bounds
            && (is_error || has_complained)
        {
            marks.push(on_one_line(&bounds.summary()));
        }
        marks.extend(end.mark(needs_reason));
        if needs_reason && !error.is_empty() {
            marks.push("standard error".to_owned());
        }
        let reason = if needs_reason { &*error } else { "" };
        Outcome {
            remarks: remarks(&output, &marks, reason),
            text: output,
            is_error,
            is_changed,
            ..Outcome::default()
        }
    }
}

/// Returns the marks that say what of the output is lost.
fn marks_of_loss(has_odd_bytes: bool, is_cut: bool, is_open: bool) -> Vec<String> {
    let mut marks = Vec::new();
    if has_odd_bytes {
        marks.push(format!(
            "NUL and what is not UTF-8 is shown as {REPLACEMENT}"
        ));
    }
    if is_cut {
        marks.push(format!("cut after {size}", size = in_units(MAX_OUTPUT)));
    } else if is_open {
        marks.push("something still has its output open, so its end may be missing".to_owned());
    }
    marks
}

/// Returns what follows the output of a command: marks on lines of their own, and the reason that standard error gives.
fn remarks(output: &str, marks: &[String], reason: &str) -> String {
    let mut remarks = String::new();
    if !marks.is_empty() && !output.is_empty() && !output.ends_with('\n') {
        remarks.push('\n');
    }
    for mark in marks {
        remarks.push_str(&format!("[{mark}]\n"));
    }
    remarks.push_str(reason);
    remarks
}

/// The output of a command as text.
struct OutputText {
    text: String,
    /// Whether it had NUL or bytes that are not UTF-8.
    is_odd: bool,
    /// Whether its end is missing: each odd byte takes three in the text.
    is_cut: bool,
}

impl OutputText {
    /// Bytes as text, where NUL and what is not UTF-8 become U+FFFD. `is_broken_off`: q has read no more of them, perhaps within a
    /// character, whose beginning is left out.
    fn new(mut bytes: Vec<u8>, is_broken_off: bool) -> OutputText {
        if is_broken_off
            && let Err(error) = str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
        let characters = bytes.utf8_chunks().flat_map(|chunk| {
            let odd = if chunk.invalid().is_empty() { "" } else { "\0" };
            chunk.valid().chars().chain(odd.chars())
        });
        let mut text = String::new();
        let mut is_odd = false;
        let mut is_cut = false;
        for character in characters {
            if text.len() >= MAX_OUTPUT {
                is_cut = true;
                break;
            }
            if character == '\0' {
                is_odd = true;
                text.push(REPLACEMENT);
            } else {
                text.push(character);
            }
        }
        OutputText {
            text,
            is_odd,
            is_cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Instant;

    use super::*;
    use crate::text::table::rows;

    /// The outcome of a shell script with a timeout, and how long it took.
    fn shell(script: &str, stdin: Option<&str>, seconds: u64) -> (Outcome, Duration) {
        let (began, groups) = (Instant::now(), ProcessGroups::default());
        let program = Program::shell(script);
        let stdin = stdin.map(str::to_owned);
        let timeout = Some(Duration::from_secs(seconds));
        let outcome = execute(&program, &program.arguments, stdin, timeout, &groups);
        let outcome = outcome.expect("a command");
        assert!(groups.is_empty(), "something is left of the group");
        (outcome, began.elapsed())
    }

    const FOREVER: u64 = 600;
    const SOON: Duration = Duration::from_secs(120);

    #[test]
    fn output_of_a_command_is_cut_at_the_limit() {
        let of = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x");
        assert_eq!(
            shell(&of(MAX_OUTPUT), None, FOREVER).0.text,
            "x".repeat(MAX_OUTPUT)
        );
        for script in [
            of(MAX_OUTPUT + 1),
            "yes".to_owned(),
            "trap '' TERM; yes".to_owned(),
        ] {
            let (outcome, took) = shell(&script, None, FOREVER);
            let all = outcome.all();
            let (text, mark) = all.split_once("\n[").expect("a mark");
            assert!(
                MAX_OUTPUT - text.len() < 4 && mark == "cut after 1 MB]\n",
                "{script}: {mark}"
            );
            assert!(!outcome.is_error && took < SOON, "{script}: {took:?}");
        }
        let (outcome, _) = shell("yes >&2", None, FOREVER);
        let all = outcome.all();
        let is_right = all.starts_with("[cut after 1 MB]\n[standard error]\ny\ny\n");
        assert!(is_right, "{all}");
    }

    #[test]
    fn a_command_that_ends_just_at_its_timeout_has_not_failed() {
        let written = CommandOutput {
            output: b"a\n".to_vec(),
            ..CommandOutput::default()
        };
        let limit = Some(Duration::from_secs(1));
        let end = CommandEnd::new(Some(ExitStatus::default()), limit, false);
        let outcome = written.outcome(end, None);
        assert_eq!((&*outcome.all(), outcome.is_error), ("a\n", false));
    }

    #[test]
    fn a_confined_command_that_fails_or_only_complains_is_told_its_bounds() {
        let bounds = Bounds {
            network: true,
            ..Bounds::default()
        };
        let confined = "[confined: no files; network]␊";
        // What it wrote, how it ended, and what the model gets: of a confined command, and of others.
        let table = "
            rows | - | 0 | rows | rows
            rows | denied | 0 | rows | rows
            rows | denied | 1 | rows␊C[exit status 1]␊[standard error]␊denied | rows␊[exit status 1]␊[standard error]␊denied
            - | denied | 0 | C[exit status 0]␊[standard error]␊denied | [exit status 0]␊[standard error]␊denied
            - | - | 0 | [exit status 0]␊ | [exit status 0]␊
            - | - | 1 | C[exit status 1]␊ | [exit status 1]␊
            - | - | killed | C[signal 31 (SIGSYS)]␊ | [signal 31 (SIGSYS)]␊
            rows | - | late | rows␊C[ended after 5 s, its timeout]␊ | rows␊[ended after 5 s, its timeout]␊
            rows | - | cut | rows␊[cut after 1 MB]␊ | rows␊[cut after 1 MB]␊
        ";
        for [output, error, end, held, free] in rows(table) {
            for (bounds, expected) in [(Some(&bounds), held), (None, free)] {
                let written = CommandOutput {
                    output: output.into(),
                    error: error.into(),
                    is_cut: end == "cut",
                    is_open: false,
                };
                let exited = |status| CommandEnd::Exited(ExitStatus::from_raw(status));
                let how = match end {
                    "late" => CommandEnd::TimedOut(Duration::from_secs(5)),
                    "cut" => CommandEnd::Unknown,
                    "killed" => exited(libc::SIGSYS),
                    code => exited(code.parse::<i32>().expect(code) << 8),
                };
                let found = written.outcome(how, bounds).all();
                let expected = expected.replace('C', confined);
                assert_eq!(found.replace('\n', "␊"), expected, "{output} {error} {end}");
            }
        }
    }

    #[test]
    fn where_q_cuts_output_within_a_character_the_command_has_written_nothing_odd() {
        const ODD: &str = "[NUL and what is not UTF-8 is shown as \u{fffd}]\n";
        const CUT: &str = "[cut after 1 MB]\n";
        // The output, and what becomes of it if q has cut it and if it has not.
        for (output, cut, whole) in [
            (
                &b"a\xc3"[..],
                format!("a\n{CUT}"),
                format!("a\u{fffd}\n{ODD}"),
            ),
            (
                b"a\xf0\x9f\x98",
                format!("a\n{CUT}"),
                format!("a\u{fffd}\n{ODD}"),
            ),
            (
                b"a\xc3\xa9",
                format!("a\u{e9}\n{CUT}"),
                "a\u{e9}".to_owned(),
            ),
            (
                b"a\xff",
                format!("a\u{fffd}\n{ODD}{CUT}"),
                format!("a\u{fffd}\n{ODD}"),
            ),
            (
                b"a\0b",
                format!("a\u{fffd}b\n{ODD}{CUT}"),
                format!("a\u{fffd}b\n{ODD}"),
            ),
        ] {
            for (is_cut, expected) in [(true, cut), (false, whole)] {
                let written = CommandOutput {
                    output: output.to_vec(),
                    is_cut,
                    ..CommandOutput::default()
                };
                assert_eq!(
                    written.outcome(CommandEnd::Unknown, None).all(),
                    expected,
                    "{output:?}"
                );
            }
        }
        let (outcome, _) = shell("printf a; yes \u{e9} | tr -d '\\n'", None, FOREVER);
        let expected = format!("\u{e9}\n{CUT}");
        assert!(outcome.all().ends_with(&expected));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn output_that_something_else_keeps_open_is_marked() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().display();
        let script = format!(
            "cd {directory}; mkfifo begun end; setsid sh -c 'echo >begun; read -r line <end' & read -r line <begun; echo a"
        );
        let (outcome, _) = shell(&script, None, FOREVER);
        fs::write(root.path().join("end"), "\n").expect("a pipe");
        let mark = "[something still has its output open, so its end may be missing]\n";
        assert_eq!(outcome.all(), format!("a\n{mark}"));
    }

    #[test]
    fn output_of_a_command_before_its_timeout_is_kept() {
        // The second one ends first what it has begun elsewhere, as a program cancels a query.
        for (script, before, after) in [
            (
                "echo a; echo b >&2; trap '' TERM; sleep 600",
                "a\n",
                "[standard error]\nb\n",
            ),
            (
                "trap 'echo cancelled; exit' INT; sleep 600",
                "cancelled\n",
                "",
            ),
        ] {
            // A busy machine needs more than a second until the script has got that far.
            for seconds in [1, 10, 100] {
                let (outcome, took) = shell(script, None, seconds);
                let mark = format!("[ended after {seconds} s, its timeout]\n");
                let expected = format!("{before}{mark}{after}");
                if outcome.all() != expected && seconds < 100 {
                    continue;
                }
                assert_eq!(outcome.all(), expected);
                assert!(outcome.is_error && took < SOON + Duration::from_secs(seconds));
                break;
            }
        }
    }
}
