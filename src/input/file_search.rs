//! Finds the files that a pattern or a directory of `-a` names, without those that an ignore file matches, tracked or not.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::file_walk::{FileWalk, WalkEntry};
use super::ignore_rules::IgnoreRules;
use super::left_out::LeftOut;
use crate::error::{Error, ErrorKind};
use crate::output::Spinner;
use crate::settings::Environment;
use crate::text::one_line::on_one_line;

/// The most files that a pattern or a directory may name.
const MAX_FILES: usize = 1_000;

/// The most entries of directories that are looked at, whether they are meant or not: a search of all disks ends.
const MAX_ENTRIES: usize = 1_000_000;

/// The most entries of directories left out that are looked at, to tell whether files that are meant are among them.
const MAX_LEFT_OUT_ENTRIES: usize = 10_000;

/// Matches any directories, or none.
const ANY_DIRECTORIES: &str = "**";

/// As in a shell, `*` matches no slash and no hidden file.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Directories in which programs for version control keep what is theirs, as a remote address with a password.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// Where the characters begin that stand for bytes that are not UTF-8: for private use, so that hardly a name has them.
const FIRST_FOR_BYTES: u32 = 0x10_FE00;

/// What a pattern or a directory names.
#[derive(Default)]
pub struct NamedFiles {
    /// Regular files, sorted.
    pub files: Vec<PathBuf>,
    pub left_out: LeftOut,
}

/// A search for files: which ones, and where.
struct FileSearch {
    /// A directory; its own name has no part in the search. Empty for the current one.
    root: PathBuf,
    /// `None`: all files that are not hidden.
    pattern: Option<Pattern>,
    depth: SearchDepth,
    /// Whether a part of the pattern begins with a dot.
    looks_into_hidden: bool,
    /// The directories of version control that the pattern names.
    repositories: Vec<&'static str>,
}

/// How far below its root a search goes.
#[derive(Debug, PartialEq, Eq)]
enum SearchDepth {
    /// To the end of all directories. Links are not followed, because they might form a circle.
    Any,
    /// This many levels, one for each part of the pattern. Links are followed, as in a shell.
    Levels(usize),
}

/// How a search has ended.
enum SearchEnd {
    Found(NamedFiles),
    /// More files are meant than may be.
    TooManyFiles,
    /// There is more to look at than may be.
    TooManyEntries,
}

/// What becomes of an entry of a directory.
enum EntryVerdict {
    /// It is a file that is meant.
    Take,
    /// It is a directory that may have such files.
    Enter,
    LeaveOut(LeaveOutReason),
}

/// Why an entry is left out.
enum LeaveOutReason {
    NotMeant,
    Ignored,
    /// It is a link that is not followed.
    Link,
    /// It is a link into a directory of version control that the pattern does not name.
    RepositoryLink,
    /// It is neither a file nor a directory.
    Irregular,
}

/// What a look into a directory that is left out has shown.
enum LeftOutContent {
    /// There is a file that is meant.
    Meant,
    NotMeant,
    /// There is too much in it, or a part of it cannot be listed.
    Unknown,
}

/// Returns the files that a pattern or a directory names. `None`: it is neither, but an address or the name of a file. The spinner
/// says that they are searched for. `environment` leads to the user's files for git.
pub fn named_files(
    name: &OsStr,
    environment: &Environment,
    spinner: &Spinner,
) -> Result<Option<NamedFiles>, Error> {
    let path = Path::new(name);
    let shown = on_one_line(&name.to_string_lossy());
    let (search, what) = if path.is_dir() {
        (FileSearch::below(path), format!("take all of {shown}"))
    } else {
        // A dangling link is a file, too.
        if !is_pattern(name) || path.symlink_metadata().is_ok() {
            return Ok(None);
        }
        let what = format!("use the pattern {shown}");
        let search = FileSearch::from_pattern(name);
        let wrong = |reason| Error::new(ErrorKind::Input, format!("cannot {what}: {reason}"));
        (search.map_err(wrong)?, what)
    };
    spinner.wait_for(&format!("searching for the files of {shown}"));
    let found = search.run(MAX_ENTRIES, environment);
    spinner.stop();
    let error = match found? {
        SearchEnd::Found(named) => return Ok(Some(named)),
        SearchEnd::TooManyFiles => {
            let reason = format!("cannot {what}: it names more than {MAX_FILES} files");
            Error::new(ErrorKind::Input, reason)
        }
        SearchEnd::TooManyEntries => {
            let reason = format!(
                "cannot {what}: there are more than {MAX_ENTRIES} files and directories to look at"
            );
            let error = Error::new(ErrorKind::Input, reason);
            error.advise("begin with the directory that has the files: -a 'src/**/*.rs'")
        }
    };
    Err(error)
}

