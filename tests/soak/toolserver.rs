//! Tools: this program, started by q, is a tool server or a command, which say what they are asked; and whether any of them
//! is left.

use std::fs;
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Make this program a tool server, and a command.
const SERVER: &str = "--tool-server";
const COMMAND: &str = "--tool-command";

/// The names of the server and of the section with the command, and of their tools towards models.
pub const NAME: &str = "look";
pub const COMMANDS: &str = "note";
const TOOLS: [&str; 2] = ["look__up", "note__down"];

/// Stands for the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// How long a server may take to notice that its q has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sections of q's configuration file for them.
pub fn sections() -> io::Result<String> {
    let program = std::env::current_exe()?;
    let command = format!(
        "[tools.{COMMANDS}.down]\nrun = [{program:?}, {COMMAND:?}, \"{{what}}\"]\nreads = true\n"
    );
    Ok(format!(
        "[tools.{NAME}]\ncommand = [{program:?}, {SERVER:?}]\n{command}"
    ))
}

/// The arguments of every call.
pub fn arguments() -> Value {
    json!({"what": "it"})
}

/// Whether a call in a file is whole. It may have no result if the answer is interrupted.
pub fn is_kept_whole(call: &Value, interrupted: bool) -> bool {
    let is_known = call["name"]
        .as_str()
        .is_some_and(|name| TOOLS.contains(&name))
        && call["arguments"] == arguments();
    let has_result =
        call["result"].as_str() == Some(&arguments().to_string()) && call.get("error").is_none();
    is_known
        && (has_result || (interrupted && call["result"] == NO_RESULT && call["error"] == true))
}

/// Is a tool server or a command, if the arguments say so. Returns whether they do.
pub fn run() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [option] if option == SERVER => serve(),
        [option, what] if option == COMMAND => {
            thread::sleep(Duration::from_millis(u64::from(std::process::id() % 16)));
            print!("{}", json!({"what": what}));
        }
        _ => return false,
    }
    true
}

/// Answers until its input ends.
fn serve() {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Some(answer) = serde_json::from_str(&line)
            .ok()
            .and_then(|message: Value| answer(&message))
        else {
            continue;
        };
        // A q that has gone reads nothing.
        let _ = writeln!(io::stdout(), "{answer}");
    }
}

fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "soak", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "up", "description": "looks it up", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }]}),
        _ => {
            json!({"content": [{"type": "text", "text": message["params"]["arguments"].to_string()}]})
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
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
