//! Tells from the locale in which encoding a terminal reads, and which characters it is given (pure).

use std::borrow::Cow;

/// The characters that text on a terminal may consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charset {
    #[default]
    Unicode,
    Ascii,
}

impl Charset {
    /// Returns the text in these characters: in ASCII every other one becomes `\u{…}`.
    pub fn encode(self, text: &str) -> Cow<'_, str> {
        if self == Charset::Unicode || text.is_ascii() {
            return text.into();
        }
        let mut encoded = String::with_capacity(text.len());
        for character in text.chars() {
            if character.is_ascii() {
                encoded.push(character);
            } else {
                encoded.extend(character.escape_unicode());
            }
        }
        encoded.into()
    }
}

/// The encoding in which the terminal reads bytes, as far as the environment knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// As UTF-8, by the locale.
    Utf8,
    /// No locale is set. Nearly every terminal reads UTF-8.
    #[default]
    Unknown,
    /// One by one. Some bytes of letters in UTF-8 are controls then: U+00DB ends in 0x9B, which begins a command to the
    /// terminal.
    Bytes,
    /// As UTF-8 or one by one: the system, which decides that, has not said it.
    Undecided,
}

/// What the system says about the encoding of a locale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charmap {
    Named(String),
    /// The system has no means to tell.
    Unknown,
    /// The system could tell, but has not, because it is too busy or was interrupted.
    Unanswered,
}

impl Encoding {
    /// Reads the locale. `variable` returns the value of a variable that is set and not empty.
    pub fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Encoding {
        // GNU screen reads bytes where it was started without a locale.
        let is_in_screen = variable("STY").is_some();
        let mut names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
        match names.find_map(&variable) {
            Some(locale) if is_utf8(locale) => Encoding::Utf8,
            Some(_) => Encoding::Bytes,
            None if is_in_screen => Encoding::Bytes,
            None => Encoding::Unknown,
        }
    }

    /// Returns the encoding of a window of GNU screen, which reads bytes where the system does not have the locale. `charmap`
    /// returns what the system says about the locale.
    pub fn for_screen(self, charmap: impl FnOnce() -> Charmap) -> Encoding {
        if self != Encoding::Utf8 {
            return self;
        }
        match charmap() {
            Charmap::Named(name) if !is_utf8(&name) => Encoding::Bytes,
            Charmap::Named(_) | Charmap::Unknown => self,
            Charmap::Unanswered => Encoding::Undecided,
        }
    }

    /// Returns the characters of text.
    pub fn charset(self) -> Charset {
        match self {
            Encoding::Utf8 | Encoding::Unknown => Charset::Unicode,
            Encoding::Bytes | Encoding::Undecided => Charset::Ascii,
        }
    }

    /// Returns the characters of a question whose answer lets something run.
    pub fn charset_of_questions(self) -> Charset {
        match self {
            Encoding::Utf8 => Charset::Unicode,
            Encoding::Unknown | Encoding::Bytes | Encoding::Undecided => Charset::Ascii,
        }
    }
}

/// Whether a locale's name says that its encoding is UTF-8, as in `de_DE.UTF-8@euro`, `C.utf8` and the `UTF-8` of macOS.
fn is_utf8(locale: &str) -> bool {
    let (name, _) = locale.split_once('@').unwrap_or((locale, ""));
    let (_, encoding) = name.rsplit_once('.').unwrap_or(("", name));
    encoding.replace('-', "").eq_ignore_ascii_case("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_variable_that_is_set_tells_the_encoding() {
        for (variables, encoding) in [
            (&[][..], Encoding::Unknown),
            (&[("LANG", "C.UTF-8")], Encoding::Utf8),
            (&[("LANG", "de_DE.utf8")], Encoding::Utf8),
            (&[("LC_CTYPE", "UTF-8")], Encoding::Utf8),
            (&[("LANG", "de_DE.UTF-8@euro")], Encoding::Utf8),
            (&[("LANG", "C")], Encoding::Bytes),
            (&[("LANG", "POSIX")], Encoding::Bytes),
            (&[("LANG", "de_DE")], Encoding::Bytes),
            (&[("LANG", "de_DE@euro")], Encoding::Bytes),
            (&[("LANG", "ja_JP.eucJP")], Encoding::Bytes),
            (&[("LANG", "UTF-8.ISO-8859-1")], Encoding::Bytes),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], Encoding::Bytes),
            (&[("LC_ALL", "C.UTF-8"), ("LANG", "C")], Encoding::Utf8),
            (&[("LC_CTYPE", "C"), ("LANG", "C.UTF-8")], Encoding::Bytes),
            (&[("LC_ALL", "C.UTF-8"), ("LC_CTYPE", "C")], Encoding::Utf8),
            (&[("LC_MESSAGES", "C")], Encoding::Unknown),
            (&[("STY", "1.x")], Encoding::Bytes),
            (&[("STY", "1.x"), ("LANG", "C.UTF-8")], Encoding::Utf8),
        ] {
            let variable = |name: &str| {
                let mut set = variables.iter();
                set.find(|(set, _)| *set == name).map(|(_, value)| *value)
            };
            let found = Encoding::of(variable);
            assert_eq!(found, encoding, "{variables:?}");
            // The locale of a shell counts if screen reads it as its name says.
            let unless = |differing| match encoding {
                Encoding::Utf8 => differing,
                _ => encoding,
            };
            for (charmap, expected) in [
                (Charmap::Named("UTF-8".into()), encoding),
                (Charmap::Unknown, encoding),
                (
                    Charmap::Named("ANSI_X3.4-1968".into()),
                    unless(Encoding::Bytes),
                ),
                (Charmap::Unanswered, unless(Encoding::Undecided)),
            ] {
                let in_screen = found.for_screen(|| charmap.clone());
                assert_eq!(in_screen, expected, "{variables:?} {charmap:?}");
            }
        }
        let undecided = Encoding::Undecided;
        let charsets = (undecided.charset(), undecided.charset_of_questions());
        assert_eq!(charsets, (Charset::Ascii, Charset::Ascii));
        let unset = Encoding::Unknown;
        let charsets = (unset.charset(), unset.charset_of_questions());
        assert_eq!(charsets, (Charset::Unicode, Charset::Ascii));
    }
}
