//! Decides whether a call may run: by the settings, by what its server says about the tool, or by asking the user.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::ops::RangeInclusive;

use super::offers::Offer;
use crate::output::Notes;
use crate::unix;

/// More blanks in a row are shown as a number, so that they cannot push anything out of sight.
const MAX_BLANKS: usize = 3;

/// The letters and digits besides ASCII that are shown as they are. The ranges are parts of the blocks of Unicode 14. They
/// hold no mark and nothing invisible, because terminals disagree on how wide those are.
const LETTERS: &[RangeInclusive<char>] = &[
    '\u{c0}'..='\u{24f}',      // Latin
    '\u{370}'..='\u{3ff}',     // Greek
    '\u{400}'..='\u{481}',     // Cyrillic
    '\u{48a}'..='\u{52f}',     // Cyrillic, after its combining marks
    '\u{1e00}'..='\u{1eff}',   // Latin with more than one accent
    '\u{1f00}'..='\u{1fff}',   // ancient Greek
    '\u{3005}'..='\u{3007}',   // the repetition mark and the zero of ideographs
    '\u{3041}'..='\u{3096}',   // Hiragana
    '\u{309d}'..='\u{30ff}',   // Hiragana after its combining marks, Katakana
    '\u{3400}'..='\u{4dbf}',   // ideographs, extension A
    '\u{4e00}'..='\u{9fff}',   // ideographs
    '\u{ac00}'..='\u{d7a3}',   // Hangul syllables
    '\u{f900}'..='\u{faff}',   // ideographs for compatibility
    '\u{ff10}'..='\u{ff5a}',   // wide digits and Latin letters
    '\u{ff66}'..='\u{ff9d}',   // narrow Katakana, before its marks
    '\u{20000}'..='\u{2a6d6}', // ideographs, extension B
];

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
    /// Asks whether a call may run, unless that is decided already. The arguments are compact JSON. The error says to the
    /// model why the call does not run.
    pub fn ask(
        &mut self,
        offer: &Offer,
        arguments: &str,
        notes: &Notes,
    ) -> Result<(), &'static str> {
        if offer.allowed || self.yes {
            return Ok(());
        }
        let name = &offer.shown.name;
        let setting = &offer.setting;
        let refused = |why: &str| {
            notes.note(&format!(
                "{name} did not run: {why}; {setting} or --yes allows it"
            ));
        };
        let terminal = terminal();
        let is_allowed = self.always.contains(name);
        if terminal.is_none() && !is_allowed {
            refused("nobody can be asked here");
            return Err("The call was refused: nobody can be asked whether it may run.");
        }
        let call = format!("q: run {name} {}", shown(arguments));
        let question = format!("q: run {name}? [y]es, [N]o, [a]lways in this run ");
        let known_size = terminal.as_ref().and_then(unix::terminal_size);
        let size = known_size.unwrap_or_default();
        // What scrolls away cannot be judged, and what is left could imitate another call.
        let needed = rows(&call, size.columns) + rows(&question, size.columns);
        if needed > size.rows {
            refused("its arguments do not fit the screen");
            return Err("The call was refused: its arguments do not fit the user's screen.");
        }
        let Some(terminal) = terminal.filter(|_| !is_allowed) else {
            return Ok(());
        };
        notes.spinner().stop();
        let answer = ask_at(terminal, &format!("{call}\n{question}"));
        // A terminal that fails gives no consent.
        let answer = answer.unwrap_or_default();
        match answer.trim().to_lowercase().as_str() {
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
    let mut options = File::options();
    options.read(true).write(true);
    let terminal = options.open(TERMINAL).ok()?;
    if unix::is_in_foreground(&terminal) {
        Some(terminal)
    } else {
        None
    }
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

/// How many rows of a terminal a line takes at most. What is not ASCII counts as two columns, the most that any terminal
/// takes for a letter.
fn rows(line: &str, columns: usize) -> usize {
    let mut rows = 1;
    let mut column = 0;
    for character in line.chars() {
        let width = if character.is_ascii() { 1 } else { 2 };
        column += width;
        // A character is not broken in two.
        if column > columns {
            rows += 1;
            column = width;
        }
    }
    rows
}

/// Text in which nothing can hide: printable ASCII and letters stay, many blanks become their count, and every other
/// character becomes its code point.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character == ' ' {
            let mut blanks = 1;
            while rest.next_if_eq(&' ').is_some() {
                blanks += 1;
            }
            if blanks > MAX_BLANKS {
                shown.push_str(&format!("⟨{blanks} blanks⟩"));
            } else {
                shown.push_str(&" ".repeat(blanks));
            }
        } else if character.is_ascii_graphic() || is_letter(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}

