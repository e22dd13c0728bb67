//! How fast q is beside others, side by side in one run: medians and ratios, printed and never judged.
//!
//! `cargo bench --bench speed`, or with names of its parts behind `--`: `cargo bench --bench speed -- short long`. State is on
//! /dev/shm where that is there, so that the cost of fsync on a disk can be told apart.

#![allow(unsafe_code, clippy::expect_used, clippy::unwrap_used)]

#[path = "../authority.rs"]
mod authority;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::{ServerConnection, StreamOwned};

use authority::Authority;

const Q: &str = env!("CARGO_BIN_EXE_q");

/// Deltas of a short and of a long answer.
const SHORT: usize = 20;
const LONG: usize = 200_000;

/// The certificates that the system trusts.
const SYSTEM_STORE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Bytes of a large conversation.
const LARGE: usize = 9_000_000;

/// How many conversations are searched, and how many bytes each of them has.
const MANY: usize = 1_000;
const USUAL: usize = 20_000;

/// Bytes of an image, which in base64 are as many as q takes, and of a text file.
const IMAGE: usize = 3_749_000;
const TEXT: usize = 4_000_000;

fn main() {
    // The server is a process of its own: a child is charged with the memory of the one that it was forked from.
    if let Some(deltas) = std::env::var_os(SERVE).and_then(|deltas| deltas.to_str()?.parse().ok()) {
        return serve(deltas);
    }
    if let Some(pause) = std::env::var(TOOLS).ok().and_then(|pause| pause.parse().ok()) {
        return serve_tools(Duration::from_millis(pause));
    }
    let parts: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let memory = Path::new("/dev/shm");
    let state = tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new(env!("CARGO_TARGET_TMPDIR")) })
        .expect("a folder");
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let client = bare_client();
    let (short, long) = (Server::start(SHORT, None), Server::start(LONG, None));
    let bench = Bench {
        short: short.address.clone(),
        long: long.address.clone(),
        state: state.path().into(),
        disk: disk.path().into(),
        client,
    };
    type Part = fn(&Bench);
    let all: [(&str, Part); 10] = [
        ("short", Bench::short_answer),
        ("long", Bench::long_answer),
        ("terminal", Bench::long_answer_on_terminal),
        ("tls", Bench::short_answer_over_tls),
        ("large", Bench::large_conversation),
        ("list", Bench::list),
        ("files", Bench::files),
        ("tools", Bench::tools),
        ("tools", Bench::command),
        ("start", Bench::start),
    ];
    for (part, run) in all {
        if parts.is_empty() || parts.iter().any(|name| name == part) {
            run(&bench);
        }
    }
    let size = std::fs::metadata(Q).map_or(0, |metadata| metadata.len());
    println!("\nbinary: {:.2} MB (goal: at most 3.0)", size as f64 / 1e6);
}

struct Bench {
    /// Addresses of the servers of the short and of the long answer.
    short: String,
    long: String,
    state: PathBuf,
    disk: PathBuf,
    client: Option<PathBuf>,
}

/// What is measured: a name, and what is started, as often as wanted.
type Contestant<'a> = (&'a str, Command);

impl Bench {
    fn short_answer(&self) {
        println!("\nan answer of {SHORT} deltas, whole process");
        let saved = |state, arguments| self.q(&self.short, state, arguments);
        let mut contestants: Vec<Contestant> = vec![
            ("curl -sN", curl(&self.short)),
            ("q (saved)", saved(&self.state, &["question"])),
            ("q -f", saved(&self.state, &["-f", "question"])),
            ("q --no-save", saved(&self.state, &["--no-save", "question"])),
            ("q (saved, on disk)", saved(&self.disk, &["question"])),
        ];
        if let Some(client) = &self.client {
            contestants.push(("bare static client", quiet(client, &[self.short.trim_start_matches("http://")])));
        }
        for (program, model) in [("aichat", "bench:m"), ("llm", "bench")] {
            if Command::new(program).arg("--version").output().is_ok() {
                contestants.push((program, quiet(program, &["-m", model, "question"])));
            }
        }
        compare(contestants, 200);
    }

    fn long_answer(&self) {
        println!("\nan answer of {LONG} deltas, into /dev/null");
        let pipeline = format!(
            "curl -sN -H 'content-type: application/json' -d '{BODY}' {}/v1/chat/completions | sed -u -n 's/^data: {{/{{/p' | \
             jq -j --unbuffered '.choices[0].delta.content // empty'",
            self.long
        );
        let contestants = vec![
            ("curl -sN", curl(&self.long)),
            ("q (saved)", self.q(&self.long, &self.state, &["question"])),
            ("q --no-save", self.q(&self.long, &self.state, &["--no-save", "question"])),
            ("curl | sed | jq", quiet("sh", &["-c", &pipeline])),
        ];
        compare(contestants, 5);
    }

