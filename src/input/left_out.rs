//! What a pattern or a directory of `-a` names and q leaves out, in few notes whatever its number.

use crate::error::{Error, ErrorKind};
use crate::output::Notes;

/// The files and directories that are left out of what a pattern or a directory names, by the reason.
#[derive(Default)]
pub struct LeftOut {
    /// The paths of pipes, devices, sockets and dangling links.
    pub irregular: Tally,
    /// The directories that cannot be listed, each with the reason.
    pub unlisted: Tally,
    /// The files that cannot be read, each with the reason.
    pub unreadable: Tally,
    /// The paths of the files that are of no kind that q sends.
    pub binary: Tally,
    /// How many files git ignores. A directory that it ignores counts as one, if a file below it is meant.
    pub ignored: usize,
    /// How many directories git ignores of which it is not known whether a file below them is meant.
    pub unsearched: usize,
    /// How many symbolic links are not followed, without those that git ignores. Files that are meant may be where they lead.
    pub links: usize,
    /// How many symbolic links lead into a directory of version control that the pattern does not name.
    pub repository_links: usize,
}

/// A number of things that are skipped for the same reason.
struct SkippedPart {
    count: usize,
    in_words: String,
}

/// A number of things with the same reason, and the first of them by its text. The others need no room, because there may be
/// millions.
#[derive(Default)]
pub struct Tally {
    count: usize,
    first: String,
}

impl Tally {
    pub fn add(&mut self, thing: String) {
        if self.count == 0 || thing < self.first {
            self.first = thing;
        }
        self.count += 1;
    }

    /// Returns the part of the note that says how many these are. The name of a single one helps; those of many would hide the number.
    fn skipped(&self, one: &str, several: &str) -> SkippedPart {
        let mut part = SkippedPart::new(self.count, one, several);
        if self.count == 1 {
            part.in_words += &format!(" ({})", self.first);
        }
        part
    }

    /// Says one thing in the words that it gets, and several in those that get their number and the first of them.
    fn in_words(
        &self,
        one: impl Fn(&str) -> String,
        several: impl Fn(usize, &str) -> String,
    ) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(one(&self.first)),
            count => Some(several(count, &self.first)),
        }
    }
}

impl SkippedPart {
    fn new(count: usize, one: &str, several: &str) -> SkippedPart {
        let things = if count == 1 { one } else { several };
        SkippedPart {
            count,
            in_words: format!("{count} {things}"),
        }
    }
}

impl LeftOut {
    /// Notes what is left out because q failed to look at it.
    pub fn report_failures(&self, notes: &Notes) {
        for note in self.failures() {
            notes.note(&note);
        }
    }

    /// Counts in one note what is skipped on purpose. Where no file is found, [`LeftOut::error_for_no_file`] says most of it.
    pub fn report_skipped(&self, notes: &Notes, is_any_found: bool) {
        if let Some(note) = self.skipped(is_any_found) {
            notes.note(&note);
        }
    }

    fn failures(&self) -> Vec<String> {
        let unlisted = self.unlisted.in_words(
            |reason| format!("cannot list {reason}; skipped"),
            |count, first| format!("cannot list {count} directories ({first}); they are left out"),
        );
        let unreadable = self.unreadable.in_words(
            |reason| format!("cannot read {reason}; skipped"),
            |count, first| format!("cannot read {count} files ({first}); they are left out"),
        );
        [unlisted, unreadable].into_iter().flatten().collect()
    }

    fn skipped(&self, is_any_found: bool) -> Option<String> {
        let mut parts = vec![
            self.binary.skipped(
                "file that is neither text nor image nor PDF",
                "files that are neither text nor image nor PDF",
            ),
            self.irregular.skipped(
                "special file or dangling link",
                "special files or dangling links",
            ),
        ];
        if is_any_found {
            parts.extend([
                SkippedPart::new(self.ignored, "ignored file", "ignored files"),
                SkippedPart::new(
                    self.unsearched,
                    "unsearched ignored directory",
                    "unsearched ignored directories",
                ),
                SkippedPart::new(self.links, "symbolic link", "symbolic links"),
                SkippedPart::new(
                    self.repository_links,
                    "link into a directory such as .git",
                    "links into directories such as .git",
                ),
            ]);
        }
        parts.retain(|part| part.count > 0);
        let count: usize = parts.iter().map(|part| part.count).sum();
        let verb = if count == 1 { "was" } else { "were" };
        let last = parts.pop()?.in_words;
        let before = Vec::from_iter(parts.into_iter().map(|part| part.in_words));
        let all = if before.is_empty() {
            last
        } else {
            format!("{} and {last}", before.join(", "))
        };
        Some(format!("{all} {verb} skipped"))
    }

