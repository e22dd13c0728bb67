//! The rules of a file that says what git ignores, and what they cost (pure).

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The most that the rules that apply in one directory cost together. One stands for about 500 bytes of memory.
pub const MAX_COST: usize = 100_000;

/// What a rule with a wildcard costs besides its bytes. In memory, it takes some kilobytes, and up to one for each byte.
const COST_OF_PATTERN: usize = 30;

const COST_OF_PATTERN_BYTE: usize = 2;

/// What a rule without a wildcard costs besides its bytes, of which this many cost one. It is found by its hash.
const COST_OF_LITERAL: usize = 2;

const LITERAL_BYTES_FOR_ONE: usize = 10;

/// What makes a rule a pattern. Braces are none to git, but the library takes them for a choice.
const WILDCARDS: &[u8] = b"*?[{\\";

/// How many rules are compiled at once. The library needs all of them twice meanwhile.
const PART: usize = 1_000;

const COMMENTS: &[u8] = b"#";

/// Starts a rule that exempts files.
const EXEMPTS: &[u8] = b"!";

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The rules of one file.
#[derive(Default)]
pub struct RuleSet {
    /// In the order of the file; a later one decides before those above it.
    parts: Vec<Gitignore>,
}

impl RuleSet {
    /// Reads the text of a file whose rules are relative to a directory. What they cost is added to `cost`.
    ///
    /// # Errors
    ///
    /// The reason why these rules cannot be used.
    pub fn read(
        text: &[u8],
        directory: &Path,
        ignores_case: bool,
        cost: &mut usize,
    ) -> Result<RuleSet, String> {
        let mut rules = Vec::new();
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(COMMENTS) {
                continue;
            }
            *cost += cost_of(line, ignores_case);
            if *cost > MAX_COST {
                let reason = "there are too many rules, with those of the directories above";
                return Err(reason.to_owned());
            }
            rules.extend(as_text(line));
        }
        let mut set = RuleSet::default();
        for some in rules.chunks(PART) {
            let part = compile(some, directory, ignores_case);
            set.parts.push(part.map_err(|error| error.to_string())?);
        }
        Ok(set)
    }

    /// Returns what the rules say of a file or a directory.
    pub fn matched(&self, path: &Path, is_directory: bool) -> Match<()> {
        let last_first = self.parts.iter().rev();
        let mut matches = last_first.map(|part| part.matched(path, is_directory).map(|_| ()));
        let decided = matches.find(|found| !found.is_none());
        decided.unwrap_or(Match::None)
    }
}

fn compile(
    rules: &[String],
    directory: &Path,
    ignores_case: bool,
) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new(directory);
    builder.case_insensitive(ignores_case)?;
    for rule in rules {
        // What is no pattern matches nothing, as with git.
        let _ = builder.add_line(None, rule);
    }
    builder.build()
}

/// Returns what a rule costs. Where case does not matter, each of them is a pattern to the library.
fn cost_of(rule: &[u8], ignores_case: bool) -> usize {
    let is_pattern = ignores_case || rule.iter().any(|byte| WILDCARDS.contains(byte));
    // Bytes that are not UTF-8 become wildcards.
    if is_pattern || str::from_utf8(rule).is_err() {
        COST_OF_PATTERN + COST_OF_PATTERN_BYTE * rule.len()
    } else {
        COST_OF_LITERAL + rule.len() / LITERAL_BYTES_FOR_ONE
    }
}

/// Returns a rule with a `?` for each byte that is not UTF-8, so that it ignores what it should, and perhaps more; `None` if it
/// exempts files, of which it would exempt more.
fn as_text(rule: &[u8]) -> Option<String> {
    let mut text = String::new();
    for chunk in rule.utf8_chunks() {
        text += chunk.valid();
        text += &"?".repeat(chunk.invalid().len());
    }
    let is_changed = text.as_bytes() != rule;
    (!is_changed || !rule.starts_with(EXEMPTS)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_byte_that_is_not_utf_8_ignores_any_character_and_exempts_nothing() {
        // The rule, where ~ is such a byte, and its text.
        let table = r##"
            a | a
            ä* | ä*
            gr~n.* | gr?n.*
            ~~ | ??
            ä~ | ä?
            !ä | !ä
            !gr~n | nothing
            \!gr~n | \!gr?n
        "##;
        for [rule, expected] in rows(table) {
            let mut bytes = Vec::new();
            for byte in rule.bytes() {
                bytes.push(if byte == b'~' { 0xFC } else { byte });
            }
            let text = as_text(&bytes);
            assert_eq!(text.as_deref().unwrap_or("nothing"), expected, "{rule}");
        }
    }

    /// The text of a file with so many of this rule.
    fn times(rule: &str, count: usize) -> String {
        format!("{rule}\n").repeat(count)
    }

    #[test]
    fn the_cost_of_rules_is_limited_and_names_cost_less_than_patterns() {
        // The rule, whether case is ignored, and how many may apply together.
        let table = r##"
            ? | - | 3125
            *.log | - | 2500
            [a]b | - | 2631
            {ab} | - | 2631
            a\ b | - | 2631
            name | - | 50000
            !name | - | 50000
            a/b/c/d/e/ | - | 33333
            name | any case | 2631
            !name | any case | 2500
        "##;
        let root = Path::new("/");
        for [rule, case, most] in rows(table) {
            let ignores_case = !case.is_empty();
            let most: usize = most.parse().expect(most);
            // All that is compiled here takes its time.
            let of_one = cost_of(rule.as_bytes(), ignores_case);
            let mut cost = MAX_COST - of_one;
            let fits = RuleSet::read(times(rule, 1).as_bytes(), root, ignores_case, &mut cost);
            assert!(fits.is_ok() && cost == MAX_COST, "{rule} {case}");
            assert_eq!(MAX_COST / of_one, most, "{rule} {case}");
            let more = RuleSet::read(b"\n# no rule\n", root, ignores_case, &mut cost);
            assert!(more.is_ok(), "{rule} {case}");
            let more = RuleSet::read(rule.as_bytes(), root, ignores_case, &mut cost);
            assert!(more.is_err(), "{rule} {case}");
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides_however_many_there_are() {
        let others = times("other", PART);
        for (text, is_ignored) in [
            (format!("name\n{others}"), true),
            (format!("name\n{others}!name\n"), false),
            (format!("name\n!name\n{others}"), false),
            (format!("!name\n{others}{others}name\n"), true),
            (others.clone(), false),
        ] {
            let root = Path::new("/r");
            let set = RuleSet::read(text.as_bytes(), root, false, &mut 0).expect("rules");
            let found = set.matched(&root.join("name"), false);
            assert_eq!(found.is_ignore(), is_ignored, "{}", &text[..12]);
        }
    }
}
