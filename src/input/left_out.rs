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
    /// What is said of the files that are of no kind that q sends.
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

impl LeftOut {
    /// Notes what is left out though it should be sent.
    pub fn report(&self, notes: &Notes) {
        for note in self.notes() {
            notes.note(&note);
        }
    }

    /// Notes how much is left out on purpose: because git ignores it, or because it is a link, or one into a directory such as .git.
    pub fn report_counts(&self, notes: &Notes) {
        if let Some(note) = self.counts() {
            notes.note(&note);
        }
    }

    fn notes(&self) -> Vec<String> {
        let irregular = self.irregular.in_words(
            |path| format!("{path} is not a regular file; skipped"),
            |count, _| format!("{count} special files or dangling links were skipped"),
        );
        let unlisted = self.unlisted.in_words(
            |reason| format!("cannot list {reason}; skipped"),
            |count, first| format!("cannot list {count} directories ({first}); they are left out"),
        );
        let unreadable = self.unreadable.in_words(
            |reason| format!("cannot read {reason}; skipped"),
            |count, first| format!("cannot read {count} files ({first}); they are left out"),
        );
        let binary = self.binary.in_words(
            |reason| format!("{reason}; skipped"),
            |count, _| {
                format!("{count} files are neither text nor a JPEG, PNG, GIF, WebP or PDF; skipped")
            },
        );
        let all = [irregular, unlisted, unreadable, binary];
        all.into_iter().flatten().collect()
    }

    fn counts(&self) -> Option<String> {
        let ignored = match self.ignored {
            0 => None,
            1 => Some("1 ignored file was skipped".to_owned()),
            count => Some(format!("{count} ignored files were skipped")),
        };
        let unsearched = match self.unsearched {
            0 => None,
            1 => Some("1 ignored directory was not searched".to_owned()),
            count => Some(format!("{count} ignored directories were not searched")),
        };
        let links = match self.links {
            0 => None,
            1 => Some("1 symbolic link was not followed".to_owned()),
            count => Some(format!("{count} symbolic links were not followed")),
        };
        let repository_links = match self.repository_links {
            0 => None,
            1 => Some("1 link into a directory such as .git was skipped".to_owned()),
            count => Some(format!(
                "{count} links into directories such as .git were skipped"
            )),
        };
        let all = [ignored, unsearched, links, repository_links];
        let said = Vec::from_iter(all.into_iter().flatten());
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// Returns the error for a pattern or a directory, as the user is shown it, of which nothing is sent. `is_any_found` says that
    /// it names a file that git does not ignore.
    pub fn error_if_all(&self, name: &str, is_directory: bool, is_any_found: bool) -> Error {
        let mut reason = if is_directory {
            format!("there is no file that -a takes below {name}")
        } else {
            format!("no file that -a takes matches {name}")
        };
        if !is_any_found && self.repository_links > 0 {
            reason += ": it names links into a directory such as .git";
            let advice = "name the files, each after -a";
            return Error::new(ErrorKind::Input, reason).advise(advice);
        }
        let is_any_ignored = self.ignored + self.unsearched > 0;
        let why = match (is_any_ignored, self.links > 0) {
            _ if is_any_found => None,
            (false, false) => None,
            (false, true) => Some("it names symbolic links, which are not followed"),
            (true, true) => Some("git ignores a part of it, and links are not followed"),
            (true, false) if self.unsearched == 0 => Some("git ignores all that it names"),
            (true, false) => Some("git ignores directories that may have some"),
        };
        if let Some(why) = why {
            reason += &format!(": {why}");
            let advice = if self.links > 0 {
                "name the files, each after -a, or use a pattern without **, which follows links"
            } else {
                "name a file itself to send it even if it is ignored"
            };
            return Error::new(ErrorKind::Input, reason).advise(advice);
        }
        let error = Error::new(ErrorKind::Input, reason);
        if is_directory {
            return error;
        }
        error
            .advise("write * and ? for anything within a name, [ab] for one of these characters, ** for any directories")
    }
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
            - | - | - | - | -
            a | a is not a regular file; skipped | cannot list a; skipped | cannot read a; skipped | a; skipped
            b a c | 3 special files or dangling links were skipped | cannot list 3 directories (a); they are left out | cannot read 3 files (a); they are left out | 3 files are neither text nor a JPEG, PNG, GIF, WebP or PDF; skipped
        ";
        for [things, irregular, unlisted, unreadable, binary] in rows(table) {
            let left_out = LeftOut {
                irregular: tally(things),
                unlisted: tally(things),
                unreadable: tally(things),
                binary: tally(things),
                ..LeftOut::default()
            };
            let mut expected = vec![irregular, unlisted, unreadable, binary];
            expected.retain(|note| !note.is_empty());
            assert_eq!(left_out.notes(), expected, "{things}");
        }
    }

    #[test]
    fn what_is_left_out_on_purpose_is_counted_in_one_note_or_is_the_reason_why_nothing_is_sent() {
        // How many files are ignored, directories not searched, links not followed, and links into directories such as .git; the
        // note; and the reason and the beginning of the advice.
        let table = r"
            0 0 0 0 | - | - | write * and ?
            1 0 0 0 | 1 ignored file was skipped | git ignores all that it names | name a file itself
            2 0 0 0 | 2 ignored files were skipped | git ignores all that it names | name a file itself
            0 1 0 0 | 1 ignored directory was not searched | git ignores directories that may have some | name a file itself
            2 2 0 0 | 2 ignored files were skipped; 2 ignored directories were not searched | git ignores directories that may have some | name a file itself
            0 0 1 0 | 1 symbolic link was not followed | it names symbolic links, which are not followed | name the files
            0 0 2 0 | 2 symbolic links were not followed | it names symbolic links, which are not followed | name the files
            1 0 2 0 | 1 ignored file was skipped; 2 symbolic links were not followed | git ignores a part of it, and links are not followed | name the files
            0 0 0 1 | 1 link into a directory such as .git was skipped | it names links into a directory such as .git | name the files
            1 0 0 2 | 1 ignored file was skipped; 2 links into directories such as .git were skipped | it names links into a directory such as .git | name the files
            0 1 1 0 | 1 ignored directory was not searched; 1 symbolic link was not followed | git ignores a part of it, and links are not followed | name the files
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
            assert_eq!(left_out.counts().unwrap_or_default(), note, "{counts}");
            let mut reason = "no file that -a takes matches x".to_owned();
            if !why.is_empty() {
                reason += &format!(": {why}");
            }
            let error = left_out.error_if_all("x", false, false);
            assert_eq!(error.message, reason, "{counts}");
            let found = error.advice.as_deref().unwrap_or_default();
            assert!(found.starts_with(advice), "{counts}: {found}");
            let error = left_out.error_if_all("x", true, true);
            assert_eq!(
                error.message, "there is no file that -a takes below x",
                "{counts}"
            );
            assert_eq!(error.advice, None, "{counts}");
        }
    }
}
