//! Decides whether a call may run: the settings allow it, or else the user is asked.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::bounds::Bounds;
use super::offers::{OfferedTool, ToolId};
use super::{faults, layout};
use crate::interrupt::Interrupts;
use crate::output::{Notes, TerminalLock};
use crate::settings::{Environment, ToolServer};
use crate::text::yes_or_no::is_yes;
use crate::unix;

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// A call that may run if the settings or the user allow it.
pub struct ProposedCall<'c> {
    pub offer: &'c OfferedTool,
    /// The section of the tool's server.
    pub section: &'c ToolServer,
    /// What the kernel lets it do; `None` if it is not confined.
    pub bounds: Option<&'c Bounds>,
    pub arguments: &'c Map<String, Value>,
}

/// The calls that the user has agreed to in this run.
pub struct Consent {
    /// Whether every call runs.
    yes: bool,
    /// The tools that a person has allowed for the rest of this run.
    always: HashSet<ToolId>,
    /// That of q, which says where programs are.
    environment: Environment,
    /// A signal ends q before it asks anything more.
    interrupts: Arc<Interrupts>,
}

impl Consent {
    /// Allows nothing but what `yes` does.
    pub fn new(yes: bool, environment: Environment, interrupts: Arc<Interrupts>) -> Consent {
        Consent {
            yes,
            always: HashSet::new(),
            environment,
            interrupts,
        }
    }

    /// Asks the user whether a call may run, unless that is decided already. Returns whether the user has seen the call. The error
    /// tells the model why it does not run.
    pub fn ask(&mut self, call: &ProposedCall, notes: &Notes) -> Result<bool, &'static str> {
        if self.is_decided(call.offer) {
            return Ok(false);
        }
        match self.ask_on_terminal(call, notes) {
            Decision::Yes => Ok(true),
            Decision::Always => {
                self.always.insert(call.offer.id());
                Ok(true)
            }
            Decision::No => Err("The user did not allow this call."),
            Decision::NoRoom => {
                self.note_refusal(call, "the screen is too small to show it", notes);
                Err("The call was refused: the user's screen is too small to show it.")
            }
            Decision::Nobody => {
                self.note_refusal(call, "there is no terminal to ask on", notes);
                Err("The call was refused: there is no terminal to ask on.")
            }
            Decision::Background => {
                self.note_refusal(
                    call,
                    "q cannot ask from the background of its terminal",
                    notes,
                );
                Err("The call was refused: q cannot ask from the background of its terminal.")
            }
        }
    }

    /// Whether a tool runs without asking: its section allows it, every call runs, or a person has allowed it for this run.
    fn is_decided(&self, offer: &OfferedTool) -> bool {
        offer.allowed || self.yes || self.always.contains(&offer.id())
    }

    /// Asks on the terminal, once no other q asks there.
    fn ask_on_terminal(&self, call: &ProposedCall, notes: &Notes) -> Decision {
        let terminal = match terminal() {
            Ok(terminal) => terminal,
            Err(decision) => return decision,
        };
        notes.spinner().stop();
        notes.end_reasoning();
        // While another q asks, the threads that print details go on: a server waits for the one that reads its messages.
        let lock = TerminalLock::wait();
        let _held = notes.hold_details();
        let mut question = Question {
            terminal,
            lock,
            notes,
            interrupts: &self.interrupts,
        };
        question.ask(call)
    }

    /// Notes why a call did not run, and what would allow it.
    fn note_refusal(&self, call: &ProposedCall, why: &str, notes: &Notes) {
        notes.note(&self.refusal(call, why));
    }

    fn refusal(&self, call: &ProposedCall, why: &str) -> String {
        let ProposedCall { offer, section, .. } = call;
        let name = &offer.shown.name;
        let mut setting = String::new();
        if let Some(tool) = offer.own_name()
            && faults::can_be_allowed(section, tool, &self.environment)
        {
            setting = format!("allow = [{tool:?}] in {} or ", section.section_to_edit());
        }
        format!("{name} did not run: {why}; {setting}--yes allows it")
    }
}

/// The decision of the user about a call.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Yes,
    No,
    Always,
    /// The call cannot be shown.
    NoRoom,
    /// There is no terminal to ask on, or q has lost it while it waited for its turn.
    Nobody,
    /// There is one, but q is in its background.
    Background,
}

