//! What a transcript looks at after a command: requests, calls, files, and what holds for every command.

use std::fs;

use serde_json::Value;

use crate::compare::{diff, matches, resolved, visible};
use crate::format::{Case, Command, Directive, Output};
use crate::harness::fixtures::{Snapshot, texts};
use crate::harness::pty::Terminal;
use crate::harness::sandbox::{API_KEY, Outcome};
use crate::harness::server::Recorded;
use crate::harness::toolserver::heard;
use crate::servers::{message, method};
use crate::stage::Stage;

/// Directives about the command above them. All others set the stage for what is below them.
pub const CHECKS: &[&str] = &[
    "sent",
    "unsent",
    "prompt",
    "offered",
    "requests",
    "request",
    "asked",
    "told",
    "calls",
    "ran",
    "heard",
    "got",
    "saved",
    "current",
    "texts",
    "files",
    "screen",
    "unchanged",
    "unsaved",
    "lacks",
];

/// Checks whose block is what came, so that it can be written for a person to review.
pub const SHOWN: &[&str] = &["request", "asked", "told", "files", "calls", "screen"];

/// Headers that say nothing about a request, whatever they are.
const OTHER_HEADERS: &[&str] = &["host", "content-length"];

/// Headers that each request with a body has so, and that are not shown.
const USUAL_HEADERS: &[(&str, &str)] = &[
    ("accept", "*/*"),
    ("content-type", "application/json"),
    ("user-agent", concat!("q/", env!("CARGO_PKG_VERSION"))),
];

impl Stage {
    /// What holds for every command: the key comes out nowhere, and after 2 nothing was sent or written.
    pub fn check_always(
        &self,
        case: &Case,
        command: &Command,
        outcome: &Outcome,
        before: &Snapshot,
    ) -> Result<(), String> {
        let mut output = outcome.stdout_text() + &outcome.stderr_text();
        // A case that names the key may have it in what the model says, which is saved as it came.
        if !case.text().contains("<key>") {
            output.push_str(&self.saved_text());
        }
        if output.contains(API_KEY) {
            return Err(format!("$ {}: the key came out", command.script));
        }
        if outcome.status.code() != Some(2) {
            return Ok(());
        }
        let changes = before.changes();
        if !changes.is_empty() {
            return Err(format!(
                "$ {}: exit status 2, and files changed: {changes:?}",
                command.script
            ));
        }
        let sent = self.model.requests().len() - self.requests;
        if sent > 0 {
            return Err(format!(
                "$ {}: exit status 2, and {sent} requests",
                command.script
            ));
        }
        Ok(())
    }

