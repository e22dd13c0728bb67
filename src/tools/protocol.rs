//! The Model Context Protocol as a client speaks it: messages in, events and messages out (pure).

use serde_json::{Map, Value, json};

use super::result::Refusal;
use crate::one_line::on_one_line;
use crate::surrogates;

/// The version that q asks a program for.
const VERSION: &str = "2025-11-25";

/// The version that q asks for over HTTP. With the later one, servers may end a stream before the answer.
const PAIRED_VERSION: &str = "2025-06-18";

/// The versions that a server may answer with.
const KNOWN_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", PAIRED_VERSION, VERSION];

/// The most pages, tools and bytes of a list of tools.
const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 1000;
const LONGEST_LIST: usize = 16 << 20;

/// The most that a detail quotes of what a server wrote.
const LONGEST_QUOTE: usize = 500;

/// The JSON-RPC error for a request that a client does not serve.
const METHOD_NOT_FOUND: i64 = -32601;

/// What a server says about a tool in its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hints {
    /// It changes nothing; by default it may.
    pub(crate) read_only: bool,
    /// Whether it may delete or overwrite something; by default it may, unless it is read-only.
    pub(crate) destructive: Option<bool>,
    /// Whether it reaches beyond the server's own domain, such as to the web; by default it does.
    pub(crate) open_world: Option<bool>,
}

impl Hints {
    /// Whether the server says that a call changes nothing and reaches nothing outside.
    pub(crate) fn is_harmless(&self) -> bool {
        self.read_only && self.open_world == Some(false) && self.destructive != Some(true)
    }
}

/// A tool that a server offers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offered {
    /// The server's own name for it.
    pub(crate) name: String,
    pub(crate) description: String,
    /// A JSON Schema of an object.
    pub(crate) schema: Value,
    pub(crate) hints: Hints,
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The version of the protocol.
    pub(crate) protocol: String,
    pub(crate) tools: Vec<Offered>,
    /// There are more tools than q lists.
    pub(crate) has_more: bool,
}

/// The number of a request. No number is used twice.
pub(crate) type Id = u64;

/// What a message from the server means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// This line must be sent to the server, which does not answer it.
    Notify(String),
    /// This line answers a request of the server.
    Reply(String),
    /// This line must be sent to the server, and its answer continues the conversation.
    Ask(String),
    /// The tools are listed; calls may begin.
    Ready(About),
    /// The server cannot be used, for this reason.
    Unusable(String),
    /// The call that waits for its answer makes progress.
    Progress,
    /// The answer to a call.
    Answer(Id, Result<Value, Refusal>),
    /// A detail for `-v`.
    Detail(String),
}

/// One conversation with a server, from the first line to the last call.
#[derive(Debug, Clone)]
pub(crate) struct Protocol {
    is_paired: bool,
    state: State,
    last_id: Id,
    /// The version that the server speaks, once it has said so.
    version: String,
    about: About,
    cursors: Vec<String>,
    listed_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Initializing,
    Listing,
    /// Ready for a call.
    Idle,
    /// This call waits for its answer.
    Calling(Id),
    Unusable,
}

