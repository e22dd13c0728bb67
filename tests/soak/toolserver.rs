//! A tool server: this program, started by q, has one tool that says what it is asked; and whether any of them is left.

use std::fs;
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Makes this program a tool server.
pub const OPTION: &str = "--tool-server";

/// The name of the server, and of its tool towards models.
pub const NAME: &str = "look";
pub const TOOL: &str = "look__up";

/// How long a server may take to notice that its q has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The section of q's configuration file for it.
pub fn section() -> io::Result<String> {
    Ok(format!("[tools.{NAME}]\ncommand = [{:?}, {OPTION:?}]\n", std::env::current_exe()?))
}

/// Answers until its input ends.
pub fn run() {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Some(answer) = serde_json::from_str(&line).ok().and_then(|message: Value| answer(&message)) else {
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
        _ => json!({"content": [{"type": "text", "text": message["params"]["arguments"].to_string()}]}),
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
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let words = format!("{}\0{OPTION}\0", program.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_one = |number: &u32| fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| line == words.as_bytes());
    numbers.filter(is_one).collect()
}
