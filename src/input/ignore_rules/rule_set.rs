//! The rules of a file that says what git ignores, and what they cost (pure).

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::git_pattern::{GitPattern, WILDCARDS};

/// The most that the rules that apply in one directory cost together. One stands for some hundred bytes of memory, and for the
/// comparisons of a file with a pattern.
pub const MAX_COST: usize = 100_000;

/// What a rule with a wildcard costs besides its bytes: each file is compared with it.
const COST_OF_PATTERN: usize = 30;

const COST_OF_PATTERN_BYTE: usize = 2;

/// What a rule without a wildcard costs besides its bytes, of which this many cost one. It is found by its hash.
const COST_OF_LITERAL: usize = 2;

const LITERAL_BYTES_FOR_ONE: usize = 10;

const COMMENTS: &[u8] = b"#";

/// Starts a rule that exempts files.
const EXEMPTS: &[u8] = b"!";

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The rules of one file. Each has a number, in the order of the file; the last one that matches decides.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// What they are relative to.
    directory: PathBuf,
    ignores_case: bool,
    rulings: Vec<Ruling>,
    /// The last rule without a wildcard for a name, or for a path, which begins with a slash.
    literals: HashMap<Vec<u8>, usize>,
    /// Likewise of those for directories alone.
    literals_for_directories: HashMap<Vec<u8>, usize>,
    patterns: Vec<PatternRule>,
}

/// What a rule says of the files that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Ignored,
    Exempt,
}

/// A rule with a wildcard.
#[derive(Debug)]
struct PatternRule {
    number: usize,
    pattern: GitPattern,
    is_for_directories: bool,
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
    ) -> Result<RuleSet, &'static str> {
        let mut set = RuleSet {
            directory: directory.to_owned(),
            ignores_case,
            ..RuleSet::default()
        };
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(COMMENTS) {
                continue;
            }
            *cost += cost_of(line);
            if *cost > MAX_COST {
                return Err("there are too many rules, with those of the directories above");
            }
            set.add(without_trailing_blanks(line));
        }
        Ok(set)
    }

    fn add(&mut self, rule: &[u8]) {
        let number = self.rulings.len();
        let (rule, ruling) = match rule.strip_prefix(EXEMPTS) {
            Some(exempt) => (exempt, Ruling::Exempt),
            None => (rule, Ruling::Ignored),
        };
        self.rulings.push(ruling);
        let (rule, is_for_directories) = match rule.strip_suffix(b"/") {
            Some(directories) => (directories, true),
            None => (rule, false),
        };
        if rule.iter().any(|byte| WILDCARDS.contains(byte)) {
            // What is no pattern matches nothing, as with git.
            let pattern = GitPattern::parse(rule, self.ignores_case);
            self.patterns.extend(pattern.map(|pattern| PatternRule {
                number,
                pattern,
                is_for_directories,
            }));
            return;
        }
        let mut literal = rule.to_owned();
        if literal.contains(&b'/') && !literal.starts_with(b"/") {
            literal.insert(0, b'/');
        }
        let literals = if is_for_directories {
            &mut self.literals_for_directories
        } else {
            &mut self.literals
        };
        literals.insert(folded(&literal, self.ignores_case), number);
    }

    /// Returns what the rules say of a file or a directory; `None` if nothing.
    pub fn ruling(&self, path: &Path, is_directory: bool) -> Option<Ruling> {
        let relative = path.strip_prefix(&self.directory).ok()?.as_os_str();
        if relative.is_empty() {
            return None;
        }
        let below = folded(relative.as_bytes(), self.ignores_case);
        let parts = Vec::from_iter(below.split(|byte| *byte == b'/'));
        let whole = [b"/", &below[..]].concat();
        let mut last = None;
        for literal in [&whole[..], parts.last()?] {
            last = last.max(self.literals.get(literal));
            if is_directory {
                last = last.max(self.literals_for_directories.get(literal));
            }
        }
        let last = last.copied();
        let later = self
            .patterns
            .iter()
            .rev()
            .take_while(|rule| last < Some(rule.number));
        let mut later = later.filter(|rule| is_directory || !rule.is_for_directories);
        let found = later.find(|rule| rule.pattern.matches(&parts));
        let decides = found.map(|rule| rule.number).or(last)?;
        Some(self.rulings[decides])
    }
}

