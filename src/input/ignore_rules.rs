//! Reads the files that say what git ignores, within limits, and decides which files of a directory are ignored.

mod git_pattern;
mod rule_set;

use std::env;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child_output::{ChildOutput, OutputLimits};
use crate::error::{self, Error};
use crate::programs::find_program;
use crate::text::one_line::on_one_line;
use crate::whole_file::{self, identity_of, is_missing};
use rule_set::{RuleSet, Ruling};

/// The most bytes of an ignore file.
const MAX_IGNORE_FILE: u64 = 1_000_000;

/// The most bytes of a file of git's configuration.
const MAX_CONFIGURATION: u64 = 1_000_000;

/// The most bytes of a file that names a directory of git.
const MAX_LINK: u64 = 10_000;

/// What git may print for a value of its configuration, and how long it may take.
const LIMITS: OutputLimits = OutputLimits {
    bytes: 10_000,
    time: Some(Duration::from_secs(10)),
};

/// Variables that name a repository, though git is to look for the one that a directory is in; and one that `git config` alone
/// obeys.
const NOT_FOR_GIT: [&str; 5] = [
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
];

/// The rules that apply at a place of a walk, which enters a directory before it comes to the files in it.
pub struct IgnoreRules {
    /// Where the walk began.
    root: PathBuf,
    /// The same directory, without links.
    real_root: PathBuf,
    /// The directories from the root of the file system down to the one whose files are looked at.
    levels: Vec<RuleLevel>,
}

/// The rules that one directory adds.
struct RuleLevel {
    /// Without links above the beginning of the walk.
    directory: PathBuf,
    /// The rules of `.ignore`.
    general: RuleSet,
    /// The rules of `.gitignore`, which apply in a repository only.
    of_git: RuleSet,
    /// The rules that apply in all of the repository whose root this directory is.
    repository: Option<RepositoryRules>,
    /// What these rules and those of the levels above cost.
    cost: usize,
}

/// The rules that apply in all of a repository.
struct RepositoryRules {
    /// The rules of `info/exclude`.
    excluded: RuleSet,
    /// The user's own rules.
    of_user: RuleSet,
    ignores_case: bool,
}

/// What git says of a value of its configuration.
enum ConfigAnswer {
    Value(PathBuf),
    Unset,
    /// There is no git.
    NoGit,
}

impl IgnoreRules {
    /// Reads the rules of all directories above the one where a walk begins.
    ///
    /// # Errors
    ///
    /// There is an ignore file that cannot be used, so that more might be sent than git would take.
    pub fn above(root: &Path) -> Result<IgnoreRules, Error> {
        let real_root = root
            .canonicalize()
            .map_err(|reason| unusable(root, &reason.to_string()))?;
        let mut rules = IgnoreRules {
            root: root.to_owned(),
            real_root: real_root.clone(),
            levels: Vec::new(),
        };
        let above = Vec::from_iter(real_root.ancestors().skip(1));
        for directory in above.into_iter().rev() {
            rules.enter(directory, directory)?;
        }
        Ok(rules)
    }

    /// Whether a file or a directory below the root of the walk is ignored.
    pub fn ignore(&mut self, path: &Path, is_directory: bool) -> Result<bool, Error> {
        self.go_to(path.parent().unwrap_or(path))?;
        let path = self.real(path);
        let mut rulings = self.rules().map(|rules| rules.ruling(&path, is_directory));
        let decided = rulings.find_map(|ruling| ruling);
        Ok(decided == Some(Ruling::Ignored))
    }

    /// Leaves the directories that this one is not in, and reads the rules of those that it is in, and its own.
    fn go_to(&mut self, directory: &Path) -> Result<(), Error> {
        let real = self.real(directory);
        let is_outside = |level: &RuleLevel| !real.starts_with(&level.directory);
        while self.levels.last().is_some_and(is_outside) {
            self.levels.pop();
        }
        let is_entered = |path: &Path| {
            let last = self.levels.last();
            last.is_some_and(|level| level.directory == self.real(path))
        };
        let mut missing = Vec::new();
        for path in directory.ancestors() {
            if is_entered(path) {
                break;
            }
            missing.push(path);
            if path == self.root {
                break;
            }
        }
        for path in missing.into_iter().rev() {
            self.enter(path, &self.real(path))?;
        }
        Ok(())
    }

    /// Returns a path below the root of the walk without the links above that.
    fn real(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        self.real_root.join(below)
    }