impl Protocol {
    /// A new conversation, and its first line. `is_paired`: each answer comes apart from all others, as over HTTP.
    pub(crate) fn open(is_paired: bool) -> (Protocol, String) {
        let mut protocol = Protocol {
            is_paired,
            state: State::Initializing,
            last_id: 0,
            version: String::new(),
            about: About::default(),
            cursors: Vec::new(),
            listed_bytes: 0,
        };
        let version = if is_paired { PAIRED_VERSION } else { VERSION };
        let client = json!({"name": "q", "version": env!("CARGO_PKG_VERSION")});
        let line = protocol
            .request("initialize", json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}));
        (protocol, line)
    }

    /// The version that the server speaks; empty until it has said so.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Begins a call: its number and the line to be sent. An earlier call without an answer is given up.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> (Id, String) {
        // Progress shows that the server still works on this call.
        let meta = json!({"progressToken": self.last_id + 1});
        let line = self.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}));
        self.state = State::Calling(self.last_id);
        (self.last_id, line)
    }

    /// Gives up a call: the line to be sent. Its answer is dropped if it comes after all.
    pub(crate) fn cancel(&mut self, id: Id) -> String {
        if self.state == State::Calling(id) {
            self.state = State::Idle;
        }
        notification("notifications/cancelled", json!({"requestId": id, "reason": "timed out"}))
    }

    /// What a line from the server means, without its line end.
    pub(crate) fn receive(&mut self, line: &[u8]) -> Vec<Event> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Vec::new();
        }
        match parse(line) {
            Ok(message @ Value::Object(_)) => self.receive_message(&message, line.len()),
            Err(error) if is_message(line) && String::from_utf8_lossy(line).contains("\"jsonrpc\"") => {
                self.receive_unreadable(format!("sent a message that cannot be parsed ({error})"))
            }
            _ => vec![Event::Detail(format!("wrote a line that is not a message: {}", quote(line)))],
        }
    }

    /// Handles a message that was too long to read.
    pub(crate) fn receive_too_long(&mut self, limit: usize) -> Vec<Event> {
        self.receive_unreadable(format!("sent a message of more than {} MB", limit / 1_000_000))
    }

    /// Handles a message that cannot be read. It may have been the answer, so a request that waits for one fails.
    fn receive_unreadable(&mut self, message: String) -> Vec<Event> {
        match self.state {
            State::Initializing | State::Listing => self.refuse(message),
            State::Calling(id) => {
                self.state = State::Idle;
                let refusal = Refusal { message: format!("the tool's server {message}"), code: None, data: None };
                vec![Event::Answer(id, Err(refusal))]
            }
            State::Idle | State::Unusable => vec![Event::Detail(message)],
        }
    }

    fn receive_message(&mut self, message: &Value, size: usize) -> Vec<Event> {
        let id = Some(&message["id"]).filter(|id| !id.is_null());
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => vec![Event::Reply(serve(method, id))],
            (Some(method), None) => self.notice(method, &message["params"]),
            (None, _) => self.receive_answer(message, size),
        }
    }

    fn notice(&self, method: &str, parameters: &Value) -> Vec<Event> {
        match (method, self.state) {
            ("notifications/message", _) => vec![Event::Detail(log_line(parameters))],
            ("notifications/progress", State::Calling(id)) if is_number(&parameters["progressToken"], id) => {
                vec![Event::Progress]
            }
            _ => Vec::new(),
        }
    }

    fn receive_answer(&mut self, message: &Value, size: usize) -> Vec<Event> {
        let error = message.get("error").filter(|error| !error.is_null());
        let id = &message["id"];
        // A server that could not read a request does not know its number. A program may mean a notification with
        // this, unless there was only the first request.
        let is_nameless = id.is_null() && error.is_some() && (self.is_paired || self.state == State::Initializing);
        // Anything else is the late answer to a call that was given up.
        if !is_number(id, self.last_id) && !is_nameless {
            return Vec::new();
        }
        let answer = match error {
            Some(error) => Err(Refusal::read(error)),
            None => Ok(&message["result"]),
        };
        match (self.state, answer) {
            (State::Initializing, Ok(result)) => self.initialized(result),
            (State::Initializing, Err(refusal)) => self.refuse(format!("refused to start a conversation: {refusal}")),
            (State::Listing, Ok(result)) => self.listed(result, size),
            (State::Listing, Err(refusal)) => self.refuse(format!("refused to list its tools: {refusal}")),
            (State::Calling(id), answer) => {
                self.state = State::Idle;
                vec![Event::Answer(id, answer.cloned())]
            }
            (State::Idle | State::Unusable, _) => Vec::new(),
        }
    }

    fn initialized(&mut self, result: &Value) -> Vec<Event> {
        let text = |value: &Value| value.as_str().map(|text| quote(text.as_bytes())).unwrap_or_default();
        let version = text(&result["protocolVersion"]);
        if version.is_empty() {
            return self.refuse("did not say which version of the protocol it speaks".to_owned());
        }
        if !KNOWN_VERSIONS.contains(&version.as_str()) {
            let oldest = KNOWN_VERSIONS[0];
            return self
                .refuse(format!("speaks version {version} of the protocol, and q speaks {oldest} to {VERSION}"));
        }
        self.version.clone_from(&version);
        self.about.protocol = version;
        self.about.name = text(&result["serverInfo"]["name"]);
        self.about.version = text(&result["serverInfo"]["version"]);
        let mut events = vec![Event::Notify(notification("notifications/initialized", json!({})))];
        if result["capabilities"]["tools"].is_object() {
            self.state = State::Listing;
            events.push(Event::Ask(self.request("tools/list", json!({}))));
        } else {
            events.push(self.ready());
        }
        events
    }

    fn listed(&mut self, result: &Value, size: usize) -> Vec<Event> {
        let Some(tools) = result["tools"].as_array() else {
            return self.refuse("answered tools/list without a list of tools".to_owned());
        };
        self.listed_bytes += size;
        if self.listed_bytes > LONGEST_LIST {
            return self.refuse(format!("lists tools in more than {} MB", LONGEST_LIST >> 20));
        }
        for tool in tools.iter().filter_map(offered) {
            if self.about.tools.iter().any(|other| other.name == tool.name) {
                continue;
            }
            if self.about.tools.len() == MOST_TOOLS {
                self.about.has_more = true;
                break;
            }
            self.about.tools.push(tool);
        }
        let cursor = result["nextCursor"].as_str().unwrap_or_default().to_owned();
        if cursor.is_empty() || self.cursors.contains(&cursor) || self.about.has_more {
            return vec![self.ready()];
        }
        if self.cursors.len() + 1 == MOST_PAGES {
            self.about.has_more = true;
            return vec![self.ready()];
        }
        let line = self.request("tools/list", json!({"cursor": cursor}));
        self.cursors.push(cursor);
        vec![Event::Ask(line)]
    }

    fn ready(&mut self) -> Event {
        self.state = State::Idle;
        Event::Ready(std::mem::take(&mut self.about))
    }

    fn refuse(&mut self, reason: String) -> Vec<Event> {
        self.state = State::Unusable;
        vec![Event::Unusable(reason)]
    }

    fn request(&mut self, method: &str, parameters: Value) -> String {
        self.last_id += 1;
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters}).to_string()
    }
}