fn is_pattern(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    text.contains(['*', '?', '[']) && !text.contains("://")
}

impl FileSearch {
    /// Returns a search for all files below a directory.
    fn below(directory: &Path) -> FileSearch {
        FileSearch {
            // Files in the current directory have no `./` before their names.
            root: directory
                .components()
                .filter(|part| part.as_os_str() != ".")
                .collect(),
            pattern: None,
            depth: SearchDepth::Any,
            looks_into_hidden: false,
            repositories: Vec::new(),
        }
    }

    /// Returns a search for the files that a pattern names, in the directory that its beginning names. That is one without a
    /// wildcard, or one that exists as it is written: `app/[id]`.
    ///
    /// # Errors
    ///
    /// The reason why the pattern is wrong.
    fn from_pattern(text: &OsStr) -> Result<FileSearch, &'static str> {
        let mut path: PathBuf = Path::new(text).components().collect();
        if path.ends_with(ANY_DIRECTORIES) {
            path.push("*");
        }
        let parts = Vec::from_iter(&path);
        let mut root = PathBuf::new();
        let mut literal = 0;
        // The last part names files.
        for part in &parts[..parts.len().saturating_sub(1)] {
            let directory = root.join(part);
            if is_pattern(part) && !directory.is_dir() {
                break;
            }
            root = directory;
            literal += 1;
        }
        let patterns = &parts[literal..];
        let any_depth = patterns.contains(&OsStr::new(ANY_DIRECTORIES));
        // Shells also accept `[^a]`, which the library does not.
        let below = in_characters(&patterns.iter().collect::<PathBuf>()).replace("[^", "[!");
        let mut whole = Pattern::escape(&in_characters(&root));
        if !whole.is_empty() && !whole.ends_with('/') {
            whole.push('/');
        }
        let pattern = Pattern::new(&(whole + &below)).map_err(|error| error.msg)?;
        Ok(FileSearch {
            root,
            pattern: Some(pattern),
            depth: if any_depth {
                SearchDepth::Any
            } else {
                SearchDepth::Levels(patterns.len())
            },
            looks_into_hidden: patterns.iter().any(|part| is_hidden(part)),
            repositories: Vec::from_iter(parts.iter().filter_map(|part| version_control(part))),
        })
    }

    /// Finds the files among at most this many entries of directories.
    fn run(self, max_entries: usize, environment: &Environment) -> Result<SearchEnd, Error> {
        let mut root = self.root.as_path();
        if root.as_os_str().is_empty() {
            root = Path::new(".");
        }
        let mut named = NamedFiles::default();
        // A directory that is not there has no files.
        if !root.is_dir() {
            return Ok(SearchEnd::Found(named));
        }
        let mut rules = IgnoreRules::above(root, environment)?;
        let mut left_out_entries_left = MAX_LEFT_OUT_ENTRIES;
        // A directory that is named is read even if it is ignored. The beginning of a pattern is no such name.
        if self.pattern.is_some() && rules.is_root_ignored()? {
            let content = self.content_below(root, 0, &mut left_out_entries_left);
            count_ignored(content, &mut named.left_out);
            return Ok(SearchEnd::Found(named));
        }
        let mut entries_left = max_entries;
        let mut walk = FileWalk::below(root, 0);
        while let Some(found) = walk.next() {
            if entries_left == 0 {
                return Ok(SearchEnd::TooManyEntries);
            }
            entries_left -= 1;
            let entry = match found {
                Ok(entry) => entry,
                Err(error) => {
                    self.note_unlisted(&error, &mut named.left_out);
                    continue;
                }
            };
            match self.judge(&entry, &mut rules)? {
                EntryVerdict::Enter => walk.enter(&entry),
                EntryVerdict::Take => named.files.push(self.shown(entry.path()).to_owned()),
                EntryVerdict::LeaveOut(reason) => {
                    walk.skip(&entry);
                    let left_out = &mut named.left_out;
                    self.count(&entry, reason, left_out, &mut left_out_entries_left);
                }
            }
            if named.files.len() > MAX_FILES {
                return Ok(SearchEnd::TooManyFiles);
            }
        }
        named.files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Ok(SearchEnd::Found(named))
    }

    /// Decides what becomes of an entry.
    fn judge(&self, entry: &WalkEntry, rules: &mut IgnoreRules) -> Result<EntryVerdict, Error> {
        let path = entry.path();
        let is_directory = entry.is_directory();
        let left_out = |reason| Ok(EntryVerdict::LeaveOut(reason));
        if !self.wants(entry, is_directory) {
            return left_out(LeaveOutReason::NotMeant);
        }
        if self.leads_into_unnamed_repository(entry) {
            return left_out(LeaveOutReason::RepositoryLink);
        }
        if entry.is_link() && !self.follows_links() {
            // To git, a link to a directory is none.
            let is_ignored = rules.is_ignored(path, false)?;
            return left_out(if is_ignored {
                LeaveOutReason::NotMeant
            } else {
                LeaveOutReason::Link
            });
        }
        let is_ignored = rules.is_ignored(path, is_directory)?
            // What a link leads to may be ignored under its own name.
            || (self.follows_links() && rules.is_target_ignored(path, is_directory)?);
        if is_ignored {
            return left_out(LeaveOutReason::Ignored);
        }
        if is_directory {
            return Ok(EntryVerdict::Enter);
        }
        if entry.is_file() {
            return Ok(EntryVerdict::Take);
        }
        left_out(LeaveOutReason::Irregular)
    }

    /// Counts an entry that is left out. What is below it is looked at, this many entries more, to tell whether it is meant.
    fn count(
        &self,
        entry: &WalkEntry,
        reason: LeaveOutReason,
        left_out: &mut LeftOut,
        entries_left: &mut usize,
    ) {
        match reason {
            LeaveOutReason::NotMeant => {}
            LeaveOutReason::Ignored => {
                let content = self.content_of_left_out(entry, entries_left);
                count_ignored(content, left_out);
            }
            LeaveOutReason::Link => left_out.links += 1,
            LeaveOutReason::RepositoryLink => match self.content_of_left_out(entry, entries_left) {
                LeftOutContent::NotMeant => {}
                LeftOutContent::Meant | LeftOutContent::Unknown => left_out.repository_links += 1,
            },
            LeaveOutReason::Irregular => left_out.irregular.add(self.in_words(entry.path())),
        }
    }

    /// Looks for a file that is meant: what is left out, or a file below that, at this many entries more.
    fn content_of_left_out(
        &self,
        left_out: &WalkEntry,
        entries_left: &mut usize,
    ) -> LeftOutContent {
        if !left_out.is_directory() {
            return LeftOutContent::Meant;
        }
        self.content_below(left_out.path(), left_out.depth, entries_left)
    }

    /// Looks for a file that is meant below a directory, which is this many levels below the root of the search.
    fn content_below(
        &self,
        directory: &Path,
        depth: usize,
        entries_left: &mut usize,
    ) -> LeftOutContent {
        let mut if_none = LeftOutContent::NotMeant;
        let mut walk = FileWalk::below(directory, depth);
        while let Some(found) = walk.next() {
            if *entries_left == 0 {
                return LeftOutContent::Unknown;
            }
            *entries_left -= 1;
            let Ok(entry) = found else {
                if_none = LeftOutContent::Unknown;
                continue;
            };
            // No file is looked at itself, because there may be many.
            let is_followed = !entry.is_link() || self.follows_links();
            let is_directory = is_followed && entry.is_directory();
            let is_wanted = is_followed
                && self.wants(&entry, is_directory)
                && !self.leads_into_unnamed_repository(&entry);
            if !is_wanted {
                walk.skip(&entry);
            } else if is_directory {
                walk.enter(&entry);
            } else if entry.is_file() {
                return LeftOutContent::Meant;
            }
        }
        if_none
    }

    /// Whether links are followed. Then each level of directories has a part of the pattern, so that a circle of links ends.
    fn follows_links(&self) -> bool {
        self.depth != SearchDepth::Any
    }

    /// Whether a file is meant, or there may be such files below a directory. A link is what it leads to.
    fn wants(&self, entry: &WalkEntry, is_directory: bool) -> bool {
        if is_directory {
            let is_shown = self.looks_into_hidden || !is_hidden(entry.name());
            let is_above_last = match self.depth {
                SearchDepth::Any => true,
                SearchDepth::Levels(levels) => entry.depth < levels,
            };
            return is_shown && is_above_last && !self.is_unnamed_repository(entry);
        }
        self.has(entry.path())
    }

    /// Whether a directory is one of version control that the pattern does not name. It may have passwords.
    fn is_unnamed_repository(&self, entry: &WalkEntry) -> bool {
        let name = version_control(entry.name());
        name.is_some_and(|name| !self.repositories.contains(&name))
    }

    /// Whether an entry is a link that leads into such a directory, but not to a file that git-annex keeps there.
    fn leads_into_unnamed_repository(&self, entry: &WalkEntry) -> bool {
        if !(entry.is_link() && self.follows_links()) {
            return false;
        }
        let Ok(target) = entry.path().canonicalize() else {
            return false;
        };
        let mut parts = target.iter();
        while let Some(part) = parts.next() {
            let is_unnamed =
                version_control(part).is_some_and(|name| !self.repositories.contains(&name));
            if is_unnamed && !is_annexed(parts.as_path()) {
                return true;
            }
        }
        false
    }

    /// Whether a file of this path is meant.
    fn has(&self, path: &Path) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.matches_with(&in_characters(self.shown(path)), OPTIONS),
            None => !path.file_name().is_some_and(is_hidden),
        }
    }

    /// Returns a path as the pattern has it.
    fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        if self.root.as_os_str().is_empty() {
            return path.strip_prefix(".").unwrap_or(path);
        }
        path
    }

    fn in_words(&self, path: &Path) -> String {
        on_one_line(&self.shown(path).to_string_lossy())
    }

    /// Notes a directory that cannot be listed.
    fn note_unlisted(&self, error: &walkdir::Error, left_out: &mut LeftOut) {
        let Some(path) = error.path() else {
            return;
        };
        // The error of the walk says the path in words of its own.
        if let Err(reason) = path.read_dir() {
            let path = self.in_words(path);
            left_out.unlisted.add(format!("{path}: {reason}"));
        }
    }
}

