//! Decides whether a call may run: by the settings, by what its server says about the tool, or by asking the user.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use serde_json::{Map, Value};

use super::layout;
use super::names;
use super::offers::Offer;
use crate::output::Notes;
use crate::settings::READS;
use crate::text::escape::Charset;
use crate::unix;

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// What the user has agreed to in this run.
#[derive(Debug, Default)]
pub struct Consent {
    /// Every call runs.
    pub yes: bool,
    /// The tools that a person has allowed for the rest of this run.
    pub always: HashSet<String>,
}

impl Consent {
    /// Asks whether a call may run, unless that is decided already. Returns whether a person has read it. The error says to
    /// the model why the call does not run.
    pub fn ask(
        &mut self,
        offer: &Offer,
        arguments: &Map<String, Value>,
        notes: &Notes,
    ) -> Result<bool, &'static str> {
        let name = &offer.shown.name;
        if offer.allowed || self.yes || self.always.contains(name) {
            return Ok(false);
        }
        let refused = |why: &str| {
            let (section, _) = names::split(name);
            let tool = &offer.tool;
            let mut setting = format!("allow = [{tool:?}] in [tools.{section}] or ");
            // A server chooses the names of its tools, and as a pattern its name would allow others, too.
            if tool.contains('*') || tool == READS {
                setting.clear();
            }
            notes.note(&format!(
                "{name} did not run: {why}; {setting}--yes allows it"
            ));
        };
        let Some(terminal) = terminal() else {
            refused("nobody can be asked here");
            return Err("The call was refused: nobody can be asked whether it may run.");
        };
        notes.spinner().stop();
        let held = notes.hold_details();
        let charset = notes.terminal().charset_of_questions();
        let answer = asked(&terminal, name, arguments, charset);
        drop(held);
        match answer {
            Answer::Yes => Ok(true),
            Answer::Always => {
                self.always.insert(name.clone());
                Ok(true)
            }
            Answer::No => Err("The user did not allow this call."),
            Answer::NoRoom => {
                refused("the screen is too small to show it");
                Err("The call was refused: the user's screen is too small to show it.")
            }
        }
    }
}

/// What a person answers.
enum Answer {
    Yes,
    No,
    Always,
    /// The call cannot be shown.
    NoRoom,
}

/// Shows a call, one screenful after the other, and returns what is answered at its end. Whoever has not seen all of it
/// cannot allow it.
fn asked(terminal: &File, name: &str, arguments: &Map<String, Value>, charset: Charset) -> Answer {
    let mut size = unix::terminal_size(terminal);
    let mut shown = 0;
    loop {
        let Some(screens) = layout::screens(name, arguments, size, charset) else {
            return Answer::NoRoom;
        };
        // A terminal that fails gives no consent.
        let typed = ask_at(terminal, &screens[shown]).unwrap_or_default();
        let typed = typed.trim().to_lowercase();
        shown += 1;
        let is_last = shown == screens.len();
        match typed.as_str() {
            "y" | "yes" if is_last => return Answer::Yes,
            "a" | "always" if is_last => return Answer::Always,
            "v" | "view" if !is_last => (),
            _ => return Answer::No,
        }
        // On a screen of another size the rows would not be where they are counted.
        let current = unix::terminal_size(terminal);
        if current != size {
            size = current;
            shown = 0;
        }
    }
}

/// The terminal, if somebody can answer there: standard error is a terminal, and q is in the foreground.
fn terminal() -> Option<File> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let mut options = File::options();
    options.read(true).write(true);
    let terminal = options.open(TERMINAL).ok()?;
    unix::is_in_foreground(&terminal).then_some(terminal)
}

/// Asks, and reads the line that is typed after that.
fn ask_at(mut terminal: &File, question: &str) -> io::Result<String> {
    unix::discard_input(terminal);
    terminal.write_all(question.as_bytes())?;
    let mut answer = String::new();
    let read = BufReader::new(terminal).read_line(&mut answer);
    if !answer.ends_with('\n') {
        // The end of input, from Ctrl-D, leaves the cursor after the question.
        let _ = terminal.write_all(b"\n");
    }
    read.map(|_| answer)
}
