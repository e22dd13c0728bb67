//! Finds the files whose rules apply in all of a repository: where git's configuration says, or where git looks by default.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::ignore_file::{read_if_any, unusable};
use crate::child_output::{ChildOutput, OutputLimits};
use crate::error::Error;
use crate::programs::find_program;
use crate::settings::Environment;
use crate::text::one_line::{beginning, on_one_line};
use crate::unix;
use crate::whole_file;

/// The most bytes of a file of git's configuration.
const MAX_CONFIGURATION: u64 = 1_000_000;

/// The most bytes of a file that names a directory of git.
const MAX_LINK: u64 = 10_000;

/// What git may print for a value of its configuration, and how long it may take.
const LIMITS: OutputLimits = OutputLimits {
    bytes: 10_000,
    time: Some(Duration::from_secs(10)),
};

/// The most bytes that are read of what git says of a failure.
const MAX_COMPLAINT: usize = 10_000;

/// The most characters of that which an error has.
const SHOWN_OF_COMPLAINT: usize = 300;

/// Variables that name a repository, though git is to look for the one that a directory is in; and one that `git config` alone
/// obeys.
const NOT_FOR_GIT: [&str; 5] = [
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
];

/// The files whose rules apply in all of a repository, which need not exist, and how their patterns match.
pub struct GitFiles {
    /// Its `info/exclude`; `None` without a directory of git.
    pub excluded: Option<PathBuf>,
    /// The file of the user's own rules; `None` if there is to be none.
    pub of_user: Option<PathBuf>,
    pub ignores_case: bool,
}

/// What git says of a value of its configuration.
enum ConfigAnswer {
    Value(PathBuf),
    Unset,
    /// There is no git.
    NoGit,
}

impl GitFiles {
    /// Finds the files for the repository whose root this directory is. `real` is its path without links.
    ///
    /// # Errors
    ///
    /// A file of the configuration cannot be used, or git cannot say what it sets.
    pub fn find(
        directory: &Path,
        real: &Path,
        environment: &Environment,
    ) -> Result<GitFiles, Error> {
        let mut configuration = Vec::new();
        for file in configuration_files(environment) {
            // One that has no end is not for git to read.
            configuration.push(read_if_any(&file, MAX_CONFIGURATION)?);
        }
        let ask = |kind, name| ask_git(real, kind, name, environment);
        let of_user = match ask("path", "core.excludesFile")? {
            ConfigAnswer::Value(path) if path.as_os_str().is_empty() => None,
            ConfigAnswer::Value(path) => Some(real.join(path)),
            ConfigAnswer::Unset => default_excludes_file(environment),
            ConfigAnswer::NoGit => excludes_file_without_git(&configuration, environment),
        };
        let ignores_case = ask("bool", "core.ignoreCase")?;
        Ok(GitFiles {
            excluded: git_directory(directory).map(|git| git.join("info/exclude")),
            of_user,
            ignores_case: matches!(ignores_case, ConfigAnswer::Value(value) if value == Path::new("true")),
        })
    }
}

