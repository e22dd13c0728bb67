//! The terminal that q writes to, by the environment: its encoding, its styles, and whether it shows the answer itself.

use super::text_encoding::TextEncoding;

/// Set by the keys for shells, which show the messages of q on a terminal and put its answer into the command line.
const FOR_COMMAND_LINE: &str = "Q_LINE";

/// The styles that the environment lets q use on a terminal, whatever the settings say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Styling {
    /// `TERM=dumb`: it shows lines one after the other, and nothing else works.
    Dumb,
    /// `NO_COLOR`, see no-color.org: text has neither weight nor colour.
    Plain,
    #[default]
    Full,
}

impl Styling {
    /// Reads the environment. `variable` returns the value of a variable that is set and not empty.
    fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Styling {
        if variable("TERM") == Some("dumb") {
            Styling::Dumb
        } else if variable("NO_COLOR").is_some() {
            Styling::Plain
        } else {
            Styling::Full
        }
    }
}

/// The terminal, as the environment describes it.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    pub encoding: TextEncoding,
    pub styling: Styling,
    /// Whether the answer goes into the command line of a shell.
    pub fills_command_line: bool,
}

impl Terminal {
    /// Reads the environment. `variable` returns the value of a variable that is set and not empty.
    pub fn new<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Terminal {
        Terminal {
            encoding: TextEncoding::new(&variable),
            styling: Styling::of(&variable),
            fills_command_line: variable(FOR_COMMAND_LINE).is_some(),
        }
    }

    /// Returns the same terminal, with its encoding by the environment alone, for what must work wherever q starts.
    pub fn without_system(&self) -> Terminal {
        Terminal {
            encoding: self.encoding.without_system(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_takes_precedence_over_no_color() {
        for (term, no_color, expected) in [
            (None, None, Styling::Full),
            (Some("xterm"), None, Styling::Full),
            (Some("xterm"), Some("1"), Styling::Plain),
            (None, Some("0"), Styling::Plain),
            (Some("dumb"), None, Styling::Dumb),
            (Some("dumb"), Some("1"), Styling::Dumb),
        ] {
            let styling = Styling::of(|name| match name {
                "TERM" => term,
                "NO_COLOR" => no_color,
                _ => None,
            });
            assert_eq!(styling, expected, "{term:?} {no_color:?}");
        }
    }
}