/// What a line means that was typed after a screenful.
#[derive(Debug, PartialEq, Eq)]
enum TypedLine {
    Decision(Decision),
    /// The next screenful is to be shown.
    Next,
    /// The keys are to be explained, and the same is asked again.
    Help,
}

/// Returns what a line means that was typed after a screenful, the last one or not.
fn meaning_of(line: &str, is_last: bool) -> TypedLine {
    if is_last && is_yes(line) {
        return TypedLine::Decision(Decision::Yes);
    }
    match line.trim().to_lowercase().as_str() {
        "a" | "always" if is_last => TypedLine::Decision(Decision::Always),
        "v" | "view" if !is_last => TypedLine::Next,
        "?" | "h" | "help" => TypedLine::Help,
        _ => TypedLine::Decision(Decision::No),
    }
}

/// Returns what the keys do after a screenful, the last one or not.
fn help(is_last: bool) -> &'static str {
    if is_last {
        "q: y runs the call; a runs it, and each later one of this tool in this run\n\
         q: n, or Enter alone, refuses it, and the model is told\n"
    } else {
        "q: v shows more of the call; at its end it can be allowed\n\
         q: n, or Enter alone, refuses it, and the model is told\n"
    }
}

/// A question on the terminal.
struct Question<'q> {
    terminal: File,
    /// Keeps others from asking there until the answer is read. `None` if there are no locks.
    lock: Option<TerminalLock>,
    notes: &'q Notes,
    interrupts: &'q Interrupts,
}

impl Question<'_> {
    /// Shows a call, one screenful after the other, and returns what is answered at its end. Whoever has not seen all of it
    /// cannot allow it.
    fn ask(&mut self, call: &ProposedCall) -> Decision {
        let name = &call.offer.shown.name;
        let confined = call.bounds.map(Bounds::summary);
        let confined = confined.as_deref();
        let charset = self.notes.terminal().encoding.charset_of_questions();
        let mut size = unix::terminal_size(&self.terminal);
        let mut shown = 0;
        let mut explained = "";
        loop {
            // q may have waited for a long time. Ctrl-C also ends the q that had the terminal before, and so hands it on.
            self.interrupts.wait_if_ending();
            if let Err(decision) = check_foreground(&self.terminal) {
                return decision;
            }
            let Some(screens) = layout::screens(name, call.arguments, confined, size, charset)
            else {
                return Decision::NoRoom;
            };
            let screen = &screens[shown];
            let text = if explained.is_empty() {
                screen.text()
            } else {
                // It has been shown just now, and may have filled the terminal.
                format!("{explained}{}", screen.question())
            };
            // A terminal that fails gives no consent.
            let typed = self.ask_once(&text);
            let typed = typed.unwrap_or(TerminalInput::Line(String::new()));
            explained = "";
            let is_last = shown + 1 == screens.len();
            match typed {
                TerminalInput::Line(line) => match meaning_of(&line, is_last) {
                    TypedLine::Decision(decision) => return decision,
                    TypedLine::Next => shown += 1,
                    TypedLine::Help => explained = help(is_last),
                },
                // Anything may be on the screen now.
                TerminalInput::Stop => shown = 0,
            }
            // On a screen of another size the rows would not be where they are counted.
            let current = unix::terminal_size(&self.terminal);
            if current != size {
                size = current;
                shown = 0;
                explained = "";
            }
        }
    }

    /// Shows one screenful, and reads the line that is typed after that. Ctrl-Z stops q here; other programs may then use the
    /// terminal, and another q may ask.
    fn ask_once(&mut self, screen: &str) -> io::Result<TerminalInput> {
        let mut terminal = &self.terminal;
        self.notes.spinner().erase_line();
        unix::discard_input(terminal);
        terminal.write_all(screen.as_bytes())?;
        if let Some(lock) = &mut self.lock
            && !lock.wait_for_input()
        {
            lock.stop();
            return Ok(TerminalInput::Stop);
        }
        let mut answer = String::new();
        let read = BufReader::new(terminal).read_line(&mut answer);
        if !answer.ends_with('\n') {
            // The end of input, from Ctrl-D, leaves the cursor after the question.
            let _ = terminal.write_all(b"\n");
        }
        read.map(|_| TerminalInput::Line(answer))
    }
}

/// The input after a question.
enum TerminalInput {
    Line(String),
    /// Ctrl-Z.
    Stop,
}

