//! Finds the files whose rules apply in all of a repository: where git's configuration says, or where git looks by default.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::git_config::GitConfig;
use super::ignore_file::{read_if_any, unusable};
use crate::child_output::{ChildOutput, NeededOutput, OutputLimits};
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

/// The settings that decide which files git ignores, as an expression for the names that git gives them.
const DECIDING: &str = r"^core\.(excludesfile|ignorecase)$";

/// What git may print of its configuration, and how long it may take.
const LIMITS: OutputLimits = OutputLimits {
    needed: NeededOutput::All,
    bytes: 1_000_000,
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

/// The variable that has more configuration, in a form of git's own.
const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// The variable that says how many pairs of variables have more configuration.
const PAIR_COUNT: &str = "GIT_CONFIG_COUNT";

/// The fewest digits of the name of a commit.
const OBJECT_NAME_DIGITS: usize = 40;

/// The files whose rules apply in all of a repository, which need not exist, and how their patterns match.
pub struct GitFiles {
    /// Its `info/exclude`; `None` without a directory of git.
    pub excluded: Option<PathBuf>,
    /// The file of the user's own rules; `None` if there is to be none.
    pub of_user: Option<PathBuf>,
    pub ignores_case: bool,
}

/// What all files of the configuration set together.
#[derive(Clone)]
struct IgnoreSettings {
    of_user: Option<PathBuf>,
    ignores_case: bool,
}

/// A finder of these files, which asks git once for each repository.
pub struct GitFileFinder<'a> {
    environment: &'a Environment,
    /// What is known already, by the root of the repository without links.
    known: RefCell<HashMap<PathBuf, IgnoreSettings>>,
}

