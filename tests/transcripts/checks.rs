//! What a transcript looks at after a command: requests, calls, files, and what holds for every command.

use std::fs;

use serde_json::Value;

use crate::format::{Case, Command, Directive};
use crate::harness::conversations::texts;
use crate::harness::outcome::Outcome;
use crate::harness::pty::Terminal;
use crate::harness::run::API_KEY;
use crate::harness::server::{Recorded, Server};
use crate::harness::snapshot::Snapshot;
use crate::harness::toolserver::heard;
use crate::keys::{Block, Expectation, Key, Setup};
use crate::matching::{diff, visible};
use crate::servers::{message, method};
use crate::stage::Stage;

/// The last command that was run.
pub struct Run {
    pub outcome: Outcome,
    /// What was saved before it.
    pub before: Snapshot,
}

/// Headers that say nothing about a request, whatever they are.
const IGNORED_HEADERS: &[&str] = &["host", "content-length"];

/// Headers that every request with a body has with this value. They are not shown.
const USUAL_HEADERS: &[(&str, &str)] = &[
    ("accept", "*/*"),
    ("accept-encoding", "identity"),
    ("content-type", "application/json"),
    ("user-agent", concat!("q/", env!("CARGO_PKG_VERSION"))),
];

impl Stage {
    /// Checks what holds for every command: the key is neither printed nor saved, and after exit status 2 nothing was sent or
    /// written. A condition (`--is`) has this status for every failure.
    pub fn check_always(&self, case: &Case, run: &Run) -> Result<(), String> {
        let mut texts = run.output();
        // A case that names the key may have it in what the model says, which is saved as it came.
        if !case.text().contains("<key>") {
            texts.push_str(&self.saved_text());
        }
        if texts.contains(API_KEY) {
            return Err("the key came out".to_owned());
        }
        if run.outcome.status.code() != Some(2) || case.text().contains(" --is ") {
            return Ok(());
        }
        let changes = run.before.changes();
        let sent = self.model.requests().len() - self.requests;
        if changes.is_empty() && sent == 0 {
            return Ok(());
        }
        Err(format!(
            "exit status 2, {sent} requests, and changed: {changes:?}"
        ))
    }

    /// Returns the answer in the JSON of a question as it would be printed. Its usage and sources must be those of the file.
    pub fn answer_of(
        &mut self,
        case: &Case,
        command: &Command,
        outcome: &Outcome,
    ) -> Result<Vec<String>, String> {
        let printed = outcome.stdout_json();
        let Some(answer) = printed["answer"].as_str() else {
            let message = printed["error"]["message"].as_str().unwrap_or_default();
            let first = message.lines().next().unwrap_or_default();
            if first.is_empty() || !outcome.stderr_text().contains(first) {
                return Err(format!("the error is {printed}"));
            }
            let reply = self.last_reply.as_ref().map_or("", |reply| &reply.value);
            let status = reply.split(' ').find_map(|word| word.parse::<u16>().ok());
            if status.is_some_and(|status| printed["error"]["status"] != status) {
                return Err(format!(
                    "the status of the error is not {status:?}: {printed}"
                ));
            }
            // What came before the error is in the file alone.
            return Ok(command.output.stdout.clone());
        };
        let mut expected = self.last_message();
        expected["finish"] = case
            .last(Key::Setup(Setup::Finish))
            .unwrap_or("stop")
            .into();
        for field in ["finish", "usage", "sources"] {
            let [wanted, found] =
                [&expected, &printed].map(|from| format!("{field}: {}", from[field]));
            expect_same(&wanted, &found)?;
        }
        let is_ended = answer.is_empty() || answer.ends_with('\n');
        let end = if is_ended { "" } else { "\n" };
        let answer = visible(format!("{answer}{end}").as_bytes()).join("\n");
        Ok(self.stable(&answer).lines().map(str::to_owned).collect())
    }

    /// Checks that what is printed is what is saved, and that no file is touched where nothing is printed, unless the case says
    /// something else.
    pub fn check_saved(
        &mut self,
        case: &Case,
        command: &Command,
        run: &Run,
        stdout: &[String],
    ) -> Result<(), String> {
        let is_code = command.script.contains(" -x");
        if is_code
            || case.has(Key::Expectation(Expectation::Saved))
            || case.has(Key::Expectation(Expectation::Current))
        {
            return Ok(());
        }
        let printed = stdout.join("\n");
        if printed.is_empty() {
            return expect_same("", &run.before.changes().join("\n"));
        }
        let saved = self.last_message();
        let content = saved["content"].as_str().unwrap_or_default();
        let text = visible(content.trim_end_matches('\n').as_bytes()).join("\n");
        let text = self.stable(text.trim_end_matches('␄'));
        expect_same(&text, printed.trim_end_matches('\n'))
    }

    /// Returns the last message of the current conversation.
    fn last_message(&self) -> Value {
        let current = self.sandbox.current();
        let last = current["messages"].as_array().and_then(|all| all.last());
        last.cloned().unwrap_or_default()
    }

