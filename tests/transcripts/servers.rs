//! The servers of a stage: of models, and of tools over HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::dialect::Dialect;
use crate::harness::server::{Recorded, Reply, Server};
use crate::harness::toolserver;

/// What the servers of a stage answer.
pub struct Script {
    /// The next answers of the model.
    pub next: VecDeque<Reply>,
    /// What it answers once there are none.
    pub answer: String,
    pub list: Reply,
    /// The pages of the list after the first one.
    pub pages: VecDeque<Reply>,
    /// As a proxy it lets q through to itself, unless a case says something else.
    pub tunnel: Reply,
    /// What the tool server over HTTP answers to these methods instead of what it would.
    pub refusals: Vec<(String, Reply)>,
}

pub type Shared = Arc<Mutex<Script>>;

pub fn model_server(dialect: &'static Dialect, script: &Shared) -> Server {
    let script = Arc::clone(script);
    Server::start(move |request, earlier| {
        let mut script = script.lock().expect("a script");
        match request.method.as_str() {
            "GET" if asks_for_page(&request.path) => {
                let page = script.pages.pop_front();
                return page.unwrap_or_else(|| script.list.clone());
            }
            "GET" => return script.list.clone(),
            "CONNECT" => return script.tunnel.clone(),
            _ => {}
        }
        let next = script.next.pop_front();
        next.unwrap_or_else(|| {
            let count = (earlier + 1).to_string();
            let answer = script.answer.replace("<count>", &count);
            let dialect = dialect_of(&request.path).unwrap_or(dialect);
            (dialect.reply)(request, &answer)
        })
    })
}

/// Whether a request for the list of models asks for another page than the first.
fn asks_for_page(path: &str) -> bool {
    let parameters = ["after=", "after_id=", "pageToken="];
    parameters.iter().any(|parameter| path.contains(parameter))
}

/// The API that has questions at this path.
pub fn dialect_of(path: &str) -> Option<&'static Dialect> {
    let paths = [
        ("/chat/completions", "openai"),
        ("/v1/messages", "anthropic"),
        ("/v1beta/", "gemini"),
        ("/responses", "responses"),
    ];
    let found = paths.iter().find(|(part, _)| path.contains(part));
    found.map(|(_, name)| Dialect::named(name))
}

pub fn tool_site(mode: &str, script: &Shared) -> Server {
    let script = Arc::clone(script);
    toolserver::site(mode, move |request| {
        let refusals = &mut script.lock().expect("a script").refusals;
        let method = method(&message(request));
        let fits = |name: &str| name.trim_end_matches('*') == method || name == "*";
        let at = refusals.iter().position(|(name, _)| fits(name))?;
        if refusals[at].0.ends_with('*') {
            return Some(refusals[at].1.clone());
        }
        Some(refusals.remove(at).1)
    })
}

/// Models as a server lists them, in the form of any API: names, and the time when each was made, if it says so.
pub fn listed(models: &str) -> Reply {
    let mut list = Vec::new();
    let mut names = Vec::new();
    for text in models.split(", ").filter(|text| !text.is_empty()) {
        list.push(match text.split_once(' ') {
            Some((id, created)) => {
                json!({"id": id, "created": created.parse::<u64>().expect("a time")})
            }
            None => json!({ "id": text }),
        });
        names.push(json!({ "name": text }));
    }
    Reply::json(200, json!({"data": list, "models": names}))
}

pub fn method(message: &Value) -> String {
    if let Some(method) = message["method"].as_str() {
        return method.to_owned();
    }
    let is_end = message.get("end").is_some();
    (if is_end { "end" } else { "an answer" }).to_owned()
}

/// What a request to a tool server says: its message, and of any other request the method.
pub fn message(request: &Recorded) -> Value {
    if request.method == "POST" {
        return request.json();
    }
    json!({"method": request.method})
}
