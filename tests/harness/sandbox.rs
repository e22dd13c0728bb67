//! A directory of its own for each test, and the real `q` run in it with no environment but what the test gives.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::dialect::Dialect;
use super::fixtures::{GUARD, STORED_MODEL, id_of};
use super::server::Server;

/// The key that the sandbox gives for a test server; it must never turn up in what q says.
pub const API_KEY: &str = "sk-test-0123456789";

/// Keeps starting a program and closing a pipe apart. Between fork and exec a new process holds copies of the other
/// tests' pipes: one that is closed in that moment would stay open a little longer, and could still be written to.
static FORKING: RwLock<()> = RwLock::new(());
/// How much of an output a failure shows.
const SHOWN: usize = 4_000;

/// A fresh directory with `home/`, `config/` and `state/`, removed when dropped. A test that fails shows the last run in it.
pub struct Sandbox {
    root: PathBuf,
    env: BTreeMap<OsString, OsString>,
    last_run: Arc<Mutex<LastRun>>,
    /// Held only to be dropped.
    _directory: TempDir,
}

/// How a sandbox was used last, for a failure that has no outcome at hand.
#[derive(Default)]
struct LastRun {
    /// Command, status and output; nothing before the first run has ended.
    text: String,
    /// A failure has shown it already.
    shown: bool,
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
        Q {
            invocation: Invocation {
                program: program.to_owned(),
                args: Vec::new(),
                env: self.env.clone(),
                current_dir: self.home(),
                state: self.state(),
                last_run: Arc::clone(&self.last_run),
            },
            stdin: Input::Null,
            stdout: None,
            stderr: None,
            ignored: Vec::new(),
            blocked: Vec::new(),
            obeys_modes: false,
        }
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
            Err(error) => self.fail(&format!("{name} is not JSON: {error}\n{}", shown(&bytes))),
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

