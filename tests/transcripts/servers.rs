//! The servers of a stage: of models, and of tools over HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::dialect::Dialect;
use crate::harness::server::{Recorded, Reply, Server};
use crate::harness::toolserver;

/// What the servers of a stage are to answer.
pub struct ServerScript {
    /// The next answers of the model.
    pub next: VecDeque<Reply>,
    /// What the model answers once there are none.
    pub answer: String,
    /// The list of models, or its first page.
    pub list: Reply,
    /// The pages of the list after the first one.
    pub pages: VecDeque<Reply>,
    /// What the server of models answers as a proxy: it lets q through to itself, unless a case says something else.
    pub tunnel: Reply,
    /// What the tool server over HTTP answers to these methods instead of what it would.
    pub refusals: Vec<(String, Reply)>,
}

/// A script that the test changes while servers answer by it.
pub type SharedScript = Arc<Mutex<ServerScript>>;

/// Starts a server of models that answers by a script.
pub fn model_server(dialect: &'static Dialect, script: &SharedScript) -> Server {
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

/// Returns the API that has questions at this path.
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

/// Starts a tool server over HTTP in a mode, which answers by a script where that has something for a method.
pub fn tool_site(mode: &str, script: &SharedScript) -> Server {
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

/// Returns the list of models in the form of all APIs at once. Each is given as its name, and the time when it was made.
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

/// Returns the method of a message to a tool server, or what the message is instead.
pub fn method(message: &Value) -> String {
    if let Some(method) = message["method"].as_str() {
        return method.to_owned();
    }
    let is_end = message.get("end").is_some();
    (if is_end { "end" } else { "an answer" }).to_owned()
}

/// Returns the message of a request to a tool server. For a request without one, it has the method of HTTP.
pub fn message(request: &Recorded) -> Value {
    if request.method == "POST" {
        return request.json();
    }
    json!({"method": request.method})
}