/// Whether a character is a letter or a digit of a script that every terminal draws character by character.
fn is_letter(character: char) -> bool {
    // The ranges hold a few symbols and unassigned characters, too.
    let is_listed = LETTERS.iter().any(|range| range.contains(&character));
    is_listed && character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_can_hide_in_arguments() {
        for (text, expected) in [
            (
                "{\"a\":\"b~ü ß ř Ω я ё ほ カー 々 한 日 ｆ\"}",
                "{\"a\":\"b~ü ß ř Ω я ё ほ カー 々 한 日 ｆ\"}",
            ),
            ("\u{7f}\u{9b}\u{1b}", "\\u{7f}\\u{9b}\\u{1b}"),
            (
                "a\u{202e}b\u{200b}\u{2028}\u{feff}\u{ad}",
                "a\\u{202e}b\\u{200b}\\u{2028}\\u{feff}\\u{ad}",
            ),
            ("\u{e0041}\u{fe0f}", "\\u{e0041}\\u{fe0f}"),
            ("a\u{a0}b\u{3000}c\u{2028}", "a\\u{a0}b\\u{3000}c\\u{2028}"),
            (
                "\u{e000}\u{fffe}\u{378}\u{10ffff}",
                "\\u{e000}\\u{fffe}\\u{378}\\u{10ffff}",
            ),
            ("\u{2800}\u{1d159}\u{3164}", "\\u{2800}\\u{1d159}\\u{3164}"),
            ("\\n e\u{301} 'n' 👍", "\\n e\\u{301} 'n' \\u{1f44d}"),
            // Terminals disagree on how wide these are.
            (
                "\u{302e}\u{9be}\u{cca}\u{1734}\u{16ff0}",
                "\\u{302e}\\u{9be}\\u{cca}\\u{1734}\\u{16ff0}",
            ),
            (
                "\u{483}\u{489}\u{3099}\u{309a}\u{ff9e}",
                "\\u{483}\\u{489}\\u{3099}\\u{309a}\\u{ff9e}",
            ),
            ("שلक\u{1100}", "\\u{5e9}\\u{644}\\u{915}\\u{1100}"),
            ("×÷・「—", "\\u{d7}\\u{f7}\\u{30fb}\\u{300c}\\u{2014}"),
            ("⟨9 blanks⟩", "\\u{27e8}9 blanks\\u{27e9}"),
            ("   a    b ", "   a⟨4 blanks⟩b "),
            ("\u{a0}    ", "\\u{a0}⟨4 blanks⟩"),
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
            ("éé", 4, 1),
            ("ééa", 4, 2),
        ] {
            assert_eq!(rows(line, columns), expected, "{line} in {columns}");
        }
    }

    /// The rows of a terminal that draws each character this wide.
    fn drawn(line: &str, columns: usize, width: impl Fn(char) -> usize) -> usize {
        let (mut rows, mut left) = (1, columns);
        for width in line.chars().map(width) {
            if width > left {
                (rows, left) = (rows + 1, columns);
            }
            left -= width;
        }
        rows
    }

    /// The columns of a character as the system's C library has them, which many terminals ask; none where it has none.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn width_of(character: char) -> usize {
        unsafe extern "C" {
            fn wcwidth(character: libc::wchar_t) -> libc::c_int;
        }
        thread_local! {
            /// From its first use on, this thread is in a locale with UTF-8.
            static IS_UTF8: bool = {
                // SAFETY: the name ends in NUL; the locale is never freed, and only this thread uses it.
                unsafe {
                    let locale = libc::newlocale(libc::LC_CTYPE_MASK, c"C.UTF-8".as_ptr(), std::ptr::null_mut());
                    !locale.is_null() && !libc::uselocale(locale).is_null()
                }
            };
        }
        assert!(IS_UTF8.with(|is_utf8| *is_utf8), "no locale C.UTF-8");
        // SAFETY: the call takes any number.
        let width =
            unsafe { wcwidth(libc::wchar_t::try_from(u32::from(character)).expect("a character")) };
        usize::try_from(width).unwrap_or_default()
    }

    /// Elsewhere the crate that q wraps text by.
    #[cfg(not(target_os = "linux"))]
    fn width_of(character: char) -> usize {
        unicode_width::UnicodeWidthChar::width(character).unwrap_or_default()
    }

    #[test]
    fn every_character_that_is_shown_takes_one_or_two_columns() {
        let all = shown(&String::from_iter('\0'..=char::MAX));
        for character in all
            .chars()
            .filter(|character| !character.is_ascii_graphic() && *character != ' ')
        {
            assert!((1..=2).contains(&width_of(character)), "{character:?}");
        }
    }

    proptest! {
        #[test]
        fn no_terminal_takes_more_rows_than_are_counted(
            // Any characters, and those that are shown or look as if they could be.
            text in prop::collection::vec(
                prop_oneof![any::<char>(), prop::char::range(' ', '\u{600}'), prop::char::range('\u{2e80}', '\u{ffff}')],
                0..300,
            ),
            columns in 2..100_usize,
        ) {
            let line = shown(&String::from_iter(text));
            let counted = rows(&line, columns);
            prop_assert!(counted >= drawn(&line, columns, width_of));
            let widest = |character: char| if character.is_ascii() { 1 } else { 2 };
            prop_assert!(counted >= drawn(&line, columns, widest));
        }
    }
}
