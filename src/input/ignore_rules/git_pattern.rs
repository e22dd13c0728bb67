//! Matches paths with the patterns of files that say what git ignores, as git's wildmatch.c does, in time that grows with the
//! product of their lengths (pure).

/// The bytes that begin a wildcard, or a character that stands for itself.
pub const WILDCARDS: &[u8] = b"*?[\\";

/// A pattern for paths.
#[derive(Debug)]
pub struct GitPattern {
    /// It matches what one of these matches, of which there are at most two.
    alternatives: Vec<Vec<PathPart>>,
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
        let is_for_path = pattern.contains(&b'/');
        let path = pattern.strip_prefix(b"/").unwrap_or(pattern);
        let alternatives = match StarsInName::find(path).filter(|_| is_for_path) {
            Some(stars) => stars.alternatives(ignores_case)?,
            None => vec![parts_of(path, ignores_case)?],
        };
        Some(GitPattern {
            alternatives,
            is_for_path,
        })
    }

    /// Whether it matches a path, given as its parts.
    pub fn matches(&self, path: &[&[u8]]) -> bool {
        let from = if self.is_for_path { 0 } else { path.len() - 1 };
        let is_any = |part: &PathPart| matches!(part, PathPart::Directories);
        let fits = |part: &PathPart, name: &&[u8]| match part {
            PathPart::Directories => true,
            PathPart::Name(parts) => matches_name(parts, name),
        };
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|parts| matches(parts, &path[from..], is_any, fits))
    }
}

/// A pattern with stars that stand for directories though they begin within a name, as in `src/foo**/out`. Git compares the bytes
/// before the first wildcard by themselves, and then takes what follows them for a pattern of its own.
struct StarsInName<'a> {
    /// What is before the stars, without a wildcard.
    literal: &'a [u8],
    /// What is behind them, which begins with a slash if there is anything.
    after: &'a [u8],
}

impl StarsInName<'_> {
    fn find(pattern: &[u8]) -> Option<StarsInName<'_>> {
        let is_wildcard = |byte: &u8| WILDCARDS.contains(byte);
        let (literal, rest) = pattern.split_at(pattern.iter().position(is_wildcard)?);
        if matches!(literal.last(), None | Some(b'/')) {
            return None;
        }
        let mut after = behind_stars(rest)?;
        // More of them in a row mean the same.
        while let Some(further) = after.strip_prefix(b"/").and_then(behind_stars) {
            after = further;
        }
        Some(StarsInName { literal, after })
    }

    /// Returns the patterns that together match the same; `None` if that is nothing.
    fn alternatives(&self, ignores_case: bool) -> Option<Vec<Vec<PathPart>>> {
        let mut longer = parts_of(&[self.literal, b"*"].concat(), ignores_case)?;
        longer.push(PathPart::Directories);
        let rest = match self.after {
            [] => return Some(vec![longer]),
            [b'\\', b'/', rest @ ..] | [_, rest @ ..] => rest,
        };
        longer.extend(parts_of(rest, ignores_case)?);
        let mut alternatives = vec![longer];
        if self.after.starts_with(b"/") {
            // The stars and the slash may stand for nothing.
            alternatives.push(parts_of(&[self.literal, rest].concat(), ignores_case)?);
        }
        Some(alternatives)
    }
}

/// Returns what is behind stars that stand for directories, if a pattern begins with some: two or more, and then a slash, perhaps
/// behind a backslash, or the end.
fn behind_stars(pattern: &[u8]) -> Option<&[u8]> {
    let count = pattern.iter().take_while(|byte| **byte == b'*').count();
    let after = &pattern[count..];
    let is_whole = after.is_empty() || is_at_slash(after);
    (count >= 2 && is_whole).then_some(after)
}

fn is_at_slash(pattern: &[u8]) -> bool {
    pattern.starts_with(b"/") || pattern.starts_with(b"\\/")
}

