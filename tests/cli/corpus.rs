//! The replies in `tests/corpus/` against the real binary: whole, in pieces and byte by byte. Each has to come to what the
//! lines above it say, however it arrives. `tests/corpus/README.md` explains the lines.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixtures::failures_of;
use crate::sandbox::{API_KEY, Outcome, Q, Sandbox};
use crate::server::{Gate, Reply, Server};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// The lines that a case may have above its reply.
const KEYS: &[&str] = &[
    "why", "provider", "options", "stream", "history", "retries", "status", "type", "header",
    "lines", "begins", "trimmed", "body", "cut", "pause", "exit", "answer", "shown", "stdout",
    "saved", "finish", "word", "usage", "note", "error", "lacks", "requests", "takes", "blocked",
    "sources",
];

/// Providers that need nothing but their variables; every other one is written into the configuration file.
const BUILT_IN: &[&str] = &[
    "anthropic",
    "openai",
    "gemini",
    "groq",
    "mistral",
    "openrouter",
    "deepseek",
    "xai",
    "cerebras",
    "zai",
    "moonshot",
    "ollama",
    "llamacpp",
    "lmstudio",
    "vllm",
];

const QUESTION: &str = "why is the sky blue";

/// The variable that names the cases to run, by a part of their names.
const ONLY: &str = "CASE";

/// One reply and what has to come of it.
struct Case {
    dialect: &'static str,
    /// File and name, as a failure shows them.
    name: String,
    lines: Vec<(String, String)>,
    reply: Vec<u8>,
}

impl Case {
    fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        assert!(KEYS.contains(&key), "{key} is no key");
        self.lines
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn one(&self, key: &str) -> Option<&str> {
        let mut values = self.all(key);
        let value = values.next();
        assert!(values.next().is_none(), "{}: {key} twice", self.name);
        value
    }

    fn says(&self, key: &str, expected: &str) -> bool {
        let value = self.one(key);
        assert!(
            value.is_none_or(|value| value == expected),
            "{}: {key} can only be {expected}",
            self.name
        );
        value.is_some()
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.one(key).map_or(default, |value| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{}: {key}", self.name))
        })
    }

    /// Text in which `\n` stands for a line end.
    fn text(&self, key: &str) -> Option<String> {
        self.one(key).map(|value| value.replace("\\n", "\n"))
    }

    fn provider(&self) -> &str {
        self.one("provider").unwrap_or(self.dialect)
    }

    fn exit(&self) -> i32 {
        self.one("exit")
            .and_then(|code| code.parse().ok())
            .unwrap_or_else(|| panic!("{}: no exit", self.name))
    }

    /// The sources as a file has them.
    fn sources(&self) -> Option<Value> {
        let source = |text: &str| match text.split_once(' ') {
            Some((url, title)) => json!({"url": url, "title": title}),
            None => json!({"url": text}),
        };
        self.one("sources")
            .map(|all| all.split(" | ").map(source).collect())
    }

    fn requests(&self) -> usize {
        usize::try_from(self.number("requests", 1)).expect("a small number")
    }

    /// The first reply, in these pieces.
    fn response(&self, pieces: &[&[u8]]) -> Reply {
        let status = u16::try_from(self.number("status", 200)).expect("a status");
        let whole = status != 200 || self.says("stream", "no");
        let mut reply = Reply::new(status).chunked();
        let kind = if whole {
            "application/json"
        } else {
            "text/event-stream"
        };
        reply = reply.header("content-type", self.one("type").unwrap_or(kind));
        for header in self.all("header") {
            let (name, value) = header
                .split_once(": ")
                .unwrap_or_else(|| panic!("{}: {header}", self.name));
            reply = reply.header(name, value);
        }
        reply = match (pieces, self.number("pause", 0)) {
            ([_], seconds @ 1..) => {
                let first = self
                    .reply
                    .windows(2)
                    .position(|two| two == b"\n\n")
                    .expect("an event")
                    + 2;
                let gate = Gate::new();
                let opened = gate.clone();
                thread::spawn(move || {
                    thread::sleep(Duration::from_secs(seconds));
                    opened.open();
                });
                reply
                    .piece(&self.reply[..first])
                    .wait_for(&gate)
                    .piece(&self.reply[first..])
            }
            _ => reply.pieces(pieces),
        };
        if self.says("cut", "yes") {
            reply.cut()
        } else {
            reply
        }
    }
}

