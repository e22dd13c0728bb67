//! Lays out q's own messages for the place that they are written to: each line after `q: `, and wrapped on a terminal.

use super::formatter::wrapped;
use super::quote::Quote;
use super::terminal::{Styling, Terminal};
use crate::error::{self, Error};
use crate::text::escape::escape;
use crate::text::one_line::without_breaks;

/// Begins each line.
const SENDER: &str = "q: ";

/// The place where a message goes, which decides how it looks.
#[derive(Clone, Copy)]
pub struct NotePlace<'a> {
    pub terminal: &'a Terminal,
    /// The columns of standard error, if that is a terminal.
    pub columns: Option<usize>,
}

impl NotePlace<'_> {
    /// Returns one line, whatever the text has in it.
    pub fn line(self, text: &str) -> String {
        let text = without_breaks(&error::in_words(text));
        let line = format!("{SENDER}{}", self.visible(&text));
        let line = match self.columns {
            Some(columns) => wrapped(&line, SENDER.len(), columns),
            None => line,
        };
        line + "\n"
    }

    /// Returns text from elsewhere, line by line. It does not look like q's own.
    pub fn quote(self, text: &str) -> String {
        let mut quote = Quote::default();
        let lines = quote.feed(text, self.columns, |part| self.visible(part));
        lines + quote.end()
    }

    pub fn error(self, error: &Error) -> String {
        let mut lines = self.line(&error.message);
        lines += &self.quote(&error.quote);
        if let Some(advice) = &error.advice {
            lines += &self.line(advice);
        }
        lines
    }

    /// Returns the next piece of the model's reasoning, which is quoted and faint.
    pub fn reasoning(self, quote: &mut Quote, piece: &str) -> String {
        let lines = quote.feed(piece, self.columns, |part| self.visible(part));
        let is_faint = self.columns.is_some() && self.terminal.styling == Styling::Full;
        if is_faint && !lines.is_empty() {
            return format!("\u{1b}[2m{lines}\u{1b}[0m");
        }
        lines
    }

    /// Returns the visible form of a text where a terminal shows it, at once or through a shell. Any other place gets its bytes.
    fn visible(self, text: &str) -> String {
        if self.columns.is_some() || self.terminal.fills_command_line {
            escape(&self.terminal.encoding.encode(text))
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// A terminal of an environment like `LANG=C Q_LINE=1`.
    fn terminal(variables: &'static str) -> Terminal {
        Terminal::new(|name| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(variable, _)| *variable == name)?;
            Some(value)
        })
    }

    #[test]
    fn a_note_is_one_line_that_a_terminal_wraps_under_its_text() {
        for (variables, columns, text, expected) in [
            ("", None, "a note", "q: a note\n"),
            ("", None, "", "q: \n"),
            ("", None, "a\nb\r\nc\u{2028}d", "q: a b c d\n"),
            (
                "",
                None,
                "a long note of words",
                "q: a long note of words\n",
            ),
            ("", Some(12), "one two three", "q: one two \n   three\n"),
            (
                "",
                Some(12),
                "- one two three",
                "q: - one \n   two \n   three\n",
            ),
            (
                "",
                Some(12),
                "`one two` three",
                "q: `one \n   two` \n   three\n",
            ),
            ("", Some(1), "one", "q: \none\n"),
            ("", None, "no x (os error 2)", "q: no x\n"),
            ("", None, "x: no (os error 2), y", "q: x: no, y\n"),
            // Only what a terminal shows must be escaped.
            ("", None, "a\u{1b}[1m ü", "q: a\u{1b}[1m ü\n"),
            ("", Some(80), "a\u{1b}[1m ü", "q: a^[[1m ü\n"),
            ("Q_LINE=1", None, "a\u{1b}[1m ü", "q: a^[[1m ü\n"),
            ("LANG=C", None, "ü", "q: ü\n"),
            ("LANG=C", Some(80), "ü", "q: \\u{fc}\n"),
            ("LANG=C Q_LINE=1", None, "ü", "q: \\u{fc}\n"),
        ] {
            let terminal = terminal(variables);
            let terminal = &terminal;
            let place = NotePlace { terminal, columns };
            assert_eq!(
                place.line(text),
                expected,
                "{text:?} {variables} {columns:?}"
            );
        }
    }

    #[test]
    fn an_error_is_printed_as_its_message_its_quote_and_its_advice() {
        let error = Error::new(ErrorKind::Tools, "the server “x” has ended".to_owned());
        let quoted = Error {
            quote: "no\u{1b}[1m file\n\nq: so long".to_owned(),
            ..error.clone()
        };
        let advised = quoted.clone().advise("install x").advise_also("or y");
        for (error, columns, expected) in [
            (&error, None, "q: the server “x” has ended\n"),
            (
                &quoted,
                None,
                "q: the server “x” has ended\nq: | no\u{1b}[1m file\nq: | q: so long\n",
            ),
            (
                &advised,
                Some(80),
                "q: the server “x” has ended\nq: | no^[[1m file\nq: | q: so long\nq: install x; or y\n",
            ),
            (
                &advised,
                Some(15),
                "q: the server \n   “x” has \n   ended\nq: | no^[[1m \nq: | file\nq: | q: so \nq: | long\nq: install x; \n   or y\n",
            ),
        ] {
            let terminal = &terminal("");
            let place = NotePlace { terminal, columns };
            assert_eq!(place.error(error), expected, "{columns:?}");
        }
    }

    #[test]
    fn advice_is_one_line_whatever_it_has_in_it() {
        let error = Error::usage("no")
            .advise("install x\nor y")
            .advise_also("try z");
        for columns in [None, Some(80)] {
            let terminal = &terminal("");
            let place = NotePlace { terminal, columns };
            assert_eq!(place.error(&error), "q: no\nq: install x or y; try z\n");
        }
    }

    #[test]
    fn reasoning_is_faint_on_a_terminal_with_colours_and_each_piece_ends_plain() {
        for (variables, columns, expected) in [
            ("", None, ["q: | so", " I\n", "", "q: | say"]),
            (
                "",
                Some(80),
                [
                    "\u{1b}[2mq: | so\u{1b}[0m",
                    "\u{1b}[2m I\n\u{1b}[0m",
                    "",
                    "\u{1b}[2mq: | say\u{1b}[0m",
                ],
            ),
            ("NO_COLOR=1", Some(80), ["q: | so", " I\n", "", "q: | say"]),
            ("TERM=dumb", Some(80), ["q: | so", " I\n", "", "q: | say"]),
        ] {
            let terminal = &terminal(variables);
            let place = NotePlace { terminal, columns };
            let mut quote = Quote::default();
            let pieces = ["so", " I\n", "\n", "say"];
            let shown = pieces.map(|piece| place.reasoning(&mut quote, piece));
            assert_eq!(shown, expected, "{variables} {columns:?}");
        }
    }
}