/// Reads the parts of a pattern for paths; `None` if it matches nothing.
fn parts_of(pattern: &[u8], ignores_case: bool) -> Option<Vec<PathPart>> {
    let mut reader = PatternReader {
        rest: pattern,
        ignores_case,
    };
    let mut parts = Vec::new();
    loop {
        let name = reader.name()?;
        let is_any = |part: &NamePart| matches!(part, NamePart::Any);
        let stands_for_directories = name.len() >= 2 && name.iter().all(is_any);
        match (stands_for_directories, reader.rest.first()) {
            (false, _) => parts.push(PathPart::Name(name)),
            (true, Some(b'/')) => parts.push(PathPart::Directories),
            // At the end: all that is in a directory, and not the directory itself. A slash behind a backslash has to be there.
            (true, _) => parts.extend([PathPart::Directories, PathPart::Name(name)]),
        }
        if reader.rest.is_empty() {
            return Some(parts);
        }
        if reader.take() == Some(b'\\') {
            reader.take();
        }
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
        while let Some(byte) = self.rest.first()
            && !is_at_slash(self.rest)
        {
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
                // To git, case always matters behind a backslash.
                b'\\' => NamePart::One(ByteSet::Only(self.character()?)),
                _ => {
                    let literal = self.take()?;
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
            // Git compares this one by itself, whatever the other end is, and whether case matters or not.
            listed[usize::from(low)] = true;
            if let [b'-', next, ..] = self.rest
                && *next != b']'
            {
                self.take();
                let high = self.character()?;
                self.add(&mut listed, |byte| (low..=high).contains(&byte));
            }
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
        // Git has no others.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::test_repository::{TestRepository, pattern_like};
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
            in/a**/b | in/ab in/a/b in/ax/b in/ax/y/z/b in/a/y/b | in/b in/axb in/x/b x/in/ab in/ax/yb
            a**/b | ab a/b ax/b ax/y/b | axb b xa/b
            a***/b | ab a/b ax/b ax/y/b | axb
            a**/**/b | ab a/b ax/b ax/y/b | axb
            a**/x/**/b | ax/b ay/x/b ay/z/x/b ay/x/z/b | axb ay/b
            a**/*b | ab axb a/b ay/z/xb | axc
            a**/x** | ax axy az/y/xy | az ax/y
            a**\/b | a/b ax/b ax/y/b | ab axb
            a**\/**/b | a/b ax/b ax/y/b | ab axb
            /a** | a ab a/b ab/c/d | ba b/a
            /a**/** | a ab a/b ab/c/d | ba b/a
            /a**\/** | a/b ab/c/d | a ab
            in/a** | in/a in/ab in/ab/c | in/b in
            a** | a ab x/ab | ba
            ?a**/b | xa/b xab/b | xab xay/z/b
            \a**/b | a/b ax/b | ab ax/y/b
            a/**\/b | a/x/b a/x/y/b | a/b a/xb
            **\/b | x/b x/y/b | b
            *** | a in/a | -
            a/***/b | a/b a/x/y/b | -
            [abc]1 | a1 in/c1 | d1 1
            [!abc]1 | d1 | a1 1
            [^abc]1 | d1 | a1 1
            [a-c]1 | a1 b1 c1 | d1
            [c-a]1 | c1 | a1 b1
            [!c-a]1 | a1 b1 | c1
            [c-ab]1 | c1 b1 | a1
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
            ("IN/A**/B", "in/ax/y/b", true),
            // To git, these are no letters of either case.
            ("[A]*", "a", false),
            ("\\A*", "a", false),
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
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn git_says_the_same(
            patterns in prop::collection::vec(pattern_like(), 1..80),
            paths in prop::collection::vec("[abB]{1,2}(/[ab]{1,2}){0,3}|[abAB.\\[\\]*-]{1,3}(/[abB]{1,2}){0,3}", 1..40),
            ignores_case: bool,
        ) {
            let Some(repository) = TestRepository::new() else { return Ok(()); };
            let is_real = |path: &String| path.split('/').all(|part| part != "." && part != "..");
            let paths = Vec::from_iter(paths.into_iter().filter(is_real));
            let is_pattern_alone = |pattern: &String| !pattern.starts_with('!') && !pattern.ends_with('/');
            let patterns = Vec::from_iter(patterns.into_iter().filter(is_pattern_alone));
            // Each pattern has a directory of its own, so that git is asked once.
            let mut asked = Vec::new();
            for (number, pattern) in patterns.iter().enumerate() {
                repository.write(&format!("{number}/.gitignore"), &format!("{pattern}\n"));
                asked.extend(paths.iter().map(|path| format!("{number}/{path}")));
            }
            let case = format!("core.ignoreCase={ignores_case}");
            let arguments = ["-c", &case, "check-ignore", "--stdin", "-z", "--no-index"];
            let ignored = HashSet::<String>::from_iter(repository.ask(&arguments, &asked.join("\0")));
            for (number, pattern) in patterns.iter().enumerate() {
                for path in &paths {
                    // Git also says it of what is in a directory that is ignored.
                    let parts = Vec::from_iter(path.match_indices('/').map(|(at, _)| &path[..at]));
                    let mut parts = parts.into_iter().chain([path.as_str()]);
                    let found = parts.any(|path| is_match(pattern, path, ignores_case));
                    let expected = ignored.contains(&format!("{number}/{path}"));
                    prop_assert_eq!(found, expected, "{} {} {}", pattern, path, case);
                }
            }
        }
    }
}