    /// Writes a conversation under its id, and makes it the current one.
    #[track_caller]
    pub fn write_current(&self, conversation: &Value) {
        let name = id_of(conversation) + ".json";
        self.write_linked("current.json", &name, conversation);
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
            shown(expected),
            shown(&found)
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

/// One run of `q`, to be described and then started.
pub struct Q {
    invocation: Invocation,
    stdin: Input,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
    ignored: Vec<i32>,
    blocked: Vec<i32>,
    obeys_modes: bool,
}

enum Input {
    Null,
    Bytes(Vec<u8>),
    Open,
    From(Stdio),
}

/// What a failure has to say about how the program was started.
#[derive(Clone)]
struct Invocation {
    program: OsString,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    current_dir: PathBuf,
    state: PathBuf,
    last_run: Arc<Mutex<LastRun>>,
}

impl Q {
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Q {
        self.invocation.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<S: AsRef<OsStr>>(self, args: &[S]) -> Q {
        args.iter().fold(self, Q::arg)
    }

    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Q {
        self.invocation
            .env
            .insert(key.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Q {
        self.invocation.env.remove(key.as_ref());
        self
    }

    /// A key for the dialect's provider, and its API at `server`; in the configuration file where it needs a section.
    pub fn speaks(self, dialect: &Dialect, server: &Server) -> Q {
        let (provider, url) = (dialect.provider, server.url() + dialect.base);
        let variable = provider.to_uppercase();
        let q = self.env(format!("{variable}_API_KEY"), API_KEY);
        if !dialect.needs_section {
            return q.env(format!("{variable}_BASE_URL"), url);
        }
        let q = q.env("Q_PROVIDER", provider);
        let directory = Path::new(&q.invocation.env[OsStr::new("XDG_CONFIG_HOME")]).join("q");
        fs::create_dir_all(&directory).expect("the configuration directory");
        let file = directory.join("config.toml");
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if !text.contains(&format!("[providers.{provider}]")) {
            text.push_str(&format!(
                "\n[providers.{provider}]\napi = \"{provider}\"\nmodel = \"{STORED_MODEL}\"\nbase_url = \"{url}\"\n\
                 key_env = \"{variable}_API_KEY\"\n",
            ));
            fs::write(file, text).expect("the configuration file");
        }
        q
    }

    /// An OpenAI key, and its API at `server`.
    pub fn server_env(self, server: &Server) -> Q {
        self.speaks(Dialect::named("openai"), server)
    }

    /// Standard input is a pipe with these bytes and an end; `/dev/null` where a test says nothing.
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Q {
        self.stdin = Input::Bytes(bytes.as_ref().to_vec());
        self
    }

    /// Standard input is a pipe that stays open and empty until the test writes to it or closes it.
    pub fn stdin_open(mut self) -> Q {
        self.stdin = Input::Open;
        self
    }

    /// Standard input is this file or pipe.
    pub fn stdin_from(mut self, source: impl Into<Stdio>) -> Q {
        self.stdin = Input::From(source.into());
        self
    }

    /// Standard output goes there and not into the outcome.
    pub fn stdout_to(mut self, target: impl Into<Stdio>) -> Q {
        self.stdout = Some(target.into());
        self
    }

    /// Standard error goes there and not into the outcome.
    pub fn stderr_to(mut self, target: impl Into<Stdio>) -> Q {
        self.stderr = Some(target.into());
        self
    }

    /// The program starts with this signal ignored, as under `nohup`.
    pub fn ignoring(mut self, signal: i32) -> Q {
        self.ignored.push(signal);
        self
    }

    /// The signal is held back from the program when it starts.
    pub fn blocking(mut self, signal: i32) -> Q {
        self.blocked.push(signal);
        self
    }

    /// The modes of files count for the program even where the tests run as root, to whom none is closed.
    pub fn obeying_modes(mut self) -> Q {
        self.obeys_modes = true;
        self
    }

    #[track_caller]
    pub fn run(self) -> Outcome {
        self.spawn().wait()
    }

    #[track_caller]
    pub fn spawn(self) -> Running {
        static HEEDED: Once = Once::new();
        HEEDED.call_once(heed_signals);
        let mut command = Command::new(&self.invocation.program);
        command
            .args(&self.invocation.args)
            .env_clear()
            .envs(&self.invocation.env)
            .current_dir(&self.invocation.current_dir)
            // So that the guard reaches the children of a shell too.
            .process_group(0)
            .stdout(self.stdout.unwrap_or_else(Stdio::piped))
            .stderr(self.stderr.unwrap_or_else(Stdio::piped));
        let mut input = Vec::new();
        let mut keep_open = false;
        match self.stdin {
            Input::Null => command.stdin(Stdio::null()),
            Input::Bytes(bytes) => {
                input = bytes;
                command.stdin(Stdio::piped())
            }
            Input::Open => {
                keep_open = true;
                command.stdin(Stdio::piped())
            }
            Input::From(source) => command.stdin(source),
        };
        if !self.ignored.is_empty() {
            let ignored = self.ignored;
            let ignore = move || {
                for &signal in &ignored {
                    // SAFETY: plain system call without pointers.
                    if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            };
            // SAFETY: between fork and exec the closure does nothing but call signal(2), and allocates nothing.
            unsafe { command.pre_exec(ignore) };
        }
        if !self.blocked.is_empty() {
            let blocked = self.blocked;
            // SAFETY: between fork and exec the closure makes system calls alone, and allocates nothing.
            unsafe { command.pre_exec(move || block(&blocked)) };
        }
        if self.obeys_modes {
            // SAFETY: between fork and exec the closure does nothing but call prctl(2), and allocates nothing.
            unsafe { command.pre_exec(give_up_privileges) };
        }
        let started = Instant::now();
        let spawned = {
            let _forking = FORKING.read().unwrap_or_else(PoisonError::into_inner);
            command.spawn()
        };
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => panic!("{}cannot be started: {error}", self.invocation),
        };
        // Holds the caller's ends of the pipes that it hands on, which would keep their readers waiting.
        drop(command);
        let mut stdin = child.stdin.take();
        if !keep_open && let Some(mut pipe) = stdin.take() {
            // A program that does not read its input makes this fail, which is its right.
            thread::spawn(move || pipe.write_all(&input));
        }
        Running {
            invocation: self.invocation,
            started,
            deadline: started + GUARD,
            stdin,
            stdout: Capture::start(child.stdout.take()),
            stderr: Capture::start(child.stderr.take()),
            ended: watch(child.id()),
            child,
            reaped: false,
        }
    }
}

/// A shell without job control ignores SIGINT and SIGQUIT for what it runs in the background, `nohup` SIGHUP. Programs
/// inherit that, and q obeys it; a test says itself what q is to ignore.
fn heed_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: plain system call without pointers.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Holds signals back. Programs inherit that.
fn block(signals: &[i32]) -> io::Result<()> {
    // SAFETY: `sigset_t` is plain data, which the first call fills; the pointers outlive the calls.
    let result = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// What root is allowed beyond the modes of files does not survive the next exec (Linux, capabilities(7)).
fn give_up_privileges() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: plain system calls without pointers.
    unsafe {
        const DAC_OVERRIDE: libc::c_ulong = 1;
        const DAC_READ_SEARCH: libc::c_ulong = 2;
        if libc::geteuid() == 0 {
            for capability in [DAC_OVERRIDE, DAC_READ_SEARCH] {
                if libc::prctl(libc::PR_CAPBSET_DROP, capability) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
    }
    Ok(())
}

/// A program that was started; dropping it kills it.
pub struct Running {
    invocation: Invocation,
    started: Instant,
    deadline: Instant,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    /// When the program ended. It is reaped later, so that its number cannot go to another process before.
    ended: Receiver<Instant>,
    child: Child,
    reaped: bool,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until standard output contains `text`, and returns all of it up to now.
    #[track_caller]
    pub fn read_stdout_until(&mut self, text: &str) -> Vec<u8> {
        match self.stdout.wait_for(text.as_bytes(), self.deadline) {
            Ok(bytes) => bytes,
            Err(why) => self.fail(&format!("stdout: {why} before {text:?}")),
        }
    }

    /// The reader of standard output goes away; when this returns, writing to it fails.
    pub fn close_stdout(&mut self) -> &mut Running {
        self.stdout.close();
        self
    }

    /// Writes to a standard input that was left open. More than a pipe holds waits until the program reads.
    #[track_caller]
    pub fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) -> &mut Running {
        let stdin = self.stdin.as_mut().expect("a standard input left open");
        stdin
            .write_all(bytes.as_ref())
            .expect("a program that reads");
        self
    }

    /// Ends a standard input that was left open.
    pub fn close_stdin(&mut self) -> &mut Running {
        self.stdin = None;
        self
    }

    #[track_caller]
    pub fn signal(&mut self, signal: i32) -> &mut Running {
        let sent = self.kill(self.process(), signal);
        assert!(sent, "signal {signal}: {}", io::Error::last_os_error());
        self
    }

    /// Waits for the end of the program and of its output.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let limit = self.deadline.saturating_duration_since(Instant::now());
        let ended = match self.ended.recv_timeout(limit) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Timeout) => self.fail("did not end in time"),
            Err(RecvTimeoutError::Disconnected) => self.fail("could not be waited for"),
        };
        for (name, capture) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !capture.wait_for_end(self.deadline) {
                self.fail(&format!("ended, but something holds its {name} open"));
            }
        }
        let status = self.reap();
        let outcome = Outcome {
            invocation: self.invocation.clone(),
            status,
            stdout: self.stdout.take(),
            stderr: self.stderr.take(),
            elapsed: ended.duration_since(self.started),
        };
        *lock(&self.invocation.last_run) = LastRun {
            text: outcome.text(),
            shown: false,
        };
        outcome
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        // The program itself is killed and reaped when the panic drops it.
        let run = run_text(
            &self.invocation,
            "not known yet",
            &self.stdout.lock().bytes,
            &self.stderr.lock().bytes,
        );
        panic!("{}", report(what, &self.invocation, &run));
    }

    fn process(&self) -> libc::pid_t {
        libc::pid_t::try_from(self.child.id()).expect("a process number")
    }

    fn kill(&self, target: libc::pid_t, signal: i32) -> bool {
        let is_right = !self.reaped;
        assert!(is_right, "its number may belong to another process by now");
        // SAFETY: plain system call without pointers.
        unsafe { libc::kill(target, signal) == 0 }
    }

    fn reap(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("the status of the program");
        self.reaped = true;
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            // The whole group: children of a shell would outlive it.
            self.kill(-self.process(), libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Tells when the process has ended and leaves it to be reaped.
fn watch(pid: u32) -> Receiver<Instant> {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        loop {
            // SAFETY: all zeroes is a valid siginfo_t, and it outlives the call.
            let result = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WNOWAIT;
                libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, flags)
            };
            if result == 0 {
                let _ = sender.send(Instant::now());
                return;
            }
            // No such process: it was dropped by the test and is reaped already.
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    });
    ended
}

/// Collects what comes out of a pipe or a terminal until it ends or the test closes it.
pub struct Capture {
    shared: Arc<(Mutex<Captured>, Condvar)>,
    /// Dropping it makes the reading thread close the pipe.
    stop: Option<UnixStream>,
}

#[derive(Default)]
pub struct Captured {
    pub bytes: Vec<u8>,
    pub ended: bool,
}

impl Capture {
    /// Without a pipe there is nothing to come.
    pub fn start(pipe: Option<impl Read + AsFd + Send + 'static>) -> Capture {
        let shared = Arc::new((Mutex::<Captured>::default(), Condvar::new()));
        let Some(mut pipe) = pipe else {
            lock(&shared.0).ended = true;
            return Capture { shared, stop: None };
        };
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                collect(&mut pipe, &stopped, &shared);
                let forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
                drop(pipe);
                drop(forking);
                lock(&shared.0).ended = true;
                shared.1.notify_all();
            }
        });
        Capture {
            shared,
            stop: Some(stop),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Captured> {
        lock(&self.shared.0)
    }

    fn close(&mut self) {
        self.stop = None;
        let ended = self.shared.1.wait_while(self.lock(), |now| !now.ended);
        drop(ended);
    }

    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }

    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |now| now.ended).ended
    }

    fn wait_for(&self, text: &[u8], deadline: Instant) -> Result<Vec<u8>, &'static str> {
        let mut searched = 0;
        let mut found = false;
        let now = self.wait_until(deadline, |now| {
            found = contains(&now.bytes[searched..], text);
            // The next look needs only what is new, and what might be the first half of it.
            searched = now.bytes.len().saturating_sub(text.len());
            found || now.ended
        });
        match (found, now.ended) {
            (true, _) => Ok(now.bytes.clone()),
            (false, true) => Err("ended"),
            (false, false) => Err("nothing more in time"),
        }
    }

    pub fn wait_until(
        &self,
        deadline: Instant,
        mut reached: impl FnMut(&Captured) -> bool,
    ) -> MutexGuard<'_, Captured> {
        let limit = deadline.saturating_duration_since(Instant::now());
        self.shared
            .1
            .wait_timeout_while(self.lock(), limit, |now| !reached(now))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