/// Whether a line is meant as a message; servers may write other lines, too.
pub(crate) fn is_message(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{")
}

/// Whether a value is this number. Some servers write each number as a float, or as text.
fn is_number(value: &Value, number: Id) -> bool {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()) == Some(number as f64)
}

/// The answer to a request of the server.
fn serve(method: &str, id: &Value) -> String {
    let answer = if method == "ping" {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    } else {
        let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    };
    answer.to_string()
}

fn notification(method: &str, parameters: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": parameters}).to_string()
}

/// The tool that an entry of the list means, if it is one that q can call.
fn offered(tool: &Value) -> Option<Offered> {
    if tool["execution"]["taskSupport"] == "required" {
        return None;
    }
    let name = tool["name"].as_str().filter(|name| !name.is_empty())?.to_owned();
    let description = tool["description"].as_str().or_else(|| tool["title"].as_str()).unwrap_or_default().to_owned();
    let schema = Some(&tool["inputSchema"]).filter(|schema| schema.is_object()).cloned();
    let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
    let said = |hint: &str| tool["annotations"][hint].as_bool();
    let hints = Hints {
        read_only: said("readOnlyHint") == Some(true),
        destructive: said("destructiveHint"),
        open_world: said("openWorldHint"),
    };
    Some(Offered { name, description, schema, hints })
}

/// What a server wants to have logged.
fn log_line(parameters: &Value) -> String {
    let level = parameters["level"].as_str().unwrap_or("log");
    let data = &parameters["data"];
    let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    format!("{}: {}", quote(level.as_bytes()), quote(data.as_bytes()))
}

/// The beginning of what a server wrote, on one line.
fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_QUOTE)]);
    on_one_line(&text)
}