    /// What the JSON of a question says: the answer as it would be printed. Its usage and sources are those of the file.
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
        let finish = case.last("finish").unwrap_or("stop");
        if printed["finish"] != finish {
            return Err(format!("the finish is not {finish}: {printed}"));
        }
        let saved = self.last_message();
        for field in ["usage", "sources"] {
            if printed.get(field).unwrap_or(&Value::Null) != &saved[field] {
                return Err(format!(
                    "{field} differs: {printed}\nand in the file: {saved}"
                ));
            }
        }
        let end = if answer.is_empty() || answer.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let answer = visible(format!("{answer}{end}").as_bytes()).join("\n");
        Ok(self.stable(&answer).lines().map(str::to_owned).collect())
    }

    /// What is printed is what is saved, and where nothing is printed, nothing is, unless the case says something else.
    pub fn check_saved(
        &mut self,
        case: &Case,
        command: &Command,
        came: &Output,
    ) -> Result<(), String> {
        let is_code = command.script.contains(" -x");
        if is_code || case.has("saved") || case.has("current") {
            return Ok(());
        }
        if came.stdout.is_empty() && !case.has("talked") {
            let files = self.sandbox.session_files();
            return if files.is_empty() {
                Ok(())
            } else {
                Err(format!("nothing was printed, and saved was {files:?}"))
            };
        }
        let saved = self.last_message();
        let content = saved["content"].as_str().unwrap_or_default();
        let text = visible(content.trim_end_matches('\n').as_bytes()).join("\n");
        let text = self.stable(text.trim_end_matches('␄'));
        let printed = came.stdout.join("\n");
        if !came.stdout.is_empty() && text != printed.trim_end_matches('\n') {
            return Err(format!(
                "printed is not what was saved:\n{}",
                diff(&text, &printed)
            ));
        }
        Ok(())
    }

    /// The last message of the current conversation.
    fn last_message(&self) -> Value {
        let current = self.sandbox.current();
        let last = current["messages"].as_array().and_then(|all| all.last());
        last.cloned().unwrap_or_default()
    }

    /// All files of conversations, as one text.
    fn saved_text(&self) -> String {
        let mut text = String::new();
        for name in self.sandbox.session_files() {
            if self.sandbox.sessions().join(&name).is_file() {
                text.push_str(&String::from_utf8_lossy(&self.sandbox.read_bytes(&name)));
            }
        }
        text
    }

    pub fn check(
        &mut self,
        directive: &Directive,
        outcome: &Outcome,
        before: &Snapshot,
    ) -> Result<(), String> {
        let value = directive.value.as_str();
        let wrong = |what: String| Err(format!("@{} {value}\n{what}", directive.key));
        match directive.key.as_str() {
            "lacks" => {
                let output = outcome.stdout_text() + &outcome.stderr_text();
                if output.contains(value) {
                    return wrong(output);
                }
            }
            "unsaved" => {
                let saved = self.saved_text();
                if saved.contains(value) {
                    return wrong(saved);
                }
            }
            "unchanged" => {
                let changes = before.changes();
                if !changes.is_empty() {
                    return wrong(format!("{changes:#?}"));
                }
            }
            "sent" | "unsent" => {
                let request = self.model.last_request();
                let sent = request.text();
                if sent.contains(value) != (directive.key == "sent") {
                    return wrong(sent);
                }
            }
            "prompt" => {
                let (_, messages) = self.variant.dialect.sent(&self.model.last_request());
                let last = &messages.last().expect("a message").1;
                let expected = if directive.block.is_empty() {
                    value.replace("\\n", "\n")
                } else {
                    directive.text().trim_end_matches('\n').to_owned()
                };
                if *last != expected {
                    return wrong(diff(&expected, last));
                }
            }
            "offered" => {
                let offered = self
                    .variant
                    .dialect
                    .offered(&self.model.last_request().json());
                let offered = offered.join(", ");
                let offered = if offered.is_empty() { "none" } else { &offered };
                if offered != value {
                    return wrong(offered.to_owned());
                }
            }
            "requests" => {
                let count = self.model.requests().len();
                if count.to_string() != value {
                    return wrong(format!("there were {count}"));
                }
            }
            "ran" => {
                let calls = self
                    .heard()
                    .into_iter()
                    .filter(|message| method(message) == "tools/call");
                let count = calls.count();
                if count.to_string() != value {
                    return wrong(format!("there were {count}"));
                }
            }
            "heard" => {
                let methods: Vec<String> = self.heard().iter().map(method).collect();
                let methods = methods.join(", ");
                if methods != value {
                    return wrong(methods);
                }
            }
            "got" => {
                let heard = self.heard();
                let expected = parsed(value);
                if !heard.iter().any(|message| fits(message, &expected)) {
                    return wrong(format!("{heard:#?}"));
                }
            }
            "current" if value == "none" => {
                let files = self.sandbox.session_files();
                if !files.is_empty() {
                    return wrong(format!("{files:?}"));
                }
            }
            "current" => {
                let current = self.sandbox.current();
                if !fits(&current, &parsed(value)) {
                    return wrong(format!("{current:#}"));
                }
            }
            "saved" => {
                let saved = self.last_message();
                if !fits(&saved, &parsed(value)) {
                    return wrong(format!("{saved:#}"));
                }
            }
            "texts" => {
                let texts = texts(&self.sandbox.current())
                    .join(" | ")
                    .replace('\n', "\\n");
                if texts != value {
                    return wrong(texts);
                }
            }
            shown => {
                let lines = self.shown(shown);
                if !matches(&directive.block, &lines) {
                    let expected = resolved(&directive.block, &lines).join("\n") + "\n";
                    return wrong(diff(&expected, &(lines.join("\n") + "\n")));
                }
            }
        }
        Ok(())
    }

    /// The lines of a check whose block is what came.
    pub fn shown(&mut self, key: &str) -> Vec<String> {
        if key == "calls" {
            return self.calls();
        }
        if key == "screen" {
            let screen = self.terminal.take().map(Terminal::screen);
            let screen = self.stable(&screen.expect("@stdin terminal").join("\n"));
            return screen.lines().map(str::to_owned).collect();
        }
        if key == "request" {
            let requests = self.model.requests();
            return match requests.last() {
                Some(request) => self.request_lines(request),
                None => vec!["none".to_owned()],
            };
        }
        let mut lines = Vec::new();
        if key == "asked" || key == "told" {
            let requests = match &self.site {
                Some(site) if key == "told" => site.requests(),
                _ => self.model.requests().split_off(self.requests),
            };
            for request in requests {
                lines.push(self.stable(&addressed(&request)));
            }
            return lines;
        }
        for name in self.sandbox.all_files() {
            let line = self.file_line(&name);
            lines.push(self.stable(&line));
        }
        lines
    }

    /// A request: method and path, what headers say, and the body.
    pub fn request_lines(&mut self, request: &Recorded) -> Vec<String> {
        let mut lines = vec![format!("{} {}", request.method, request.path)];
        for (name, value) in &request.headers {
            let is_usual = USUAL_HEADERS.contains(&(name, value));
            if !is_usual && !OTHER_HEADERS.contains(&name.as_str()) {
                lines.push(format!("{name}: {value}"));
            }
        }
        for (name, _) in USUAL_HEADERS {
            if request.method == "POST" && request.header(name).is_none() {
                lines.push(format!("no {name}"));
            }
        }
        lines.extend(visible(format!("{}\n", request.text()).as_bytes()));
        let mut stable = Vec::new();
        for line in lines {
            stable.push(self.stable(&line));
        }
        stable
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
        let mut said = Vec::new();
        for message in conversation["messages"].as_array().into_iter().flatten() {
            let mut text = visible(message["content"].as_str().unwrap_or("?").as_bytes()).join("␊");
            text = text.trim_end_matches('␄').to_owned();
            if message["interrupted"] == true {
                text.push_str(" (interrupted)");
            }
            said.push(text);
        }
        format!("{name}: {}", said.join(" | "))
    }

    /// What the tool server got: messages, and an object with the method of any other request.
    fn heard(&self) -> Vec<Value> {
        match &self.site {
            Some(site) => site.requests().iter().map(message).collect(),
            None => heard(&self.sandbox, "db"),
        }
    }

    /// The calls of the last answer, a line each: name, arguments and result.
    fn calls(&mut self) -> Vec<String> {
        let current = self.sandbox.current();
        let last = current["messages"].as_array().and_then(|all| all.last());
        let mut lines = Vec::new();
        for step in last
            .and_then(|last| last["steps"].as_array())
            .into_iter()
            .flatten()
        {
            for call in step["calls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().unwrap_or_default();
                let result = call["result"].as_str().unwrap_or_default();
                let result = visible(result.as_bytes()).join("␊");
                let failed = if call["error"] == true {
                    "failed: "
                } else {
                    ""
                };
                let line = format!(
                    "{name} {}: {failed}{}",
                    call["arguments"],
                    result.trim_end_matches('␄')
                );
                lines.push(shortened(&self.stable(&line)));
            }
        }
        lines
    }
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
        let is_other =
            ["host", "content-length", "accept-encoding", "connection"].contains(&name.as_str());
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

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether all fields of `expected` are in `found`, and those that are null are not.
fn fits(found: &Value, expected: &Value) -> bool {
    match (expected, found) {
        (Value::Object(fields), _) => fields.iter().all(|(name, value)| fits(&found[name], value)),
        (Value::Array(expected), Value::Array(found)) => {
            let mut pairs = found.iter().zip(expected);
            found.len() == expected.len() && pairs.all(|(found, expected)| fits(found, expected))
        }
        _ => found == expected,
    }
}