    /// Returns all rules, the one that decides first at the beginning.
    fn rules(&self) -> impl Iterator<Item = &RuleSet> {
        let general = self.levels.iter().rev().map(|level| &level.general);
        let is_root = |level: &RuleLevel| level.repository.is_some();
        // Rules of git say nothing outside a repository.
        let root = self.levels.iter().rposition(is_root);
        let inside = &self.levels[root.unwrap_or(self.levels.len())..];
        let repository = self.repository().into_iter();
        general
            .chain(inside.iter().rev().map(|level| &level.of_git))
            .chain(repository.flat_map(|found| [&found.excluded, &found.of_user]))
    }

    /// Returns the rules of the innermost repository.
    fn repository(&self) -> Option<&RepositoryRules> {
        let mut innermost_first = self.levels.iter().rev();
        innermost_first.find_map(|level| level.repository.as_ref())
    }

    /// Reads the rules of a directory below the last one. `real` is its path without the links above the walk.
    fn enter(&mut self, directory: &Path, real: &Path) -> Result<(), Error> {
        let mut reader = RuleReader {
            directory: real,
            cost: self.levels.last().map_or(0, |level| level.cost),
        };
        let mut repository = None;
        let marks = [".git", ".jj"].map(|name| directory.join(name));
        if marks.iter().any(|mark| mark.exists()) {
            repository = Some(reader.repository(directory)?);
        }
        let innermost = repository.as_ref().or(self.repository());
        let ignores_case = innermost.is_some_and(|found| found.ignores_case);
        let general = reader.read(&directory.join(".ignore"), false)?;
        let mut of_git = RuleSet::default();
        if innermost.is_some() {
            of_git = reader.read(&directory.join(".gitignore"), ignores_case)?;
        }
        self.levels.push(RuleLevel {
            directory: real.to_owned(),
            general,
            of_git,
            repository,
            cost: reader.cost,
        });
        Ok(())
    }
}

/// A reader of the rules that one directory adds.
struct RuleReader<'a> {
    /// What the rules are relative to.
    directory: &'a Path,
    /// What the rules that apply there cost so far.
    cost: usize,
}

impl RuleReader<'_> {
    /// Reads the rules that apply in all of a repository. They are in its directory of git, in the user's files, and where the
    /// configuration says.
    fn repository(&mut self, directory: &Path) -> Result<RepositoryRules, Error> {
        // One that has no end is not for git to read.
        let configuration = read_configuration()?;
        let of_user = match ask_git(self.directory, "path", "core.excludesFile")? {
            ConfigAnswer::Value(path) if path.as_os_str().is_empty() => None,
            ConfigAnswer::Value(path) => Some(self.directory.join(path)),
            ConfigAnswer::Unset => user_directory().map(|found| found.join("ignore")),
            ConfigAnswer::NoGit => excludes_file_without_git(&configuration),
        };
        let ignores_case = ask_git(self.directory, "bool", "core.ignoreCase")?;
        let ignores_case =
            matches!(ignores_case, ConfigAnswer::Value(value) if value == Path::new("true"));
        let mut excluded = RuleSet::default();
        if let Some(git) = git_directory(directory) {
            excluded = self.read(&git.join("info/exclude"), ignores_case)?;
        }
        Ok(RepositoryRules {
            excluded,
            of_user: match of_user {
                Some(path) => self.read(&path, ignores_case)?,
                None => RuleSet::default(),
            },
            ignores_case,
        })
    }

    /// Reads the rules of a file, if there is one.
    fn read(&mut self, path: &Path, ignores_case: bool) -> Result<RuleSet, Error> {
        let text = read_if_any(path, MAX_IGNORE_FILE)?;
        let rules = RuleSet::read(&text, self.directory, ignores_case, &mut self.cost);
        rules.map_err(|reason| unusable(path, reason))
    }
}

