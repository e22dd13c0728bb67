//! Matches paths with the patterns of files that say what git ignores, as git's wildmatch.c does, in time that grows with the
//! product of their lengths (pure).

/// A pattern for paths.
#[derive(Debug)]
pub struct GitPattern {
    parts: Vec<PathPart>,
    /// Whether it is for the whole path, relative to the directory of its file, and not for the name alone.
    is_for_path: bool,
}

/// A part of a pattern for paths.
#[derive(Debug)]
enum PathPart {
    /// Any number of directories, or none: `**`.
    Directories,
    /// The name of a directory or of the file.
    Name(Vec<NamePart>),
}

/// A part of a pattern for names.
#[derive(Debug)]
enum NamePart {
    /// Any bytes, or none: `*`.
    Any,
    One(ByteSet),
}

/// The bytes that may be in a place of a name.
#[derive(Debug)]
enum ByteSet {
    /// Whatever it is: `?`.
    All,
    Only(u8),
    /// A list in brackets: for each byte, whether it is in.
    Listed(Box<[bool; 256]>),
}

impl GitPattern {
    /// Reads a pattern without what stands before and behind it: the `!` of a rule that exempts, and the slash of one for
    /// directories. `None`: it matches nothing. Where case does not matter, the names that it is compared with have only small
    /// letters.
    pub fn parse(pattern: &[u8], ignores_case: bool) -> Option<GitPattern> {
        let mut reader = PatternReader {
            rest: pattern.strip_prefix(b"/").unwrap_or(pattern),
            ignores_case,
        };
        let mut parts = Vec::new();
        loop {
            let name = reader.name()?;
            let is_last = reader.rest.is_empty();
            let is_any = |part: &NamePart| matches!(part, NamePart::Any);
            let stands_for_directories = name.len() >= 2 && name.iter().all(is_any);
            match (stands_for_directories, is_last) {
                (false, _) => parts.push(PathPart::Name(name)),
                (true, false) => parts.push(PathPart::Directories),
                // All that is in a directory, and not the directory itself.
                (true, true) => parts.extend([PathPart::Directories, PathPart::Name(name)]),
            }
            if is_last {
                break;
            }
            reader.rest = &reader.rest[1..];
        }
        Some(GitPattern {
            parts,
            is_for_path: pattern.contains(&b'/'),
        })
    }

    /// Whether it matches a path, given as its parts.
    pub fn matches(&self, path: &[&[u8]]) -> bool {
        let from = if self.is_for_path { 0 } else { path.len() - 1 };
        let is_any = |part: &PathPart| matches!(part, PathPart::Directories);
        matches(
            &self.parts,
            &path[from..],
            is_any,
            |part, name| match part {
                PathPart::Directories => true,
                PathPart::Name(parts) => matches_name(parts, name),
            },
        )
    }
}

fn matches_name(parts: &[NamePart], name: &[u8]) -> bool {
    let is_any = |part: &NamePart| matches!(part, NamePart::Any);
    matches(parts, name, is_any, |part, byte| match part {
        NamePart::Any => true,
        NamePart::One(set) => set.contains(*byte),
    })
}

/// Whether the parts of a pattern fit all elements, one after another. Some parts stand for any number of elements. Only the last
/// of these has to be tried with more: those before it have found what they need at the first place.
fn matches<P, E>(
    pattern: &[P],
    elements: &[E],
    is_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &E) -> bool,
) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut last_any = None;
    while let Some(element) = elements.get(at) {
        match pattern.get(part) {
            Some(next) if is_any(next) => {
                part += 1;
                last_any = Some((part, at));
            }
            Some(next) if fits(next, element) => {
                part += 1;
                at += 1;
            }
            _ => {
                let Some((after, begin)) = last_any else {
                    return false;
                };
                (part, at) = (after, begin + 1);
                last_any = Some((part, at));
            }
        }
    }
    pattern[part..].iter().all(is_any)
}

impl ByteSet {
    fn contains(&self, byte: u8) -> bool {
        match self {
            ByteSet::All => true,
            ByteSet::Only(only) => *only == byte,
            ByteSet::Listed(listed) => listed[usize::from(byte)],
        }
    }
}

/// A reader of the parts of a pattern.
struct PatternReader<'a> {
    rest: &'a [u8],
    ignores_case: bool,
}

