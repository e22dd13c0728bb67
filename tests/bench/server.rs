//! The servers that the bench asks, each a process of its own: one of a model, and one of tools.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::{ServerConnection, StreamOwned};

use crate::authority::Authority;
use crate::http;

/// Makes a new process the server; the value is its number of deltas.
const SERVE: &str = "Q_BENCH_SERVE";

/// Makes the server speak TLS; the value is the file for its authority's certificate.
const AUTHORITY: &str = "Q_BENCH_AUTHORITY";

/// Makes a new process a tool server; the value is how many milliseconds it takes to start.
pub const TOOLS: &str = "Q_BENCH_TOOLS";

/// The file in which the tool server writes when it listed its tools.
pub const STAMP: &str = "Q_BENCH_STAMP";

/// Whether this process was started as a server, which it then has been.
pub fn serve_if_asked() -> bool {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    if let Some(deltas) = number(SERVE) {
        serve(deltas);
        return true;
    }
    if let Some(pause) = number(TOOLS) {
        serve_tools(Duration::from_millis(pause as u64));
        return true;
    }
    false
}

/// A server in a process of its own, which ends with this value.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(deltas: usize, authority: Option<&Path>) -> Server {
        let program = std::env::current_exe().expect("a program");
        let mut command = Command::new(program);
        if let Some(path) = authority {
            command.env(AUTHORITY, path);
        }
        let child = command.env(SERVE, deltas.to_string());
        let mut child = child.stdout(Stdio::piped()).spawn().expect("a server");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut address)
            .expect("an address");
        Server {
            child,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How an answer begins and ends.
pub const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
pub const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// An event with one word.
pub fn event(number: usize) -> String {
    event_of(&format!("word{number} "))
}

/// An event with a piece of text.
pub fn event_of(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// The answer to a question: a stream of this many deltas.
pub fn answer(deltas: usize) -> Vec<u8> {
    let events: String = (0..deltas).map(|number| event(number % 10)).collect();
    [HEAD, &events, END].concat().into_bytes()
}

/// Answers every request with a stream of this many deltas, and prints at which address.
fn serve(deltas: usize) {
    let (listener, address) = listen();
    let answer = answer(deltas);
    let tls = std::env::var_os(AUTHORITY).map(|path| {
        let authority = Authority::new("bench");
        std::fs::write(path, authority.pem()).expect("a file");
        authority.server(&["127.0.0.1"], 2000..=2999)
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    println!("{}", address.replace("http", scheme));
    for stream in listener.incoming().flatten() {
        // A client that goes away early is no concern.
        let _ = match &tls {
            None => reply(stream, &answer),
            Some(config) => {
                let connection =
                    ServerConnection::new(Arc::clone(config)).expect("a server's side of TLS");
                let mut stream = StreamOwned::new(connection, stream);
                reply(&mut stream, &answer).and_then(|()| {
                    stream.conn.send_close_notify();
                    stream.flush()
                })
            }
        };
    }
}

/// The events of a reply that calls a command.
pub const CALL: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call00001","function":{"name":"now__true","arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

pub fn reply(mut stream: impl Read + Write, answer: &[u8]) -> std::io::Result<()> {
    http::read_body(&mut stream)?;
    stream.write_all(answer)
}

/// Speaks the Model Context Protocol on standard input and output as far as q needs it to have one tool.
fn serve_tools(pause: Duration) {
    std::thread::sleep(pause);
    let say = |id: usize, result: &str| {
        println!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
    };
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if line.contains("\"initialize\"") {
            say(
                1,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}"#,
            );
        } else if line.contains("\"tools/list\"") {
            let stamp = std::env::var_os(STAMP).expect("a place");
            std::fs::write(stamp, now().to_string()).expect("a file");
            say(
                2,
                r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#,
            );
        }
    }
}

/// Seconds on the clock that all processes share.
pub fn now() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a time")
        .as_secs_f64()
}

/// A port, and its address.
pub fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, address)
}