/// Asks git for a value of its configuration, which it reads with all files that it includes. That runs nothing else.
///
/// # Errors
///
/// Git cannot say it, so that it is not known which files it ignores.
fn ask_git(directory: &Path, kind: &str, name: &str) -> Result<ConfigAnswer, Error> {
    let Some(program) = find_program("git", env::var_os("PATH").as_deref()) else {
        return Ok(ConfigAnswer::NoGit);
    };
    let mut git = Command::new(program);
    git.arg("-C").arg(directory);
    git.args(["config", "--null", "--type", kind, "--get", name]);
    for variable in NOT_FOR_GIT {
        git.env_remove(variable);
    }
    git.stdin(Stdio::null()).stderr(Stdio::null());
    let reason = match ChildOutput::of(git, &LIMITS) {
        Ok(ChildOutput::Ended(mut printed, status)) => match status.code() {
            Some(0) if printed.pop() == Some(0) => {
                let value = OsString::from_vec(printed);
                return Ok(ConfigAnswer::Value(value.into()));
            }
            Some(1) => return Ok(ConfigAnswer::Unset),
            _ => format!("it fails ({status})"),
        },
        Ok(_) => "it does not end, or prints too much".to_owned(),
        Err(error) => error.to_string(),
    };
    let reason = format!("git config --get {name}: {reason}");
    // Without the slash at the end of some.
    Err(unusable(directory.components().as_path(), &reason))
}

/// Returns the directory of the user's files for git.
fn user_directory() -> Option<PathBuf> {
    if let Some(directory) = named_directory("XDG_CONFIG_HOME") {
        return Some(directory.join("git"));
    }
    home().map(|home| home.join(".config/git"))
}

fn home() -> Option<PathBuf> {
    named_directory("HOME")
}

/// Returns the directory that a variable names; an empty one names none.
fn named_directory(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Reads the files of git's configuration within limits, but for those of the repository and those that they include. The one that
/// decides first is at the beginning.
fn read_configuration() -> Result<Vec<Vec<u8>>, Error> {
    let mut files = Vec::new();
    if let Some(global) = env::var_os("GIT_CONFIG_GLOBAL") {
        files.push(PathBuf::from(global));
    } else {
        files.extend(home().map(|home| home.join(".gitconfig")));
        files.extend(user_directory().map(|directory| directory.join("config")));
    }
    let system = env::var_os("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into());
    files.push(PathBuf::from(system));
    let texts = files
        .iter()
        .map(|file| read_if_any(file, MAX_CONFIGURATION));
    texts.collect()
}

/// Returns the file of the user's own rules where there is no git that could say which that is.
fn excludes_file_without_git(configuration: &[Vec<u8>]) -> Option<PathBuf> {
    let mut texts = configuration.iter();
    let named = texts.find_map(|text| excludes_file_in(text, home().as_deref()));
    named.or_else(|| user_directory().map(|directory| directory.join("ignore")))
}

/// Returns the last value of `excludesFile` in a file of git's configuration. No section but `core` has such a key.
fn excludes_file_in(text: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    let mut values = lines.rev().filter_map(|line| {
        let line = str::from_utf8(line).ok()?;
        let (key, value) = line.split_once('=')?;
        let is_named = key.trim().eq_ignore_ascii_case("excludesFile");
        is_named.then(|| value.trim().trim_matches('"'))
    });
    let value = values.next()?;
    match (value.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => Some(home.join(below)),
        _ => Some(PathBuf::from(value)),
    }
}

/// Returns the directory of git that all working trees of a repository share; `None` if there is none.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let mut git = root.join(".git");
    // In a submodule, or another working tree, it is a file that names the directory.
    if git.is_file() {
        let text = whole_file::read(&git, MAX_LINK).ok()?;
        git = root.join(first_line(text.strip_prefix(b"gitdir:")?));
    }
    match whole_file::read(&git.join("commondir"), MAX_LINK) {
        Ok(text) => Some(git.join(first_line(&text))),
        Err(_) => Some(git),
    }
}

fn first_line(text: &[u8]) -> PathBuf {
    let mut lines = text.trim_ascii().split(|byte| *byte == b'\n');
    OsString::from_vec(lines.next().unwrap_or_default().to_vec()).into()
}

/// Reads a file; nothing where git reads nothing: where no file is, or a directory or the null device.
fn read_if_any(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) || error.kind() == ErrorKind::NotADirectory => {
            return Ok(Vec::new());
        }
        // Where nothing can be looked at, nothing is sent of a walk, and git does without its own files.
        Err(_) if path.symlink_metadata().is_err() => return Ok(Vec::new()),
        Ok(found) if found.is_dir() || is_null(&found) => return Ok(Vec::new()),
        _ => {}
    }
    whole_file::read(path, limit).map_err(|reason| unusable(path, &reason.to_string()))
}

fn is_null(found: &Metadata) -> bool {
    let null: io::Result<Metadata> = fs::metadata("/dev/null");
    null.is_ok_and(|null| identity_of(&null) == identity_of(found))
}