/// What a server of the dialect answers to every request but the first: `ok`.
fn ok(dialect: &str) -> Reply {
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    Reply::sse([match dialect {
        "openai" => whole,
        "anthropic" => {
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n\
             data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n"
        }
        "gemini" => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n"
        }
        "responses" => {
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"ok\"}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"
        }
        other => panic!("{other} is no dialect"),
    }])
}

/// The cases of every file whose name begins with the dialect.
fn cases(dialect: &'static str) -> Vec<Case> {
    let mut paths: Vec<_> = fs::read_dir(FOLDER)
        .expect(FOLDER)
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.retain(|path| stem(path).split('-').next() == Some(dialect));
    paths.sort();
    let mut cases = Vec::new();
    for path in &paths {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        cases.extend(
            text.split("\n=== ")
                .skip(1)
                .map(|case| parse(dialect, stem(path), case)),
        );
    }
    assert!(!cases.is_empty(), "no case for {dialect}");
    let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(
        names.len(),
        cases.len(),
        "two cases of {dialect} have one name"
    );
    cases
}

fn stem(path: &Path) -> &str {
    path.file_stem()
        .and_then(|stem| stem.to_str())
        .expect("a name")
}

/// Reads a case: its name, its lines, `---`, and the reply up to the next case.
fn parse(dialect: &'static str, file: &str, text: &str) -> Case {
    let (head, reply) = text
        .split_once("\n---\n")
        .unwrap_or_else(|| panic!("{file}: no --- in\n{text}"));
    let (name, lines) = head
        .split_once('\n')
        .unwrap_or_else(|| panic!("{file}: no lines in\n{text}"));
    let name = format!("{file}: {name}");
    let lines: Vec<_> = lines
        .lines()
        .map(|line| {
            let (key, value) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("{name}: {line}"));
            assert!(KEYS.contains(&key), "{name}: {key} is no key");
            (key.to_owned(), value.to_owned())
        })
        .collect();
    // The line end before the next case belongs to the reply.
    let mut case = Case {
        dialect,
        name,
        lines,
        reply: format!("{reply}\n").into_bytes(),
    };
    assert!(case.one("why").is_some(), "{}: no why", case.name);
    if let Some(body) = case.one("body") {
        case.reply = fs::read(Path::new(FOLDER).join(body))
            .unwrap_or_else(|error| panic!("{body}: {error}"));
    }
    if case.says("trimmed", "yes") {
        case.reply = case.reply.trim_ascii_end().to_owned();
    }
    if let Some(lines) = case.one("lines") {
        let ends: &[&str] = match lines {
            "CRLF" => &["\r\n"],
            "CR" => &["\r"],
            "mixed" => &["\r\n", "\r", "\n", "\r", "\r\n", "\n"],
            other => panic!("{}: lines: {other}", case.name),
        };
        let mut ends = ends.iter().cycle();
        let text = String::from_utf8(case.reply).expect("text");
        case.reply = text
            .split_inclusive('\n')
            .fold(Vec::new(), |mut reply, line| {
                reply.extend_from_slice(line.trim_end_matches('\n').as_bytes());
                if line.ends_with('\n') {
                    reply.extend_from_slice(ends.next().expect("an end").as_bytes());
                }
                reply
            });
    }
    if case.says("begins", "BOM") {
        case.reply.splice(0..0, *b"\xEF\xBB\xBF");
    }
    case
}

