//! A server on the loopback that speaks Anthropic's messages API in event streams, and remembers what was sent with each question.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http;
use crate::image;
use crate::question::{IN_ROLE, Question, WITH_IMAGE};
use crate::run::Run;
use crate::{role, toolserver};

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
    /// The model calls a tool.
    called: bool,
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
        self.exchanges
            .wait(id, patience, |exchange| exchange.answered)
    }

    /// Returns once a tool is being called, or after a while.
    pub fn wait_for_call(&self, id: u64, patience: Duration) {
        self.exchanges
            .wait(id, patience, |exchange| exchange.called);
    }

    /// What came with the question, if it has arrived.
    pub fn request(&self, id: u64) -> Option<Request> {
        self.exchanges
            .lock()
            .get(&id)
            .and_then(|exchange| exchange.request.clone())
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
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), patience, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// One request, one reply, and the end.
fn serve(stream: TcpStream, exchanges: &Exchanges) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let body: Value = serde_json::from_slice(&http::read_body(&stream)?)?;
    let (question, request) = read_prompt(&body).ok_or(io::ErrorKind::InvalidData)?;
    let (id, is_first) = (question.id, asks(&body["messages"]));
    let tool = offered(&body, "input_schema").filter(|_| is_first);
    if tool.is_none() {
        exchanges.change(id, |exchange| exchange.request = Some(request));
        exchanges.wait(id, PATIENCE, |exchange| !exchange.held);
    }
    let mut stream = stream;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    let mut send = |event: Value| stream.write_all(format!("data: {event}\n\n").as_bytes());
    if let Some(tool) = tool {
        exchanges.change(id, |exchange| exchange.called = true);
        let call = json!({"type": "tool_use", "id": "call00001", "name": tool["name"], "input": toolserver::arguments()});
        send(json!({"type": "content_block_start", "index": 0, "content_block": call}))?;
        return end(&mut send, "tool_use");
    }
    let searches = offered(&body, "max_uses").is_some();
    let is_continued = body["messages"]
        .as_array()
        .is_some_and(|all| all.last().is_some_and(|last| last["role"] == "assistant"));
    let pauses = searches && question.pauses() && !is_continued;
    let half = |count: usize| match (pauses, is_continued) {
        (true, _) => 0..count / 2,
        (_, true) => count / 2..count,
        _ => 0..count,
    };
    send(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    )?;
    let range = half(question.pieces as usize);
    for (number, piece) in question
        .pieces()
        .skip(range.start)
        .take(range.len())
        .enumerate()
    {
        if number > 0 {
            thread::sleep(question.pause());
        }
        send(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
        )?;
    }
    let sources = question.sources();
    for source in sources[half(sources.len())].iter().filter(|_| searches) {
        let delta = json!({"type": "citations_delta", "citation": source});
        send(json!({"type": "content_block_delta", "index": 0, "delta": delta}))?;
    }
    if pauses {
        let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "it"}});
        send(json!({"type": "content_block_start", "index": 1, "content_block": search}))?;
        return end(&mut send, "pause_turn");
    }
    exchanges.change(id, |exchange| exchange.answered = true);
    end(&mut send, "end_turn")
}

/// The end of a reply.
fn end(send: &mut impl FnMut(Value) -> io::Result<()>, reason: &str) -> io::Result<()> {
    send(json!({"type": "message_delta", "delta": {"stop_reason": reason}}))?;
    send(json!({"type": "message_stop"}))
}

/// The last tool that is offered and has this field.
fn offered<'a>(body: &'a Value, field: &str) -> Option<&'a Value> {
    body["tools"]
        .as_array()?
        .iter()
        .rfind(|tool| tool.get(field).is_some())
}

/// Whether the last message is the question itself, not what has come of it so far.
fn asks(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| last["role"] == "user" && text_of(&last["content"]).is_some())
}

/// The question, and what came before it: pairs of questions and whole answers.
fn read_prompt(body: &Value) -> Option<(Question, Request)> {
    let said = body["messages"].as_array()?.iter();
    // What has come of the question so far has no text of its own.
    let said: Vec<(&str, &str)> = said
        .filter_map(|message| Some((message["role"].as_str()?, text_of(&message["content"])?)))
        .collect();
    let ((_, question), history) = said.split_last()?;
    let mut request = Request::default();
    for pair in history.chunks(2) {
        match pair {
            [("user", asked), ("assistant", answered)] => match Question::parse(asked) {
                // The calls of earlier questions stand before their answers.
                Some(asked) if answered.ends_with(&asked.answer()) => {
                    request.history.push(asked.id)
                }
                _ => {
                    request.foreign =
                        Some(format!("{asked:?} was sent with the answer {answered:?}"))
                }
            },
            other => request.foreign = Some(format!("no pair of question and answer: {other:?}")),
        }
    }
    let in_role = body["system"] == role::SYSTEM
        && (!question.ends_with(IN_ROLE) || body["model"] == role::NAME);
    if said.iter().any(|(_, text)| text.ends_with(IN_ROLE)) && !in_role {
        request.foreign = Some(format!(
            "the role was {} of {}",
            body["system"], body["model"]
        ));
    }
    Some((Question::parse(question)?, request))
}

/// The text of a message; `None` where an image should go with it and does not.
fn text_of(content: &Value) -> Option<&str> {
    let Some(parts) = content.as_array() else {
        return content.as_str().filter(|text| !text.ends_with(WITH_IMAGE));
    };
    let [image, text] = &parts[..] else {
        return None;
    };
    text["text"]
        .as_str()
        .filter(|_| image::is_sent_whole(image))
}
