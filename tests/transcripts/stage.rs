//! Where a case is played: a sandbox, a server of models, and a tool server that is there if it is needed.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::checks::{Run, request_lines};
use crate::format::{Case, Command, Directive, Item, Output};
use crate::harness::conversations::{id_of, idle_for, with};
use crate::harness::dialect::{Call, DIALECTS, Dialect};
use crate::harness::machine::cannot_confine;
use crate::harness::outcome::Outcome;
use crate::harness::pty::{Terminal, WIDE};
use crate::harness::run::{API_KEY, Q};
use crate::harness::sandbox::Sandbox;
use crate::harness::server::{Reply, Server};
use crate::harness::snapshot::snapshot;
use crate::harness::times::{HOUR, MINUTE, ago};
use crate::harness::toolserver::{expect_gone, section};
use crate::keys::{Key, Setup};
use crate::matching::{Placeholders, blessed, bytes_of, difference, matches, visible};
use crate::replies::{Chunking, reply};
use crate::servers::{ServerScript, SharedScript, listed, model_server, tool_site};

/// What the model answers once it has made its calls.
const ANSWER: &str = "the answer";

/// One of the ways in which a case is played.
#[derive(Clone)]
pub struct Variant {
    pub dialect: &'static Dialect,
    /// Whether the tool server is reached over HTTP.
    over_http: bool,
    chunking: Chunking,
    /// Whether the question is asked with `-j`. Then the JSON must have what would be printed.
    as_json: bool,
    /// What tells it from the other ways, for the name of the test.
    labels: Vec<&'static str>,
}

impl Variant {
    /// Returns the ways that a case asks for, by `@dialect`, `@over` and `@splits`.
    pub fn all(case: &Case) -> Vec<Variant> {
        let dialects = case.last(Key::Setup(Setup::Dialect)).unwrap_or("openai");
        let over = case.last(Key::Setup(Setup::Over)).unwrap_or("program");
        let mut forms = vec![(Chunking::Whole, false, "")];
        if case.has(Key::Setup(Setup::Splits)) {
            forms = vec![
                (Chunking::Whole, false, "whole"),
                (Chunking::RandomPieces, false, "in pieces"),
                (Chunking::SingleBytes, false, "byte by byte"),
            ];
            if case.can_be_json() {
                forms.push((Chunking::Whole, true, "as JSON"));
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
                for (chunking, as_json, name) in &forms {
                    let mut labels = Vec::new();
                    if dialects == "each" || dialects.contains(',') {
                        labels.push(dialect.provider);
                    }
                    if over == "both" {
                        labels.push(way);
                    }
                    if !name.is_empty() {
                        labels.push(name);
                    }
                    variants.push(Variant {
                        dialect,
                        over_http: way == "http",
                        chunking: *chunking,
                        as_json: *as_json,
                        labels,
                    });
                }
            }
        }
        assert!(!variants.is_empty(), "{}: no dialect", case.full_name);
        variants
    }

    /// Returns what the name of its test ends with.
    pub fn suffix(&self) -> String {
        if self.labels.is_empty() {
            return String::new();
        }
        format!(" [{}]", self.labels.join(", "))
    }
}

