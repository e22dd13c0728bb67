//! The tools of the soak: the tests' server, and this program as a command. Both say what they are asked.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness;
use crate::harness::toolserver::SERVER;

/// Makes this program a command.
const COMMAND: &str = "--tool-command";

/// The names of the server and of the section with the command, and of their tools towards models.
pub const NAME: &str = "look";
pub const COMMANDS: &str = "note";
const TOOLS: [&str; 2] = ["look__echo", "note__down"];

/// Stands for the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// How long a server may take to notice that its q has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sections of q's configuration file for them.
pub fn sections() -> io::Result<String> {
    let program = std::env::current_exe()?;
    let server =
        harness::toolserver::section_with_log(NAME, "plain", "/dev/null", "only = [\"echo\"]");
    let run = format!("run = [{program:?}, {COMMAND:?}, \"{{text}}\"]");
    Ok(format!(
        "{server}[tools.{COMMANDS}.down]\n{run}\nreads = true\n"
    ))
}

/// The arguments of every call, and its result.
pub fn arguments() -> Value {
    json!({"text": "it"})
}

const RESULT: &str = "you said it";

/// Whether a call in a file is whole. It may have no result if the answer is interrupted.
pub fn is_kept_whole(call: &Value, interrupted: bool) -> bool {
    let name = call["name"].as_str().unwrap_or_default();
    if !TOOLS.contains(&name) || call["arguments"] != arguments() {
        return false;
    }
    let has_result = call["result"] == RESULT && call.get("error").is_none();
    has_result || (interrupted && call["result"] == NO_RESULT && call["error"] == true)
}

/// Is a tool server or a command, if q has started this program as one. Returns whether it is the command.
pub fn run() -> bool {
    harness::toolserver::serve_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [option, what] = &arguments[..] else {
        return false;
    };
    if option != COMMAND {
        return false;
    }
    thread::sleep(Duration::from_millis(u64::from(std::process::id() % 16)));
    print!("you said {what}");
    true
}

/// The process numbers of the servers that are still there after a while, though no q runs any more.
pub fn left() -> Vec<u32> {
    let began = Instant::now();
    loop {
        let left = running();
        if left.is_empty() || began.elapsed() > PATIENCE {
            return left;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn running() -> Vec<u32> {
    let Ok(program) = std::env::current_exe() else {
        return Vec::new();
    };
    let words = [SERVER, COMMAND].map(|option| format!("{}\0{option}\0", program.display()));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_one = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.iter().any(|words| line.starts_with(words.as_bytes()))
    };
    numbers.filter(is_one).collect()
}