/// Asks git for a value of its configuration, which it reads with all files that it includes. That runs nothing else.
///
/// # Errors
///
/// Git cannot say it, so that it is not known which files it ignores.
fn ask_git(
    directory: &Path,
    kind: &str,
    name: &str,
    environment: &Environment,
) -> Result<ConfigAnswer, Error> {
    let Some(program) = find_program("git", environment.get_os("PATH")) else {
        return Ok(ConfigAnswer::NoGit);
    };
    let mut git = Command::new(program);
    git.arg("-C").arg(directory);
    git.args(["config", "--null", "--type", kind, "--get", name]);
    for variable in NOT_FOR_GIT {
        git.env_remove(variable);
    }
    let failed = |reason: &str| {
        let reason = format!("git config --get {name}: {reason}");
        // Without the slash at the end of some.
        unusable(directory.components().as_path(), &reason)
    };
    let (complaint, stderr) = io::pipe().map_err(|error| failed(&error.to_string()))?;
    git.stdin(Stdio::null()).stderr(stderr);
    let reason = match ChildOutput::of(git, &LIMITS) {
        Ok(ChildOutput::Ended(mut printed, status)) => match status.code() {
            Some(0) if printed.pop() == Some(0) => {
                let value = OsString::from_vec(printed);
                return Ok(ConfigAnswer::Value(value.into()));
            }
            Some(1) => return Ok(ConfigAnswer::Unset),
            _ => match last_line(complaint) {
                Some(line) => format!("it fails ({status}): {line}"),
                None => format!("it fails ({status})"),
            },
        },
        Ok(_) => "it does not end, or prints too much".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(failed(&reason))
}

/// Returns the last line that a program which has ended printed to a pipe, if any. Something that it has left running may hold
/// the pipe open, and is not waited for.
fn last_line(pipe: PipeReader) -> Option<String> {
    let mut pipe = File::from(OwnedFd::from(pipe));
    let mut printed = Vec::new();
    let mut buffer = [0; 1_000];
    while printed.len() < MAX_COMPLAINT && unix::wait_for_input(&pipe, Duration::ZERO) {
        match pipe.read(&mut buffer) {
            Ok(count @ 1..) => printed.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&printed);
    let mut lines = text.lines().rev().map(on_one_line);
    let last = lines.find(|line| !line.is_empty())?;
    Some(beginning(&last, SHOWN_OF_COMPLAINT))
}

/// Returns the directory of the user's files for git.
fn user_directory(environment: &Environment) -> Option<PathBuf> {
    if let Some(directory) = environment.get_os("XDG_CONFIG_HOME") {
        return Some(Path::new(directory).join("git"));
    }
    Some(home(environment)?.join(".config/git"))
}

fn home(environment: &Environment) -> Option<&Path> {
    environment.get_os("HOME").map(Path::new)
}

/// Returns the files of git's configuration, but for those of the repository and those that they include. The one that decides
/// first is at the beginning.
fn configuration_files(environment: &Environment) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(global) = environment.get_os("GIT_CONFIG_GLOBAL") {
        files.push(PathBuf::from(global));
    } else {
        files.extend(home(environment).map(|home| home.join(".gitconfig")));
        files.extend(user_directory(environment).map(|directory| directory.join("config")));
    }
    let system = environment.get_os("GIT_CONFIG_SYSTEM");
    files.push(PathBuf::from(system.unwrap_or("/etc/gitconfig".as_ref())));
    files
}

/// Returns the file of the user's own rules where the configuration names none.
fn default_excludes_file(environment: &Environment) -> Option<PathBuf> {
    Some(user_directory(environment)?.join("ignore"))
}

/// Returns the file of the user's own rules where there is no git that could say which that is.
fn excludes_file_without_git(
    configuration: &[Vec<u8>],
    environment: &Environment,
) -> Option<PathBuf> {
    let mut texts = configuration.iter();
    let named = texts.find_map(|text| excludes_file_in(text, home(environment)));
    named.or_else(|| default_excludes_file(environment))
}

/// Returns the last value of `excludesFile` in a file of git's configuration. No section but `core` has such a key.
fn excludes_file_in(text: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n');
    let mut values = lines.rev().filter_map(|line| {
        let equals = line.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
        let is_named = key.eq_ignore_ascii_case(b"excludesFile");
        is_named.then(|| without_quotes(value))
    });
    let value = values.next()?;
    match (value.strip_prefix(b"~/"), home) {
        (Some(below), Some(home)) => Some(home.join(OsStr::from_bytes(below))),
        _ => Some(PathBuf::from(OsStr::from_bytes(value))),
    }
}

fn without_quotes(value: &[u8]) -> &[u8] {
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    value.strip_suffix(b"\"").unwrap_or(value)
}

/// Whether a directory is the root of a repository. To git, one with a file `.git` that leads nowhere is none, as is left behind
/// where the repository around a submodule was made again.
pub fn is_repository(directory: &Path) -> bool {
    if directory.join(".jj").exists() {
        return true;
    }
    let git = directory.join(".git");
    if git.is_file() {
        return named_directory(&git).is_some_and(|named| named.is_dir());
    }
    git.exists()
}

/// Returns the directory that a file in the place of `.git` names; `None` if it names none.
fn named_directory(file: &Path) -> Option<PathBuf> {
    let text = whole_file::read(file, MAX_LINK).ok()?;
    let named = first_line(text.strip_prefix(b"gitdir: ")?);
    let is_named = !named.as_os_str().is_empty();
    is_named.then(|| whole_file::directory_of(file).join(named))
}

/// Returns the directory of git that all working trees of a repository share; `None` if there is none.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let mut git = root.join(".git");
    // In a submodule, or another working tree, it is a file that names the directory.
    if git.is_file() {
        git = named_directory(&git)?;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_environment_says_where_the_files_of_the_user_are() {
        // The variables, the files of the configuration, and the file of the user's own rules by default.
        let table = r"
            HOME=/h | /h/.gitconfig /h/.config/git/config /etc/gitconfig | /h/.config/git/ignore
            HOME=/h XDG_CONFIG_HOME=/x | /h/.gitconfig /x/git/config /etc/gitconfig | /x/git/ignore
            HOME=/h XDG_CONFIG_HOME= | /h/.gitconfig /h/.config/git/config /etc/gitconfig | /h/.config/git/ignore
            XDG_CONFIG_HOME=/x | /x/git/config /etc/gitconfig | /x/git/ignore
            HOME=/h GIT_CONFIG_GLOBAL=/g | /g /etc/gitconfig | /h/.config/git/ignore
            HOME=/h GIT_CONFIG_GLOBAL=/g GIT_CONFIG_SYSTEM=/s | /g /s | /h/.config/git/ignore
            - | /etc/gitconfig | -
        ";
        for [variables, configuration, excludes] in rows(table) {
            let pairs = variables.split_whitespace();
            let pairs = pairs.map(|pair| pair.split_once('=').expect("a variable"));
            let environment = Environment::new(&Vec::from_iter(pairs));
            let files = configuration_files(&environment);
            let expected = Vec::from_iter(configuration.split(' ').map(PathBuf::from));
            assert_eq!(files, expected, "{variables}");
            let file = default_excludes_file(&environment).unwrap_or_default();
            assert_eq!(file, Path::new(excludes), "{variables}");
        }
    }

    #[test]
    fn the_excludes_file_is_found_in_the_configuration() {
        // The lines of the configuration, and the file.
        let table = r#"
            [core]␊excludesFile = ~/ignored | /home/me/ignored
            [core]␊excludesfile="/a b" | /a b
            [core]␊excludesFile = /a␊ EXCLUDESFILE = /b ␍ | /b
            [core]␊excludesFile = /a=b | /a=b
            [core]␊excludesFile = /gr⟨fc⟩n | /gr⟨fc⟩n
            [core]␊name = gr⟨fc⟩n␊excludesFile = /a␊other = ⟨fc⟩ | /a
            [core]␊# excludesFile = /a | -
            [core]␊excludesFileX = /a␊excludesFile | -
            - | -
        "#;
        let bytes = |text: &str| {
            let text = text.replace('␊', "\n").replace('␍', "\r");
            let parts = Vec::from_iter(text.split("⟨fc⟩").map(str::as_bytes));
            parts.join(&0xFC)
        };
        for [text, expected] in rows(table) {
            let found = excludes_file_in(&bytes(text), Some(Path::new("/home/me")));
            let found = found.unwrap_or_default();
            assert_eq!(found.as_os_str().as_bytes(), bytes(expected), "{text}");
        }
    }

    #[test]
    fn the_last_line_of_a_complaint_is_shown_and_what_holds_the_pipe_open_is_not_waited_for() {
        let long = "x".repeat(1_000);
        let cut = "x".repeat(SHOWN_OF_COMPLAINT - 1) + "…";
        let endless = "x ".repeat(MAX_COMPLAINT);
        for (printed, expected) in [
            ("", None),
            ("\n \n", None),
            ("fatal: no\n", Some("fatal: no")),
            ("warning: a\nerror: b\r\nfatal:\tno\n\n", Some("fatal: no")),
            (&long, Some(cut.as_str())),
            (&format!("a\n{long}"), Some(&cut)),
            (&endless, Some(&beginning(&endless, SHOWN_OF_COMPLAINT))),
        ] {
            let (reader, mut writer) = io::pipe().expect("a pipe");
            writer.write_all(printed.as_bytes()).expect("room");
            assert_eq!(last_line(reader).as_deref(), expected, "{printed}");
        }
    }

    #[test]
    fn a_file_that_leads_nowhere_makes_no_repository() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("real")).expect("a directory");
        fs::write(root.path().join("file"), "").expect("a file");
        // What `.git` has, and whether that makes a repository.
        let table = r"
            gitdir: real | yes
            gitdir: real␊ | yes
            gitdir: ./real/../real␊ | yes
            gitdir: gone␊ | -
            gitdir: file␊ | -
            gitdir: ␊ | -
            gitdir:real␊ | -
            real␊ | -
            - | -
        ";
        let mark = root.path().join(".git");
        for [text, expected] in rows(table) {
            fs::write(&mark, text.replace('␊', "\n")).expect("a file");
            assert_eq!(is_repository(root.path()), expected == "yes", "{text}");
        }
        fs::create_dir(root.path().join(".jj")).expect("a directory");
        assert!(is_repository(root.path()));
        assert!(!is_repository(&root.path().join("real")));
        fs::create_dir(root.path().join("real/.git")).expect("a directory");
        assert!(is_repository(&root.path().join("real")));
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
