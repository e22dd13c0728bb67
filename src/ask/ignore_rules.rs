//! Reads the files that say what git ignores, within limits, and decides which files of a directory are ignored.

use std::env;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use crate::child_output::{ChildOutput, OutputLimits};
use crate::error::{self, Error};
use crate::programs::find_program;
use crate::text::one_line::on_one_line;
use crate::whole_file::{self, identity_of, is_missing};

/// The most bytes of an ignore file.
const MAX_IGNORE_FILE: u64 = 100_000;

/// The most that the rules that apply in one directory cost together.
const MAX_COST: usize = 100_000;

/// What a rule costs besides its bytes. In memory, it takes some kilobytes, and up to one for each byte.
const COST_OF_RULE: usize = 30;

const COST_OF_BYTE: usize = 2;

/// The most bytes of a file of git's configuration.
const MAX_CONFIGURATION: u64 = 1_000_000;

/// The most bytes of a file that names a directory of git.
const MAX_LINK: u64 = 10_000;

/// What git may print for a value of its configuration, and how long it may take.
const LIMITS: OutputLimits = OutputLimits {
    bytes: 10_000,
    time: Some(Duration::from_secs(2)),
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

const COMMENTS: &[u8] = b"#";

/// Starts a rule that exempts files.
const EXEMPTS: &[u8] = b"!";

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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
    general: Gitignore,
    /// The rules of `.gitignore`, which apply in a repository only.
    of_git: Gitignore,
    /// The rules that apply in all of the repository whose root this directory is.
    repository: Option<RepositoryRules>,
    /// What these rules and those of the levels above cost.
    cost: usize,
}

/// The rules that apply in all of a repository.
struct RepositoryRules {
    /// The rules of `info/exclude`.
    excluded: Gitignore,
    /// The user's own rules.
    of_user: Gitignore,
    ignores_case: bool,
}

/// What git says of a value of its configuration.
enum ConfigAnswer {
    Value(PathBuf),
    Unset,
    /// Git is not there, or cannot say it.
    Unknown,
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
        let mut matches = self.rules().map(|rules| rules.matched(&path, is_directory));
        let decided = matches.find(|found| !found.is_none());
        Ok(decided.is_some_and(|found| found.is_ignore()))
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
    fn rules(&self) -> impl Iterator<Item = &Gitignore> {
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
        let mut of_git = Gitignore::empty();
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
        let of_user = match ask_git(self.directory, "path", "core.excludesFile") {
            ConfigAnswer::Value(path) if path.as_os_str().is_empty() => None,
            ConfigAnswer::Value(path) => Some(self.directory.join(path)),
            ConfigAnswer::Unset => user_directory().map(|found| found.join("ignore")),
            ConfigAnswer::Unknown => {
                check_configuration()?;
                gitconfig_excludes_path()
            }
        };
        let ignores_case = ask_git(self.directory, "bool", "core.ignoreCase");
        let ignores_case =
            matches!(ignores_case, ConfigAnswer::Value(value) if value == Path::new("true"));
        let mut excluded = Gitignore::empty();
        if let Some(git) = git_directory(directory) {
            excluded = self.read(&git.join("info/exclude"), ignores_case)?;
        }
        Ok(RepositoryRules {
            excluded,
            of_user: match of_user {
                Some(path) => self.read(&path, ignores_case)?,
                None => Gitignore::empty(),
            },
            ignores_case,
        })
    }

    /// Reads the rules of a file, if there is one.
    fn read(&mut self, path: &Path, ignores_case: bool) -> Result<Gitignore, Error> {
        let text = read_if_any(path, MAX_IGNORE_FILE)?;
        let mut builder = GitignoreBuilder::new(self.directory);
        let wrong = |error: ignore::Error| unusable(path, &error.to_string());
        builder.case_insensitive(ignores_case).map_err(wrong)?;
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(COMMENTS) {
                continue;
            }
            self.cost += COST_OF_RULE + COST_OF_BYTE * line.len();
            if self.cost > MAX_COST {
                let reason = "there are too many rules, with those of the directories above";
                return Err(unusable(path, reason));
            }
            if let Some(rule) = as_text(line) {
                // What is no pattern matches nothing, as with git.
                let _ = builder.add_line(None, &rule);
            }
        }
        builder.build().map_err(wrong)
    }
}

/// Returns a rule with a `?` for each byte that is not UTF-8, so that it ignores what it should, and perhaps more; `None` if it
/// exempts files, of which it would exempt more.
fn as_text(line: &[u8]) -> Option<String> {
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text += chunk.valid();
        text += &"?".repeat(chunk.invalid().len());
    }
    let is_changed = text.as_bytes() != line;
    (!is_changed || !line.starts_with(EXEMPTS)).then_some(text)
}

/// Asks git for a value of its configuration, which it reads with all files that it includes. That runs nothing else.
fn ask_git(directory: &Path, kind: &str, name: &str) -> ConfigAnswer {
    let Some(program) = find_program("git", env::var_os("PATH").as_deref()) else {
        return ConfigAnswer::Unknown;
    };
    let mut git = Command::new(program);
    git.arg("-C").arg(directory);
    git.args(["config", "--null", "--type", kind, "--get", name]);
    for variable in NOT_FOR_GIT {
        git.env_remove(variable);
    }
    git.stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(ChildOutput::Ended(mut printed, status)) = ChildOutput::of(git, &LIMITS) else {
        return ConfigAnswer::Unknown;
    };
    match status.code() {
        Some(0) if printed.pop() == Some(0) => {
            ConfigAnswer::Value(OsString::from_vec(printed).into())
        }
        Some(1) => ConfigAnswer::Unset,
        _ => ConfigAnswer::Unknown,
    }
}

/// Returns the directory of the user's files for git.
fn user_directory() -> Option<PathBuf> {
    let named = |variable| env::var_os(variable).filter(|value| !value.is_empty());
    if let Some(directory) = named("XDG_CONFIG_HOME") {
        return Some(Path::new(&directory).join("git"));
    }
    named("HOME").map(|home| Path::new(&home).join(".config/git"))
}

/// Checks that the files of git's configuration can be read within limits.
fn check_configuration() -> Result<(), Error> {
    let system = env::var_os("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into());
    let mut files = vec![PathBuf::from(system)];
    files.extend(env::var_os("GIT_CONFIG_GLOBAL").map(PathBuf::from));
    files.extend(env::var_os("HOME").map(|home| Path::new(&home).join(".gitconfig")));
    files.extend(user_directory().map(|directory| directory.join("config")));
    for file in files {
        read_if_any(&file, MAX_CONFIGURATION)?;
    }
    Ok(())
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