/// Returns the terminal, if somebody can answer there: standard error is a terminal, and q is in the foreground.
fn terminal() -> Result<File, Decision> {
    if !io::stderr().is_terminal() {
        return Err(Decision::Nobody);
    }
    let mut options = File::options();
    options.read(true).write(true);
    let terminal = options.open(TERMINAL).map_err(|_| Decision::Nobody)?;
    check_foreground(&terminal)?;
    Ok(terminal)
}

/// Checks that q is in the foreground of a terminal, because nobody can answer elsewhere.
fn check_foreground(terminal: &File) -> Result<(), Decision> {
    if unix::is_in_foreground(terminal) {
        Ok(())
    } else if unix::is_in_background(terminal) {
        Err(Decision::Background)
    } else {
        Err(Decision::Nobody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Spinner;
    use crate::text::table::rows;

    fn consent(yes: bool, always: &[&str]) -> Consent {
        let own = Environment::new(&[("PATH", "/usr/bin:/bin")]);
        let mut consent = Consent::new(yes, own, Interrupts::new(&Spinner::default()));
        let section = ToolServer::parse("db", "command = [\"x\"]");
        for tool in always {
            let offer = OfferedTool::listed_by(&section, tool, true);
            consent.always.insert(offer.id());
        }
        consent
    }

    #[test]
    fn a_call_is_not_asked_about_if_the_section_or_yes_or_an_earlier_answer_allows_it() {
        let asking = ToolServer::parse("db", "command = [\"x\"]");
        let allowing = ToolServer::parse("db", "command = [\"x\"]\nallow = [\"drop\"]");
        for (section, yes, always, expected) in [
            (&asking, false, &[][..], false),
            (&asking, false, &["list"], false),
            (&asking, false, &["db__drop"], false),
            (&asking, false, &["drop"], true),
            (&asking, true, &[], true),
            (&allowing, false, &[], true),
        ] {
            let offer = OfferedTool::listed_by(section, "drop", true);
            let is_decided = consent(yes, always).is_decided(&offer);
            assert_eq!(is_decided, expected, "{section:?} {yes} {always:?}");
        }
    }

    #[test]
    fn only_a_yes_after_the_last_screenful_allows_a_call() {
        let no = || TypedLine::Decision(Decision::No);
        for (line, before_the_last, after_the_last) in [
            ("y\n", no(), TypedLine::Decision(Decision::Yes)),
            (" YES \n", no(), TypedLine::Decision(Decision::Yes)),
            ("a\n", no(), TypedLine::Decision(Decision::Always)),
            ("Always\n", no(), TypedLine::Decision(Decision::Always)),
            ("v\n", TypedLine::Next, no()),
            ("view\n", TypedLine::Next, no()),
            ("?\n", TypedLine::Help, TypedLine::Help),
            (" H\n", TypedLine::Help, TypedLine::Help),
            ("help\n", TypedLine::Help, TypedLine::Help),
            ("n\n", no(), no()),
            ("yy\n", no(), no()),
            ("??\n", no(), no()),
            ("yes, do\n", no(), no()),
            ("\n", no(), no()),
            ("", no(), no()),
        ] {
            assert_eq!(meaning_of(line, false), before_the_last, "{line:?}");
            assert_eq!(meaning_of(line, true), after_the_last, "{line:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_setting_that_allows_the_call_if_there_is_one() {
        // A section, a tool, and what allows a call of it. A command that runs code of the model's cannot be allowed.
        let table = r#"
            command = ["x"] | drop | allow = ["drop"] in [tools.db] or --yes
            command = ["x"] | drop* | --yes
            url = "https://h/mcp" | drop | allow = ["drop"] in [tools.db] or --yes
            drop.run = ["ls", "{a}"] | drop | allow = ["drop"] in [tools.db] or --yes
            drop.run = ["sh", "-c", "{a}"] | drop | --yes
        "#;
        for [section, tool, allows] in rows(table) {
            let section = ToolServer::parse("db", section);
            let offer = OfferedTool::listed_by(&section, tool, false);
            let call = ProposedCall {
                offer: &offer,
                section: &section,
                bounds: None,
                arguments: &Map::new(),
            };
            let name = &offer.shown.name;
            let expected = format!("{name} did not run: why; {allows} allows it");
            assert_eq!(consent(false, &[]).refusal(&call, "why"), expected);
        }
    }
}