impl PatternReader<'_> {
    /// Reads up to the next slash; `None` if no name matches.
    fn name(&mut self) -> Option<Vec<NamePart>> {
        let mut parts = Vec::new();
        while let Some(byte) = self.rest.first().filter(|byte| **byte != b'/') {
            if self.rest.starts_with(b"\\/") {
                self.take();
                break;
            }
            let part = match byte {
                b'*' => {
                    self.take();
                    NamePart::Any
                }
                b'?' => {
                    self.take();
                    NamePart::One(ByteSet::All)
                }
                b'[' => {
                    self.take();
                    NamePart::One(ByteSet::Listed(self.list()?))
                }
                _ => {
                    let literal = self.character()?;
                    NamePart::One(ByteSet::Only(self.folded(literal)))
                }
            };
            parts.push(part);
        }
        Some(parts)
    }

    /// Reads a list of bytes up to its bracket; `None` if there is no bracket, or a class that does not exist.
    fn list(&mut self) -> Option<Box<[bool; 256]>> {
        let is_negated = matches!(self.rest.first(), Some(b'!' | b'^'));
        if is_negated {
            self.take();
        }
        let mut listed = Box::new([false; 256]);
        let mut is_first = true;
        while is_first || *self.rest.first()? != b']' {
            is_first = false;
            if let Some((name, rest)) = class_at(self.rest) {
                let is_in = class(name)?;
                self.rest = rest;
                self.add(&mut listed, |byte| is_in(&byte));
                continue;
            }
            let low = self.character()?;
            let mut high = low;
            if let [b'-', next, ..] = self.rest
                && *next != b']'
            {
                self.take();
                high = self.character()?;
            }
            self.add(&mut listed, |byte| (low..=high).contains(&byte));
        }
        self.take();
        if is_negated {
            for is_in in &mut *listed {
                *is_in = !*is_in;
            }
        }
        Some(listed)
    }

    fn add(&self, listed: &mut [bool; 256], is_in: impl Fn(u8) -> bool) {
        for byte in 0..=u8::MAX {
            let is_in_other_case = self.ignores_case && is_in(byte.to_ascii_uppercase());
            listed[usize::from(byte)] |= is_in(byte) || is_in_other_case;
        }
    }

    /// Reads a byte that stands for itself, perhaps behind a backslash; `None` if nothing follows that.
    fn character(&mut self) -> Option<u8> {
        match self.take()? {
            b'\\' => self.take(),
            byte => Some(byte),
        }
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn folded(&self, byte: u8) -> u8 {
        if self.ignores_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    }
}

/// Splits the name of a class, such as `[:alpha:]`, from what follows it; `None` if no class begins here.
fn class_at(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let after = list.strip_prefix(b"[:")?;
    let end = after.iter().position(|byte| *byte == b']')?;
    let name = after[..end].strip_suffix(b":")?;
    Some((name, &after[end + 1..]))
}