/// Where one case is played in one way.
pub struct Stage {
    pub variant: Variant,
    pub sandbox: Sandbox,
    pub model: Server,
    /// The tool server over HTTP, where it is one.
    pub site: Option<Server>,
    /// What the servers of models and of tools answer.
    script: SharedScript,
    env: Vec<(String, String)>,
    config: String,
    /// The mode of the tool server `db`, and the lines of its section.
    tools: Option<(String, String)>,
    /// What the model says before its calls, and those of the reply that is being written.
    text_before_calls: String,
    calls: Vec<(String, Value)>,
    pub last_reply: Option<Directive>,
    stdin: Option<Directive>,
    /// What the last command had as its standard input, where that was a terminal.
    pub terminal: Option<Terminal>,
    /// Whether modes of files count even where the tests run as root.
    obeys_modes: bool,
    placeholders: Placeholders,
    /// How many requests there were before the last command.
    pub requests: usize,
    /// The directory on the path that has q.
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
            fs::create_dir(&program).expect("a directory");
            symlink(old, program.join("q")).expect("a link");
        }
        let script = Arc::new(Mutex::new(ServerScript {
            next: VecDeque::new(),
            answer: ANSWER.to_owned(),
            list: listed("first, second"),
            pages: VecDeque::new(),
            tunnel: Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive(),
            refusals: Vec::new(),
        }));
        let mode = case.last(Key::Setup(Setup::Tools)).unwrap_or_default();
        let mut stage = Stage {
            variant: variant.clone(),
            sandbox,
            model: model_server(variant.dialect, &script),
            site: variant.over_http.then(|| tool_site(mode, &script)),
            script,
            env: Vec::new(),
            config: String::new(),
            tools: None,
            text_before_calls: "let me see".to_owned(),
            calls: Vec::new(),
            last_reply: None,
            stdin: None,
            terminal: None,
            obeys_modes: false,
            placeholders: Placeholders::default(),
            requests: 0,
            program,
        };
        for item in &case.shared {
            let Item::Directive(directive) = item else {
                continue;
            };
            match directive.key {
                Key::Setup(set) => stage.set(set, &stage.filled(directive)),
                Key::Expectation(_) | Key::Block(_) => {
                    panic!("@{} stands above any command", directive.key)
                }
            }
        }
        stage
    }

    /// Plays the case. What came is an error where it differs from what is expected; in blessing it takes its place, but for
    /// lines that fit as they are.
    pub fn play(mut self, case: &Case, is_blessing: bool) -> Result<Case, String> {
        if case.has(Key::Setup(Setup::Confines)) && cannot_confine() {
            return Ok(case.clone());
        }
        let mut came = case.clone();
        let mut last = None;
        for item in &mut came.items {
            match item {
                Item::Comment(_) => {}
                Item::Command(command) => {
                    let run = self.play_command(case, command, last.is_none(), is_blessing);
                    last = Some(run.map_err(|what| format!("$ {}\n{what}", command.script))?);
                }
                Item::Directive(directive) => {
                    let done = self.follow(directive, last.as_ref(), is_blessing);
                    done.map_err(|what| format!("@{} {}\n{what}", directive.key, directive.value))?;
                }
            }
        }
        self.end()?;
        Ok(came)
    }

    fn play_command(
        &mut self,
        case: &Case,
        command: &mut Command,
        is_first: bool,
        is_blessing: bool,
    ) -> Result<Run, String> {
        let before = snapshot(self.sandbox.state());
        let as_json = is_first && self.variant.as_json;
        let script = if as_json {
            &command.as_json()
        } else {
            &command.script
        };
        let outcome = self.run(script);
        let mut came = self.output(&outcome);
        if as_json {
            came.stdout = self.answer_of(case, command, &outcome)?;
        }
        let run = Run { outcome, before };
        let is_expected = command.output.matches(&came);
        if !is_expected && !is_blessing {
            return Err(command.output.difference(&came));
        }
        self.check_always(case, &run)?;
        if is_first && case.has(Key::Setup(Setup::Splits)) {
            self.check_saved(case, command, &run, &came.stdout)?;
        }
        if !is_expected {
            command.output = command.output.blessed(came);
        }
        Ok(run)
    }

    /// Sets the stage as a directive says, or looks at what came of the last command.
    fn follow(
        &mut self,
        directive: &mut Directive,
        last: Option<&Run>,
        is_blessing: bool,
    ) -> Result<(), String> {
        match directive.key {
            Key::Setup(set) => self.set(set, &self.filled(directive)),
            Key::Expectation(check) => {
                let run = last.ok_or("it stands before any command")?;
                self.check(check, &self.filled(directive), run)?;
            }
            Key::Block(shown) => {
                let lines = self.shown(shown);
                if matches(&directive.block, &lines) {
                    return Ok(());
                }
                if !is_blessing {
                    return Err(difference(&directive.block, &lines));
                }
                directive.block = blessed(&directive.block, lines);
            }
        }
        Ok(())
    }

    /// All that can be seen of what the commands of a case did.
    pub fn record(mut self, case: &Case) -> String {
        let mut record = String::new();
        for item in &case.items {
            match item {
                Item::Command(command) => {
                    let outcome = self.run(&command.script);
                    record.push_str(&format!("$ {}\n", command.script));
                    self.output(&outcome).write(&mut record);
                    for request in self.newest() {
                        let lines = request_lines(&request).join("\n");
                        record.push_str(&format!("{}\n", self.stable(&lines)));
                    }
                    for (path, mode, bytes) in snapshot(self.sandbox.state()).contents() {
                        let path = self.stable(&path.display().to_string());
                        let text = self.stable(&visible(&bytes).join("\n"));
                        record.push_str(&format!("{mode:o} {path}\n{text}\n"));
                    }
                }
                Item::Directive(directive) => {
                    if let Key::Setup(set) = directive.key {
                        self.set(set, &self.filled(directive));
                    }
                }
                Item::Comment(_) => {}
            }
        }
        record
    }

    /// A directive with what only this run knows.
    fn filled(&self, directive: &Directive) -> Directive {
        let mut block = Vec::new();
        for line in &directive.block {
            let (count, line) = repeated(line).unwrap_or((1, line));
            block.extend(vec![self.filled_text(line); count]);
        }
        Directive {
            key: directive.key,
            value: self.filled_text(&directive.value),
            block,
        }
    }

    fn filled_text(&self, text: &str) -> String {
        let mut text = text.replace("<host>", &self.model.address().to_string());
        for (name, value) in self.known() {
            text = text.replace(name, &value);
        }
        while let Some((before, rest)) = text.split_once("<ago ") {
            let (minutes, after) = rest.split_once("m>").expect("minutes, as in <ago 90m>");
            let minutes: u32 = minutes.parse().expect("a number of minutes");
            text = format!("{before}{}{after}", ago(MINUTE * minutes));
        }
        while let Some((before, rest)) = text.split_once("<x ") {
            let (count, after) = rest.split_once('>').expect("a number, as in <x 1000>");
            let long = "x".repeat(count.parse().expect("a number"));
            text = format!("{before}{long}{after}");
        }
        text
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
    pub fn stable(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.known() {
            text = text.replace(&value, name);
            let address = value.strip_prefix("http://").unwrap_or_default();
            if !address.is_empty() {
                text = text.replace(address, name.trim_matches(['<', '>']));
            }
        }
        self.placeholders.stable(&text)
    }

    fn set(&mut self, set: Setup, directive: &Directive) {
        let value = directive.value.as_str();
        let pair = |sign: char| {
            let (one, other) = value.split_once(sign).unwrap_or((value, ""));
            (one.to_owned(), other.to_owned())
        };
        match set {
            // These say how the case is read and played.
            Setup::Dialect
            | Setup::Over
            | Setup::Splits
            | Setup::Finish
            | Setup::Asks
            | Setup::Confines
            | Setup::Table => {}
            Setup::Answer => {
                let answer = value.replace("\\n", "\n") + &directive.text();
                self.script().answer = text_of(&answer);
            }
            Setup::Models => self.script().list = listed(value),
            Setup::List => self.script().list = reply(directive, Chunking::Whole),
            Setup::Page => self
                .script()
                .pages
                .push_back(reply(directive, Chunking::Whole)),
            Setup::Proxy => self.script().tunnel = reply(directive, Chunking::Whole),
            Setup::Words => self.text_before_calls = value.replace("\\n", "\n"),
            Setup::Config => {
                let lines = value.replace("\\n", "\n");
                self.config = format!("{lines}\n{}", directive.text());
            }
            Setup::Tools => self.tools = Some((value.to_owned(), directive.text())),
            Setup::Provider => self.ask_provider(value),
            Setup::Env => self.env.push(pair('=')),
            Setup::Stdin => self.stdin = Some(directive.clone()),
            Setup::Modes => self.obeys_modes = true,
            Setup::File => {
                let path = self.sandbox.home().join(value);
                let directory = path.parent().expect("a file in a directory");
                fs::create_dir_all(directory).expect("a directory");
                fs::write(&path, bytes_of(&directive.text())).expect("a file");
            }
            Setup::Talked => self.talk(value),
            Setup::Call => {
                self.calls.clear();
                self.call(value);
            }
            Setup::And => {
                self.script().next.pop_back();
                self.call(value);
            }
            Setup::Reply => {
                let (word, count) = pair(' ');
                let is_same = word == "same";
                if !is_same {
                    self.last_reply = Some(directive.clone());
                }
                let directive = self.last_reply.as_ref().expect("a reply before the same");
                let count = count.parse().ok().filter(|_| is_same);
                for _ in 0..count.unwrap_or(1) {
                    self.queue(reply(directive, self.variant.chunking));
                }
            }
            Setup::Error => {
                let (status, message) = pair(' ');
                let status = status.parse().expect("a status");
                let error = (self.variant.dialect.error)(status, &message);
                self.queue(Reply::json(status, error));
            }
            Setup::Site => {
                let (method, rest) = pair(' ');
                let directive = Directive {
                    value: rest,
                    ..directive.clone()
                };
                let reply = reply(&directive, Chunking::Whole);
                self.script().refusals.push((method, reply));
            }
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
    /// current one, which a link leads to; so it is of a slot. It is an hour old.
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
        let texts: Vec<String> = texts.map(text_of).collect();
        let mut conversation = idle_for(HOUR, &texts);
        for (name, value) in fields.as_object().expect("an object") {
            conversation = with(conversation, name, value.clone());
        }
        let file = file.unwrap_or("current.json");
        if file.starts_with("current") {
            let name = id_of(&conversation) + ".json";
            self.sandbox.write_linked(file, &name, &conversation);
        } else {
            self.sandbox.write_session(file, &conversation);
        }
    }

    fn call(&mut self, value: &str) {
        let (name, arguments) = value.split_once(' ').unwrap_or((value, "{}"));
        let arguments = serde_json::from_str(arguments).expect("arguments");
        self.calls.push((name.to_owned(), arguments));
        let ids = (0..self.calls.len()).map(|number| format!("call{number:05}"));
        let ids: Vec<String> = ids.collect();
        let calls = ids.iter().zip(&self.calls);
        let calls = calls.map(|(id, (name, arguments))| (&**id, &**name, arguments.clone()));
        let calls: Vec<Call> = calls.collect();
        self.queue(
            self.variant
                .dialect
                .calling(&self.text_before_calls, &calls),
        );
    }

    fn queue(&self, reply: Reply) {
        self.script().next.push_back(reply);
    }

    /// Runs a command with all that has been set.
    fn run(&mut self, script: &str) -> Outcome {
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
        let script = self.filled_text(script);
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

    /// What holds at the end: no process is left, and every reply was asked for.
    fn end(self) -> Result<(), String> {
        if self.sandbox.root().join("db.log").exists() {
            expect_gone(&self.sandbox, "db");
        }
        let script = self.script();
        let left = script.next.len();
        if left > 0 {
            return Err(format!("{left} replies of the model were not asked for"));
        }
        if !script.pages.is_empty() {
            return Err(format!("{} pages were not asked for", script.pages.len()));
        }
        let mut refusals = script.refusals.iter();
        match refusals.find(|(method, _)| !method.ends_with('*')) {
            Some((method, _)) => Err(format!("the tool server was not asked for {method}")),
            None => Ok(()),
        }
    }

    fn script(&self) -> MutexGuard<'_, ServerScript> {
        self.script.lock().expect("a script")
    }
}

/// A text in which control characters may be pictures.
fn text_of(text: &str) -> String {
    String::from_utf8(bytes_of(text)).expect("a text")
}

/// How often a line is meant, and the line: `<101 times>line`.
fn repeated(line: &str) -> Option<(usize, &str)> {
    let (count, line) = line.strip_prefix('<')?.split_once(" times>")?;
    Some((count.parse().ok()?, line))
}