    /// Returns why nothing is sent. `is_any_found` says that there is a file that git does not ignore.
    fn reason_for_no_file(&self, is_any_found: bool) -> NoFileReason {
        if is_any_found {
            return NoFileReason::NoMatch;
        }
        if self.repository_links > 0 {
            return NoFileReason::RepositoryLinks;
        }
        let is_any_ignored = self.ignored + self.unsearched > 0;
        match (is_any_ignored, self.links > 0) {
            (false, false) => NoFileReason::NoMatch,
            (false, true) => NoFileReason::Links,
            (true, true) => NoFileReason::IgnoredAndLinks,
            (true, false) if self.unsearched == 0 => NoFileReason::Ignored,
            (true, false) => NoFileReason::Unsearched,
        }
    }

    /// Returns the error for a pattern or a directory, as the user is shown it, of which nothing is sent. `is_any_found` says that
    /// it names a file that git does not ignore.
    pub fn error_for_no_file(&self, name: &str, is_directory: bool, is_any_found: bool) -> Error {
        let mut reason = if is_directory {
            format!("there is no file that -a takes below {name}")
        } else {
            format!("no file that -a takes matches {name}")
        };
        let names = if is_directory { "has" } else { "matches" };
        let (why, advice) = match self.reason_for_no_file(is_any_found) {
            NoFileReason::RepositoryLinks => (
                "it names links into a directory such as .git".to_owned(),
                "name the files, each after -a",
            ),
            NoFileReason::Links => (
                format!("it {names} symbolic links, which are not followed"),
                ADVICE_ON_LINKS,
            ),
            NoFileReason::IgnoredAndLinks => (
                "git ignores a part of it, and links are not followed".to_owned(),
                ADVICE_ON_LINKS,
            ),
            NoFileReason::Ignored => (
                format!("git ignores all that it {names}"),
                ADVICE_ON_IGNORED,
            ),
            NoFileReason::Unsearched => (
                "git ignores directories that may have some".to_owned(),
                ADVICE_ON_IGNORED,
            ),
            NoFileReason::NoMatch => {
                let error = Error::new(ErrorKind::Input, reason);
                if is_directory {
                    return error;
                }
                return error.advise(ADVICE_ON_PATTERNS);
            }
        };
        reason += &format!(": {why}");
        Error::new(ErrorKind::Input, reason).advise(advice)
    }
}

const ADVICE_ON_LINKS: &str =
    "name the files, each after -a, or use a pattern without **, which follows links";
const ADVICE_ON_IGNORED: &str =
    "name the file or the ignored directory itself, which is read even if it is ignored";
const ADVICE_ON_PATTERNS: &str = "write * and ? for anything within a name, [ab] for one of these characters, ** for any directories";

