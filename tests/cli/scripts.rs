//! The scripts in `tests/scripts/`: what somebody types, and what comes of it. `tests/scripts/README.md` explains the lines.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, panic};

use serde_json::{Value, json};

use crate::fixtures::{
    DIALECTS, Dialect, HOUR, calling, case, failures_of, idle_for, offered, repository_file,
    snapshot, texts, with,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{API_KEY, Outcome, Sandbox};
use crate::server::{Recorded, Reply, Server};
use crate::toolserver::{expect_gone, heard, section, site};

/// The variable that names the scripts to run, by a part of their names.
const ONLY: &str = "CASE";

/// What the model answers once it has made its calls.
const ANSWER: &str = "the answer";

/// Lines that hold for the commands after them.
const SETUP: &[&str] = &[
    "why", "dialect", "over", "models", "answer", "config", "tools", "section", "env", "file",
    "talked", "words", "call", "and", "reply", "error", "site",
];

/// Lines about the command before them.
const CHECKS: &[&str] = &[
    "stdin", "exit", "out", "has", "err", "says", "lacks", "json", "sent", "unsent", "prompt",
    "offered", "requests", "result", "failed", "ran", "heard", "got", "texts", "saved", "current",
    "changes", "unsaved",
];

/// Lines with JSON, whose own escapes stay as they are.
const JSON: &[&str] = &[
    "call", "and", "reply", "site", "json", "sent", "unsent", "got", "saved", "current",
];

type Lines = Vec<(String, String)>;

/// The scripts of a file: a name and lines for each.
fn read(file: &str) -> Vec<(String, Lines)> {
    let text = repository_file(&format!("tests/scripts/{file}.txt"));
    let scripts = text.split("\n=== ").skip(1).map(|script| {
        let (name, lines) = script.split_once('\n').expect("lines after a name");
        let lines = lines.lines().filter(|line| !line.is_empty()).map(|line| {
            match line.strip_prefix("$ ") {
                Some(command) => ("$".to_owned(), command.to_owned()),
                None => {
                    let (key, value) = line
                        .split_once(':')
                        .unwrap_or_else(|| panic!("{name}: {line}"));
                    assert!(
                        SETUP.contains(&key) || CHECKS.contains(&key),
                        "{name}: {key} is no key"
                    );
                    let value = value.trim_start();
                    (
                        key.to_owned(),
                        if JSON.contains(&key) {
                            value.to_owned()
                        } else {
                            plain(value)
                        },
                    )
                }
            }
        });
        (format!("{file}: {name}"), lines.collect::<Lines>())
    });
    scripts
        .filter(|(name, _)| env::var(ONLY).map_or(true, |only| name.contains(&only)))
        .collect()
}

/// Text in which `\n`, `\r` and `\t` stand for what they stand for elsewhere.
fn plain(text: &str) -> String {
    text.replace("\\n", "\n")
        .replace("\\r", "\r")
        .replace("\\t", "\t")
}

/// Plays the scripts of a file, in each dialect and over each way to a tool server that a script asks for.
fn play(file: &str) {
    let scripts = read(file);
    let failed = failures_of(&scripts, |(name, lines)| {
        panic::catch_unwind(|| play_everywhere(name, lines))
            .is_err()
            .then(|| name.clone())
    });
    assert!(
        failed.is_empty(),
        "{} of {} scripts failed, see above: {failed:#?}",
        failed.len(),
        scripts.len()
    );
}

fn play_everywhere(name: &str, lines: &[(String, String)]) {
    let said = |key: &str| {
        lines
            .iter()
            .find(|line| line.0 == key)
            .map(|line| line.1.as_str())
    };
    assert!(said("why").is_some(), "{name}: no why");
    let spoken = said("dialect").unwrap_or("openai");
    for dialect in DIALECTS
        .iter()
        .filter(|one| spoken == "each" || spoken.split(", ").any(|name| name == one.provider))
    {
        for way in ["program", "http"] {
            if [way, "both"].contains(&said("over").unwrap_or("program")) {
                let _case = case((name, dialect.provider, way));
                Stage::new(
                    dialect,
                    (way == "http").then(|| said("tools").unwrap_or_default()),
                )
                .play(lines);
            }
        }
    }
}

/// Where a script is played: a sandbox, a model, and a tool server that is there if it is needed.
struct Stage {
    dialect: &'static Dialect,
    sandbox: Sandbox,
    model: Server,
    /// What the model answers next, before it answers `ANSWER` for good.
    replies: Arc<Mutex<VecDeque<Reply>>>,
    answer: Arc<Mutex<String>>,
    /// The models on its list.
    models: Arc<Mutex<Vec<Value>>>,
    /// The tool server over HTTP, where it is one.
    site: Option<Server>,
    /// What it answers to these methods instead of what it would.
    refusals: Arc<Mutex<Vec<(String, Reply)>>>,
    env: Vec<(String, String)>,
    config: String,
    /// The mode of the tool server `db`, and the lines of its section.
    tools: Option<(String, String)>,
    /// What the model says before its calls, and those of the reply that is being written.
    words: String,
    calls: Vec<(String, Value)>,
    /// How many requests there were before the command.
    requests: usize,
}

impl Stage {
    /// `over_http` is the mode of the tool server that is one over HTTP.
    fn new(dialect: &'static Dialect, over_http: Option<&str>) -> Stage {
        let replies = Arc::<Mutex<VecDeque<Reply>>>::default();
        let answer = Arc::new(Mutex::new(ANSWER.to_owned()));
        let models = Arc::new(Mutex::new(listed("first, second")));
        let model = Server::start({
            let (replies, answer, models) = (
                Arc::clone(&replies),
                Arc::clone(&answer),
                Arc::clone(&models),
            );
            move |request, _| match replies.lock().expect("replies") {
                _ if request.method == "GET" => {
                    Reply::json(200, json!({ "data": *models.lock().expect("models") }))
                }
                mut replies => {
                    let answer = || (dialect.reply)(request, &answer.lock().expect("an answer"));
                    replies.pop_front().unwrap_or_else(answer)
                }
            }
        });
        let refusals = Arc::<Mutex<Vec<(String, Reply)>>>::default();
        let site = over_http.map(|mode| {
            let refusals = Arc::clone(&refusals);
            site(mode, move |request| {
                let mut refusals = refusals.lock().expect("refusals");
                let method = method(&message(request));
                let at = refusals
                    .iter()
                    .position(|(name, _)| name.trim_end_matches('*') == method || name == "*")?;
                Some(if refusals[at].0.ends_with('*') {
                    refusals[at].1.clone()
                } else {
                    refusals.remove(at).1
                })
            })
        });
        Stage {
            dialect,
            sandbox: Sandbox::new(),
            model,
            replies,
            answer,
            models,
            site,
            refusals,
            env: Vec::new(),
            config: String::new(),
            tools: None,
            words: "let me see".to_owned(),
            calls: Vec::new(),
            requests: 0,
        }
    }

    fn play(mut self, lines: &[(String, String)]) {
        let mut at = 0;
        while let Some((key, value)) = lines.get(at) {
            at += 1;
            if key == "$" {
                let checks = lines[at..]
                    .iter()
                    .take_while(|(key, _)| CHECKS.contains(&key.as_str()))
                    .count();
                let _case = case(value);
                self.run(&self.filled(value), &lines[at..at + checks]);
                at += checks;
            } else {
                self.set(key, &self.filled(value));
            }
        }
        if self.sandbox.root().join("db.log").exists() {
            expect_gone(&self.sandbox, "db");
        }
        let unasked = self.replies.lock().expect("replies").len();
        assert_eq!(
            unasked, 0,
            "so many replies of the model were not asked for"
        );
        let unheard: Vec<_> = self
            .refusals
            .lock()
            .expect("refusals")
            .iter()
            .map(|refusal| refusal.0.clone())
            .collect();
        assert!(
            unheard.iter().all(|method| method.ends_with('*')),
            "not asked for: {unheard:?}"
        );
    }

    /// The text with what only this run knows.
    fn filled(&self, text: &str) -> String {
        let path = |path: PathBuf| path.display().to_string();
        let known = [
            ("<server>", self.model.url()),
            (
                "<site>",
                self.site.as_ref().map_or(String::new(), Server::url),
            ),
            ("<home>", path(self.sandbox.home())),
            ("<config>", path(self.sandbox.config_file())),
            ("<key>", API_KEY.to_owned()),
        ];
        known.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }

    fn set(&mut self, key: &str, value: &str) {
        let pair = |sign: char| {
            value
                .split_once(sign)
                .map(|(one, other)| (one.to_owned(), other.to_owned()))
        };
        match key {
            "why" | "dialect" | "over" => {}
            "answer" => value.clone_into(&mut self.answer.lock().expect("an answer")),
            "models" => *self.models.lock().expect("models") = listed(value),
            "words" => value.clone_into(&mut self.words),
            "config" => self.config = value.to_owned() + "\n",
            "tools" => self.tools = Some((value.to_owned(), String::new())),
            "section" => {
                let (_, section) = self.tools.as_mut().expect("tools before their section");
                section.push_str(&format!("{value}\n"));
            }
            "env" => self.env.push(pair('=').expect("a variable")),
            "file" => {
                let (name, bytes) = pair('=').expect("a file");
                self.sandbox.write_home(&name, bytes);
            }
            "talked" => {
                let conversation = idle_for(HOUR, &value.split(" | ").collect::<Vec<_>>());
                self.sandbox
                    .write_current(&with(conversation, "provider", self.dialect.provider));
            }
            "call" | "and" => {
                if key == "call" {
                    self.calls.clear();
                } else {
                    self.replies.lock().expect("replies").pop_back();
                }
                let (name, arguments) = value.split_once(' ').unwrap_or((value, "{}"));
                let arguments = serde_json::from_str(arguments).expect("arguments");
                self.calls.push((name.to_owned(), arguments));
                let ids: Vec<String> = (0..self.calls.len())
                    .map(|number| format!("call{number:05}"))
                    .collect();
                let calls = ids.iter().zip(&self.calls);
                let calls: Vec<_> = calls
                    .map(|(id, call)| (id.as_str(), call.0.as_str(), call.1.clone()))
                    .collect();
                self.reply(calling(self.dialect, &self.words, &calls));
            }
            "reply" => self.reply(reply(value)),
            "error" => {
                let (status, message) = value.split_once(' ').expect("a status and a message");
                let status = status.parse().expect("a status");
                self.reply(Reply::json(status, self.dialect.error(status, message)));
            }
            "site" => {
                let (method, answer) = value.split_once(' ').expect("a method and a reply");
                self.refusals
                    .lock()
                    .expect("refusals")
                    .push((method.to_owned(), reply(answer)));
            }
            other => panic!("{other} comes before any command"),
        }
    }

    fn reply(&self, reply: Reply) {
        self.replies.lock().expect("replies").push_back(reply);
    }

    /// Runs a command and checks all that is said of it, and what holds for every command.
    fn run(&mut self, command: &str, checks: &[(String, String)]) {
        let tools = self.tools.as_ref().map(|(mode, more)| match &self.site {
            Some(site) => format!("[tools.db]\nurl = \"{}/mcp\"\n{more}", site.url()),
            None => section(&self.sandbox, "db", mode, more),
        });
        self.sandbox
            .config(&(self.config.clone() + tools.as_deref().unwrap_or_default()));
        let q = (self.dialect.env)(self.sandbox.shell(command), &self.model).env("Q_RETRIES", "0");
        let q = self
            .env
            .iter()
            .fold(q, |q, (name, value)| q.env(name, value));
        let checks: Vec<_> = checks
            .iter()
            .map(|(key, value)| (key.as_str(), self.filled(value)))
            .collect();
        let all = |key: &'static str| {
            checks
                .iter()
                .filter(move |check| check.0 == key)
                .map(|check| check.1.as_str())
        };
        let before = snapshot(self.sandbox.state());
        let outcome = match all("stdin").next() {
            Some("open") => q.stdin_open().run(),
            Some("terminal") => q.stdin_from(Terminal::new(WIDE).end()).run(),
            Some(text) => q.stdin(text).run(),
            None => q.run(),
        };
        let says = |keys: &[&'static str]| keys.iter().any(|key| all(key).next().is_some());
        let exit = all("exit")
            .next()
            .map_or(0, |code| code.parse().expect("an exit status"));
        outcome.exit(exit);
        // What is not mentioned holds as well.
        if !says(&["out", "has", "json"]) {
            let answer = self.answer.lock().expect("an answer").clone() + "\n";
            outcome.stdout(if exit == 0 { answer.as_str() } else { "" });
        }
        match exit {
            0 | 3 if !says(&["err", "says"]) => drop(outcome.stderr_is_empty()),
            1 | 2 => {
                let text = outcome.stderr_is_of_q().stderr_text();
                let is_short = text.lines().count() <= 4 || text.contains("usage:");
                outcome.check(is_short, || {
                    "expected one line, and at most three with what to do".to_owned()
                });
            }
            _ => {}
        }
        if exit == 2 || all("changes").any(|what| what == "nothing") {
            before.expect_unchanged();
        }
        if exit == 2 {
            assert_eq!(
                self.model.requests().len(),
                self.requests,
                "a request was sent"
            );
        }
        for (key, value) in &checks {
            self.check(&outcome, key, value);
        }
        self.check_calls(&checks);
        self.requests = self.model.requests().len();
    }

    fn check(&self, outcome: &Outcome, key: &str, value: &str) {
        let line = value.trim_end_matches('\n').to_owned() + "\n";
        match key {
            "out" => drop(outcome.stdout(if value.is_empty() { "" } else { &line })),
            "has" => drop(outcome.stdout_contains(value)),
            "err" => drop(outcome.stderr_contains(value)),
            "says" => drop(outcome.stderr(&line)),
            "lacks" => drop(outcome.stdout_lacks(value).stderr_lacks(value)),
            "unsaved" => {
                let files = self.sandbox.session_files();
                let files: Vec<u8> = files
                    .iter()
                    .flat_map(|name| self.sandbox.read_bytes(name))
                    .collect();
                let files = String::from_utf8_lossy(&files).into_owned();
                outcome.check(!files.contains(value), || format!("{value:?} in a file"));
            }
            "json" => has(&outcome.stdout_json(), &json_of(value)),
            "saved" => has(
                self.sandbox.current()["messages"]
                    .as_array()
                    .and_then(|all| all.last())
                    .expect("a message"),
                &json_of(value),
            ),
            "current" => match value {
                "none" => self.sandbox.expect_no_files(),
                _ => has(&self.sandbox.current(), &json_of(value)),
            },
            "texts" => assert_eq!(texts(&self.sandbox.current()).join(" | "), value),
            "sent" | "unsent" => {
                let sent = self.model.last_request().text();
                outcome.check(sent.contains(value) == (key == "sent"), || {
                    format!("{key} is not {value:?}: {sent}")
                });
            }
            "prompt" => {
                let (_, messages) = self.dialect.sent(&self.model.last_request());
                assert_eq!(messages.last().expect("a message").1, value);
            }
            "offered" => {
                let found = offered(self.dialect, &self.model.last_request().json()).join(", ");
                assert_eq!(if found.is_empty() { "none" } else { &found }, value);
            }
            "requests" => self.model.expect_requests(value.parse().expect("a number")),
            "ran" => {
                let ran = self
                    .heard()
                    .iter()
                    .filter(|message| message["method"] == "tools/call")
                    .count();
                outcome.check(ran.to_string() == value, || {
                    format!("{ran} calls were made")
                });
            }
            "heard" => {
                let heard = self
                    .heard()
                    .iter()
                    .map(method)
                    .collect::<Vec<_>>()
                    .join(", ");
                outcome.check(heard == value, || format!("the tool server heard {heard}"));
            }
            "got" => {
                let heard = self.heard();
                let right = heard.iter().any(|message| fits(message, &json_of(value)));
                outcome.check(right, || format!("the tool server heard {heard:#?}"));
            }
            "stdin" | "exit" | "result" | "failed" | "changes" => {}
            other => panic!("{other} is checked nowhere"),
        }
    }

    /// What the tool server got: messages, and an object with the method of any other request.
    fn heard(&self) -> Vec<Value> {
        match &self.site {
            Some(site) => site.requests().iter().map(message).collect(),
            None => heard(&self.sandbox, "db"),
        }
    }

    /// The calls of the last answer have exactly these results.
    fn check_calls(&self, checks: &[(&str, String)]) {
        let expected: Vec<_> = checks
            .iter()
            .filter(|(key, _)| ["result", "failed"].contains(key))
            .collect();
        if expected.is_empty() {
            return;
        }
        let conversation = self.sandbox.current();
        let answer = conversation["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("an answer");
        let steps = answer["steps"].as_array().expect("calls");
        let calls: Vec<&Value> = steps
            .iter()
            .flat_map(|step| step["calls"].as_array().expect("calls"))
            .collect();
        assert_eq!(calls.len(), expected.len(), "{calls:#?}");
        for (call, (key, value)) in calls.into_iter().zip(expected) {
            let (text, failed) = (
                call["result"].as_str().expect("text"),
                call["error"] == true,
            );
            let part = value
                .strip_prefix('…')
                .and_then(|rest| rest.strip_suffix('…'));
            let right = part.map_or(text == value, |part| text.contains(part));
            assert!(
                right && failed == (*key == "failed"),
                "{key} is not {value:?}: {call}"
            );
        }
    }
}

/// Models as a server lists them: names, and the time when each was made, if it says so.
fn listed(models: &str) -> Vec<Value> {
    let model = |text: &str| match text.split_once(' ') {
        Some((id, created)) => {
            json!({"id": id, "created": created.parse::<u64>().expect("a time")})
        }
        None => json!({ "id": text }),
    };
    models
        .split(", ")
        .filter(|text| !text.is_empty())
        .map(model)
        .collect()
}

/// What a request to a tool server says: its message, and of any other request the method.
fn message(request: &Recorded) -> Value {
    if request.method == "POST" {
        request.json()
    } else {
        json!({"method": request.method})
    }
}

fn method(message: &Value) -> String {
    message["method"]
        .as_str()
        .unwrap_or(if message.get("end").is_some() {
            "end"
        } else {
            "an answer"
        })
        .to_owned()
}

/// A reply as a script has it: a status or what else happens, headers, and a body.
fn reply(text: &str) -> Reply {
    let (kind, mut body) = text.split_once(' ').unwrap_or((text, ""));
    let event = |text: &str| {
        if text.starts_with(['{', '[']) {
            format!("data: {text}\n\n")
        } else {
            format!("{text}\n\n")
        }
    };
    let stream = || {
        Reply::sse(
            body.split(" ++ ")
                .filter(|text| !text.is_empty())
                .map(event),
        )
    };
    match kind {
        "reset" => return Reply::new(200).reset(),
        "hang" => return Reply::raw("").hang(),
        "raw" => return Reply::raw(plain(body)),
        "stream" => return stream(),
        "stream-cut" => return stream().cut(),
        "stream-reset" => return stream().reset(),
        "stream-hang" => return stream().hang(),
        _ => {}
    }
    let mut reply = Reply::new(
        kind.parse()
            .unwrap_or_else(|_| panic!("{text} is no reply")),
    );
    let mut is_json = !body.is_empty();
    while let Some((name, rest)) = body.split_once('=').filter(|(name, _)| {
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    }) {
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once("\" ").expect("another quote"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        reply = reply.header(name, value);
        is_json &= name != "content-type";
        body = rest;
    }
    let reply = if is_json {
        reply.header("content-type", "application/json")
    } else {
        reply
    };
    reply.piece(body)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether all fields of `expected` are in `found`, and those that are null are not.
fn fits(found: &Value, expected: &Value) -> bool {
    match (expected, found) {
        (Value::Object(fields), _) => fields.iter().all(|(name, value)| fits(&found[name], value)),
        (Value::Array(expected), Value::Array(found)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, expected)| fits(found, expected))
        }
        _ => found == expected,
    }
}

#[track_caller]
fn has(found: &Value, expected: &Value) {
    assert!(fits(found, expected), "not {expected} in {found:#}");
}

#[test]
fn tools() {
    play("tools");
}

#[test]
fn remote() {
    play("remote");
}

#[test]
fn commands() {
    play("commands");
}

#[test]
fn shape() {
    play("shape");
}

#[test]
fn attach() {
    play("attach");
}

#[test]
fn requests() {
    play("requests");
}

#[test]
fn network() {
    play("network");
}

#[test]
fn providers() {
    play("providers");
}

#[test]
fn dialects() {
    play("dialects");
}

#[test]
fn reports() {
    play("reports");
}
