//! What a pattern or a directory of `-a` names and q leaves out, in few notes whatever its number.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::output::Notes;
use crate::text::one_line::on_one_line;

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

    /// Notes one thing in the words that it gets, and several in those that get their number and the first of them.
    fn report(
        &self,
        notes: &Notes,
        one: impl Fn(&str) -> String,
        several: impl Fn(usize, &str) -> String,
    ) {
        match self.count {
            0 => {}
            1 => notes.note(&one(&self.first)),
            count => notes.note(&several(count, &self.first)),
        }
    }
}

impl LeftOut {
    /// Notes what is left out though git does not ignore it.
    pub fn report(&self, notes: &Notes) {
        self.irregular.report(
            notes,
            |path| format!("{path} is not a regular file; skipped"),
            |count, _| format!("{count} special files or dangling links were skipped"),
        );
        self.unlisted.report(
            notes,
            |reason| format!("cannot list {reason}; skipped"),
            |count, first| format!("cannot list {count} directories ({first}); they are left out"),
        );
        self.unreadable.report(
            notes,
            |reason| format!("cannot read {reason}; skipped"),
            |count, first| format!("cannot read {count} files ({first}); they are left out"),
        );
        self.binary.report(
            notes,
            |reason| format!("{reason}; skipped"),
            |count, _| {
                format!("{count} files are neither text nor a JPEG, PNG, GIF, WebP or PDF; skipped")
            },
        );
    }

    /// Notes how much is left out because git ignores it.
    pub fn report_ignored(&self, notes: &Notes) {
        let skipped = match self.ignored {
            0 => None,
            1 => Some("1 ignored file was skipped".to_owned()),
            count => Some(format!("{count} ignored files were skipped")),
        };
        let unsearched = match self.unsearched {
            0 => None,
            1 => Some("1 ignored directory was not searched".to_owned()),
            count => Some(format!("{count} ignored directories were not searched")),
        };
        let said = Vec::from_iter(skipped.into_iter().chain(unsearched));
        if !said.is_empty() {
            notes.note(&said.join("; "));
        }
    }

    /// Returns the error for a pattern or a directory of which nothing is sent. `is_any_found` says that it names a file that
    /// git does not ignore.
    pub fn error_if_all(&self, name: &OsStr, is_any_found: bool) -> Error {
        let is_directory = Path::new(name).is_dir();
        let name = on_one_line(&name.to_string_lossy());
        let mut reason = if is_directory {
            format!("there is no file that -a takes below {name}")
        } else {
            format!("no file that -a takes matches {name}")
        };
        let why = match (self.ignored, self.unsearched) {
            _ if is_any_found => None,
            (0, 0) => None,
            (_, 0) => Some("git ignores all that it names"),
            _ => Some("git ignores directories that may have some"),
        };
        if let Some(why) = why {
            reason += &format!(": {why}");
            let advice = "a file that is named is read even if it is ignored";
            return Error::new(ErrorKind::Input, reason).advise(advice);
        }
        let error = Error::new(ErrorKind::Input, reason);
        if is_directory {
            return error;
        }
        error
            .advise("* and ? match within a name, [ab] one of these characters, ** any directories")
    }
}