/// Counts what is ignored.
fn count_ignored(content: LeftOutContent, left_out: &mut LeftOut) {
    match content {
        LeftOutContent::Meant => left_out.ignored += 1,
        LeftOutContent::NotMeant => {}
        LeftOutContent::Unknown => left_out.unsearched += 1,
    }
}

/// Returns a path as the text that is compared with a pattern. A byte that is not UTF-8 is one character, as to a shell, and a
/// different one for each such byte.
fn in_characters(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid().iter();
        text.extend(invalid.filter_map(|byte| char::from_u32(FIRST_FOR_BYTES + u32::from(*byte))));
    }
    text
}

/// Returns the name of the directory of version control that a name is, in whatever letters.
fn version_control(name: &OsStr) -> Option<&'static str> {
    let mut known = VERSION_CONTROL.into_iter();
    known.find(|known| name.eq_ignore_ascii_case(known))
}

/// Whether a path below a directory of git is one of the files that git-annex keeps, to which the files of its users are links:
/// `annex/objects/…`, in a submodule `modules/NAME/annex/objects/…`.
fn is_annexed(below: &Path) -> bool {
    let mut parts = below.iter().skip_while(|part| *part != "annex");
    let is_own = below.starts_with("annex") || below.starts_with("modules");
    is_own && parts.nth(1).is_some_and(|part| part == "objects")
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::text::table::rows;

    /// The text of a table as the name of a file, where `⟨fc⟩` and `⟨fd⟩` are bytes that are not UTF-8.
    fn named(text: &str) -> OsString {
        let mut name = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('⟨') {
            let (byte, behind) = after.split_once('⟩').expect("a byte");
            name.extend(before.bytes());
            name.push(u8::from_str_radix(byte, 16).expect("a byte"));
            rest = behind;
        }
        name.extend(rest.bytes());
        OsString::from_vec(name)
    }

    #[test]
    fn a_pattern_matches_names_character_by_character_also_where_they_are_not_utf_8() {
        // The pattern, a path, and whether the pattern matches it.
        let table = r"
            *.txt | a.txt | yes
            *.txt | grün.txt | yes
            *.txt | gr⟨fc⟩n.txt | yes
            *.txt | ⟨fc⟩.txt | yes
            *.txt | gr⟨fc⟩n.rs | -
            *.txt | gr⟨fc⟩/a.txt | -
            **/*.txt | gr⟨fc⟩/a.txt | yes
            */a.txt | gr⟨fc⟩/a.txt | yes
            gr?n.txt | grün.txt | yes
            gr?n.txt | gr⟨fc⟩n.txt | yes
            gr?n.txt | gr⟨fc⟩⟨fc⟩n.txt | -
            gr??n.txt | gr⟨e2⟩⟨82⟩n.txt | yes
            gr⟨fc⟩n.* | gr⟨fc⟩n.txt | yes
            gr⟨fc⟩n.* | gr⟨fd⟩n.txt | -
            gr⟨fc⟩n.* | grün.txt | -
            gr[⟨fc⟩x]n.txt | gr⟨fc⟩n.txt | yes
            gr[^⟨fc⟩]n.txt | gr⟨fc⟩n.txt | -
            gr[^⟨fc⟩]n.txt | gr⟨fd⟩n.txt | yes
            gr⟨fc⟩/*.txt | gr⟨fc⟩/a.txt | yes
            gr⟨fc⟩/*.txt | gr⟨fd⟩/a.txt | -
        ";
        for [pattern, path, expected] in rows(table) {
            let search = FileSearch::from_pattern(&named(pattern)).expect(pattern);
            let is_match = search.has(Path::new(&named(path)));
            assert_eq!(is_match, expected == "yes", "{pattern} {path}");
        }
    }

    #[test]
    fn a_file_that_git_annex_keeps_is_told_from_what_is_of_git() {
        // A path below `.git`.
        let table = r"
            annex/objects/Xk/2f/SHA256E-s2--a.txt/SHA256E-s2--a.txt | yes
            annex/objects | yes
            modules/sub/annex/objects/a | yes
            modules/in/sub/annex/objects/a | yes
            annex/creds/a | -
            annex | -
            config | -
            hooks/annex/objects/a | -
            modules/sub/config | -
            modules/sub/annex/creds/objects | -
            - | -
        ";
        for [path, expected] in rows(table) {
            assert_eq!(is_annexed(Path::new(path)), expected == "yes", "{path}");
        }
    }

    #[test]
    fn a_search_begins_in_the_directory_before_the_first_wildcard() {
        // The pattern, the directory, how many levels below it there may be files, and what else is looked into.
        let table = r"
            *.rs | - | 1 | -
            ./*.rs | . | 1 | -
            src/*.rs | src | 1 | -
            src//in/*.rs | src/in | 1 | -
            src/*/in/*.rs | src | 3 | -
            /tmp/a*/b | /tmp | 2 | -
            gr⟨fc⟩/*.rs | gr⟨fc⟩ | 1 | -
            **/*.rs | - | any | -
            src/** | src | any | -
            src/*/** | src | any | -
            .git/* | .git | 1 | .git
            */.git/* | - | 3 | hidden .git
            **/.SVN/.hg/* | - | any | hidden .svn .hg
            .g*/.gitignore | - | 2 | hidden
            src/.* | src | 1 | hidden
            **/.* | - | any | hidden
        ";
        for [pattern, root, depth, rest] in rows(table) {
            let search = FileSearch::from_pattern(&named(pattern)).expect(pattern);
            assert_eq!(search.root.as_os_str(), named(root), "{pattern}");
            let depth = match depth {
                "any" => SearchDepth::Any,
                levels => SearchDepth::Levels(levels.parse().expect(levels)),
            };
            assert_eq!(search.depth, depth, "{pattern}");
            let mut found = search.repositories;
            if search.looks_into_hidden {
                found.insert(0, "hidden");
            }
            assert_eq!(found.join(" "), rest, "{pattern}");
        }
    }

    #[test]
    fn a_search_looks_at_so_many_entries_and_no_more() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("a")).expect("a directory");
        for name in ["a/one.rs", "a/two", "b"] {
            fs::write(root.path().join(name), "x").expect("a file");
        }
        for (pattern, entries) in [("*", 2), ("**/*.rs", 4), ("**/none", 4), ("a/*", 2)] {
            for (limit, is_searched) in [(entries - 1, false), (entries, true)] {
                let text = format!("{}/{pattern}", root.path().display());
                let search = FileSearch::from_pattern(text.as_ref()).expect("a pattern");
                let end = search
                    .run(limit, &Environment::default())
                    .expect("a search");
                let found = matches!(end, SearchEnd::Found(_));
                assert_eq!(found, is_searched, "{pattern} {limit}");
            }
        }
    }
}
