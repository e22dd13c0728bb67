//! A run of a program: how it is started, and what a test can do while it runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;
use std::time::Instant;

use super::capture::{Capture, FORKING};
use super::dialect::{Dialect, STORED_MODEL};
use super::locks::lock;
use super::outcome::{Invocation, LastRun, Outcome, report, run_text};
use super::pty::Terminal;
use super::server::Server;
use super::times::GUARD;

/// The key that the sandbox gives for a test server; it must never turn up in what q says.
pub const API_KEY: &str = "sk-test-0123456789";

/// One run of `q`, or of a shell, to be described and then started.
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

impl Q {
    /// A program without arguments, in this directory and with this environment alone. A failure lists what is below `state`.
    pub fn new(
        program: &OsStr,
        env: &BTreeMap<OsString, OsString>,
        current_dir: PathBuf,
        state: PathBuf,
        last_run: Arc<Mutex<LastRun>>,
    ) -> Q {
        Q {
            invocation: Invocation {
                program: program.to_owned(),
                args: Vec::new(),
                env: env.clone(),
                current_dir,
                state,
                last_run,
            },
            stdin: Input::Null,
            stdout: None,
            stderr: None,
            ignored: Vec::new(),
            blocked: Vec::new(),
            obeys_modes: false,
        }
    }

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

    /// Standard output and standard error are this terminal.
    pub fn on(self, terminal: &Terminal) -> Q {
        self.stdout_to(terminal.end()).stderr_to(terminal.end())
    }

    /// A terminal of this many columns with what q prints on it, and nothing else.
    #[track_caller]
    pub fn shown_on(self, columns: u16) -> Terminal {
        let terminal = Terminal::new(columns);
        self.stdout_to(terminal.end()).run().success();
        terminal
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