/// Reads a line. Bytes that are not UTF-8, and lone surrogates, become U+FFFD.
fn parse(line: &[u8]) -> serde_json::Result<Value> {
    surrogates::lossy(&String::from_utf8_lossy(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn odd_text_in_a_line_costs_no_answer() {
        for (line, text) in [
            (&b"{\"a\":\"x\xff\"}"[..], "x\u{fffd}"),
            (br#"{"a":"x\ud800y"}"#, "x\u{fffd}y"),
            (br#"{"a":"\udc00\ud83d\ude00\ud83d"}"#, "\u{fffd}\u{1f600}\u{fffd}"),
            (br#"{"a":"\\ud800"}"#, "\\ud800"),
            (br#"{"a":"\\ud800\ud800"}"#, "\\ud800\u{fffd}"),
            (br#"{"a":"\udc00\udc01\ud83d\ud83e"}"#, "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            let value = parse(line).expect("JSON");
            assert_eq!(value["a"], text, "{}", String::from_utf8_lossy(line));
        }
        assert!(parse(b"{\"a\":\"\\ud800").is_err());
    }

    /// What a server says about itself, with the version and the capabilities of the test.
    fn introduction(version: &str, capabilities: &Value) -> String {
        let about = json!({"name": "db", "version": "1.2"});
        let result = json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": about});
        answer(1, &result)
    }

    fn answer(id: Id, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "D", "inputSchema": {"type": "object"}})
    }

    /// The messages to send.
    fn sent(events: &[Event]) -> Vec<Value> {
        let lines = events.iter().filter_map(|event| match event {
            Event::Notify(line) | Event::Reply(line) | Event::Ask(line) => Some(line),
            _ => None,
        });
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn names(events: &[Event]) -> Vec<&str> {
        match events {
            [Event::Ready(about)] => about.tools.iter().map(|tool| tool.name.as_str()).collect(),
            other => panic!("not ready: {other:?}"),
        }
    }

    /// A protocol that has asked for the first page of tools, with the number 2.
    fn listing() -> Protocol {
        let (mut protocol, _) = Protocol::open(false);
        protocol.receive(introduction(VERSION, &json!({"tools": {}})).as_bytes());
        protocol
    }

    /// A protocol that is ready for a call, which gets the number 3.
    fn ready() -> Protocol {
        let mut protocol = listing();
        protocol.receive(answer(2, &json!({"tools": [tool("a")]})).as_bytes());
        protocol
    }

    #[test]
    fn the_first_line_introduces_q() {
        let line: Value = serde_json::from_str(&Protocol::open(false).1).expect("JSON");
        let client = json!({"name": "q", "version": env!("CARGO_PKG_VERSION")});
        let parameters = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        assert_eq!(line, json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}));
    }

    #[test]
    fn an_error_without_a_number_is_the_answer_where_it_can_be_no_other() {
        let nameless = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        let refused = [Event::Unusable("refused to start a conversation: what? (-32700)".to_owned())];
        let refusal = || Err(Refusal { message: "what?".to_owned(), code: Some(-32700), data: None });
        for is_paired in [false, true] {
            assert_eq!(Protocol::open(is_paired).0.receive(nameless), refused);
            let mut protocol = Protocol { is_paired, ..listing() };
            let is_refused = matches!(protocol.receive(nameless)[..], [Event::Unusable(_)]);
            assert_eq!(is_refused, is_paired);
            let mut protocol = Protocol { is_paired, ..ready() };
            let (id, _) = protocol.call("a", &Map::new());
            let events: Vec<Event> = is_paired.then(|| Event::Answer(id, refusal())).into_iter().collect();
            assert_eq!(protocol.receive(nameless), events);
        }
    }

    #[test]
    fn every_handshake_version_is_spoken() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let (mut protocol, _) = Protocol::open(false);
            let events = protocol.receive(introduction(version, &json!({"tools": {"listChanged": true}})).as_bytes());
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}});
            let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
            assert_eq!(sent(&events), [initialized, list], "{version}");
            let changed = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            assert_eq!(protocol.receive(changed), []);
            let schema = json!({"type": "object"});
            let tool_a = Offered { name: "a".into(), description: "D".into(), schema, hints: Hints::default() };
            let about = About {
                name: "db".into(),
                version: "1.2".into(),
                protocol: version.into(),
                tools: vec![tool_a],
                has_more: false,
            };
            let events = protocol.receive(answer(2, &json!({"tools": [tool("a")]})).as_bytes());
            assert_eq!(events, [Event::Ready(about)], "{version}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_unusable() {
        let new = introduction("2026-07-28", &json!({"tools": {}}));
        let refused = json!({"id": 1, "error": {"code": -32601, "message": "Method not found"}}).to_string();
        let other = json!({"id": 1, "error": {"code": -32022, "message": "Unsupported", "data": {}}}).to_string();
        for (name, line, expected) in [
            ("new", &new, "speaks version 2026-07-28 of the protocol, and q speaks 2024-11-05 to 2025-11-25"),
            ("refused", &refused, "refused to start a conversation: Method not found (-32601)"),
            ("unsupported", &other, "refused to start a conversation: Unsupported (-32022)"),
            ("empty", &answer(1, &json!({})), "did not say which version of the protocol it speaks"),
            ("no result", &json!({"id": 1}).to_string(), "did not say which version of the protocol it speaks"),
        ] {
            let (mut protocol, _) = Protocol::open(false);
            assert_eq!(protocol.receive(line.as_bytes()), [Event::Unusable(expected.to_owned())], "{name}");
            assert_eq!(protocol.receive(line.as_bytes()), [], "{name}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_makes_a_server_unusable() {
        let refused = json!({"id": 2, "error": {"code": -1, "message": "broken"}}).to_string();
        for (line, expected) in [
            (refused, "refused to list its tools: broken (-1)"),
            (answer(2, &json!({"tools": null})), "answered tools/list without a list of tools"),
        ] {
            assert_eq!(listing().receive(line.as_bytes()), [Event::Unusable(expected.to_owned())]);
        }
        assert_eq!(
            listing().receive_too_long(16 << 20),
            [Event::Unusable("sent a message of more than 16 MB".to_owned())]
        );
    }

    #[test]
    fn a_list_has_a_limit_in_bytes() {
        let mut protocol = listing();
        let long = "x".repeat(LONGEST_LIST / 2);
        let page = |cursor: &str| json!({"tools": [], "nextCursor": cursor, "_meta": long});
        assert_eq!(sent(&protocol.receive(answer(2, &page("b")).as_bytes())).len(), 1);
        let events = protocol.receive(answer(3, &page("c")).as_bytes());
        assert_eq!(events, [Event::Unusable("lists tools in more than 16 MB".to_owned())]);
    }

    #[test]
    fn a_server_without_tools_is_not_asked_for_them() {
        let (mut protocol, _) = Protocol::open(false);
        let events = protocol.receive(introduction(VERSION, &json!({"prompts": {}})).as_bytes());
        assert_eq!(sent(&events).len(), 1);
        assert!(names(&events[1..]).is_empty());
    }

    #[test]
    fn pages_are_read_until_one_is_the_last_or_repeats() {
        for last in [json!(null), json!(""), json!("second"), json!(7)] {
            let mut protocol = listing();
            let events = protocol.receive(answer(2, &json!({"tools": [tool("a")], "nextCursor": "second"})).as_bytes());
            let page = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "second"}});
            assert_eq!(sent(&events), [page], "{last}");
            let tools = [tool("b"), tool("a")];
            let events = protocol.receive(answer(3, &json!({"tools": tools, "nextCursor": last})).as_bytes());
            assert_eq!(names(&events), ["a", "b"], "{last}");
        }
    }

    #[test]
    fn a_list_without_end_is_ended() {
        for (tools_of_a_page, pages, tools) in [(1, 100, 100), (30, 34, 1000), (2000, 1, 1000)] {
            let mut protocol = listing();
            let mut events = Vec::new();
            let mut read = 0;
            while !matches!(events[..], [Event::Ready(_)]) {
                let page: Vec<Value> = (0..tools_of_a_page).map(|at| tool(&format!("t{read}-{at}"))).collect();
                let result = json!({"tools": page, "nextCursor": read.to_string()});
                events = protocol.receive(answer(read + 2, &result).as_bytes());
                read += 1;
            }
            assert_eq!((read, names(&events).len()), (pages, tools));
        }
    }

    #[test]
    fn tools_that_cannot_be_called_are_left_out() {
        let task = |support: &str| json!({"name": support, "execution": {"taskSupport": support}});
        let tools = json!({"tools": [task("required"), task("optional"), {"name": ""}, {}, 5, {"name": "bare"}]});
        let events = listing().receive(answer(2, &tools).as_bytes());
        assert_eq!(names(&events), ["optional", "bare"]);
    }

    #[test]
    fn hints_say_whether_a_call_is_harmless() {
        for (annotations, harmless) in [
            (json!({"readOnlyHint": true, "openWorldHint": false}), true),
            (json!({"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false}), true),
            (json!({"readOnlyHint": true, "openWorldHint": false, "destructiveHint": true}), false),
            (json!({"readOnlyHint": true, "openWorldHint": true}), false),
            (json!({"readOnlyHint": true}), false),
            (json!({"readOnlyHint": "true", "openWorldHint": false}), false),
            (json!({"readOnlyHint": false, "openWorldHint": false}), false),
            (json!({"openWorldHint": false}), false),
            (json!(null), false),
        ] {
            let tool = offered(&json!({"name": "a", "annotations": annotations})).expect("a tool");
            assert_eq!(tool.hints.is_harmless(), harmless, "{annotations}");
        }
    }

    #[test]
    fn a_call_is_answered_by_its_number() {
        let mut protocol = ready();
        let arguments = json!({"x": "1\n2"});
        let (id, line) = protocol.call("a", arguments.as_object().expect("an object"));
        let parameters = json!({"name": "a", "arguments": {"x": "1\n2"}, "_meta": {"progressToken": 3}});
        assert!(!line.contains('\n'));
        assert_eq!(
            serde_json::from_str::<Value>(&line).expect("JSON"),
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters})
        );
        for other in [answer(1, &json!({})), answer(99, &json!({})), json!({"id": null, "result": 1}).to_string()] {
            assert_eq!(protocol.receive(other.as_bytes()), [], "{other}");
        }
        let progress = |token: &str| {
            let parameters = format!(r#"{{"progressToken":{token},"progress":1}}"#);
            format!(r#"{{"method":"notifications/progress","params":{parameters}}}"#)
        };
        for (token, events) in [("3", &[Event::Progress][..]), ("\"3\"", &[Event::Progress]), ("2", &[]), ("null", &[])]
        {
            assert_eq!(protocol.receive(progress(token).as_bytes()), events, "{token}");
        }
        let result = answer(3, &json!({"content": []}));
        assert_eq!(protocol.receive(result.as_bytes()), [Event::Answer(3, Ok(json!({"content": []})))]);
        assert_eq!(protocol.receive(result.as_bytes()), []);
        assert_eq!(protocol.receive(progress("3").as_bytes()), []);
        let (id, _) = protocol.call("a", &Map::new());
        let refused = json!({"id": id, "error": {"code": -32602, "message": "no"}}).to_string();
        let refusal = Refusal { message: "no".to_owned(), code: Some(-32602), data: None };
        assert_eq!(protocol.receive(refused.as_bytes()), [Event::Answer(4, Err(refusal))]);
    }

    #[test]
    fn the_late_answer_to_a_call_that_was_given_up_is_dropped() {
        let mut protocol = ready();
        let (first, _) = protocol.call("a", &Map::new());
        let line: Value = serde_json::from_str(&protocol.cancel(first)).expect("JSON");
        let parameters = json!({"requestId": first, "reason": "timed out"});
        assert_eq!(line, json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters}));
        assert_eq!(protocol.receive(answer(first, &json!({})).as_bytes()), []);
        let (second, _) = protocol.call("a", &Map::new());
        assert_eq!(protocol.receive(answer(first, &json!({})).as_bytes()), []);
        assert_eq!(protocol.receive(answer(second, &json!({})).as_bytes()), [Event::Answer(second, Ok(json!({})))]);
    }

    #[test]
    fn requests_of_the_server_are_answered_at_any_time() {
        let not_found = json!({"code": -32601, "message": "Method not found"});
        for mut protocol in [Protocol::open(false).0, listing(), ready()] {
            let events = protocol.receive(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            assert_eq!(sent(&events), [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);
            let events = protocol.receive(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
            assert_eq!(sent(&events), [json!({"jsonrpc": "2.0", "id": 1, "error": not_found})]);
        }
    }

    #[test]
    fn what_is_no_message_is_a_detail() {
        let mut protocol = listing();
        let noise = |text: &str| vec![Event::Detail(format!("wrote a line that is not a message: {text}"))];
        assert_eq!(protocol.receive(b"Listening  on\tstdio\r"), noise("Listening on stdio"));
        assert_eq!(protocol.receive(b"\xff"), noise("\u{fffd}"));
        assert_eq!(protocol.receive(b"5"), noise("5"));
        assert_eq!(protocol.receive(b"[1,{}]"), noise("[1,{}]"));
        for debug in [r#"sending {"jsonrpc":"2.0","id":1}"#, r#"[{"jsonrpc":"2.0"}]"#, "{'jsonrpc': '2.0'}"] {
            assert_eq!(protocol.receive(debug.as_bytes()), noise(debug));
        }
        assert_eq!(protocol.receive(b" "), []);
        let deep = "[".repeat(10_000);
        assert_eq!(protocol.receive(deep.as_bytes()), noise(&"[".repeat(LONGEST_QUOTE)));
        let log = br#"{"method":"notifications/message","params":{"level":"info","data":{"a":1}}}"#;
        assert_eq!(protocol.receive(log), [Event::Detail("info: {\"a\":1}".to_owned())]);
    }

    #[test]
    fn a_line_that_is_too_long_fails_the_call_that_waits() {
        let mut protocol = ready();
        let message = "sent a message of more than 16 MB".to_owned();
        assert_eq!(protocol.receive_too_long(16 << 20), [Event::Detail(message.clone())]);
        let (id, _) = protocol.call("a", &Map::new());
        let refusal = Refusal { message: format!("the tool's server {message}"), code: None, data: None };
        assert_eq!(protocol.receive_too_long(16 << 20), [Event::Answer(id, Err(refusal))]);
    }

    #[test]
    fn a_message_that_cannot_be_parsed_fails_the_call_that_waits() {
        for result in ["NaN".to_owned(), format!("{}1{}", "[".repeat(200), "]".repeat(200))] {
            let mut protocol = ready();
            let (id, _) = protocol.call("a", &Map::new());
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
            let events = protocol.receive(line.as_bytes());
            let [Event::Answer(answered, Err(refusal))] = &events[..] else { panic!("{events:?}") };
            assert!(refusal.message.contains("sent a message that cannot be parsed ("), "{refusal}");
            assert_eq!(*answered, id);
        }
    }

    #[test]
    fn numbers_of_answers_may_be_floats_or_text() {
        for number in ["3", "3.0", "\"3\""] {
            let mut protocol = ready();
            let (id, _) = protocol.call("a", &Map::new());
            let line = format!("{{\"id\":{number},\"result\":{{}}}}");
            assert_eq!(protocol.receive(line.as_bytes()), [Event::Answer(id, Ok(json!({})))], "{number}");
        }
    }

    /// Lines of a server, most of them nearly right.
    fn lines() -> impl Strategy<Value = String> {
        let id = prop::sample::select(vec!["1", "2", "\"3\"", "3", "4", "null", "{}", "-1"]);
        let body = prop::sample::select(vec![
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"version":1}}"#,
            r#""result":{"protocolVersion":"1999-01-01"}"#,
            r#""result":{"tools":[{"name":"a","inputSchema":{}},{"name":""},7],"nextCursor":"c"}"#,
            r#""result":{"tools":[{"name":"b","execution":{"taskSupport":"required"}}],"nextCursor":null}"#,
            r#""result":{"content":[{"type":"text","text":"x\ud800"}],"isError":true}"#,
            r#""error":{"code":-32601,"message":"no"}"#,
            r#""error":null"#,
            r#""method":"ping""#,
            r#""method":"notifications/message","params":{"data":[1]}"#,
        ]);
        let message = (id, body).prop_map(|(id, body)| format!("{{\"id\":{id},{body}}}"));
        prop_oneof![
            6 => message,
            1 => "[\\[\\]{}\":a1,\\\\u ]{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn whatever_a_server_writes_it_is_ready_once_and_no_number_comes_twice(
            lines in prop::collection::vec(lines(), 0..12),
        ) {
            let (mut protocol, first) = Protocol::open(false);
            let number = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["id"].as_u64();
            let mut numbers = vec![number(&first)];
            let (mut ready, mut is_unusable) = (0, false);
            for line in lines {
                for event in protocol.receive(line.as_bytes()) {
                    match event {
                        Event::Ready(_) => {
                            ready += 1;
                            numbers.push(number(&protocol.call("a", &Map::new()).1));
                        }
                        Event::Ask(line) => numbers.push(number(&line)),
                        Event::Unusable(_) => is_unusable = true,
                        Event::Notify(line) | Event::Reply(line) => prop_assert!(serde_json::from_str::<Map<String, Value>>(&line).is_ok()),
                        Event::Answer(..) => prop_assert!(ready == 1 && !is_unusable),
                        Event::Detail(_) | Event::Progress => {}
                    }
                }
            }
            prop_assert!(ready == 0 || (ready == 1 && !is_unusable));
            prop_assert!(numbers.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]), "{:?}", numbers);
        }
    }
}