/// Pieces of 1 to 32 bytes, the same ones in every run.
fn random_pieces(reply: &[u8]) -> Vec<&[u8]> {
    let mut state = 20_261_122_u64;
    let mut rest = reply;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        // The constants are Knuth's; the low bits of such a sequence are not random.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let length = usize::try_from(state >> 59).expect("five bits") + 1;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A run of a case: what it was, where it happened and how it ended.
struct Run<'a> {
    case: &'a Case,
    sandbox: Sandbox,
    server: Server,
    before: Vec<u8>,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, pieces: &[&[u8]], options: &[&str]) -> Run<'a> {
        let first = case.response(pieces);
        let dialect = case.dialect;
        let server = Server::start(move |_, number| {
            if number == 0 {
                first.clone()
            } else {
                ok(dialect)
            }
        });
        let sandbox = Sandbox::new().env("Q_EXPIRE", "never");
        let provider = case.provider();
        let base_url = base_url(dialect, &server);
        if !BUILT_IN.contains(&provider) {
            let variable = format!("{}_API_KEY", provider.to_uppercase());
            sandbox.config(&format!(
                "[providers.{provider}]\napi = \"{dialect}\"\nbase_url = \"{base_url}\"\nkey_env = \"{variable}\"\n"
            ));
        }
        let mut before = Vec::new();
        if case.says("history", "yes") {
            let conversation = conversation(provider);
            before = conversation.to_string().into_bytes();
            sandbox.write_current(&conversation);
        }
        let mut run = ask(case, &sandbox, &base_url);
        run = run.args(options).args(
            &case
                .one("options")
                .map_or(Vec::new(), |options| options.split(' ').collect()),
        );
        if case.says("stream", "no") {
            run = run.arg("--no-stream");
        }
        if case.says("history", "yes") {
            run = run.arg("-f");
        }
        let outcome = run.arg(QUESTION).run();
        Run {
            case,
            sandbox,
            server,
            before,
            outcome,
        }
    }

    /// What is not as the case says.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Wrong::default();
        let case = self.case;
        let (exit, stderr) = (case.exit(), self.outcome.stderr_text());
        wrong.unless(self.outcome.status.code() == Some(exit), || {
            format!("the exit status is not {exit}")
        });
        let stdout = case
            .text("stdout")
            .or(case.text("answer"))
            .or(case.text("shown"));
        let stdout = stdout.map_or(String::new(), |text| {
            text.trim_end_matches('\n').to_owned() + "\n"
        });
        wrong.unless(self.outcome.stdout == stdout.as_bytes(), || {
            format!("standard output is not {stdout:?}")
        });
        for text in case.all("note").chain(case.all("error")) {
            wrong.unless(stderr.contains(text), || {
                format!("standard error lacks {text:?}")
            });
        }
        for text in case.all("note") {
            let lines = stderr.lines().filter(|line| line.contains(text)).count();
            wrong.unless(lines < 2, || {
                format!("{lines} lines of standard error have {text:?}")
            });
        }
        let (listed, stderr): (Vec<&str>, Vec<&str>) = stderr
            .split_inclusive('\n')
            .partition(|line| line.starts_with("q: ["));
        let (listed, stderr) = (listed.concat(), stderr.concat());
        let sources = case.sources().unwrap_or_default();
        let line = |(source, number): (&Value, usize)| {
            let title = source["title"]
                .as_str()
                .map_or_else(String::new, |title| format!("{title} "));
            format!(
                "q: [{number}] {title}{}\n",
                source["url"].as_str().expect("an address")
            )
        };
        let lines: String = sources
            .as_array()
            .into_iter()
            .flatten()
            .zip(1..)
            .map(line)
            .collect();
        wrong.unless(listed == lines, || {
            format!("the sources are {listed:?}, not {lines:?}")
        });
        let saved = self
            .sandbox
            .session_files()
            .iter()
            .map(|name| self.sandbox.read_bytes(name))
            .collect::<Vec<_>>();
        let saved = String::from_utf8_lossy(&saved.concat()).into_owned();
        let output = self.outcome.stdout_text() + &stderr + &saved;
        for text in case.all("lacks").chain([API_KEY]) {
            wrong.unless(!output.contains(text), || format!("{text:?} came out"));
        }
        match exit {
            0 if case.all("note").next().is_none() => {
                wrong.unless(stderr.is_empty(), || {
                    "standard error is not empty".to_owned()
                });
            }
            1 => {
                let status = case.number("status", 200).to_string();
                let reported = status == "200" || stderr.contains(&status);
                wrong.unless(reported, || format!("the error lacks the status {status}"));
                wrong.unless(stderr.contains(&self.server.url()), || {
                    "the error lacks the address".to_owned()
                });
                let lines = stderr
                    .lines()
                    .filter(|line| line.starts_with("q: "))
                    .count();
                wrong.unless(lines == stderr.lines().count(), || {
                    "a line does not begin with q:".to_owned()
                });
                let most = if case.says("history", "yes") { 4 } else { 3 };
                wrong.unless((1..=most).contains(&lines), || {
                    format!("the error has {lines} lines")
                });
            }
            _ => wrong.unless(!stderr.is_empty(), || "standard error is empty".to_owned()),
        }
        let requests = self.server.requests();
        let expected = case.requests();
        wrong.unless(requests.len() == expected, || {
            format!("{} requests, not {expected}", requests.len())
        });
        let least = Duration::from_secs(case.number("takes", 0));
        wrong.unless(self.outcome.elapsed() >= least, || {
            format!("it took less than {least:?}")
        });
        if case.says("history", "yes")
            && let [_, second] = &requests[..]
        {
            let sent = second.text();
            let half = !sent.contains("question 1")
                && sent.contains("question 2")
                && sent.contains(QUESTION);
            wrong.unless(half, || {
                format!("the second request has not the newer half: {sent}")
            });
        }
        self.compare_saved(&mut wrong);
        wrong.0
    }

    /// The exchange as the file has it.
    fn compare_saved(&self, wrong: &mut Wrong) {
        let case = self.case;
        let files = self.sandbox.session_files();
        let expected = case
            .text("saved")
            .or(case.text("answer"))
            .or(case.text("shown"));
        if expected.as_deref() == Some("any") {
            return;
        }
        let Some(expected) = expected else {
            let unchanged = match files.is_empty() {
                true => self.before.is_empty(),
                false => self.sandbox.read_bytes("current.json") == self.before,
            };
            return wrong.unless(unchanged, || "the conversation was changed".to_owned());
        };
        let conversation = if files.is_empty() {
            Value::Null
        } else {
            self.sandbox.current()
        };
        let messages = conversation["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let count = if self.before.is_empty() { 2 } else { 6 };
        wrong.unless(messages.len() == count, || {
            format!("{} messages are saved, not {count}", messages.len())
        });
        let Some([question, answer]) = messages.last_chunk() else {
            return;
        };
        wrong.unless(question["content"] == QUESTION, || {
            "the question is not saved".to_owned()
        });
        let content = &answer["content"];
        wrong.unless(content == expected.as_str(), || {
            format!("{expected:?} is not saved, but {content}")
        });
        let interrupted = (case.exit() == 1).then_some(&Value::Bool(true));
        wrong.unless(answer.get("interrupted") == interrupted, || {
            format!("interrupted is not {interrupted:?} in the file")
        });
        let sources = case.sources();
        wrong.unless(answer.get("sources") == sources.as_ref(), || {
            format!("the file has not the sources {sources:?}")
        });
        // What broke off may or may not have a word for it.
        let word = case.one("word").map(Value::from);
        let kept = answer.get("finish") == word.as_ref() || case.exit() == 1;
        wrong.unless(kept, || format!("finish is not {word:?} in the file"));
    }

    /// What of the answer in JSON is not as the case says.
    fn wrong_in_json(&self) -> Vec<String> {
        let mut wrong = Wrong::default();
        let case = self.case;
        let exit = case.exit();
        if self.outcome.status.code() != Some(exit) {
            return vec![format!("the exit status is not {exit}")];
        }
        let Ok(printed) = serde_json::from_slice::<Value>(&self.outcome.stdout) else {
            wrong.unless(false, || "standard output is not JSON".to_owned());
            return wrong.0;
        };
        if exit == 1 {
            let error = &printed["error"];
            wrong.unless(error["message"].is_string(), || "no message".to_owned());
            let status = case.number("status", 200);
            wrong.unless(status == 200 || error["status"] == status, || {
                format!("the status is not {status}")
            });
            return wrong.0;
        }
        let answer = case.text("answer").unwrap_or_default();
        wrong.unless(printed["answer"] == answer.as_str(), || {
            format!("the answer is not {answer:?}")
        });
        let finish = case.one("finish").unwrap_or("stop");
        wrong.unless(printed["finish"] == finish, || {
            format!("the finish is not {finish:?}")
        });
        let sources = case.sources();
        wrong.unless(printed.get("sources") == sources.as_ref(), || {
            format!("the sources are not {sources:?}")
        });
        if let Some(usage) = case.one("usage") {
            let count = |text: &str| text.parse().unwrap_or(Value::Null);
            let usage = match usage.split(' ').collect::<Vec<_>>()[..] {
                [input, output, ref others @ ..] => {
                    let mut usage =
                        json!({"input_tokens": count(input), "output_tokens": count(output)});
                    for (name, value) in others.iter().filter_map(|other| other.split_once('=')) {
                        usage[name] = count(value);
                    }
                    usage
                }
                _ => Value::Null,
            };
            wrong.unless(printed["usage"] == usage, || {
                format!("the usage is not {usage}")
            });
            let conversation = self.sandbox.current();
            let kept = conversation["messages"]
                .as_array()
                .and_then(|messages| messages.last());
            let kept = kept
                .and_then(|answer| answer.get("usage"))
                .unwrap_or(&Value::Null);
            wrong.unless(*kept == usage, || {
                format!("the usage in the file is {kept}")
            });
        }
        wrong.0
    }

    /// What must hold after the run: what is blocked is not sent again, and what is incomplete is not extracted.
    fn wrong_afterwards(&self) -> Vec<String> {
        let mut wrong = Wrong::default();
        let case = self.case;
        if case.says("blocked", "yes") {
            let base_url = base_url(case.dialect, &self.server);
            let outcome = ask(case, &self.sandbox, &base_url)
                .args(&["-f", "and then?"])
                .run();
            let sent = self
                .server
                .requests()
                .pop()
                .map_or(String::new(), |request| request.text());
            wrong.unless(outcome.stdout == b"ok\n", || {
                "the next question was not answered".to_owned()
            });
            let again = sent.contains(QUESTION)
                || case.one("shown").is_some_and(|shown| sent.contains(shown));
            wrong.unless(!again, || {
                format!("the blocked exchange was sent again: {sent}")
            });
        }
        if case.one("options") == Some("-x") && case.exit() == 3 {
            let outcome = self.sandbox.q(&["--last", "-x"]).run();
            let refused = outcome.status.code() == Some(1) && outcome.stdout.is_empty();
            wrong.unless(refused, || {
                format!("--last -x was not refused: {:?}", outcome.stdout_text())
            });
        }
        wrong.0
    }
}

