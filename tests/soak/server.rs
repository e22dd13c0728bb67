//! A server on the loopback that speaks Anthropic's messages API in event streams, and remembers what was sent with each question.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::dialect::data;
use crate::harness::server::{self, Recorded, Reply};
use crate::image;
use crate::question::{IN_ROLE, Question, WITH_IMAGE};
use crate::run::Run;
use crate::{role, toolserver};

/// How long an answer is held back at most.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait between two looks at a run that has not asked yet.
const POLL: Duration = Duration::from_millis(10);

pub struct Server {
    pub address: SocketAddr,
    exchanges: Arc<Exchanges>,
    /// Held only to be dropped.
    _server: server::Server,
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
    pub fn start() -> Server {
        let exchanges = Arc::new(Exchanges::default());
        let known = Arc::clone(&exchanges);
        let server = server::Server::forgetful(move |request| reply(request, &known));
        Server {
            address: server.address(),
            exchanges,
            _server: server,
        }
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
    pub fn wait_for_answer(&self, id: u64, timeout: Duration) -> bool {
        self.exchanges
            .wait(id, timeout, |exchange| exchange.answered)
    }

    /// Returns once a tool is being called, or after a while.
    pub fn wait_for_call(&self, id: u64, timeout: Duration) {
        self.exchanges.wait(id, timeout, |exchange| exchange.called);
    }

    /// What came with the question, if it has arrived.
    pub fn request(&self, id: u64) -> Option<Request> {
        let exchanges = self.exchanges.lock();
        let exchange = exchanges.get(&id);
        exchange.and_then(|exchange| exchange.request.clone())
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

    fn wait(&self, id: u64, timeout: Duration, reached: impl Fn(&Exchange) -> bool) -> bool {
        let waiting = |known: &mut HashMap<u64, Exchange>| !known.get(&id).is_some_and(&reached);
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// The reply to a question, to what its tool said, or to what its search found.
fn reply(request: &Recorded, exchanges: &Arc<Exchanges>) -> Reply {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        return Reply::new(400);
    };
    let Some((question, request)) = read_prompt(&body) else {
        return Reply::new(400);
    };
    let id = question.id;
    let tool = offered(&body, "input_schema").filter(|_| asks(&body["messages"]));
    let Some(tool) = tool else {
        exchanges.change(id, |exchange| exchange.request = Some(request));
        exchanges.wait(id, TIMEOUT, |exchange| !exchange.held);
        return answer(&body, &question, exchanges);
    };
    exchanges.change(id, |exchange| exchange.called = true);
    let name = &tool["name"];
    let call = json!({"type": "tool_use", "id": "call00001", "name": name, "input": toolserver::arguments()});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": call});
    end(stream().piece(data(&start)), "tool_use")
}

/// The answer in pieces. With a search that pauses, half of it, and the other half to the next request.
fn answer(body: &Value, question: &Question, exchanges: &Arc<Exchanges>) -> Reply {
    let searches = offered(body, "max_uses").is_some();
    let last = body["messages"].as_array().and_then(|all| all.last());
    let is_continued = last.is_some_and(|last| last["role"] == "assistant");
    let pauses = searches && question.pauses() && !is_continued;
    let half = |count: usize| match (pauses, is_continued) {
        (true, _) => 0..count / 2,
        (_, true) => count / 2..count,
        _ => 0..count,
    };
    let text = json!({"type": "text", "text": ""});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": text});
    let mut reply = stream().piece(data(&start));
    let range = half(question.pieces as usize);
    let pause = question.pause();
    let pieces = question.pieces().skip(range.start).take(range.len());
    for (number, piece) in pieces.enumerate() {
        if number > 0 {
            reply = reply.then(move || thread::sleep(pause));
        }
        let delta = json!({"type": "text_delta", "text": piece});
        let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        reply = reply.piece(data(&event));
    }
    let sources = question.sources();
    for source in sources[half(sources.len())].iter().filter(|_| searches) {
        let delta = json!({"type": "citations_delta", "citation": source});
        let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        reply = reply.piece(data(&event));
    }
    if pauses {
        let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "it"}});
        let event = json!({"type": "content_block_start", "index": 1, "content_block": search});
        return end(reply.piece(data(&event)), "pause_turn");
    }
    let exchanges = Arc::clone(exchanges);
    let id = question.id;
    let reply = reply.then(move || exchanges.change(id, |exchange| exchange.answered = true));
    end(reply, "end_turn")
}

fn stream() -> Reply {
    Reply::sse([""; 0])
}

/// The end of a reply.
fn end(reply: Reply, reason: &str) -> Reply {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    let stop = json!({"type": "message_stop"});
    reply.piece(data(&delta)).piece(data(&stop))
}

/// The last tool that is offered and has this field.
fn offered<'a>(body: &'a Value, field: &str) -> Option<&'a Value> {
    let mut tools = body["tools"].as_array()?.iter();
    tools.rfind(|tool| tool.get(field).is_some())
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
        let (role, by) = (&body["system"], &body["model"]);
        request.foreign = Some(format!("the role was {role} of {by}"));
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