    fn long_answer_on_terminal(&self) {
        println!("\nan answer of {LONG} deltas, on a terminal");
        let terminal = terminal();
        let on_terminal = |wrap: &str| {
            let mut command = self.q(&self.long, &self.state, &["question"]);
            command.env("Q_WRAP", wrap).stdout(terminal.try_clone().expect("a descriptor"));
            command
        };
        let contestants = vec![
            ("q, into /dev/null", self.q(&self.long, &self.state, &["question"])),
            ("q, wrap = false", on_terminal("false")),
            ("q, wrap = true", on_terminal("true")),
        ];
        compare(contestants, 5);
    }

    /// The store of the system is loaded where it holds the server's authority, too, which has to be named for the test.
    fn short_answer_over_tls(&self) {
        println!("\nan answer of {SHORT} deltas over TLS, whole process");
        let (authority, store) = (self.state.join("authority.pem"), self.state.join("store.pem"));
        let server = Server::start(SHORT, Some(&authority));
        let tls = |certificates: &Path, arguments: &[&str]| {
            let mut command = self.q(&server.address, &self.state, arguments);
            command.env("SSL_CERT_FILE", certificates);
            command
        };
        let curl_with = |certificates: &Path| {
            let mut command = curl(&server.address);
            command.arg("--cacert").arg(certificates);
            command
        };
        let mut contestants = vec![
            ("curl -sN", curl_with(&authority)),
            ("q --no-save", tls(&authority, &["--no-save", "question"])),
            ("q (saved)", tls(&authority, &["question"])),
        ];
        match std::fs::read(SYSTEM_STORE) {
            Ok(mut certificates) => {
                certificates.extend(std::fs::read(&authority).expect("a certificate"));
                std::fs::write(&store, certificates).expect("a file");
                contestants.push(("curl -sN, store", curl_with(&store)));
                contestants.push(("q --no-save, store", tls(&store, &["--no-save", "question"])));
            }
            Err(error) => println!("(no store of the system: {SYSTEM_STORE}: {error})"),
        }
        compare(contestants, 100);
    }

    fn large_conversation(&self) {
        println!("\na follow-up on a conversation of {} MB and on an empty one", LARGE / 1_000_000);
        let contestants = [("q -s empty", 0), ("q -s large", LARGE)].map(|(name, bytes)| {
            let state = self.state.join(name);
            self.converse(&state, "bench", "", bytes);
            (name, self.q(&self.short, &state, &["-s", "bench", "question"]))
        });
        compare(contestants.into(), 20);
    }

    /// One of the conversations has the word that is looked for.
    fn list(&self) {
        println!("\na search in {MANY} conversations of {} KB", USUAL / 1_000);
        let many = self.state.join("many");
        for number in 0..MANY {
            let word = if number == MANY / 2 { "needle" } else { "hay" };
            self.converse(&many, &format!("talk-{number}"), word, USUAL);
        }
        let contestants = vec![
            ("grep -ril", quiet("grep", &["-ril", "needle", many.join("q/sessions").to_str().expect("a path")])),
            ("q --list WORD", self.q(&self.short, &many, &["--list", "needle"])),
            ("q --list", self.q(&self.short, &many, &["--list"])),
        ];
        compare(contestants, 20);
    }

    /// What files cost beside a question without any, in time and in memory.
    fn files(&self) {
        println!("\na question about files, and follow-ups on an image");
        let [image, text] =
            [("image.png", &b"\x89PNG\r\n\x1A\n"[..], IMAGE), ("text.txt", b"a line of text as it is\n", TEXT)].map(
                |(name, piece, bytes)| {
                    write_repeatedly(&self.state.join(name), piece, bytes);
                    self.state.join(name).to_str().expect("a path").to_owned()
                },
            );
        let talk = self.state.join("talk");
        let ready = self.q(&self.short, &talk, &["-s", "bench", "-a", &image, "question"]).status();
        assert!(ready.is_ok_and(|status| status.success()), "a conversation with an image");
        // A conversation that is displaced is read, so these leave none.
        let unsaved =
            |options: &[&str]| self.q(&self.short, &self.state, &[&["--no-save"], options, &["question"]].concat());
        let contestants = vec![
            ("q --no-save", unsaved(&[])),
            ("q -a 3.75 MB image", unsaved(&["-a", &image])),
            ("q -a 4 MB text", unsaved(&["-a", &text])),
            ("q -s, image in it", self.q(&self.short, &talk, &["-s", "bench", "--messages", "2", "question"])),
        ];
        compare(contestants, 20);
    }

