//! A directory of its own for each test, and the files that `q` finds and leaves in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use super::locks::lock;
use super::outcome::{LastRun, excerpt, listing};
use super::run::{API_KEY, Q};
use super::server::Server;

/// A fresh directory with `home/`, `config/` and `state/`, removed when dropped. A test that fails shows the last run in it.
pub struct Sandbox {
    root: PathBuf,
    env: BTreeMap<OsString, OsString>,
    last_run: Arc<Mutex<LastRun>>,
    /// Held only to be dropped.
    _directory: TempDir,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Where the temporary directory is behind a link, q may name files by their real path.
        let root = directory
            .path()
            .canonicalize()
            .expect("the directory's path");
        let mut env = BTreeMap::new();
        for (name, key) in [
            ("home", "HOME"),
            ("config", "XDG_CONFIG_HOME"),
            ("state", "XDG_STATE_HOME"),
        ] {
            let path = root.join(name);
            fs::create_dir(&path).expect("a directory in the sandbox");
            env.insert(key.into(), path.into());
        }
        Sandbox {
            root,
            env,
            last_run: Arc::default(),
            _directory: directory,
        }
    }

    /// A variable for every later run.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Sandbox {
        self.env
            .insert(key.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Every later run has an OpenAI key, for an API at this address.
    pub fn openai_at(self, base_url: impl AsRef<OsStr>) -> Sandbox {
        self.finds("OPENAI", base_url)
    }

    /// Every later run has an OpenAI key and finds its API at `server`.
    pub fn server_env(self, server: &Server) -> Sandbox {
        self.finds("OPENAI", server.url() + "/v1")
    }

    /// Every later run has a key for each of the three APIs and finds it at `server`.
    pub fn every_env(self, server: &Server) -> Sandbox {
        let sandbox = self.server_env(server).anthropic_env(server);
        sandbox.gemini_env(server)
    }

    /// Every later run has an Anthropic key and finds its API at `server`.
    pub fn anthropic_env(self, server: &Server) -> Sandbox {
        self.finds("ANTHROPIC", server.url())
    }

    /// Every later run has a Gemini key and finds its API at `server`.
    pub fn gemini_env(self, server: &Server) -> Sandbox {
        self.finds("GEMINI", server.url())
    }

    fn finds(self, provider: &str, base_url: impl AsRef<OsStr>) -> Sandbox {
        let sandbox = self.env(format!("{provider}_API_KEY"), API_KEY);
        sandbox.env(format!("{provider}_BASE_URL"), base_url)
    }

    /// The real `q` with these arguments, in `home/`.
    pub fn q(&self, args: &[&str]) -> Q {
        self.program(env!("CARGO_BIN_EXE_q").as_ref()).args(args)
    }

    /// A shell script that finds `q` on its path: for pipelines.
    pub fn shell(&self, script: &str) -> Q {
        let directory = Path::new(env!("CARGO_BIN_EXE_q")).parent();
        let path = directory.expect("the directory of the binary");
        let mut path = path.as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        self.program("/bin/sh".as_ref())
            .env("PATH", path)
            .args(&["-c", script])
    }

    fn program(&self, program: &OsStr) -> Q {
        // A server that is known from an earlier run may end before a test has seen what it does.
        let _ = fs::remove_dir_all(self.home().join(".cache/q/tools"));
        let last_run = Arc::clone(&self.last_run);
        Q::new(program, &self.env, self.home(), self.state(), last_run)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `XDG_STATE_HOME`.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Where the configuration file belongs, whether it exists or not.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("config/q/config.toml")
    }

    /// Writes the configuration file.
    pub fn config(&self, text: &str) {
        let file = self.config_file();
        let directory = file.parent().expect("a file in a directory");
        fs::create_dir_all(directory).expect("the configuration directory");
        fs::write(file, text).expect("the configuration file");
    }

    /// The directory of the conversations, whether it exists or not.
    pub fn sessions(&self) -> PathBuf {
        self.state().join("q/sessions")
    }

    /// The names in the directory of the conversations, sorted; none where it does not exist. What `current.json` or
    /// `current-SLOT.json` leads to has that name alone.
    pub fn session_files(&self) -> Vec<String> {
        let mut names = self.all_files();
        let targets = names.iter().filter(|name| name.starts_with("current"));
        let targets: Vec<String> = targets.filter_map(|name| self.target(name)).collect();
        names.retain(|name| !targets.contains(name));
        names
    }

    /// The same, with all of them.
    pub fn all_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.sessions()).into_iter().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry of the sessions directory")
                    .file_name()
            })
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// What a link in the directory of the conversations says; nothing where it is a file, or missing.
    pub fn target(&self, name: &str) -> Option<String> {
        let target = fs::read_link(self.sessions().join(name)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The id of the conversation that `current.json` leads to.
    #[track_caller]
    pub fn current_id(&self) -> String {
        let target = self.target("current.json").unwrap_or_default();
        let id = target
            .strip_suffix(".json")
            .filter(|id| id.starts_with("session_") && !id.contains('/'));
        let what = format!("expected a link to a conversation beside it, not {target:?}");
        self.check(id.is_some(), &what);
        id.unwrap_or_default().to_owned()
    }

    /// The current conversation.
    #[track_caller]
    pub fn current(&self) -> Value {
        self.session("current.json")
    }

    /// The conversation in the file of this name.
    #[track_caller]
    pub fn session(&self, name: &str) -> Value {
        let bytes = self.read_bytes(name);
        match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(error) => self.fail(&format!("{name} is not JSON: {error}\n{}", excerpt(&bytes))),
        }
    }

    /// A file of the sessions directory as it is.
    #[track_caller]
    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        match fs::read(self.sessions().join(name)) {
            Ok(bytes) => bytes,
            Err(error) => self.fail(&format!("{name}: {error}")),
        }
    }

    #[track_caller]
    pub fn write_session(&self, name: &str, conversation: &Value) {
        self.write_bytes(name, conversation.to_string());
    }

    /// Writes a file into the sessions directory, with the modes that q gives; in place of a link, as `mv` does.
    #[track_caller]
    pub fn write_bytes(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut directories = fs::DirBuilder::new();
        directories.recursive(true).mode(0o700);
        directories
            .create(self.sessions())
            .expect("the sessions directory");
        if self.target(name).is_some() {
            fs::remove_file(self.sessions().join(name)).expect("a link in the sessions directory");
        }
        let mut file = fs::OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        file.open(self.sessions().join(name))
            .and_then(|mut file| file.write_all(bytes.as_ref()))
            .expect("a file in the sessions directory");
    }

    /// Writes a conversation, and a link to it with the first name.
    #[track_caller]
    pub fn write_linked(&self, link: &str, name: &str, conversation: &Value) {
        self.write_session(name, conversation);
        let _ = fs::remove_file(self.sessions().join(link));
        self.link(link, name);
    }

    /// A link in the sessions directory.
    #[track_caller]
    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        fs::create_dir_all(self.sessions()).expect("the sessions directory");
        symlink(target, self.sessions().join(name)).expect("a link");
    }

    /// Writes a file into `home/`.
    #[track_caller]
    pub fn write_home(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.home().join(name), bytes).expect("a file in the home directory");
    }

    /// Exactly these files are in the directory of the conversations.
    #[track_caller]
    pub fn expect_files<S: AsRef<str>>(&self, expected: &[S]) {
        let found = self.session_files();
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        let what = format!("expected the conversations {expected:?}, not {found:?}");
        self.check(found == expected, &what);
    }

    #[track_caller]
    pub fn expect_no_files(&self) {
        self.expect_files::<&str>(&[]);
    }

    /// A file of the sessions directory has exactly these bytes.
    #[track_caller]
    pub fn expect_bytes(&self, name: &str, expected: impl AsRef<[u8]>) {
        let (found, expected) = (self.read_bytes(name), expected.as_ref());
        let what = format!(
            "expected in {name}:\n{}\nnot:\n{}",
            excerpt(expected),
            excerpt(&found)
        );
        self.check(found == expected, &what);
    }

    /// Not even a directory was made for the state.
    #[track_caller]
    pub fn expect_no_state(&self) {
        let entries = fs::read_dir(self.state())
            .expect("the state directory")
            .count();
        self.check(entries == 0, "expected nothing below state");
    }

    /// Any condition of the test's own on the files, shown with the last run where it does not hold.
    #[track_caller]
    pub fn check(&self, right: bool, expected: &str) {
        if !right {
            self.fail(expected);
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{}", self.story());
    }

    /// The last run and the files that are there now.
    fn story(&self) -> String {
        let mut last = lock(&self.last_run);
        last.shown = true;
        let files = listing(&self.state());
        format!(
            "\nthe last run here\n{}files below state:\n{files}",
            last.text
        )
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let shown = lock(&self.last_run).shown;
        if thread::panicking() && !shown {
            eprintln!("{}", self.story());
        }
    }
}
