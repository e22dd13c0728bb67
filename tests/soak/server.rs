//! A server on the loopback that answers chat completions as event streams, and remembers what was sent with each question.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http;
use crate::image;
use crate::question::{Question, WITH_IMAGE};
use crate::run::Run;
use crate::toolserver;

/// How long an answer is held back at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait between two looks at a run that has not asked yet.
const POLL: Duration = Duration::from_millis(10);

pub struct Server {
    pub address: SocketAddr,
    exchanges: Arc<Exchanges>,
}

#[derive(Default)]
struct Exchanges {
    known: Mutex<HashMap<u64, Exchange>>,
    changed: Condvar,
}

#[derive(Default)]
struct Exchange {
    /// The answer waits to be released.
    held: bool,
    request: Option<Request>,
    /// The end of the answer is being sent.
    answered: bool,
}

/// What came with a question.
#[derive(Clone, Default)]
pub struct Request {
    /// The questions of the history, oldest first.
    pub history: Vec<u64>,
    /// Something in the history that was never said.
    pub foreign: Option<String>,
}

impl Server {
    pub fn start() -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let exchanges = Arc::new(Exchanges::default());
        thread::spawn({
            let exchanges = Arc::clone(&exchanges);
            move || {
                for stream in listener.incoming().flatten() {
                    let exchanges = Arc::clone(&exchanges);
                    // A client that was killed is no fault.
                    thread::spawn(move || serve(stream, &exchanges));
                }
            }
        });
        Ok(Server { address, exchanges })
    }

    /// The answer to this question is to wait.
    pub fn hold(&self, id: u64) {
        self.exchanges.lock().entry(id).or_default().held = true;
    }

    pub fn release(&self, id: u64) {
        self.exchanges.change(id, |exchange| exchange.held = false);
    }

    /// Returns once the question has arrived, or false if the run that is to send it has ended.
    pub fn wait_for_request(&self, id: u64, run: &mut Run) -> bool {
        let arrived = |exchange: &Exchange| exchange.request.is_some();
        while !self.exchanges.wait(id, POLL, arrived) {
            if run.ended() {
                return self.exchanges.wait(id, Duration::ZERO, arrived);
            }
        }
        true
    }

    /// Returns once the end of the answer is being sent, or false if that does not happen soon.
    pub fn wait_for_answer(&self, id: u64, patience: Duration) -> bool {
        self.exchanges.wait(id, patience, |exchange| exchange.answered)
    }

    /// What came with the question, if it has arrived.
    pub fn request(&self, id: u64) -> Option<Request> {
        self.exchanges.lock().get(&id).and_then(|exchange| exchange.request.clone())
    }

    pub fn forget(&self, id: u64) {
        self.exchanges.lock().remove(&id);
    }
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Exchange>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Exchange)) {
        change(self.lock().entry(id).or_default());
        self.changed.notify_all();
    }

    fn wait(&self, id: u64, patience: Duration, reached: impl Fn(&Exchange) -> bool) -> bool {
        let waiting = |known: &mut HashMap<u64, Exchange>| !known.get(&id).is_some_and(&reached);
        let waited = self.changed.wait_timeout_while(self.lock(), patience, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// One request, one answer, and the end.
fn serve(stream: TcpStream, exchanges: &Exchanges) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let body = http::read_body(&stream)?;
    let (question, request) = read_prompt(&body).ok_or(io::ErrorKind::InvalidData)?;
    let id = question.id;
    if wants_call(&body) {
        return call(stream);
    }
    exchanges.change(id, |exchange| exchange.request = Some(request));
    exchanges.wait(id, PATIENCE, |exchange| !exchange.held);
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for (number, piece) in question.pieces().enumerate() {
        if number > 0 {
            thread::sleep(question.pause());
        }
        let event = json!({"model": "soak", "choices": [{"index": 0, "delta": {"content": piece}}]});
        stream.write_all(format!("data: {event}\n\n").as_bytes())?;
    }
    exchanges.change(id, |exchange| exchange.answered = true);
    let end = json!({"model": "soak", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes())
}

/// Whether tools are offered, and none has been called yet.
fn wants_call(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    body.get("tools").is_some() && last.is_some_and(|last| last["role"] == "user")
}

/// Calls the tool.
fn call(mut stream: TcpStream) -> io::Result<()> {
    let function = json!({"name": toolserver::TOOL, "arguments": "{\"what\":\"it\"}"});
    let calls = json!([{"index": 0, "id": "call00001", "type": "function", "function": function}]);
    let event = json!({"model": "soak", "choices": [{"index": 0, "delta": {"tool_calls": calls}}]});
    let end = json!({"model": "soak", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}data: {event}\n\ndata: {end}\n\ndata: [DONE]\n\n").as_bytes())
}

/// The question, and what came before it: pairs of questions and whole answers.
fn read_prompt(body: &[u8]) -> Option<(Question, Request)> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let said = body["messages"].as_array()?.iter().filter(|message| message["role"] != "system");
    let mut said: Vec<(&str, &str)> =
        said.filter_map(|message| Some((message["role"].as_str()?, text_of(&message["content"])?))).collect();
    // Calls and their results come after the question.
    said.truncate(said.iter().rposition(|(role, _)| *role == "user")? + 1);
    let ((_, question), history) = said.split_last()?;
    let mut request = Request::default();
    for pair in history.chunks(2) {
        match pair {
            [("user", asked), ("assistant", answered)] => match Question::parse(asked) {
                // The calls of earlier questions stand before their answers.
                Some(asked) if answered.ends_with(&asked.answer()) => request.history.push(asked.id),
                _ => request.foreign = Some(format!("{asked:?} was sent with the answer {answered:?}")),
            },
            other => request.foreign = Some(format!("no pair of question and answer: {other:?}")),
        }
    }
    Some((Question::parse(question)?, request))
}

/// The text of a message; `None` where an image should go with it and does not.
fn text_of(content: &Value) -> Option<&str> {
    let Some(parts) = content.as_array() else {
        return content.as_str().filter(|text| !text.ends_with(WITH_IMAGE));
    };
    let [image, text] = &parts[..] else { return None };
    text["text"].as_str().filter(|_| image::is_sent_whole(image))
}
