//! Where a case is played: a sandbox, a server of models, and a tool server that is there if it is needed.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::compare::{Names, bytes_of, diff, matches, resolved, visible};
use crate::format::{Case, Command, Directive, Item, Output};
use crate::harness::dialect::{DIALECTS, Dialect};
use crate::harness::fixtures::{self, HOUR, Snapshot, ago, id_of, idle_for, snapshot, texts, with};
use crate::harness::pty::{Terminal, WIDE};
use crate::harness::sandbox::{API_KEY, Outcome, Q, Sandbox};
use crate::harness::server::{Recorded, Reply, Server};
use crate::harness::toolserver::{self, expect_gone, heard, section};
use crate::replies::{Split, reply};

/// What the model answers once it has made its calls.
const ANSWER: &str = "the answer";

/// Directives about the command above them. All others set the stage for what is below them.
const CHECKS: &[&str] = &[
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
const SHOWN: &[&str] = &["request", "asked", "told", "files", "calls", "screen"];

/// Headers that say nothing about a request, whatever they are.
const OTHER_HEADERS: &[&str] = &["host", "content-length"];

/// Headers that each request with a body has so, and that are not shown.
const USUAL_HEADERS: &[(&str, &str)] = &[
    ("accept", "*/*"),
    ("content-type", "application/json"),
    ("user-agent", concat!("q/", env!("CARGO_PKG_VERSION"))),
];

/// One of the ways in which a case is played.
#[derive(Clone)]
pub struct Variant {
    dialect: &'static Dialect,
    over_http: bool,
    split: Split,
    /// The question is asked with `-j`, and the JSON has what would be printed.
    as_json: bool,
    /// What tells it from the other ones.
    words: Vec<&'static str>,
}

impl Variant {
    /// The ways that a case asks for, by `@dialect`, `@over` and `@splits`.
    pub fn all(case: &Case) -> Vec<Variant> {
        let dialects = case.last("dialect").unwrap_or("openai");
        let over = case.last("over").unwrap_or("program");
        let mut forms = vec![(Split::Whole, false, "")];
        if case.last("splits").is_some() {
            forms = vec![
                (Split::Whole, false, "whole"),
                (Split::Pieces, false, "in pieces"),
                (Split::Bytes, false, "byte by byte"),
            ];
            if case.can_be_json() {
                forms.push((Split::Whole, true, "as JSON"));
            }
        }
        let mut variants = Vec::new();
        for dialect in &DIALECTS {
            if dialects != "each" && !dialects.split(", ").any(|name| name == dialect.provider) {
                continue;
            }
            for way in ["program", "http"] {
                if way != over && over != "both" {
                    continue;
                }
                for (split, as_json, name) in &forms {
                    let mut words = Vec::new();
                    if dialects == "each" || dialects.contains(',') {
                        words.push(dialect.provider);
                    }
                    if over == "both" {
                        words.push(way);
                    }
                    if !name.is_empty() {
                        words.push(name);
                    }
                    variants.push(Variant {
                        dialect,
                        over_http: way == "http",
                        split: *split,
                        as_json: *as_json,
                        words,
                    });
                }
            }
        }
        assert!(!variants.is_empty(), "{}: no dialect", case.full_name());
        variants
    }

    pub fn suffix(&self) -> String {
        if self.words.is_empty() {
            return String::new();
        }
        format!(" [{}]", self.words.join(", "))
    }
}

/// What the model answers for good.
struct Answers {
    question: String,
    list: Reply,
    /// As a proxy it lets q through to itself, unless a case says something else.
    tunnel: Reply,
}

/// Replies that wait for their requests.
type Queue = Arc<Mutex<VecDeque<Reply>>>;

pub struct Stage {
    variant: Variant,
    sandbox: Sandbox,
    model: Server,
    /// What the model answers next.
    replies: Queue,
    answers: Arc<Mutex<Answers>>,
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
    last_reply: Option<Directive>,
    stdin: Option<Directive>,
    /// What the last command had as its standard input, where that was a terminal.
    terminal: Option<Terminal>,
    obeys_modes: bool,
    names: Names,
    /// How many requests there were before the last command.
    requests: usize,
    /// The folder on the path that has q.
    program: PathBuf,
}

impl Stage {
    /// `old` is a program to play with in place of today's.
    pub fn new(case: &Case, variant: &Variant, old: Option<&Path>) -> Stage {
        let sandbox = Sandbox::new();
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_q"));
        program.pop();
        if let Some(old) = old {
            program = sandbox.root().join("bin");
            fs::create_dir(&program).expect("a folder");
            symlink(old, program.join("q")).expect("a link");
        }
        let replies = Queue::default();
        let answers = Arc::new(Mutex::new(Answers {
            question: ANSWER.to_owned(),
            list: listed("first, second"),
            tunnel: Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive(),
        }));
        let model = model_server(variant.dialect, &replies, &answers);
        let refusals = Arc::<Mutex<Vec<(String, Reply)>>>::default();
        let site = variant.over_http.then(|| {
            let mode = case.last("tools").unwrap_or_default();
            tool_site(mode, &refusals)
        });
        let mut stage = Stage {
            variant: variant.clone(),
            sandbox,
            model,
            replies,
            answers,
            site,
            refusals,
            env: Vec::new(),
            config: String::new(),
            tools: None,
            words: "let me see".to_owned(),
            calls: Vec::new(),
            last_reply: None,
            stdin: None,
            terminal: None,
            obeys_modes: false,
            names: Names::default(),
            requests: 0,
            program,
        };
        for directive in &case.shared {
            stage.set(&stage.filled(directive));
        }
        stage
    }

    /// Everything comes as the case has it; else what differs.
    pub fn play(mut self, case: &Case) -> Result<(), String> {
        let mut last = None;
        for item in &case.items {
            match item {
                Item::Other(_) => {}
                Item::Command(command) => {
                    let before = snapshot(self.sandbox.state());
                    let is_first = last.is_none();
                    let as_json = is_first && self.variant.as_json;
                    let outcome = if as_json {
                        self.run(&command.as_json())
                    } else {
                        self.run(command)
                    };
                    let mut came = self.output(&outcome);
                    if as_json {
                        came.stdout = self.answer_of(case, command, &outcome)?;
                    }
                    expect(command, &came)?;
                    self.check_always(command, &outcome, &before)?;
                    if is_first && case.last("splits").is_some() {
                        self.check_saved(case, command, &came)?;
                    }
                    last = Some((outcome, before));
                }
                Item::Directive(directive) if CHECKS.contains(&directive.key.as_str()) => {
                    let Some((outcome, before)) = &last else {
                        return Err(format!("@{} before any command", directive.key));
                    };
                    let filled = self.filled(directive);
                    let is_shown = SHOWN.contains(&directive.key.as_str());
                    let directive = if is_shown { directive } else { &filled };
                    self.check(directive, outcome, before)?;
                }
                Item::Directive(directive) => self.set(&self.filled(directive)),
            }
        }
        self.end()
    }

    /// The case with what came.
    pub fn bless(mut self, case: &Case) -> Result<Case, String> {
        let mut came = case.clone();
        for item in &mut came.items {
            match item {
                Item::Other(_) => {}
                Item::Command(command) => {
                    let outcome = self.run(command);
                    let output = self.output(&outcome);
                    if !command.output.matches(&output) {
                        command.output = output;
                    }
                }
                Item::Directive(directive) if SHOWN.contains(&directive.key.as_str()) => {
                    let lines = self.shown(&directive.key);
                    if !matches(&directive.block, &lines) {
                        directive.block = lines;
                    }
                }
                Item::Directive(directive) if CHECKS.contains(&directive.key.as_str()) => {}
                Item::Directive(directive) => {
                    let filled = self.filled(directive);
                    self.set(&filled);
                }
            }
        }
        Ok(came)
    }

    /// All that can be seen of what the commands of a case did.
    pub fn record(mut self, case: &Case) -> Result<String, String> {
        let mut record = String::new();
        for item in &case.items {
            match item {
                Item::Other(_) => {}
                Item::Command(command) => {
                    let outcome = self.run(command);
                    record.push_str(&format!("$ {}\n", command.script));
                    self.output(&outcome).write(&mut record);
                    for request in self.model.requests().split_off(self.requests) {
                        record.push_str(&self.request_lines(&request).join("\n"));
                        record.push('\n');
                    }
                    for (path, mode, bytes) in snapshot(self.sandbox.state()).contents() {
                        let path = self.stable(&path.display().to_string());
                        let text = self.stable(&visible(&bytes).join("\n"));
                        record.push_str(&format!("{mode:o} {path}\n{text}\n"));
                    }
                    self.requests = self.model.requests().len();
                }
                Item::Directive(directive) if CHECKS.contains(&directive.key.as_str()) => {}
                Item::Directive(directive) => self.set(&self.filled(directive)),
            }
        }
        Ok(record)
    }

    /// A directive with what only this run knows.
    fn filled(&self, directive: &Directive) -> Directive {
        let fill = |text: &str| {
            let mut text = text.replace("<host>", &self.model.address().to_string());
            for (name, value) in self.known() {
                text = text.replace(name, &value);
            }
            while let Some((before, rest)) = text.split_once("<ago ") {
                let (minutes, after) = rest.split_once("m>").expect("minutes, as in <ago 90m>");
                let minutes: u32 = minutes.parse().expect("a number of minutes");
                text = format!("{before}{}{after}", ago(fixtures::MINUTE * minutes));
            }
            while let Some((before, rest)) = text.split_once("<x ") {
                let (count, after) = rest.split_once('>').expect("a number, as in <x 1000>");
                let long = "x".repeat(count.parse().expect("a number"));
                text = format!("{before}{long}{after}");
            }
            text
        };
        let mut block = Vec::new();
        for line in &directive.block {
            let (count, line) = repeated(line).unwrap_or((1, line));
            block.extend(vec![fill(line); count]);
        }
        Directive {
            key: directive.key.clone(),
            value: fill(&directive.value),
            block,
        }
    }

    /// What stands for what only this run knows. Longer paths come before those that they begin with.
    fn known(&self) -> Vec<(&'static str, String)> {
        let path = |path: PathBuf| path.display().to_string();
        let mut known = vec![
            ("<server>", self.model.url()),
            ("<config>", path(self.sandbox.config_file())),
            ("<sessions>", path(self.sandbox.sessions())),
            ("<home>", path(self.sandbox.home())),
            ("<root>", path(self.sandbox.root().to_owned())),
            ("<key>", API_KEY.to_owned()),
        ];
        if let Some(site) = &self.site {
            known.insert(0, ("<site>", site.url()));
        }
        known
    }

    /// Text with names in place of what only this run knows.
    fn stable(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.known() {
            text = text.replace(&value, name);
            let address = value.strip_prefix("http://").unwrap_or_default();
            if !address.is_empty() {
                text = text.replace(address, name.trim_matches(['<', '>']));
            }
        }
        self.names.stable(&text)
    }

    fn set(&mut self, directive: &Directive) {
        let value = directive.value.as_str();
        let pair = |sign: char| {
            let (one, other) = value.split_once(sign).unwrap_or((value, ""));
            (one.to_owned(), other.to_owned())
        };
        match directive.key.as_str() {
            "dialect" | "over" | "splits" | "finish" => {}
            "answer" => {
                let answer = value.replace("\\n", "\n") + &directive.text();
                let answer = String::from_utf8(bytes_of(&answer)).expect("a text");
                self.answers.lock().expect("answers").question = answer;
            }
            "models" => self.answers.lock().expect("answers").list = listed(value),
            "list" => {
                self.answers.lock().expect("answers").list = reply(directive, Split::Whole);
            }
            "proxy" => {
                self.answers.lock().expect("answers").tunnel = reply(directive, Split::Whole);
            }
            "words" => self.words = value.replace("\\n", "\n"),
            "config" => self.config = format!("{value}\n{}", directive.text()),
            "tools" => self.tools = Some((value.to_owned(), directive.text())),
            "provider" => self.ask_provider(value),
            "env" => self.env.push(pair('=')),
            "stdin" => self.stdin = Some(directive.clone()),
            "modes" => self.obeys_modes = true,
            "file" => {
                let path = self.sandbox.home().join(value);
                let folder = path.parent().expect("a file in a folder");
                fs::create_dir_all(folder).expect("a folder");
                fs::write(&path, bytes_of(&directive.text())).expect("a file");
            }
            "talked" => self.talk(value),
            "call" => {
                self.calls.clear();
                self.call(value);
            }
            "and" => {
                self.replies.lock().expect("replies").pop_back();
                self.call(value);
            }
            "reply" => {
                let (word, count) = pair(' ');
                let is_same = word == "same";
                if !is_same {
                    self.last_reply = Some(directive.clone());
                }
                let directive = self.last_reply.as_ref().expect("a reply before the same");
                let count = count.parse().ok().filter(|_| is_same);
                for _ in 0..count.unwrap_or(1) {
                    self.queue(reply(directive, self.variant.split));
                }
            }
            "error" => {
                let (status, message) = pair(' ');
                let status = status.parse().expect("a status");
                let error = (self.variant.dialect.error)(status, &message);
                self.queue(Reply::json(status, error));
            }
            "site" => {
                let (method, rest) = pair(' ');
                let directive = Directive {
                    value: rest,
                    ..directive.clone()
                };
                let reply = reply(&directive, Split::Whole);
                self.refusals
                    .lock()
                    .expect("refusals")
                    .push((method, reply));
            }
            other => panic!("@{other} is no directive"),
        }
    }

    /// Another provider with the API of the dialect: one that q knows, or `NAME custom` for one in the configuration.
    fn ask_provider(&mut self, value: &str) {
        let (name, kind) = value.split_once(' ').unwrap_or((value, ""));
        let dialect = self.variant.dialect;
        let url = self.model.url() + dialect.base;
        let variable = name.to_uppercase().replace('-', "_");
        self.env.push(("Q_PROVIDER".to_owned(), name.to_owned()));
        self.env
            .push((format!("{variable}_API_KEY"), API_KEY.to_owned()));
        if kind == "custom" {
            self.config.push_str(&format!(
                "[providers.{name}]\napi = \"{}\"\nbase_url = \"{url}\"\nkey_env = \"{variable}_API_KEY\"\n",
                dialect.provider
            ));
        } else {
            self.env.push((format!("{variable}_BASE_URL"), url));
        }
    }

    /// A conversation of questions and answers: `[FILE] [FIELDS as JSON] question | answer | …`. Without a file it is the
    /// current one. It is an hour old.
    fn talk(&self, value: &str) {
        let (file, value) = match value.split_once(' ') {
            Some((file, rest)) if file.ends_with(".json") => (Some(file), rest),
            _ => (None, value),
        };
        let mut fields = json!({"provider": self.variant.dialect.provider});
        let mut texts = value;
        if value.starts_with('{') {
            let mut parsed = serde_json::Deserializer::from_str(value).into_iter::<Value>();
            let given = parsed.next().expect("fields").expect("fields as JSON");
            texts = value[parsed.byte_offset()..].trim_start();
            let given = given.as_object().expect("an object").clone();
            fields.as_object_mut().expect("an object").extend(given);
        }
        let texts = texts.split(" | ").filter(|text| !text.is_empty());
        let texts = texts.map(|text| String::from_utf8(bytes_of(text)).expect("a text"));
        let texts: Vec<String> = texts.collect();
        let mut conversation = idle_for(HOUR, &texts);
        for (name, value) in fields.as_object().expect("an object") {
            conversation = with(conversation, name, value.clone());
        }
        match file {
            Some(file) => self.sandbox.write_session(file, &conversation),
            None => {
                let name = id_of(&conversation) + ".json";
                self.sandbox
                    .write_linked("current.json", &name, &conversation);
            }
        }
    }

    fn call(&mut self, value: &str) {
        let (name, arguments) = value.split_once(' ').unwrap_or((value, "{}"));
        let arguments = serde_json::from_str(arguments).expect("arguments");
        self.calls.push((name.to_owned(), arguments));
        let mut ids = Vec::new();
        for number in 0..self.calls.len() {
            ids.push(format!("call{number:05}"));
        }
        let mut calls = Vec::new();
        for (id, (name, arguments)) in ids.iter().zip(&self.calls) {
            calls.push((id.as_str(), name.as_str(), arguments.clone()));
        }
        self.queue(self.variant.dialect.calling(&self.words, &calls));
    }

    fn queue(&self, reply: Reply) {
        self.replies.lock().expect("replies").push_back(reply);
    }

    /// Runs a command with all that has been set.
    fn run(&mut self, command: &Command) -> Outcome {
        self.requests = self.model.requests().len();
        let mut config = self.config.clone();
        if let Some((mode, more)) = &self.tools {
            config += &match &self.site {
                Some(site) => format!("[tools.db]\nurl = \"{}/mcp\"\n{more}", site.url()),
                None => section(&self.sandbox, "db", mode, more),
            };
        }
        if !config.is_empty() {
            self.sandbox.config(&config);
        }
        let script = Directive {
            key: String::new(),
            value: command.script.clone(),
            block: Vec::new(),
        };
        let script = self.filled(&script).value;
        let path = format!("{}:/usr/bin:/bin", self.program.display());
        let mut q = self
            .sandbox
            .shell(&script)
            .env("PATH", path)
            .env("Q_RETRIES", "0");
        q = q.speaks(self.variant.dialect, &self.model);
        for (name, value) in &self.env {
            q = q.env(name, value);
        }
        if self.obeys_modes {
            q = q.obeying_modes();
        }
        self.with_input(q).run()
    }

    fn with_input(&mut self, q: Q) -> Q {
        let Some(stdin) = self.stdin.take() else {
            return q;
        };
        match stdin.value.as_str() {
            "open" => q.stdin_open(),
            "terminal" => {
                let terminal = self.terminal.insert(Terminal::new(WIDE));
                q.stdin_from(terminal.end())
            }
            "" => q.stdin(bytes_of(&stdin.text())),
            text => q.stdin(bytes_of(text)),
        }
    }

    fn output(&mut self, outcome: &Outcome) -> Output {
        let mut lines = |bytes: &[u8]| {
            let text = visible(bytes).join("\n");
            let stable = self.stable(&text);
            if bytes.is_empty() {
                return Vec::new();
            }
            stable.split('\n').map(str::to_owned).collect()
        };
        Output {
            stdout: lines(&outcome.stdout),
            stderr: lines(&outcome.stderr),
            status: match outcome.status.code() {
                Some(code) => code.to_string(),
                None => outcome.status.to_string(),
            },
        }
    }

    /// What holds for every command: the key comes out nowhere, and after 2 nothing was sent or written.
    fn check_always(
        &self,
        command: &Command,
        outcome: &Outcome,
        before: &Snapshot,
    ) -> Result<(), String> {
        let output = outcome.stdout_text() + &outcome.stderr_text();
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
    fn answer_of(
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
    fn check_saved(&mut self, case: &Case, command: &Command, came: &Output) -> Result<(), String> {
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

    fn check(
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
    fn shown(&mut self, key: &str) -> Vec<String> {
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
    fn request_lines(&mut self, request: &Recorded) -> Vec<String> {
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

    /// What holds at the end: no process is left, and every reply was asked for.
    fn end(self) -> Result<(), String> {
        if self.sandbox.root().join("db.log").exists() {
            expect_gone(&self.sandbox, "db");
        }
        let left = self.replies.lock().expect("replies").len();
        if left > 0 {
            return Err(format!("{left} replies of the model were not asked for"));
        }
        for (method, _) in self.refusals.lock().expect("refusals").iter() {
            if !method.ends_with('*') {
                return Err(format!("the tool server was not asked for {method}"));
            }
        }
        Ok(())
    }
}

/// A command comes to what is expected of it; else the difference.
fn expect(command: &Command, came: &Output) -> Result<(), String> {
    let expected = &command.output;
    if expected.matches(came) {
        return Ok(());
    }
    let resolved = Output {
        stdout: resolved(&expected.stdout, &came.stdout),
        stderr: resolved(&expected.stderr, &came.stderr),
        status: expected.status.clone(),
    };
    let text = |output: &Output| {
        let mut text = format!("$ {}\n", command.script);
        output.write(&mut text);
        text
    };
    Err(diff(&text(&resolved), &text(came)))
}

/// How often a line is meant, and the line: `<101 times>line`.
fn repeated(line: &str) -> Option<(usize, &str)> {
    let (count, line) = line.strip_prefix('<')?.split_once(" times>")?;
    Some((count.parse().ok()?, line))
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

fn model_server(
    dialect: &'static Dialect,
    replies: &Queue,
    answers: &Arc<Mutex<Answers>>,
) -> Server {
    let (replies, answers) = (Arc::clone(replies), Arc::clone(answers));
    Server::start(move |request, earlier| {
        let answers = answers.lock().expect("answers");
        match request.method.as_str() {
            "GET" => return answers.list.clone(),
            "CONNECT" => return answers.tunnel.clone(),
            _ => {}
        }
        let next = replies.lock().expect("replies").pop_front();
        let answer = answers
            .question
            .replace("<count>", &(earlier + 1).to_string());
        let dialect = dialect_of(&request.path).unwrap_or(dialect);
        next.unwrap_or_else(|| (dialect.reply)(request, &answer))
    })
}

/// The API that has questions at this path.
fn dialect_of(path: &str) -> Option<&'static Dialect> {
    let paths = [
        ("/chat/completions", "openai"),
        ("/v1/messages", "anthropic"),
        ("/v1beta/", "gemini"),
        ("/responses", "responses"),
    ];
    let found = paths.iter().find(|(part, _)| path.contains(part));
    found.map(|(_, name)| Dialect::named(name))
}

fn tool_site(mode: &str, refusals: &Arc<Mutex<Vec<(String, Reply)>>>) -> Server {
    let refusals = Arc::clone(refusals);
    toolserver::site(mode, move |request| {
        let mut refusals = refusals.lock().expect("refusals");
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
fn listed(models: &str) -> Reply {
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

/// What a request to a tool server says: its message, and of any other request the method.
fn message(request: &Recorded) -> Value {
    if request.method == "POST" {
        return request.json();
    }
    json!({"method": request.method})
}

fn method(message: &Value) -> String {
    if let Some(method) = message["method"].as_str() {
        return method.to_owned();
    }
    let is_end = message.get("end").is_some();
    (if is_end { "end" } else { "an answer" }).to_owned()
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
