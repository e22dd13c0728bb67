//! Decides whether a call may run: by the settings, by what its server says about the tool, or by asking the user.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use unicode_width::UnicodeWidthChar;

use super::offers::Offer;
use crate::output::Notes;
use crate::unix::{self, Size};

/// The size assumed for a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// More blanks in a row are shown as a number, so that they cannot push anything out of sight.
const MAX_BLANKS: usize = 3;

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// Decides which calls run.
#[derive(Debug, Default)]
pub(crate) struct Consent {
    /// Every call runs.
    pub(super) yes: bool,
    /// The tools that a person has allowed for the rest of this run.
    pub(super) always: HashSet<String>,
}

impl Consent {
    /// Asks whether a call may run, unless that is decided already. The arguments are compact JSON.
    ///
    /// # Errors
    /// Why the call does not run, in words for the model.
    pub(crate) fn ask(&mut self, offer: &Offer, arguments: &str, notes: &Notes) -> Result<(), &'static str> {
        if offer.allowed || self.yes {
            return Ok(());
        }
        let (name, setting) = (&offer.shown.name, &offer.setting);
        let refused = |why: &str| notes.note(&format!("{name} did not run: {why}; {setting} or --yes allows it"));
        let (terminal, is_allowed) = (terminal(), self.always.contains(name));
        if terminal.is_none() && !is_allowed {
            refused("nobody can be asked here");
            return Err("The call was refused: nobody can be asked whether it may run.");
        }
        let call = format!("q: run {name} {}", shown(arguments));
        let question = format!("q: run {name}? [y]es, [N]o, [a]lways in this run ");
        let size = terminal.as_ref().and_then(unix::terminal_size).unwrap_or(DEFAULT_SIZE);
        // What scrolls away cannot be judged, and what is left could imitate another call.
        if rows(&call, size.columns) + rows(&question, size.columns) > size.rows {
            refused("its arguments do not fit the screen");
            return Err("The call was refused: its arguments do not fit the user's screen.");
        }
        let Some(terminal) = terminal.filter(|_| !is_allowed) else { return Ok(()) };
        notes.spinner().stop();
        let answer = ask_at(terminal, &format!("{call}\n{question}"));
        match answer.unwrap_or_default().trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            "a" | "always" => {
                self.always.insert(name.clone());
                Ok(())
            }
            _ => Err("The user did not allow this call."),
        }
    }
}

/// The terminal, if somebody can answer there: standard error is a terminal, and q is in the foreground.
fn terminal() -> Option<File> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let terminal = File::options().read(true).write(true).open(TERMINAL).ok()?;
    unix::is_in_foreground(&terminal).then_some(terminal)
}

/// Asks, and reads the line that is typed after that.
fn ask_at(mut terminal: File, question: &str) -> io::Result<String> {
    unix::discard_input(&terminal);
    terminal.write_all(question.as_bytes())?;
    let mut answer = String::new();
    let read = BufReader::new(&terminal).read_line(&mut answer);
    if !answer.ends_with('\n') {
        // The end of input, from Ctrl-D, leaves the cursor after the question.
        let _ = terminal.write_all(b"\n");
    }
    read.map(|_| answer)
}

/// How many rows of a terminal a line takes.
fn rows(line: &str, columns: usize) -> usize {
    let (mut rows, mut column) = (1, 0);
    for width in line.chars().filter_map(UnicodeWidthChar::width) {
        column += width;
        // A character is not broken in two.
        if column > columns {
            rows += 1;
            column = width;
        }
    }
    rows
}

/// Text in which nothing can hide: characters that do not print, and many blanks, are shown as numbers.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character == ' ' {
            let blanks = 1 + std::iter::from_fn(|| rest.next_if_eq(&' ')).count();
            match blanks > MAX_BLANKS {
                true => shown.push_str(&format!("⟨{blanks} blanks⟩")),
                false => shown.push_str(&" ".repeat(blanks)),
            }
        } else if !is_printable(character) || is_invisible(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character prints something, or is the space. Control and format characters and other blanks print nothing;
/// private and unassigned characters may look like anything.
fn is_printable(character: char) -> bool {
    // The standard library only says what it would escape, and it escapes a combining mark unless a letter comes before.
    let text = String::from_iter(['a', character]);
    matches!(character, '"' | '\\' | '\'') || text.escape_debug().eq(text.chars())
}

/// Marks, letters and symbols without a shape: variation selectors, fillers and blanks, and those that change how
/// others look.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{1d159}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_hide_in_arguments() {
        for (text, expected) in [
            ("{\"a\":\"b ü 日\"}", "{\"a\":\"b ü 日\"}"),
            ("\u{7f}\u{9b}\u{1b}", "\\u007f\\u009b\\u001b"),
            ("a\u{202e}b\u{200b}\u{2028}\u{feff}\u{ad}", "a\\u202eb\\u200b\\u2028\\ufeff\\u00ad"),
            ("\u{e0041}", "\\udb40\\udc41"),
            ("\u{fe0f}", "\\ufe0f"),
            ("a\u{a0}b\u{3000}c\u{2028}", "a\\u00a0b\\u3000c\\u2028"),
            ("\u{e000}\u{fffe}\u{378}\u{10ffff}", "\\ue000\\ufffe\\u0378\\udbff\\udfff"),
            ("\u{2800}\u{1d159}\u{3164}", "\\u2800\\ud834\\udd59\\u3164"),
            ("\\n e\u{301} 'n' 👍", "\\n e\u{301} 'n' 👍"),
            ("   a    b ", "   a⟨4 blanks⟩b "),
            ("\u{a0}    ", "\\u00a0⟨4 blanks⟩"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_take_the_rows_that_a_terminal_needs() {
        for (line, columns, expected) in [
            ("", 4, 1),
            ("abcd", 4, 1),
            ("abcde", 4, 2),
            ("日本", 4, 1),
            ("a日本", 4, 2),
            ("日日日", 3, 3),
            ("e\u{301}e", 2, 1),
        ] {
            assert_eq!(rows(line, columns), expected, "{line} in {columns}");
        }
    }
}