#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn unless(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.0.push(what());
        }
    }
}

/// The address as the dialect's variable has it.
fn base_url(dialect: &str, server: &Server) -> String {
    if matches!(dialect, "openai" | "responses") {
        server.url() + "/v1"
    } else {
        server.url()
    }
}

/// q as it asks the case's provider.
fn ask(case: &Case, sandbox: &Sandbox, base_url: &str) -> Q {
    let (provider, retries) = (case.provider(), case.number("retries", 1));
    let name = provider.to_uppercase();
    let q = sandbox
        .q(&["-p", provider, "-m", "m"])
        .env("Q_RETRIES", retries.to_string());
    q.env(format!("{name}_API_KEY"), API_KEY)
        .env(format!("{name}_BASE_URL"), base_url)
}

/// A conversation of two exchanges.
fn conversation(provider: &str) -> Value {
    const TIME: &str = "2026-01-02T03:04:05.006Z";
    let message = |role, content| json!({"role": role, "content": content, "timestamp": TIME});
    json!({
        "version": 1, "provider": provider, "model": "m", "created": TIME, "updated": TIME,
        "messages": [
            message("user", "question 1"), message("assistant", "answer 1"),
            message("user", "question 2"), message("assistant", "answer 2"),
        ],
    })
}

/// Everything about a case that is not as it should be; what is wrong in all three splits is said once.
fn failures(case: &Case) -> Option<String> {
    let splits = [
        ("whole", vec![&case.reply[..]]),
        ("in pieces", random_pieces(&case.reply)),
        ("byte by byte", case.reply.chunks(1).collect()),
    ];
    let mut wrong: Vec<(String, Vec<&str>)> = Vec::new();
    let mut shown = String::new();
    for (split, pieces) in &splits {
        let run = Run::new(case, pieces, &[]);
        let mut here = run.wrong();
        if *split == "whole" {
            here.extend(run.wrong_afterwards());
        }
        if shown.is_empty() && !here.is_empty() {
            let outputs = [
                run.outcome.stdout_text(),
                run.outcome
                    .stderr_text()
                    .replace(&run.server.url(), "SERVER"),
            ];
            shown = format!("\n  stdout {:?}\n  stderr {:?}", outputs[0], outputs[1]);
        }
        for what in here {
            match wrong.iter_mut().find(|(known, _)| *known == what) {
                Some((_, where_else)) => where_else.push(split),
                None => wrong.push((what, vec![split])),
            }
        }
    }
    if case.one("options").is_none() && case.requests() == 1 && case.one("pause").is_none() {
        let run = Run::new(case, &[&case.reply], &["--json"]);
        let here = run.wrong_in_json();
        if !here.is_empty() {
            shown.push_str(&format!(
                "\n  with --json {}",
                run.outcome.stdout_text().trim()
            ));
        }
        wrong.extend(here.into_iter().map(|what| (what, vec!["with --json"])));
    }
    if wrong.is_empty() {
        return None;
    }
    let mut failure = format!("{}\n  ({})", case.name, case.one("why").unwrap_or_default());
    for (what, splits_of) in wrong {
        let all = splits_of.len() == splits.len();
        let place = if all {
            String::new()
        } else {
            format!("{}: ", splits_of.join(", "))
        };
        failure.push_str(&format!("\n  - {place}{what}"));
    }
    Some(failure + &shown)
}

fn replay(dialect: &'static str) {
    let mut cases = cases(dialect);
    if let Ok(name) = env::var(ONLY) {
        cases.retain(|case| case.name.contains(&name));
    }
    let failed = failures_of(&cases, |case| {
        let failures = panic::catch_unwind(AssertUnwindSafe(|| failures(case)));
        failures.unwrap_or_else(|_| Some(format!("{}\n  panicked, see above", case.name)))
    });
    assert!(
        failed.is_empty(),
        "{} of {} cases failed:\n\n{}\n",
        failed.len(),
        cases.len(),
        failed.join("\n\n")
    );
}

#[test]
fn openai() {
    replay("openai");
}

#[test]
fn anthropic() {
    replay("anthropic");
}

#[test]
fn gemini() {
    replay("gemini");
}

#[test]
fn responses() {
    replay("responses");
}