fn collect(
    pipe: &mut (impl Read + AsFd),
    stopped: &UnixStream,
    (captured, changed): &(Mutex<Captured>, Condvar),
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let interest = |descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut both = [
            interest(pipe.as_fd().as_raw_fd()),
            interest(stopped.as_raw_fd()),
        ];
        // SAFETY: the array outlives the call, and its length is given.
        unsafe { libc::poll(both.as_mut_ptr(), both.len() as libc::nfds_t, -1) };
        if both[1].revents != 0 {
            return;
        }
        if both[0].revents == 0 {
            // Interrupted.
            continue;
        }
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                lock(captured).bytes.extend_from_slice(&buffer[..count]);
                changed.notify_all();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// How a run ended. Every check that fails shows the whole run.
pub struct Outcome {
    invocation: Invocation,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    elapsed: Duration,
}

impl Outcome {
    /// Exit code 0, and nothing to say about it.
    #[track_caller]
    pub fn success(&self) -> &Outcome {
        self.exit(0).stderr_is_empty()
    }

    #[track_caller]
    pub fn exit(&self, code: i32) -> &Outcome {
        let right = self.status.code() == Some(code);
        self.check(right, &format!("expected exit code {code}"))
    }

    #[track_caller]
    pub fn killed_by(&self, signal: i32) -> &Outcome {
        let right = self.status.signal() == Some(signal);
        self.check(right, &format!("expected the end by signal {signal}"))
    }

    /// Exactly this.
    #[track_caller]
    pub fn stdout(&self, expected: impl AsRef<[u8]>) -> &Outcome {
        let expected = expected.as_ref();
        let what = format!("expected stdout to be:\n{}", shown(expected));
        self.check(self.stdout == expected, &what)
    }

    #[track_caller]
    pub fn stdout_contains(&self, text: &str) -> &Outcome {
        let right = contains(&self.stdout, text.as_bytes());
        self.check(right, &format!("expected in stdout: {text:?}"))
    }

    #[track_caller]
    pub fn stdout_lacks(&self, text: &str) -> &Outcome {
        let right = !contains(&self.stdout, text.as_bytes());
        self.check(right, &format!("not expected in stdout: {text:?}"))
    }

    #[track_caller]
    pub fn stdout_is_empty(&self) -> &Outcome {
        self.check(self.stdout.is_empty(), "expected nothing on stdout")
    }

    /// Exactly this.
    #[track_caller]
    pub fn stderr(&self, expected: impl AsRef<[u8]>) -> &Outcome {
        let expected = expected.as_ref();
        let what = format!("expected stderr to be:\n{}", shown(expected));
        self.check(self.stderr == expected, &what)
    }

    #[track_caller]
    pub fn stderr_contains(&self, text: &str) -> &Outcome {
        let right = contains(&self.stderr, text.as_bytes());
        self.check(right, &format!("expected in stderr: {text:?}"))
    }

    #[track_caller]
    pub fn stderr_lacks(&self, text: &str) -> &Outcome {
        let right = !contains(&self.stderr, text.as_bytes());
        self.check(right, &format!("not expected in stderr: {text:?}"))
    }

    #[track_caller]
    pub fn stderr_is_empty(&self) -> &Outcome {
        self.check(self.stderr.is_empty(), "expected nothing on stderr")
    }

    /// Each of these is in standard error.
    #[track_caller]
    pub fn stderr_contains_all<S: AsRef<str>>(&self, texts: &[S]) -> &Outcome {
        for text in texts {
            self.stderr_contains(text.as_ref());
        }
        self
    }

    #[track_caller]
    pub fn stderr_has_lines(&self, count: usize) -> &Outcome {
        let found = self.stderr_text().lines().count();
        let what = format!("expected {count} lines on stderr, not {found}");
        self.check(found == count, &what)
    }

    /// There is something on standard error, and each line begins with `q: `.
    #[track_caller]
    pub fn stderr_is_of_q(&self) -> &Outcome {
        let text = self.stderr_text();
        let right = !text.is_empty() && text.lines().all(|line| line.starts_with("q: "));
        self.check(right, "expected lines on stderr that begin with `q: `")
    }

    /// One line that says what is wrong, and perhaps one line for each thing to do.
    #[track_caller]
    pub fn explains(&self) -> &Outcome {
        let right = self.stderr_is_of_q().stderr_text().lines().count() <= 3;
        self.check(right, "expected one line, and at most two with what to do")
    }

    /// Exit code 2, nothing on stdout, and an explanation that has each of these words.
    #[track_caller]
    pub fn refused<S: AsRef<str>>(&self, words: &[S]) -> &Outcome {
        let outcome = self.exit(2).stdout_is_empty();
        outcome.explains().stderr_contains_all(words)
    }

    /// The end came before this limit.
    #[track_caller]
    pub fn ended_within(&self, limit: Duration) -> &Outcome {
        let elapsed = self.elapsed;
        let what = format!("expected the end within {limit:?}, not after {elapsed:?}");
        self.check(self.elapsed < limit, &what)
    }

    /// Any condition of the test's own, with the run shown where it does not hold.
    #[track_caller]
    pub fn check(&self, right: bool, expected: &str) -> &Outcome {
        if !right {
            panic!("{}", report(expected, &self.invocation, &self.text()));
        }
        self
    }

    /// What a failure shows of the run.
    fn text(&self) -> String {
        let status = self.status.to_string();
        run_text(&self.invocation, &status, &self.stdout, &self.stderr)
    }

    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    pub fn stdout_json(&self) -> Value {
        let value = serde_json::from_slice(&self.stdout);
        self.check(value.is_ok(), "expected JSON on stdout");
        value.unwrap_or_default()
    }

    /// From the start to the end of the program.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "command: {:?}", self.program)?;
        for arg in &self.args {
            write!(formatter, " {arg:?}")?;
        }
        writeln!(formatter, "\nin: {}", self.current_dir.display())?;
        writeln!(formatter, "environment:")?;
        for (key, value) in &self.env {
            writeln!(formatter, "  {}={value:?}", key.display())?;
        }
        Ok(())
    }
}

