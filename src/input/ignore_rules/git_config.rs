//! Reads what git's configuration sets: as git prints it, or in a file, for machines without git (pure).

/// What git's configuration, or a part of it, sets of what decides which files git ignores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GitConfig {
    pub excludes_file: Option<Vec<u8>>,
    pub ignores_case: Option<bool>,
}

/// One line of a configuration: the name with its section, in small letters, and the value. A value may be missing.
struct ConfigLine {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl GitConfig {
    /// Reads a file. `None`: it includes others, or git alone can tell what it means.
    pub fn read(text: &[u8]) -> Option<GitConfig> {
        GitConfig::of_lines(ConfigText::of(text).settings()?)
    }

    /// Reads names as they are written, each with a value. `None` is as for a file.
    pub fn of_pairs(pairs: Vec<(&[u8], &[u8])>) -> Option<GitConfig> {
        let lines = pairs.into_iter().map(|(name, value)| ConfigLine {
            name: name.to_ascii_lowercase(),
            value: Some(value.to_owned()),
        });
        GitConfig::of_lines(lines.collect())
    }

    /// Reads what `git config --null --get-regexp` prints. `None`: git alone can tell what a value means.
    pub fn of_printed(text: &[u8]) -> Option<GitConfig> {
        let mut lines = Vec::new();
        for printed in text.split(|byte| *byte == 0) {
            let mut parts = printed.splitn(2, |byte| *byte == b'\n');
            let name = parts.next().unwrap_or_default().to_owned();
            let value = parts.next().map(<[u8]>::to_owned);
            lines.push(ConfigLine { name, value });
        }
        GitConfig::of_lines(lines)
    }

    fn of_lines(lines: Vec<ConfigLine>) -> Option<GitConfig> {
        let mut config = GitConfig::default();
        for ConfigLine { name, value } in lines {
            match name.as_slice() {
                b"core.excludesfile" => config.excludes_file = Some(value?),
                b"core.ignorecase" => config.ignores_case = Some(truth(value)?),
                // There is one more file of the repository.
                b"extensions.worktreeconfig" if truth(value)? => return None,
                name if name.starts_with(b"include.") || name.starts_with(b"includeif.") => {
                    return None;
                }
                _ => {}
            }
        }
        Some(config)
    }
}

/// Returns what a value says as a boolean, which a name without a value is, too.
fn truth(value: Option<Vec<u8>>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    match value.to_ascii_lowercase().as_slice() {
        b"true" | b"yes" | b"on" => Some(true),
        b"false" | b"no" | b"off" | b"" => Some(false),
        number => {
            let number: i32 = str::from_utf8(number).ok()?.parse().ok()?;
            Some(number != 0)
        }
    }
}

/// The text of a configuration that is still to be read.
struct ConfigText<'t>(&'t [u8]);