    /// Without -t a configured server must cost nothing; with it, little beside what the servers take themselves.
    fn tools(&self) {
        println!("\na question with tools");
        let folders = ["plain", "configured"].map(|name| self.state.join(name));
        let [plain, configured] = &folders;
        for folder in &folders {
            std::fs::create_dir_all(folder.join("q")).expect("a folder");
        }
        let stamps = self.state.join("stamps");
        let section = |name: &str, pause: u64| {
            let program = std::env::current_exe().expect("a program");
            let stamp = stamps.with_extension(name);
            format!("[tools.{name}]\ncommand = [{program:?}]\nenv = {{ {TOOLS} = \"{pause}\", {STAMP} = {stamp:?} }}\n")
        };
        let sections = [section("now", 0), section("one", 100), section("two", 100), section("three", 100)];
        // Both have a file to read.
        std::fs::write(plain.join("q/config.toml"), "messages = 10\n").expect("a file");
        std::fs::write(configured.join("q/config.toml"), sections.concat()).expect("a file");
        let q = |server: &str, configuration: &Path, options: &[&str]| {
            let mut command = self.q(server, &self.state, &[&["--no-save"], options, &["question"]].concat());
            command.env("XDG_CONFIG_HOME", configuration);
            command
        };
        let contestants = vec![
            ("none configured", q(&self.short, plain, &[])),
            ("configured, no -t", q(&self.short, configured, &[])),
            ("-t, one server", q(&self.short, configured, &["-t", "now"])),
            ("-t, one of 100 ms", q(&self.short, configured, &["-t", "one"])),
            ("-t, three of 100 ms", q(&self.short, configured, &["-t", "one,two,three"])),
        ];
        compare(contestants, 50);
        // From the moment in which the server lists its tools to the request of the model.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let mut gaps: Vec<f64> = (0..50)
            .map(|_| {
                let mut command = q(&address, configured, &["-t", "now"]);
                let command = command.env("Q_RETRIES", "0").stderr(Stdio::null()).stdin(Stdio::null());
                let mut child = command.spawn().expect("q");
                let (stream, _) = listener.accept().expect("a connection");
                stream.peek(&mut [0]).expect("a request");
                let asked = now();
                reply(stream, &answer(1)).and_then(|()| child.wait()).expect("an end");
                let listed = std::fs::read_to_string(stamps.with_extension("now")).expect("a server that ran");
                asked - listed.parse::<f64>().expect("a time")
            })
            .collect();
        gaps.sort_by(f64::total_cmp);
        println!("from the list of tools to the request: {:.3} ms (goal: at most 5)", gaps[gaps.len() / 2] * 1e3);
    }

    /// From the model's call of a command to the next request, and how long the command takes by itself.
    fn command(&self) {
        let configured = self.state.join("command");
        std::fs::create_dir_all(configured.join("q")).expect("a folder");
        let section = "[tools.now.true]\nrun = [\"true\"]\nreads = true\n";
        std::fs::write(configured.join("q/config.toml"), section).expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let gap = |_| {
            let mut command = self.q(&address, &self.state, &["--no-save", "-t", "now", "question"]);
            command
                .env("XDG_CONFIG_HOME", &configured)
                .env("Q_RETRIES", "0")
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let mut child = command.spawn().expect("q");
            let request = || {
                let (stream, _) = listener.accept().expect("a connection");
                stream.peek(&mut [0]).expect("a request");
                stream
            };
            reply(request(), CALL.as_bytes()).expect("a reply");
            let called = Instant::now();
            let stream = request();
            let took = called.elapsed().as_secs_f64();
            reply(stream, &answer(1)).and_then(|()| child.wait()).expect("an end");
            let began = Instant::now();
            assert!(quiet("true", &[]).stdin(Stdio::null()).status().expect("a command").success());
            (took, began.elapsed().as_secs_f64())
        };
        let (mut with_q, mut alone): (Vec<f64>, Vec<f64>) = (0..50).map(gap).unzip();
        with_q.sort_by(f64::total_cmp);
        alone.sort_by(f64::total_cmp);
        let [with_q, alone] = [with_q, alone].map(|times| times[times.len() / 2] * 1e3);
        println!(
            "from the call of a command to the next request: {with_q:.3} ms, of which the command {alone:.3} ms (goal: at most 5 more)"
        );
    }