/// A failure, with the run and the files that are there.
fn report(what: &str, invocation: &Invocation, run: &str) -> String {
    lock(&invocation.last_run).shown = true;
    let files = listing(&invocation.state);
    format!("{what}\n\n{run}files below state:\n{files}")
}

fn run_text(invocation: &Invocation, status: &str, stdout: &[u8], stderr: &[u8]) -> String {
    let (stdout, stderr) = (shown(stdout), shown(stderr));
    format!("{invocation}status: {status}\nstdout:\n{stdout}\nstderr:\n{stderr}\n")
}

/// An output as text; of a long one the beginning and the end.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let half = SHOWN / 2;
    format!(
        "{}\n[… {} bytes …]\n{}",
        String::from_utf8_lossy(&bytes[..half]),
        bytes.len() - SHOWN,
        String::from_utf8_lossy(&bytes[bytes.len() - half..]),
    )
}

/// Mode, size and path of everything below a directory.
fn listing(directory: &Path) -> String {
    let mut text = String::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            let _ = writeln!(text, "  cannot be read: {}", next.display());
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let shortened = path.strip_prefix(directory).unwrap_or(&path).display();
            let Ok(metadata) = path.symlink_metadata() else {
                let _ = writeln!(text, "  gone meanwhile: {shortened}");
                continue;
            };
            let mode = metadata.permissions().mode() & 0o7777;
            let _ = writeln!(text, "  {mode:04o} {:>9} {shortened}", metadata.len());
            if metadata.is_dir() {
                directories.push(path);
            }
        }
    }
    text
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

/// A panic elsewhere has been reported already; it must not hide behind a poisoned lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