/// Returns the error for a file that may say what git ignores.
fn unusable(path: &Path, reason: &str) -> Error {
    let path = path.strip_prefix(".").unwrap_or(path);
    let path = on_one_line(&path.to_string_lossy());
    let message = format!("cannot tell which files git ignores: {path}: {reason}");
    let advice = "name the files, each after -a, or replace the file that says what to ignore";
    Error::new(error::ErrorKind::Input, message).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_nearest_rule_decides_and_those_of_git_count_in_their_repository_only() {
        // The rule for the file `/r/in/x` that each place has, from the first that decides to the last: `.ignore` in `in`, in
        // `r` and above it; `.gitignore` in these; `info/exclude`; and the user's own rules. Whether `r` is the repository, or
        // what is above it, and whether the file is ignored.
        let table = r##"
            - - - - - - - - | r | -
            x - - - - - - - | r | ignored
            - - x - - - - - | r | ignored
            - - - x - - - - | r | ignored
            - - - - x - - - | r | ignored
            - - - - - x - - | r | -
            - - - - - x - - | above | ignored
            - - - - - - x - | r | ignored
            - - - - - - - x | r | ignored
            !x x x x x x x x | r | -
            x !x !x !x !x !x !x !x | r | ignored
            - !x x x x x x x | r | -
            - x !x !x !x !x !x !x | r | ignored
            - - !x x x x x x | r | -
            - - x !x !x !x !x !x | r | ignored
            - - - !x x x x x | r | -
            - - - x !x !x !x !x | r | ignored
            - - - - !x x x x | r | -
            - - - - x !x !x !x | r | ignored
            - - - - - !x x x | above | -
            - - - - - x !x !x | above | ignored
            - - - - - x !x x | r | -
            - - - - - !x x !x | r | ignored
            - - - x x x x x | nothing | -
            x - - x x x x x | nothing | ignored
        "##;
        for [places, repository, expected] in rows(table) {
            let case = format!("{places} {repository}");
            let mut sets = Vec::new();
            for rule in places.split(' ') {
                let rule = rule.trim_matches('-').as_bytes();
                sets.push(RuleSet::read(rule, Path::new("/"), false, &mut 0).expect("rules"));
            }
            let mut sets = sets.into_iter();
            let mut next = || sets.next().expect("eight places");
            let general = [next(), next(), next()];
            let of_git = [next(), next(), next()];
            let mut of_repository = Some(RepositoryRules {
                excluded: next(),
                of_user: next(),
                ignores_case: false,
            });
            let mut levels = Vec::new();
            let directories = [("/r/in", "in"), ("/r", "r"), ("/", "above")];
            for ((general, of_git), (directory, name)) in
                general.into_iter().zip(of_git).zip(directories)
            {
                levels.push(RuleLevel {
                    directory: PathBuf::from(directory),
                    general,
                    of_git,
                    repository: of_repository.take_if(|_| name == repository),
                    cost: 0,
                });
            }
            levels.reverse();
            let mut rules = IgnoreRules {
                root: PathBuf::from("/r"),
                real_root: PathBuf::from("/r"),
                levels,
            };
            let found = rules.ignore(Path::new("/r/in/x"), false).expect(&case);
            assert_eq!(found, expected == "ignored", "{case}");
        }
    }

    #[test]
    fn the_excludes_file_is_found_in_the_configuration() {
        let home = Some(Path::new("/home/me"));
        for (text, expected) in [
            (
                "[core]\n\texcludesFile = ~/ignored\n",
                Some("/home/me/ignored"),
            ),
            ("[core]\nexcludesfile=\"/a b\"", Some("/a b")),
            (
                "[core]\nexcludesFile = /a\n EXCLUDESFILE = /b \r\n",
                Some("/b"),
            ),
            ("[core]\n# excludesFile = /a\n", None),
            ("[core]\nexcludesFileX = /a\nexcludesFile\n", None),
            ("", None),
        ] {
            let found = excludes_file_in(text.as_bytes(), home);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{text}");
        }
    }

    #[test]
    fn a_file_that_names_a_directory_names_it_in_its_first_line() {
        for (text, expected) in [
            ("../real", "../real"),
            ("../real\n", "../real"),
            (" ../real \n", "../real"),
            ("../real\r\n", "../real"),
            ("/a b\nmore\n", "/a b"),
            ("", ""),
            ("\n\n", ""),
        ] {
            let found = first_line(text.as_bytes());
            assert_eq!(found, Path::new(expected), "{text:?}");
        }
    }
}