/// Why a pattern or a directory brings no file.
enum NoFileReason {
    /// It names links into a directory such as `.git`.
    RepositoryLinks,
    Links,
    /// Git ignores all of it.
    Ignored,
    IgnoredAndLinks,
    /// Git ignores directories, which were not searched.
    Unsearched,
    /// Nothing that would be sent was skipped.
    NoMatch,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn one_thing_is_named_and_several_are_counted() {
        let tally = |things: &str| {
            let mut tally = Tally::default();
            for thing in things.split_whitespace() {
                tally.add(thing.to_owned());
            }
            tally
        };
        // The things, and what is said of them for each reason.
        let table = r"
            - | - | -
            a | cannot list a; skipped | cannot read a; skipped
            b a c | cannot list 3 directories (a); they are left out | cannot read 3 files (a); they are left out
        ";
        for [things, unlisted, unreadable] in rows(table) {
            let left_out = LeftOut {
                unlisted: tally(things),
                unreadable: tally(things),
                ..LeftOut::default()
            };
            let mut expected = vec![unlisted, unreadable];
            expected.retain(|note| !note.is_empty());
            assert_eq!(left_out.failures(), expected, "{things}");
        }
        // The files of no kind that is sent, what is no regular file, how many files are ignored, and the note.
        let table = r"
            - | - | 0 | -
            b | - | 0 | 1 file that is neither text nor image nor PDF (b) was skipped
            b a c | - | 0 | 3 files that are neither text nor image nor PDF were skipped
            - | a | 0 | 1 special file or dangling link (a) was skipped
            - | b a c | 0 | 3 special files or dangling links were skipped
            b | - | 1 | 1 file that is neither text nor image nor PDF (b) and 1 ignored file were skipped
            b a | c | 2 | 2 files that are neither text nor image nor PDF, 1 special file or dangling link (c) and 2 ignored files were skipped
        ";
        for [binary, irregular, ignored, expected] in rows(table) {
            let left_out = LeftOut {
                binary: tally(binary),
                irregular: tally(irregular),
                ignored: ignored.parse().expect(ignored),
                ..LeftOut::default()
            };
            let note = left_out.skipped(true).unwrap_or_default();
            assert_eq!(note, expected, "{binary} {irregular} {ignored}");
        }
    }

    #[test]
    fn what_is_left_out_on_purpose_is_counted_in_one_note_or_is_the_reason_why_nothing_is_sent() {
        // How many files are ignored, directories not searched, links not followed, and links into directories such as .git; the
        // note; and the reason and the beginning of the advice.
        let table = r"
            0 0 0 0 | - | - | write * and ?
            1 0 0 0 | 1 ignored file was skipped | git ignores all that it matches | name the file or
            2 0 0 0 | 2 ignored files were skipped | git ignores all that it matches | name the file or
            0 1 0 0 | 1 unsearched ignored directory was skipped | git ignores directories that may have some | name the file or
            2 2 0 0 | 2 ignored files and 2 unsearched ignored directories were skipped | git ignores directories that may have some | name the file or
            0 0 1 0 | 1 symbolic link was skipped | it matches symbolic links, which are not followed | name the files
            0 0 2 0 | 2 symbolic links were skipped | it matches symbolic links, which are not followed | name the files
            1 0 2 0 | 1 ignored file and 2 symbolic links were skipped | git ignores a part of it, and links are not followed | name the files
            0 0 0 1 | 1 link into a directory such as .git was skipped | it names links into a directory such as .git | name the files
            1 0 0 2 | 1 ignored file and 2 links into directories such as .git were skipped | it names links into a directory such as .git | name the files
            0 1 1 0 | 1 unsearched ignored directory and 1 symbolic link were skipped | git ignores a part of it, and links are not followed | name the files
        ";
        for [counts, note, why, advice] in rows(table) {
            let numbers = counts.split(' ').map(|count| count.parse().expect(counts));
            let numbers: Vec<usize> = numbers.collect();
            let left_out = LeftOut {
                ignored: numbers[0],
                unsearched: numbers[1],
                links: numbers[2],
                repository_links: numbers[3],
                ..LeftOut::default()
            };
            assert_eq!(left_out.skipped(true).unwrap_or_default(), note, "{counts}");
            let mut reason = "no file that -a takes matches x".to_owned();
            if !why.is_empty() {
                reason += &format!(": {why}");
            }
            let error = left_out.error_for_no_file("x", false, false);
            assert_eq!(error.message, reason, "{counts}");
            let found = error.advice.as_deref().unwrap_or_default();
            assert!(found.starts_with(advice), "{counts}: {found}");
            let error = left_out.error_for_no_file("x", true, true);
            assert_eq!(
                error.message, "there is no file that -a takes below x",
                "{counts}"
            );
            assert_eq!(error.advice, None, "{counts}");
        }
    }
}
