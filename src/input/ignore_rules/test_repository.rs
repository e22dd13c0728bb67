//! A repository for the tests that compare with git itself, and patterns that are likely to show a difference.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::arbitrary::any;
use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::Strategy;
use tempfile::TempDir;

/// What patterns are made of: above all the parts that git takes in a way of its own.
const PARTS: [&str; 26] = [
    "a", "b", "ab", "B", "a", "b", "*", "**", "**", "**/", "/**/", "/", "/", "?", "[ab]", "[b-a]",
    "[a-b]", "[!b-a]", "[^B]", "[", "]", "-", "!", ".", "\\", "\\/",
];

/// Returns a strategy for patterns of a file that says what git ignores.
pub fn pattern_like() -> impl Strategy<Value = String> {
    let parts = vec(select(&PARTS[..]), 0..5).prop_map(|parts| parts.concat());
    let first = select(&["", "a**/", "/a**", "b/a**/", "a/b**\\/"][..]);
    // Half of them begin with stars behind a letter.
    (any::<bool>(), first, select(&PARTS[..]), parts).prop_map(|(has_first, first, part, rest)| {
        let first = if has_first { first } else { part };
        format!("{first}{rest}")
    })
}

/// A repository of git that has no settings but its own.
pub struct TestRepository(TempDir);

impl TestRepository {
    /// Makes one; `None` where there is no git and tests may be skipped.
    pub fn new() -> Option<TestRepository> {
        let repository = TestRepository(tempfile::tempdir().expect("a directory"));
        let made = repository.git(&["init", "-q"]).status();
        if made.is_ok_and(|status| status.success()) {
            return Some(repository);
        }
        let is_allowed = std::env::var_os("SKIP_NO_TEST").is_none();
        assert!(is_allowed, "it would be skipped: git is not there");
        eprintln!("skipped: git is not there");
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, and makes the directories that it is in.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    /// Runs git with this as its standard input, and returns what it prints, which has NUL between its parts.
    pub fn ask(&self, arguments: &[&str], input: &str) -> Vec<String> {
        // A pipe might be full on both sides.
        self.write(".git/input", input);
        let input = File::open(self.path().join(".git/input")).expect("a file");
        let output = self.git(arguments).stdin(input).output().expect("git");
        let printed = String::from_utf8(output.stdout).expect("text");
        let parts = printed.split('\0').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path()).args(arguments);
        // A hook of git that runs the tests has some of them for its own repository.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                git.env_remove(name);
            }
        }
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.env("GIT_CONFIG_NOSYSTEM", "1");
        git.stdin(Stdio::null()).stderr(Stdio::null());
        git
    }
}