    /// Returns all files of conversations as one text.
    fn saved_text(&self) -> String {
        let mut text = String::new();
        for name in self.sandbox.session_files() {
            if self.sandbox.sessions().join(&name).is_file() {
                text.push_str(&String::from_utf8_lossy(&self.sandbox.read_bytes(&name)));
            }
        }
        text
    }

    /// Checks that what came is what a directive says. The error is the difference.
    pub fn check(
        &mut self,
        check: Expectation,
        directive: &Directive,
        run: &Run,
    ) -> Result<(), String> {
        let value = directive.value.as_str();
        let count = |count: usize| count.to_string();
        let came = match check {
            Expectation::Sent => return expect_part(&self.model.last_request().text(), value),
            Expectation::Unsent => return expect_no_part(&self.model.last_request().text(), value),
            Expectation::Unsaved => return expect_no_part(&self.saved_text(), value),
            Expectation::Lacks => return expect_no_part(&run.output(), value),
            Expectation::Unchanged => return expect_same("", &run.before.changes().join("\n")),
            Expectation::Current if value == "none" => {
                return expect_same("", &self.sandbox.session_files().join("\n"));
            }
            Expectation::Current => return expect_fields(&[self.sandbox.current()], value),
            Expectation::Saved => return expect_fields(&[self.last_message()], value),
            Expectation::Got => return expect_fields(&self.heard(), value),
            Expectation::Prompt => {
                let text = directive.text();
                let expected = value.replace("\\n", "\n") + text.trim_end_matches('\n');
                let (_, mut messages) = self.variant.dialect.sent(&self.model.last_request());
                return expect_same(&expected, &messages.pop().expect("a message").1);
            }
            Expectation::Offered => {
                let body = self.model.last_request().json();
                let names = self.variant.dialect.offered(&body);
                (if names.is_empty() {
                    vec!["none".to_owned()]
                } else {
                    names
                })
                .join(", ")
            }
            Expectation::Requests => count(self.model.requests().len()),
            Expectation::Ran => {
                let heard = self.heard();
                let calls = heard
                    .iter()
                    .filter(|message| method(message) == "tools/call");
                count(calls.count())
            }
            Expectation::Heard => {
                let methods: Vec<String> = self.heard().iter().map(method).collect();
                methods.join(", ")
            }
            Expectation::Texts => texts(&self.sandbox.current())
                .join(" | ")
                .replace('\n', "\\n"),
        };
        expect_same(value, &came)
    }

    /// Returns the lines of a check whose block is what came.
    pub fn shown(&mut self, shown: Block) -> Vec<String> {
        let lines = match shown {
            Block::Calls => self.calls(),
            Block::Screen => {
                let screen = self.terminal.take().map(Terminal::screen);
                let text = screen.expect("@stdin terminal").join("\n");
                text.lines().map(str::to_owned).collect()
            }
            Block::Request => match self.model.requests().last() {
                Some(request) => request_lines(request),
                None => vec!["none".to_owned()],
            },
            Block::Asked => self.newest().iter().map(addressed).collect(),
            Block::Told => {
                let mut requests = self.newest();
                if let Some(site) = &self.site {
                    requests = messages_to(site);
                }
                requests.iter().map(addressed).collect()
            }
            Block::Files => {
                let files = self.sandbox.all_files();
                files.iter().map(|name| self.file_line(name)).collect()
            }
        };
        lines.iter().map(|line| self.stable(line)).collect()
    }

    /// The requests of the last command.
    pub fn newest(&self) -> Vec<Recorded> {
        self.model.requests().split_off(self.requests)
    }