/// Returns what decides whether a byte is in a class of POSIX, such as `[:alpha:]`.
fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    fn is_match(pattern: &str, path: &str, ignores_case: bool) -> bool {
        let path = if ignores_case {
            path.to_lowercase()
        } else {
            path.to_owned()
        };
        let parts = Vec::from_iter(path.as_bytes().split(|byte| *byte == b'/'));
        let pattern = GitPattern::parse(pattern.as_bytes(), ignores_case);
        pattern.is_some_and(|pattern| pattern.matches(&parts))
    }

    #[test]
    fn patterns_match_names_paths_and_lists_as_gits_do() {
        // The pattern, paths that it matches, and paths that it does not match.
        let table = r##"
            * | a a/b | -
            *.log | a.log .log in/a.log | a.logs log
            a?c | abc in/a.c | ac a/c abbc
            a*c*e | ace abcde abcce | aced acd
            /*.log | a.log | in/a.log
            in/*.log | in/a.log | a.log x/in/a.log in/x/a.log
            **/a | a in/a in/x/a | ab in/ab
            a/** | a/b a/b/c | a b/a/c
            a/**/b | a/b a/x/b a/x/y/b | ab a/xb
            **/in/** | in/a x/in/a | in x/in
            a**b/c | ab/c axb/c | a/b/c a/x/b/c
            *** | a in/a | -
            a/***/b | a/b a/x/y/b | -
            [abc]1 | a1 in/c1 | d1 1
            [!abc]1 | d1 | a1 1
            [^abc]1 | d1 | a1 1
            [a-c]1 | a1 b1 c1 | d1
            [c-a]1 | - | a1 b1 c1
            []]1 | ]1 | a1
            [!]]1 | a1 | ]1
            []-a]1 | ]1 ^1 a1 | b1
            [a-]1 | a1 -1 | b1
            [\]]1 | ]1 | \1
            [\a-c]1 | b1 | \1
            [[:alpha:]_]1 | a1 Z1 _1 | 11
            [![:digit:]]1 | a1 | 11
            [[:none:]]1 | - | :1 [1
            [[:x]1 | [1 :1 x1 | a1
            [a | - | a [a
            a[/]b | - | a/b a[/]b
            x[a/b] | - | xa/b x/
            \* | * | a \*
            \!a | !a | a
            a\ | - | a a\
            in\/*.log | in/a.log | a.log x/in/a.log
            {a,b}? | {a,b}c | ac bc
            ä? | äb | ä
        "##;
        for [pattern, matching, others] in rows(table) {
            for (paths, expected) in [(matching, true), (others, false)] {
                for path in paths.split_whitespace() {
                    assert_eq!(is_match(pattern, path, false), expected, "{pattern} {path}");
                }
            }
        }
    }

    #[test]
    fn the_case_of_ascii_letters_can_be_ignored() {
        for (pattern, path, expected) in [
            ("*.LOG", "a.log", true),
            ("*.log", "A.LOG", true),
            ("[A-C]*", "b", true),
            ("[!A-C]*", "b", false),
            ("[[:upper:]]?", "ab", true),
            ("Ä*", "Äb", false),
        ] {
            // The name has small letters, also where git's own comparison leaves others.
            assert_eq!(is_match(pattern, path, true), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_matches_in_very_many_ways_takes_little_time() {
        let name = "a".repeat(255);
        let path = vec![name.as_str(); 16].join("/");
        assert!(!is_match(&"*a".repeat(120), &format!("{name}b"), false));
        assert!(!is_match(&("**/a*/".repeat(15) + "b"), &path, false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn git_says_the_same(
            patterns in prop::collection::vec("[ab*?\\[\\]!^/.\\\\-]{1,8}", 1..12),
            paths in prop::collection::vec("[ab.\\[\\]*-]{1,3}(/[ab]{1,2}){0,3}", 1..40),
        ) {
            let Ok(directory) = tempfile::tempdir() else { return Ok(()); };
            let git = |arguments: &[&str]| {
                let mut git = Command::new("git");
                git.arg("-C").arg(directory.path()).args(arguments);
                git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
                // A hook of git that runs the tests has these for its own repository.
                for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"] {
                    git.env_remove(variable);
                }
                git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                git
            };
            if !git(&["init", "-q"]).status().is_ok_and(|status| status.success()) {
                let is_allowed = std::env::var_os("SKIP_NO_TEST").is_none();
                prop_assert!(is_allowed, "it would be skipped: git is not there");
                eprintln!("skipped: git is not there");
                return Ok(());
            }
            let is_real = |path: &String| path.split('/').all(|part| part != "." && part != "..");
            let paths = Vec::from_iter(paths.into_iter().filter(is_real));
            for pattern in &patterns {
                let is_no_pattern_alone = pattern.starts_with('!') || pattern.ends_with('/');
                // To git, an escaped slash behind ** is one that has to be there.
                let is_odd = pattern.contains("//") || pattern.contains("**\\/");
                if is_no_pattern_alone || is_odd {
                    continue;
                }
                std::fs::write(directory.path().join(".git/info/exclude"), format!("{pattern}\n")).expect("a file");
                let mut asked = git(&["check-ignore", "--stdin", "-z", "--no-index"]).spawn().expect("git");
                let input = paths.join("\0");
                asked.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("input");
                let told = asked.wait_with_output().expect("output").stdout;
                let told = String::from_utf8(told).expect("text");
                let ignored = Vec::from_iter(told.split('\0'));
                for path in &paths {
                    // Git also says it of what is in a directory that is ignored.
                    let parts = Vec::from_iter(path.match_indices('/').map(|(at, _)| &path[..at]));
                    let found = parts.iter().chain([&path.as_str()]).any(|path| is_match(pattern, path, false));
                    prop_assert_eq!(found, ignored.contains(&path.as_str()), "{} {}", pattern, path);
                }
            }
        }
    }
}