impl ConfigText<'_> {
    fn of(text: &[u8]) -> ConfigText<'_> {
        ConfigText(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text))
    }

    /// Takes the next byte. CR LF is one newline.
    fn next(&mut self) -> Option<u8> {
        let text = self.0.strip_prefix(b"\r").unwrap_or_default();
        if text.starts_with(b"\n") {
            self.0 = text;
        }
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes the next byte of a line, at whose end the text may end.
    fn next_of_line(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    /// Reads all settings. `None`: they are not written as git wants them.
    fn settings(mut self) -> Option<Vec<ConfigLine>> {
        let mut settings = Vec::new();
        let mut section = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b'#' | b';' => while self.next_of_line() != b'\n' {},
                b'[' => section = self.section()?,
                _ if byte.is_ascii_whitespace() => {}
                _ if byte.is_ascii_alphabetic() => settings.push(self.setting(&section, byte)?),
                _ => return None,
            }
        }
        Some(settings)
    }

    /// Reads the name of a section, without the bracket before it.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b']' => return Some(name),
                b' ' | b'\t' => return self.subsection(name),
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
    }

    /// Reads the second part of the name of a section, which is in quotes.
    fn subsection(&mut self, mut name: Vec<u8>) -> Option<Vec<u8>> {
        let mut first = self.next()?;
        while matches!(first, b' ' | b'\t') {
            first = self.next()?;
        }
        if first != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => name.push(self.next()?),
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(name)
    }

    /// Reads a setting of a section, of which the first byte has been taken.
    fn setting(&mut self, section: &[u8], first: u8) -> Option<ConfigLine> {
        let mut name = [section, b".", &[first.to_ascii_lowercase()]].concat();
        let mut byte = self.next_of_line();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            name.push(byte.to_ascii_lowercase());
            byte = self.next_of_line();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next_of_line();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        Some(ConfigLine { name, value })
    }

    /// Reads a value to the end of its line.
    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // How much there is without the blanks at the end.
        let mut end = 0;
        let mut is_quoted = false;
        loop {
            let byte = match self.next_of_line() {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                b'#' | b';' if !is_quoted => {
                    while self.next_of_line() != b'\n' {}
                    break;
                }
                b'"' => {
                    is_quoted = !is_quoted;
                    end = value.len();
                    continue;
                }
                b'\\' => match self.next_of_line() {
                    b'\n' => continue,
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'b' => 8,
                    byte @ (b'"' | b'\\') => byte,
                    _ => return None,
                },
                blank if blank.is_ascii_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                byte => byte,
            };
            value.push(byte);
            end = value.len();
        }
        value.truncate(end);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn what_git_prints_has_a_name_and_a_value_in_each_part_and_the_last_one_counts() {
        // What git prints, the excludes file, and whether case is ignored.
        let table = r"
            - | - | -
            core.excludesfile␊~/a b | ~/a b | -
            core.excludesfile␊/a␀core.ignorecase␊true␀core.excludesfile␊/b␊c | /b␊c | yes
            core.ignorecase␊off␀core.ignorecase | - | yes
            core.ignorecase␊1k | git | git
            core.excludesfile | git | git
        ";
        let bytes = |text: &str| text.replace('␊', "\n").replace('␀', "\0").into_bytes();
        for [printed, excludes, case] in rows(table) {
            let expected = (excludes != "git").then(|| GitConfig {
                excludes_file: (!excludes.is_empty()).then(|| bytes(excludes)),
                ignores_case: (!case.is_empty()).then_some(case == "yes"),
            });
            let found = GitConfig::of_printed(&bytes(printed));
            assert_eq!(found, expected, "{printed}");
        }
    }

    #[test]
    fn what_decides_is_found_in_the_configuration_or_it_is_said_that_git_is_needed() {
        // The lines of the configuration, the excludes file, and whether case is ignored.
        let table = r#"
            [core]␊excludesFile = ~/ignored | ~/ignored | -
            [core]␊excludesfile="/a b" | /a b | -
            [core]␊excludesFile = /a␊ EXCLUDESFILE = /b ␍ | /b | -
            [core]␊excludesFile = /a=b | /a=b | -
            [core]␊excludesFile = /a b ; c | /a b | -
            [core]␊excludesFile = /a# c | /a | -
            [core]␊excludesFile = "/a ; "b # c | /a ; b | -
            [core]␊excludesFile = "/a "  | /a␠ | -
            [core]␊excludesFile = /a\␊b | /ab | -
            [core]␊excludesFile = /a\\b | /a\b | -
            [core]␊excludesFile = /a\c | git | git
            [core]␊excludesFile = "/a | git | git
            [core]␊excludesFile | git | git
            [core]␊excludesFile : /a | git | git
            [core] excludesFile = /a | /a | -
            [CORE] EXCLUDESFILE=/a␊[user]␊name = b | /a | -
            [core "x"]␊excludesFile = /a | - | -
            [core.x]␊excludesFile = /a | - | -
            [other]␊excludesFile = /a | - | -
            [other]␊name = \␊excludesFile = /a | - | -
            [core]␊excludesFile = /gr⟨fc⟩n | /gr⟨fc⟩n | -
            [core]␊name = gr⟨fc⟩n␊excludesFile = /a␊other = ⟨fc⟩ | /a | -
            [core]␊# excludesFile = /a | - | -
            [core]␊excludesFileX = /a␊[include]␊ | - | -
            [include]␊path = a | git | git
            [Include] path = a | git | git
            [includeIf "gitdir:~/a"]␊path = b | git | git
            [include "a"]␊path = a | git | git
            [broken | git | git
            [a "b] | git | git
            [a "b\"]"]␊c = d | - | -
            [a b]␊c = d | git | git
            = a | git | git
            [core]␊ignoreCase = true | - | yes
            [core]␊ignorecase | - | yes
            [core]␊ignorecase = Yes | - | yes
            [core]␊ignorecase = 1 | - | yes
            [core]␊ignorecase = 2 | - | yes
            [core]␊ignorecase = -1 | - | yes
            [core]␊ignorecase = 00 | - | no
            [core]␊ignorecase = 1.5 | git | git
            [core]␊ignorecase = 99999999999 | git | git
            [core]␊ignorecase = on␊ignorecase = off | - | no
            [core]␊ignorecase = | - | no
            [core]␊ignorecase = maybe | git | git
            [extensions]␊worktreeConfig = true | git | git
            [extensions]␊worktreeConfig = false | - | -
            - | - | -
        "#;
        let bytes = |text: &str| {
            let text = text.replace('␊', "\n").replace('␍', "\r").replace('␠', " ");
            let parts = Vec::from_iter(text.split("⟨fc⟩").map(str::as_bytes));
            parts.join(&0xFC)
        };
        for [text, excludes, case] in rows(table) {
            let expected = (excludes != "git").then(|| GitConfig {
                excludes_file: (!excludes.is_empty()).then(|| bytes(excludes)),
                ignores_case: match case {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                },
            });
            assert_eq!(GitConfig::read(&bytes(text)), expected, "{text}");
            let with_mark = [b"\xEF\xBB\xBF", bytes(text).as_slice()].concat();
            assert_eq!(GitConfig::read(&with_mark), expected, "{text}");
        }
    }
}
