//! The tools of the soak: the tests' server, and this program as a command. Both say what they are asked.

use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::{Value, json};

use crate::harness;

/// Makes this program a command.
const COMMAND: &str = "--tool-command";

/// Makes this program a process that does nothing for a while, and ignores SIGTERM if its number is odd.
pub const IDLER: &str = "--idler";

/// With this variable, a tool leaves an idler running, and takes its time.
pub const LINGERS: &str = "SOAK_LINGERS";

/// Passes the variable on, where it is set.
const WITH_LINGERS: &str = "env_from = [\"SOAK_*\"]";

/// The names of the server, of the section with the command and of that with the confined one, and of their tools towards models.
pub const NAME: &str = "look";
pub const COMMANDS: &str = "note";
pub const CONFINED: &str = "closed";
const TOOLS: [&str; 3] = ["look__echo", "note__down", "closed__down"];

/// Stands for the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// How long a server may take to notice that its q has gone.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The sections of q's configuration file for them.
pub fn sections() -> io::Result<String> {
    let program = std::env::current_exe()?;
    let more = format!("only = [\"echo\"]\n{WITH_LINGERS}");
    let server = harness::toolserver::section_with_log(NAME, "plain", "/dev/null", &more);
    let run = format!("run = [{program:?}, {COMMAND:?}, \"{{text}}\"]");
    let command = format!("{run}\nreads = true\n{WITH_LINGERS}\n");
    Ok(format!(
        "{server}[tools.{COMMANDS}.down]\n{command}[tools.{CONFINED}.down]\n{command}confine = {{}}\n"
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

/// Is what q or a tool has started this program for. Returns whether that was all.
pub fn run() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let process = std::process::id();
    let lingers = std::env::var_os(LINGERS).is_some();
    match &arguments[..] {
        [option] if option == IDLER => {
            if process % 2 == 1 {
                // SAFETY: ignoring a signal has no conditions.
                unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            }
            thread::sleep(TIMEOUT * 4);
            return true;
        }
        [_, ..] if lingers => {
            // A confined program reads nothing about its own process.
            let program = std::env::args_os().next().expect("this program");
            let idler = Command::new(program).arg(IDLER).spawn();
            drop(idler.expect("an idler"));
        }
        _ => {}
    }
    harness::toolserver::serve_if_asked();
    match &arguments[..] {
        [option, what] if option == COMMAND => {
            let most = if lingers { 128 } else { 16 };
            leave_files().expect("files in the temporary directory");
            thread::sleep(Duration::from_millis(u64::from(process % most)));
            print!("you said {what}");
            true
        }
        _ => false,
    }
}

/// Fills the temporary directory of a confined program. Others have none here.
fn leave_files() -> io::Result<()> {
    let Some(directory) = std::env::var_os("TMPDIR") else {
        return Ok(());
    };
    let below = Path::new(&directory).join("a/b/c");
    fs::create_dir_all(&below)?;
    (0..10).try_for_each(|number| fs::write(below.join(number.to_string()), "it"))
}

/// The processes that are still there after a while with a home below this directory, though no q runs there any more.
pub fn left(directory: &Path, except: Option<i32>) -> Vec<i32> {
    let began = Instant::now();
    loop {
        let mut left = running(directory);
        left.retain(|process| Some(*process) != except);
        if left.is_empty() || began.elapsed() > TIMEOUT {
            return left;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn running(directory: &Path) -> Vec<i32> {
    let home = format!("HOME={}/", directory.display());
    let mut running = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| variable.starts_with(home.as_bytes())) {
            let name = process.file_name();
            let number = name.to_str().and_then(|name| name.parse::<i32>().ok());
            running.extend(number);
        }
    }
    running
}