/// Returns what a rule costs.
fn cost_of(rule: &[u8]) -> usize {
    if rule.iter().any(|byte| WILDCARDS.contains(byte)) {
        COST_OF_PATTERN + COST_OF_PATTERN_BYTE * rule.len()
    } else {
        COST_OF_LITERAL + rule.len() / LITERAL_BYTES_FOR_ONE
    }
}

/// Returns a rule without the blanks at its end, but for one behind a backslash.
fn without_trailing_blanks(rule: &[u8]) -> &[u8] {
    let end = rule.iter().rposition(|byte| *byte != b' ');
    let end = end.map_or(0, |last| last + 1);
    let backslashes = rule[..end].iter().rev().take_while(|byte| **byte == b'\\');
    let is_escaped = backslashes.count() % 2 == 1 && end < rule.len();
    &rule[..end + usize::from(is_escaped)]
}

/// Returns a text with small letters where case does not matter.
fn folded(text: &[u8], ignores_case: bool) -> Vec<u8> {
    if ignores_case {
        text.to_ascii_lowercase()
    } else {
        text.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    fn ruling(text: &[u8], path: &str, is_directory: bool) -> &'static str {
        let set = RuleSet::read(text, Path::new("/r"), false, &mut 0).expect("rules");
        match set.ruling(&Path::new("/r").join(path), is_directory) {
            Some(Ruling::Ignored) => "ignored",
            Some(Ruling::Exempt) => "exempt",
            None => "",
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        // The rules, with · for a blank, a path, which ends in a slash if it is a directory's, and what they say of it.
        let table = r##"
            a | a | ignored
            a | in/a | ignored
            a | ab | -
            /a | a | ignored
            /a | in/a | -
            in/a | in/a | ignored
            in/a | x/in/a | -
            a/ | a | -
            a/ | a/ | ignored
            /in/a/ | in/a/ | ignored
            a !a | a | exempt
            !a a | a | ignored
            a !a a | a | ignored
            a/ !a | a/ | exempt
            !a a/ | a/ | ignored
            !a a/ | a | exempt
            *.log !keep.log | keep.log | exempt
            !keep.log *.log | keep.log | ignored
            *.log !*.log a.log | a.log | ignored
            * !*/ !a | a | exempt
            * !*/ !a | in/ | exempt
            * !*/ !a | b | ignored
            a·· | a | ignored
            a\·· | a·· | -
            a\·· | a· | ignored
            a\\· | a\ | ignored
            #a | #a | -
            \#a | #a | ignored
            \!a | !a | ignored
            / | a/ | -
            ! | a | -
            [ a | a | ignored
        "##;
        for [rules, path, expected] in rows(table) {
            let text = rules.replace(' ', "\n").replace('·', " ");
            let path = path.replace('·', " ");
            let found = ruling(
                text.as_bytes(),
                path.trim_end_matches('/'),
                path.ends_with('/'),
            );
            assert_eq!(found, expected, "{rules} {path}");
        }
        assert_eq!(ruling(b"\xEF\xBB\xBFa\r\nb", "a", false), "ignored");
        assert_eq!(ruling(b"gr\xFCn", "gr", false), "");
    }

    /// The text of a file with that many of this rule.
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
            {ab} | - | 50000
            a\ b | - | 2631
            name | - | 50000
            !name | - | 50000
            a/b/c/d/e/ | - | 33333
            name | any case | 50000
            *.log | any case | 2500
        "##;
        let root = Path::new("/");
        for [rule, case, most] in rows(table) {
            let ignores_case = !case.is_empty();
            let most: usize = most.parse().expect(most);
            // All that is compiled here takes its time.
            let of_one = cost_of(rule.as_bytes());
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
}