    /// A file of a conversation: where a link leads, or what was said.
    fn file_line(&self, name: &str) -> String {
        if let Some(target) = self.sandbox.target(name) {
            return format!("{name} -> {target}");
        }
        let path = self.sandbox.sessions().join(name);
        if path.is_dir() {
            return format!("{name}/");
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let Ok(conversation) = serde_json::from_slice::<Value>(&bytes) else {
            return format!("{name}: {} bytes", bytes.len());
        };
        let messages = conversation["messages"].as_array().into_iter().flatten();
        let said = messages.map(|message| {
            let is_interrupted = message["interrupted"] == true;
            let mark = if is_interrupted { " (interrupted)" } else { "" };
            in_a_line(&message["content"]) + mark
        });
        let said: Vec<String> = said.collect();
        format!("{name}: {}", said.join(" | "))
    }

    /// What the tool server got: messages, and an object with the method of any other request.
    fn heard(&self) -> Vec<Value> {
        match &self.site {
            Some(site) => messages_to(site).iter().map(message).collect(),
            None => heard(&self.sandbox, "db"),
        }
    }

    /// The calls of the last answer, a line each: name, arguments and result.
    fn calls(&mut self) -> Vec<String> {
        let last = self.last_message();
        let steps = last["steps"].as_array().into_iter().flatten();
        let calls = steps.flat_map(|step| step["calls"].as_array().into_iter().flatten());
        let line = |call: &Value| {
            let name = call["name"].as_str().unwrap_or_default();
            let result = in_a_line(&call["result"]);
            let failed = if call["error"] == true {
                "failed: "
            } else {
                ""
            };
            let line = format!("{name} {}: {failed}{result}", call["arguments"]);
            shortened(&self.stable(&line))
        };
        calls.map(line).collect()
    }
}

impl Run {
    fn output(&self) -> String {
        self.outcome.stdout_text() + &self.outcome.stderr_text()
    }
}

/// A text with pictures in place of newlines.
fn in_a_line(text: &Value) -> String {
    let lines = visible(text.as_str().unwrap_or("?").as_bytes()).join("␊");
    lines.trim_end_matches('␄').to_owned()
}

/// A request: method and path, what headers say, and the body.
pub fn request_lines(request: &Recorded) -> Vec<String> {
    let mut lines = vec![format!("{} {}", request.method, request.path)];
    for (name, value) in &request.headers {
        let is_usual = USUAL_HEADERS.contains(&(name, value));
        if !is_usual && !IGNORED_HEADERS.contains(&name.as_str()) {
            lines.push(format!("{name}: {value}"));
        }
    }
    for (name, _) in USUAL_HEADERS {
        if request.method == "POST" && request.header(name).is_none() {
            lines.push(format!("no {name}"));
        }
    }
    lines.extend(visible(format!("{}\n", request.text()).as_bytes()));
    lines
}

/// A line with its beginning and its end, where it is a long one.
fn shortened(line: &str) -> String {
    const SHOWN: usize = 200;
    let length = line.chars().count();
    if length <= 2 * SHOWN {
        return line.to_owned();
    }
    let begin: String = line.chars().take(SHOWN).collect();
    let end: String = line.chars().skip(length - SHOWN / 2).collect();
    format!(
        "{begin} … {} characters … {end}",
        length - SHOWN - SHOWN / 2
    )
}

/// Where a request goes, and its headers, but for those of each request to a model.
fn addressed(request: &Recorded) -> String {
    let mut line = format!("{} {}", request.method, request.path);
    let message = message_method(request);
    if let Some(method) = &message {
        line.push_str(&format!(" {method}"));
    }
    for (name, value) in &request.headers {
        let is_usual = USUAL_HEADERS.iter().any(|(usual, _)| usual == name);
        let is_other = ["host", "content-length", "connection"].contains(&name.as_str());
        let is_content = ["accept", "content-type"].contains(&name.as_str());
        let is_own = name == "user-agent" && !value.starts_with("q/");
        if !(is_usual || is_other) || is_own || is_content && message.is_some() {
            line.push_str(&format!("; {name}: {value}"));
        }
    }
    line
}

fn message_method(request: &Recorded) -> Option<String> {
    let message: Value = serde_json::from_slice(&request.body).ok()?;
    message["jsonrpc"].is_string().then(|| method(&message))
}

/// Checks that two texts are the same. The error is the difference.
fn expect_same(expected: &str, came: &str) -> Result<(), String> {
    if expected == came {
        return Ok(());
    }
    Err(diff(&format!("{expected}\n"), &format!("{came}\n")))
}

/// Checks that a text has a part.
fn expect_part(text: &str, part: &str) -> Result<(), String> {
    let is_there = text.contains(part);
    is_there
        .then_some(())
        .ok_or_else(|| diff(&format!("{part}\n"), &format!("{text}\n")))
}

/// Checks that a text does not have a part.
fn expect_no_part(text: &str, part: &str) -> Result<(), String> {
    let is_there = text.contains(part);
    (!is_there).then_some(()).ok_or_else(|| text.to_owned())
}

/// Checks that one of these values has all fields that are expected, and lacks those that are null. The error is the difference.
fn expect_fields(found: &[Value], expected: &str) -> Result<(), String> {
    let expected: Value = serde_json::from_str(expected).expect("JSON");
    let parts: Vec<Value> = found
        .iter()
        .map(|one| fields_as_found(one, &expected))
        .collect();
    if parts.contains(&expected) {
        return Ok(());
    }
    let mut lines = String::new();
    for part in parts {
        lines.push_str(&format!("{part:#}\n"));
    }
    Err(diff(&format!("{expected:#}\n"), &lines))
}

/// Returns the fields that are expected, as they were found.
fn fields_as_found(found: &Value, expected: &Value) -> Value {
    match (expected, found) {
        (Value::Object(fields), _) => {
            let field = |(name, value): (&String, &Value)| {
                (name.clone(), fields_as_found(&found[name], value))
            };
            fields.iter().map(field).collect()
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = found.iter().zip(expected);
            pairs
                .map(|(found, expected)| fields_as_found(found, expected))
                .collect()
        }
        _ => found.clone(),
    }
}

/// Returns the requests to a tool server without that for the stream of its own requests, which q opens at any time.
fn messages_to(site: &Server) -> Vec<Recorded> {
    let mut requests = site.requests();
    requests.retain(|request| request.method != "GET");
    requests
}