    fn start(&self) {
        println!("\nwhat asks nothing");
        let mut contestants = vec![("true", quiet("true", &[])), ("curl --version", quiet("curl", &["--version"]))];
        for (name, option) in [("q --version", "--version"), ("q --help", "--help"), ("q --last", "--last")] {
            contestants.push((name, self.q(&self.short, &self.state, &[option])));
        }
        compare(contestants, 100);
    }

    fn q(&self, server: &str, state: &Path, arguments: &[&str]) -> Command {
        let mut command = quiet(Q, &["-q"]);
        command.args(arguments).env_clear().env("HOME", &self.state).env("XDG_STATE_HOME", state);
        command.env("OPENAI_BASE_URL", format!("{server}/v1")).env("OPENAI_API_KEY", "sk-0123456789");
        command
    }

    /// Writes a conversation of this name that has about so many bytes, with this word in every message.
    fn converse(&self, state: &Path, name: &str, word: &str, bytes: usize) {
        let sessions = state.join("q/sessions");
        std::fs::create_dir_all(&sessions).expect("a folder");
        let text = "a line of \\\"text\\\" as it is\\n".repeat(100);
        let time = "2026-11-21T10:00:00.000Z";
        // Piece by piece: what this process has had at once would be told as what its children have.
        let mut file =
            std::io::BufWriter::new(std::fs::File::create(sessions.join(format!("{name}.json"))).expect("a file"));
        let mut write = |piece: String| file.write_all(piece.as_bytes()).expect("a file");
        write(format!(
            "{{\"version\":1,\"provider\":\"openai\",\"model\":\"gpt-6-luna\",\"created\":\"{time}\",\"updated\":\"{time}\",\"messages\":["
        ));
        for number in 0..bytes / text.len() {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let comma = if number == 0 { "" } else { "," };
            write(format!(
                "{comma}\n{{\"role\":\"{role}\",\"content\":\"{number} {word} {text}\",\"timestamp\":\"{time}\"}}"
            ));
        }
        write("\n]}\n".to_owned());
    }
}

/// Writes a file of about so many bytes, piece by piece as [`Bench::converse`] does.
fn write_repeatedly(path: &Path, piece: &[u8], bytes: usize) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).expect("a file"));
    for _ in 0..bytes / piece.len() {
        file.write_all(piece).expect("a file");
    }
}