impl<'a> GitFileFinder<'a> {
    pub fn new(environment: &'a Environment) -> GitFileFinder<'a> {
        GitFileFinder {
            environment,
            known: RefCell::default(),
        }
    }

    /// Finds the files for the repository whose root this directory is. `real` is its path without links above the walk.
    ///
    /// # Errors
    ///
    /// A file of the configuration cannot be used, or git cannot say what it sets.
    pub fn find(&self, directory: &Path, real: &Path) -> Result<GitFiles, Error> {
        let git = git_directory(directory);
        let settings = self.settings(real, git.as_deref())?;
        Ok(GitFiles {
            excluded: git.map(|git| git.join("info/exclude")),
            of_user: settings.of_user,
            ignores_case: settings.ignores_case,
        })
    }

    fn settings(&self, real: &Path, git: Option<&Path>) -> Result<IgnoreSettings, Error> {
        // Several links may lead to one repository.
        let root = real.canonicalize().unwrap_or_else(|_| real.to_owned());
        if let Some(known) = self.known.borrow().get(&root) {
            return Ok(known.clone());
        }
        let settings = ignore_settings(real, git, self.environment)?;
        self.known.borrow_mut().insert(root, settings.clone());
        Ok(settings)
    }
}

/// Returns what the configuration sets for a repository with this directory of git, if it has one.
fn ignore_settings(
    root: &Path,
    git: Option<&Path>,
    environment: &Environment,
) -> Result<IgnoreSettings, Error> {
    let mut configuration = Vec::new();
    for file in configuration_files(environment) {
        // One that has no end is not for git to read.
        let text = read_if_any(&file, MAX_CONFIGURATION)?;
        configuration.push((file, text));
    }
    if let Ok(program) = find_program("git", environment.get_os("PATH")) {
        return settings_of_git(&program, root, environment);
    }
    if let Some(git) = git {
        let file = git.join("config");
        let text = read_if_any(&file, MAX_CONFIGURATION)?;
        configuration.insert(0, (file, text));
    }
    settings_without_git(&configuration, root, environment)
}

/// Returns what git says of its configuration.
fn settings_of_git(
    program: &Path,
    directory: &Path,
    environment: &Environment,
) -> Result<IgnoreSettings, Error> {
    let ask = |arguments: &[&str]| ask_git(program, directory, arguments);
    let printed = ask(&["--get-regexp", DECIDING])?.unwrap_or_default();
    let config = GitConfig::of_printed(printed.as_bytes());
    if let Some(settings) =
        config.and_then(|config| settings_of_config(config, directory, environment))
    {
        return Ok(settings);
    }
    // Git alone can tell what one of the values means, or what is wrong with it.
    let of_user = match ask(&["--type", "path", "--get", "core.excludesFile"])? {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(directory.join(path)),
        None => default_excludes_file(environment),
    };
    let ignores_case = ask(&["--type", "bool", "--get", "core.ignoreCase"])?;
    Ok(IgnoreSettings {
        of_user,
        ignores_case: ignores_case.is_some_and(|value| value == "true"),
    })
}

/// Returns what a whole configuration sets. `None`: git alone can tell.
fn settings_of_config(
    config: GitConfig,
    directory: &Path,
    environment: &Environment,
) -> Option<IgnoreSettings> {
    let of_user = match config.excludes_file {
        Some(value) => {
            let path = path_of_value(&value, directory, home(environment))?;
            Some(path).filter(|path| !path.as_os_str().is_empty())
        }
        None => default_excludes_file(environment),
    };
    Some(IgnoreSettings {
        of_user,
        ignores_case: config.ignores_case.unwrap_or_default(),
    })
}

/// Reads the configuration where there is no git that could. The file that decides first is at the beginning.
///
/// # Errors
///
/// Git alone can tell what a file sets.
fn settings_without_git(
    configuration: &[(PathBuf, Vec<u8>)],
    directory: &Path,
    environment: &Environment,
) -> Result<IgnoreSettings, Error> {
    let needs_git = |what: &Path| {
        let error = unusable(what, "there is no git that could read it");
        error.advise("put git into PATH, or name the files, each after -a")
    };
    if environment.get_os(PARAMETERS).is_some() {
        return Err(needs_git(Path::new(PARAMETERS)));
    }
    let mut whole = GitConfig::default();
    // What names the file of the user's own rules.
    let mut naming = PathBuf::new();
    let of_variables = (PathBuf::from(PAIR_COUNT), config_of_variables(environment));
    let files = configuration.iter();
    let files = files.map(|(file, text)| (file.clone(), GitConfig::read(text)));
    for (file, config) in std::iter::once(of_variables).chain(files) {
        let config = config.ok_or_else(|| needs_git(&file))?;
        whole.ignores_case = whole.ignores_case.or(config.ignores_case);
        if whole.excludes_file.is_none() {
            whole.excludes_file = config.excludes_file;
            naming = file;
        }
    }
    settings_of_config(whole, directory, environment).ok_or_else(|| needs_git(&naming))
}

/// Reads what pairs of variables set, which decides before all files. `None`: git alone can tell, or takes them for wrong.
fn config_of_variables(environment: &Environment) -> Option<GitConfig> {
    let Some(count) = environment.get_os(PAIR_COUNT) else {
        return Some(GitConfig::default());
    };
    let count: usize = count.to_str()?.parse().ok()?;
    let mut pairs = Vec::new();
    for at in 0..count {
        let variable = |kind: &str| environment.get_os(&format!("GIT_CONFIG_{kind}_{at}"));
        pairs.push((variable("KEY")?.as_bytes(), variable("VALUE")?.as_bytes()));
    }
    GitConfig::of_pairs(pairs)
}

/// Returns the path that a value of the configuration names; empty for none. `None`: git alone can tell.
fn path_of_value(value: &[u8], directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(below) = value.strip_prefix(b"~/") {
        return Some(home?.join(OsStr::from_bytes(below)));
    }
    if value.is_empty() {
        return Some(PathBuf::new());
    }
    let is_special = [&b"~"[..], b"%(", b":("].into_iter();
    let mut is_special = is_special.filter(|beginning| value.starts_with(beginning));
    let path = directory.join(OsStr::from_bytes(value));
    is_special.next().is_none().then_some(path)
}

/// Asks git for values of its configuration, which it reads with all files that it includes. That runs nothing else. `None`: they
/// are not set.
///
/// # Errors
///
/// Git cannot say it, so that it is not known which files it ignores.
fn ask_git(
    program: &Path,
    directory: &Path,
    arguments: &[&str],
) -> Result<Option<OsString>, Error> {
    let mut git = Command::new(program);
    git.arg("-C").arg(directory);
    git.args(["config", "--null"]).args(arguments);
    for variable in NOT_FOR_GIT {
        git.env_remove(variable);
    }
    let failed = |reason: &str| {
        let reason = format!("git config: {reason}");
        // Without the slash at the end of some.
        unusable(directory.components().as_path(), &reason)
    };
    let (complaint, stderr) = io::pipe().map_err(|error| failed(&error.to_string()))?;
    git.stdin(Stdio::null()).stderr(stderr);
    let reason = match ChildOutput::of(git, &LIMITS) {
        Ok(ChildOutput::Ended(mut printed, status)) => match status.code() {
            Some(0) if printed.pop() == Some(0) => {
                return Ok(Some(OsString::from_vec(printed)));
            }
            Some(1) => return Ok(None),
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

/// Whether a directory is the root of a repository. To git, one with a file `.git` that leads nowhere is none, as is left behind
/// where the repository around a submodule was made again. Below another repository, only what is one to git ends the rules of
/// that; where there is none around it, more rules do no harm.
pub fn is_repository(directory: &Path, is_nested: bool) -> bool {
    let git = directory.join(".git");
    if is_nested {
        let found = if git.is_file() {
            named_directory(&git)
        } else {
            Some(git)
        };
        return found.as_deref().is_some_and(is_git_directory);
    }
    if directory.join(".jj").exists() {
        return true;
    }
    if git.is_file() {
        return named_directory(&git).is_some_and(|named| named.is_dir());
    }
    git.exists()
}

/// Whether git takes a directory as one of its own.
fn is_git_directory(git: &Path) -> bool {
    let common = common_directory(git);
    has_head(git)
        && ["objects", "refs"]
            .iter()
            .all(|name| common.join(name).is_dir())
}

/// Whether a directory of git has a head: a reference, or the name of a commit.
fn has_head(git: &Path) -> bool {
    let head = git.join("HEAD");
    if let Ok(target) = head.read_link() {
        return target.starts_with("refs");
    }
    let Ok(text) = whole_file::read(&head, MAX_LINK) else {
        return false;
    };
    if let Some(reference) = text.strip_prefix(b"ref:") {
        return reference.trim_ascii_start().starts_with(b"refs/");
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit());
    digits.count() >= OBJECT_NAME_DIGITS
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
    Some(common_directory(&git))
}

/// Returns the directory that the working trees of a repository share, which one of its directories of git may name.
fn common_directory(git: &Path) -> PathBuf {
    match whole_file::read(&git.join("commondir"), MAX_LINK) {
        Ok(text) => git.join(first_line(&text)),
        Err(_) => git.to_owned(),
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
    fn pairs_of_variables_configure_git_or_only_git_can_tell() {
        // The variables, each without GIT_CONFIG_; the excludes file, and whether case is ignored.
        let table = r"
            - | - | -
            COUNT=0 KEY_0=core.excludesFile VALUE_0=/a | - | -
            COUNT=1 KEY_0=core.excludesFile VALUE_0=/a | /a | -
            COUNT=2 KEY_0=CORE.EXCLUDESFILE VALUE_0=/a KEY_1=core.excludesfile VALUE_1=/b | /b | -
            COUNT=2 KEY_0=safe.directory VALUE_0=* KEY_1=core.ignoreCase VALUE_1=yes | - | yes
            COUNT=1 KEY_0=core.x.excludesFile VALUE_0=/a | - | -
            COUNT=1 KEY_0=core.ignoreCase VALUE_0=maybe | git | git
            COUNT=1 KEY_0=include.path VALUE_0=/a | git | git
            COUNT=1 KEY_0=includeIf.gitdir:/r.path VALUE_0=/a | git | git
            COUNT=1 KEY_0=core.excludesFile | git | git
            COUNT=1 VALUE_0=/a | git | git
            COUNT=2 KEY_0=core.excludesFile VALUE_0=/a | git | git
            COUNT=x | git | git
        ";
        for [variables, excludes, case] in rows(table) {
            let mut pairs = Vec::new();
            for variable in variables.split_whitespace() {
                let (name, value) = variable.split_once('=').expect("a variable");
                pairs.push((format!("GIT_CONFIG_{name}"), value));
            }
            let pairs = pairs.iter().map(|(name, value)| (name.as_str(), *value));
            let found = config_of_variables(&Environment::new(&Vec::from_iter(pairs)));
            let expected = (excludes != "git").then(|| GitConfig {
                excludes_file: (!excludes.is_empty()).then(|| excludes.into()),
                ignores_case: (!case.is_empty()).then_some(case == "yes"),
            });
            assert_eq!(found, expected, "{variables}");
        }
    }

    #[test]
    fn a_value_of_the_configuration_names_a_path_or_only_git_can_tell() {
        let table = r"
            ~/a/b | /home/me/a/b
            /a | /a
            a/b | /r/a/b
            ~you/a | git
            ~ | git
            %(prefix)/a | git
            :(optional)a | git
            - | -
        ";
        for [value, expected] in rows(table) {
            let directory = Path::new("/r");
            let found = path_of_value(value.as_bytes(), directory, Some(Path::new("/home/me")));
            let expected = (expected != "git").then(|| PathBuf::from(expected));
            assert_eq!(found, expected, "{value}");
        }
        assert_eq!(path_of_value(b"~/a", Path::new("/r"), None), None);
    }

    #[test]
    fn only_what_git_takes_as_a_repository_is_one_below_another() {
        // What `.git` has, what the directory that it may name has, whether that is a repository, and whether it is one below
        // another. A name that ends in a slash is a directory.
        let table = r"
            - | - | - | -
            directory | - | yes | -
            directory | HEAD=ref:␠refs/heads/a objects/ refs/ | yes | yes
            directory | HEAD=ref:␠␠refs/heads/a␊ objects/ refs/ | yes | yes
            directory | HEAD=0123456789012345678901234567890123456789␊ objects/ refs/ | yes | yes
            directory | HEAD=012345678901234567890123456789012345678␊ objects/ refs/ | yes | -
            directory | HEAD=x objects/ refs/ | yes | -
            directory | HEAD=ref:␠heads/a objects/ refs/ | yes | -
            directory | HEAD=ref:␠refs/heads/a objects/ | yes | -
            directory | HEAD=ref:␠refs/heads/a refs/ | yes | -
            directory | HEAD=ref:␠refs/heads/a objects= refs/ | yes | -
            directory | objects/ refs/ | yes | -
            directory | HEAD=ref:␠refs/heads/a commondir=shared shared/objects/ shared/refs/ | yes | yes
            directory | HEAD=ref:␠refs/heads/a commondir=gone objects/ refs/ | yes | -
            directory | HEAD/ objects/ refs/ | yes | -
            gitdir:␠real | HEAD=ref:␠refs/heads/a objects/ refs/ | yes | yes
            gitdir:␠real | - | yes | -
            gitdir:␠gone | HEAD=ref:␠refs/heads/a objects/ refs/ | - | -
            real | HEAD=ref:␠refs/heads/a objects/ refs/ | - | -
        ";
        for [mark, content, alone, nested] in rows(table) {
            let root = tempfile::tempdir().expect("a directory");
            let git = root.path().join(".git");
            let mut real = root.path().join("real");
            let in_words = |text: &str| text.replace('␠', " ").replace('␊', "\n");
            match mark {
                "" => {}
                "directory" => real = git,
                text => fs::write(git, in_words(text)).expect("a file"),
            }
            if !mark.is_empty() {
                fs::create_dir(&real).expect("a directory");
            }
            for part in content.split_whitespace() {
                match part.split_once('=') {
                    Some((name, text)) => {
                        fs::write(real.join(name), in_words(text)).expect("a file");
                    }
                    None => fs::create_dir_all(real.join(part)).expect("a directory"),
                }
            }
            let case = format!("{mark} {content}");
            assert_eq!(is_repository(root.path(), false), alone == "yes", "{case}");
            assert_eq!(is_repository(root.path(), true), nested == "yes", "{case}");
            fs::create_dir(root.path().join(".jj")).expect("a directory");
            assert!(is_repository(root.path(), false), "{case}");
            assert_eq!(is_repository(root.path(), true), nested == "yes", "{case}");
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
            assert_eq!(
                is_repository(root.path(), false),
                expected == "yes",
                "{text}"
            );
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