/// A program whose output nobody reads.
fn quiet(program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// A pseudo-terminal of 80 columns, on which everything is read at once.
fn terminal() -> OwnedFd {
    // SAFETY: plain system calls; the name's buffer is used by this thread alone, and a descriptor is owned by nobody else
    // once it is known to be one.
    let (mut own, program) = unsafe {
        let own = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(libc::grantpt(own) == 0 && libc::unlockpt(own) == 0, "no pseudo-terminal");
        let name = libc::ptsname(own);
        assert!(!name.is_null(), "no pseudo-terminal");
        let program = libc::open(name, libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(program >= 0, "no pseudo-terminal");
        (File::from_raw_fd(own), OwnedFd::from_raw_fd(program))
    };
    let size = libc::winsize { ws_row: 50, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: a plain system call; the size outlives it.
    assert_eq!(unsafe { libc::ioctl(own.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0, "no pseudo-terminal");
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while own.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    program
}

const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"question"}]}"#;

fn curl(server: &str) -> Command {
    quiet(
        "curl",
        &["-sN", "-H", "content-type: application/json", "-d", BODY, &format!("{server}/v1/chat/completions")],
    )
}

/// One run: how long it took, and the most memory that it had at once (KiB).
#[derive(Clone, Copy)]
struct Run {
    time: Duration,
    memory: i64,
}

/// Runs all in turn, so often, and prints medians beside the first one's.
fn compare(mut contestants: Vec<Contestant>, runs: usize) {
    let mut results: Vec<Vec<Run>> = vec![Vec::new(); contestants.len()];
    for round in 0..=runs {
        for (index, (name, command)) in contestants.iter_mut().enumerate() {
            let run = measure(command, name);
            // The first round warms up.
            if round > 0 {
                results[index].push(run);
            }
        }
    }
    let first = median(&results[0], |run| run.time.as_secs_f64());
    let first_memory = median(&results[0], |run| run.memory as f64);
    println!("{:22} {:>12} {:>8} {:>12} {:>8}", "", "median ms", "ratio", "memory KiB", "ratio");
    for ((name, _), runs) in contestants.iter().zip(&results) {
        let time = median(runs, |run| run.time.as_secs_f64());
        let memory = median(runs, |run| run.memory as f64);
        println!("{name:22} {:>12.3} {:>8.2} {memory:>12.0} {:>8.2}", time * 1e3, time / first, memory / first_memory);
    }
}

fn median(runs: &[Run], figure: fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn measure(command: &mut Command, name: &str) -> Run {
    let began = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
    let (success, memory) = wait(&child);
    let time = began.elapsed();
    assert!(success, "{name} failed");
    // It has been waited for, of which the standard library knows nothing.
    let _ = child.try_wait();
    Run { time, memory }
}

/// Waits for a child; returns whether it succeeded, and the most memory that it had.
fn wait(child: &Child) -> (bool, i64) {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, for which zeroes are a value; both pointers are to locals; the child is ours and
    // nobody else waits for it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        usage
    };
    (libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, usage.ru_maxrss)
}

/// Tells a new process that it is the server, and of how many deltas.
const SERVE: &str = "Q_BENCH_SERVE";

/// Tells the server to speak TLS, and where to leave its authority's certificate.
const AUTHORITY: &str = "Q_BENCH_AUTHORITY";

/// Tells a new process that it is a tool server, and how many milliseconds it takes to start.
const TOOLS: &str = "Q_BENCH_TOOLS";

/// Tells the tool server where to write down when it listed its tools.
const STAMP: &str = "Q_BENCH_STAMP";

/// A server in a process of its own, which ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(deltas: usize, authority: Option<&Path>) -> Server {
        let program = std::env::current_exe().expect("a program");
        let mut command = Command::new(program);
        if let Some(path) = authority {
            command.env(AUTHORITY, path);
        }
        let mut child = command.env(SERVE, deltas.to_string()).stdout(Stdio::piped()).spawn().expect("a server");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut address).expect("an address");
        Server { child, address: address.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a question: a stream of so many deltas.
fn answer(deltas: usize) -> Vec<u8> {
    let mut answer = Vec::new();
    answer.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for number in 0..deltas {
        let event = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word{} \"}},\"finish_reason\":null}}]}}\n\n",
            number % 10
        );
        answer.extend_from_slice(event.as_bytes());
    }
    answer.extend_from_slice(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    answer
}

/// Answers every request with a stream of so many deltas, and prints at which address.
fn serve(deltas: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = answer(deltas);
    let tls = std::env::var_os(AUTHORITY).map(|path| {
        let authority = Authority::new("bench");
        std::fs::write(path, authority.pem()).expect("a file");
        authority.server(&["127.0.0.1"], 2000..=2999)
    });
    println!("{}://{address}", if tls.is_some() { "https" } else { "http" });
    for stream in listener.incoming().flatten() {
        // A client that goes away early is no concern.
        let _ = match &tls {
            None => reply(stream, &answer),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).expect("a server's side of TLS");
                let mut stream = StreamOwned::new(connection, stream);
                reply(&mut stream, &answer).and_then(|()| {
                    stream.conn.send_close_notify();
                    stream.flush()
                })
            }
        };
    }
}

/// A reply that calls a command.
const CALL: &str = concat!(
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call00001","function":{"name":"now__true","arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

fn reply(mut stream: impl Read + Write, answer: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    stream.write_all(answer)
}

/// Speaks the Model Context Protocol on standard input and output as far as q needs it to have one tool.
fn serve_tools(pause: Duration) {
    std::thread::sleep(pause);
    let say = |id: usize, result: &str| println!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if line.contains("\"initialize\"") {
            say(
                1,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}"#,
            );
        } else if line.contains("\"tools/list\"") {
            let stamp = std::env::var_os(STAMP).expect("a place");
            std::fs::write(stamp, now().to_string()).expect("a file");
            say(2, r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#);
        }
    }
}

/// Seconds on the clock that all processes share.
fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs_f64()
}

/// Compiles the bare client, statically linked; `None` where that cannot be done.
fn bare_client() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/client.rs");
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "panic=abort", "-o"])
        .arg(&path)
        .arg(source)
        .output();
    match compiled {
        Ok(output) if output.status.success() => Some(path),
        _ => {
            println!("(the bare client could not be compiled, so it is missing here)");
            None
        }
    }
}
