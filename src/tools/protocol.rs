//! The Model Context Protocol as a client speaks it, in both of its revisions: messages in, events and messages out (pure).
//!
//! Up to 2025-11-25 a conversation begins with a handshake. Since 2026-07-28 there is none: every request says for itself
//! what it speaks. Some servers end at an unknown first request, so the handshake comes first.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::text::one_line::on_one_line;
use crate::text::surrogates;

/// The revision that the handshake asks for; over HTTP one in which a client need not resume streams, because q does not.
const HANDSHAKE: &str = "2025-11-25";
const HANDSHAKE_OVER_HTTP: &str = "2025-06-18";

/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// The revisions that a server may answer the handshake with.
const KNOWN_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", HANDSHAKE_OVER_HTTP, HANDSHAKE];

/// The most bytes of a message that are read.
pub const MAX_MESSAGE: usize = 16_000_000;

/// The most tools of a list.
const MAX_TOOLS: usize = 1000;

/// The most that a detail quotes of what a server wrote.
const MAX_QUOTE: usize = 500;

/// The JSON-RPC error for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

/// The key of a schema that names a header for its value.
const HEADER: &str = "x-mcp-header";

/// The beginning of a header's value that is encoded.
const ENCODED: &str = "=?base64?";

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedTool {
    /// The server's own name for it.
    pub name: String,
    pub description: String,
    /// A JSON Schema of an object.
    pub schema: Value,
    /// Its server says that a call changes nothing.
    pub reads: bool,
    /// It also says that a call reaches nothing outside.
    pub is_harmless: bool,
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct About {
    pub name: String,
    pub version: String,
    /// The revision of the protocol.
    pub revision: String,
    /// How a model should use the server.
    pub instructions: String,
    pub tools: Vec<ListedTool>,
}

/// The number of a request; each request has its own.
pub type Id = u64;

/// What a message from the server means.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// This message continues the conversation.
    Send(Value),
    /// This message answers a request of the server.
    Reply(Value),
    /// The tools are listed; calls may begin.
    Ready(About),
    /// The server cannot be used, for this reason.
    Unusable(String),
    /// The call that waits for its answer makes progress.
    Progress,
    /// The result of a call, or the server's words for its refusal.
    Answer(Id, Result<Value, String>),
    /// A detail for `-v`.
    Detail(String),
}

/// One conversation with a server, from the first message to the last call.
#[derive(Debug, Default)]
pub struct Protocol {
    /// Each answer comes on the connection of its request.
    over_http: bool,
    phase: Phase,
    last_id: Id,
    /// How the server refused the handshake.
    refusal: String,
    /// Its `revision` is empty until a revision is agreed on.
    about: About,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Initializing,
    Discovering,
    Listing,
    /// Ready for a call, or unusable.
    Idle,
    /// This call waits for its answer.
    Calling(Id),
}

impl Protocol {
    /// A new conversation, and its first message. `refusal` is how another process of the same server refused the handshake.
    pub fn open(over_http: bool, refusal: Option<String>) -> (Protocol, Value) {
        let mut protocol = Protocol {
            over_http,
            ..Protocol::default()
        };
        let first = match refusal {
            Some(refusal) => protocol.discover(refusal),
            None => protocol.initialize(),
        };
        (protocol, first)
    }

    /// The revision that both speak; empty until that is known.
    pub fn revision(&self) -> &str {
        &self.about.revision
    }

    /// How the server refused the handshake, unless it has answered since.
    pub fn refusal(&self) -> Option<String> {
        if self.phase != Phase::Discovering {
            return None;
        }
        Some(self.refusal.clone())
    }

    /// Whether the answer to this request is still wanted.
    pub fn awaits(&self, id: &Value) -> bool {
        self.phase != Phase::Idle && *id == self.last_id
    }

    /// Begins a call: its number and the message to be sent. An earlier call without an answer is given up.
    pub fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> (Id, Value) {
        // Progress shows that the server still works on this call.
        let token = self.last_id + 1;
        let parameters =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        let message = self.request("tools/call", parameters);
        self.phase = Phase::Calling(self.last_id);
        (self.last_id, message)
    }

    /// Gives up a call, whose late answer will be dropped. Returns the message that says so, unless the end of the
    /// connection says it.
    pub fn cancel(&mut self, id: Id) -> Option<Value> {
        if self.phase == Phase::Calling(id) {
            self.phase = Phase::Idle;
        }
        if self.over_http && self.is_stateless() {
            return None;
        }
        let parameters = json!({"requestId": id, "reason": "timed out"});
        Some(notification("notifications/cancelled", parameters))
    }

    /// The headers that a message has over HTTP.
    pub fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        let revision = self.revision();
        if !revision.is_empty() {
            headers.push(("mcp-protocol-version".to_owned(), revision.to_owned()));
        }
        // Which revision the first request is for is only known from its answer.
        let needs_more = revision.is_empty() || self.is_stateless();
        if needs_more && let Some(method) = message["method"].as_str() {
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            let parameters = &message["params"];
            if let Some(name) = parameters["name"].as_str() {
                headers.push(("mcp-name".to_owned(), header_value(name)));
                let mut tools = self.about.tools.iter();
                if let Some(tool) = tools.find(|tool| tool.name == name) {
                    headers.extend(mirrored(&tool.schema, &parameters["arguments"]));
                }
            }
        }
        headers
    }

    /// What a line from the server means, without its line end. A line that is too long is cut, so that it cannot be parsed.
    pub fn receive(&mut self, line: &[u8]) -> Vec<ServerEvent> {
        let line = line.trim_ascii();
        match parse(line) {
            Ok(message @ Value::Object(_)) => self.receive_message(&message),
            // Servers write other lines, too.
            Err(error) if line.starts_with(b"{\"") => self.receive_unreadable(format!(
                "sent a message that cannot be parsed, or has more than 16 MB ({error})"
            )),
            _ if line.is_empty() => Vec::new(),
            _ => {
                let detail = format!("wrote a line that is not a message: {}", quote(line));
                vec![ServerEvent::Detail(detail)]
            }
        }
    }

    /// Handles a message that cannot be read. It may have been the answer, so a request that waits for one fails.
    fn receive_unreadable(&mut self, message: String) -> Vec<ServerEvent> {
        match self.phase {
            Phase::Calling(id) => {
                self.phase = Phase::Idle;
                let failure = format!("the tool server {message}");
                vec![ServerEvent::Answer(id, Err(failure))]
            }
            Phase::Idle => vec![ServerEvent::Detail(message)],
            _ => self.refuse(message),
        }
    }

    fn receive_message(&mut self, message: &Value) -> Vec<ServerEvent> {
        let Some(method) = message["method"].as_str() else {
            return self.receive_answer(message);
        };
        let id = &message["id"];
        if !id.is_null() {
            // Without a handshake, a server sends no requests.
            if self.is_stateless() {
                return Vec::new();
            }
            return vec![ServerEvent::Reply(serve(method, id))];
        }
        let call = &message["params"]["progressToken"];
        if method == "notifications/progress" && *call == self.last_id {
            return vec![ServerEvent::Progress];
        }
        Vec::new()
    }

    fn receive_answer(&mut self, message: &Value) -> Vec<ServerEvent> {
        let number = &message["id"];
        let error = &message["error"];
        let answer = if error.is_null() {
            Ok(&message["result"])
        } else {
            Err(error)
        };
        // A server that could not read a request does not know its number. A program's error may be about a notification.
        let is_nameless = number.is_null() && answer.is_err() && self.over_http;
        // Anything else is the late answer to a call that was given up.
        if *number != self.last_id && !is_nameless {
            return Vec::new();
        }
        match self.phase {
            Phase::Initializing => self.initialized(answer),
            Phase::Discovering => self.discovered(answer),
            Phase::Listing => self.listed(answer),
            Phase::Calling(id) => {
                self.phase = Phase::Idle;
                let answer = answer.cloned().map_err(words);
                vec![ServerEvent::Answer(id, answer)]
            }
            Phase::Idle => Vec::new(),
        }
    }

    /// Begins the handshake.
    fn initialize(&mut self) -> Value {
        let revision = if self.over_http {
            HANDSHAKE_OVER_HTTP
        } else {
            HANDSHAKE
        };
        let parameters =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client()});
        self.request("initialize", parameters)
    }

    fn initialized(&mut self, answer: Result<&Value, &Value>) -> Vec<ServerEvent> {
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                let refusal = format!("refused to start a conversation: {}", words(error));
                return vec![ServerEvent::Send(self.discover(refusal))];
            }
        };
        let version = &result["protocolVersion"];
        if version == STATELESS {
            let refusal =
                format!("speaks version {STATELESS} of the protocol, but does not say what it has");
            return vec![ServerEvent::Send(self.discover(refusal))];
        }
        self.about.revision = string(version);
        if !KNOWN_VERSIONS.contains(&self.about.revision.as_str()) {
            let oldest = KNOWN_VERSIONS[0];
            return self.refuse(format!(
                "speaks version {version} of the protocol, and q speaks {oldest} to {STATELESS}"
            ));
        }
        let initialized = notification("notifications/initialized", json!({}));
        let next = self.introduced(result, &result["serverInfo"]);
        vec![ServerEvent::Send(initialized), next]
    }

    /// Asks a server that has refused the handshake whether it speaks the revision without one.
    fn discover(&mut self, refusal: String) -> Value {
        self.refusal = refusal;
        self.phase = Phase::Discovering;
        self.about.revision = STATELESS.to_owned();
        self.request("server/discover", json!({}))
    }

    fn discovered(&mut self, answer: Result<&Value, &Value>) -> Vec<ServerEvent> {
        let result = answer.unwrap_or(&Value::Null);
        let supported = result["supportedVersions"].as_array();
        if !supported.is_some_and(|versions| versions.iter().any(|version| version == STATELESS)) {
            return self.refuse(self.refusal.clone());
        }
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        vec![self.introduced(result, server)]
    }

    /// Keeps what a server says about itself, and asks for its tools if it has any.
    fn introduced(&mut self, result: &Value, server: &Value) -> ServerEvent {
        self.about.name = string(&server["name"]);
        self.about.version = string(&server["version"]);
        self.about.instructions = string(&result["instructions"]);
        if !result["capabilities"]["tools"].is_object() {
            return self.ready();
        }
        self.phase = Phase::Listing;
        ServerEvent::Send(self.request("tools/list", json!({})))
    }

    fn listed(&mut self, answer: Result<&Value, &Value>) -> Vec<ServerEvent> {
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                return self.refuse(format!("refused to list its tools: {}", words(error)));
            }
        };
        let Some(tools) = result["tools"].as_array() else {
            return self.refuse("answered tools/list without a list of tools".to_owned());
        };
        let listed = &mut self.about.tools;
        let known = listed.len();
        for tool in tools.iter().filter_map(listed_tool) {
            let is_known = listed.iter().any(|other| other.name == tool.name);
            if !is_known && listed.len() < MAX_TOOLS {
                listed.push(tool);
            }
        }
        let has_new_tools = listed.len() > known;
        let cursor = &result["nextCursor"];
        // Some servers repeat a page for ever.
        if !has_new_tools || cursor.as_str().is_none_or(str::is_empty) {
            return vec![self.ready()];
        }
        let message = self.request("tools/list", json!({"cursor": cursor}));
        vec![ServerEvent::Send(message)]
    }

    fn ready(&mut self) -> ServerEvent {
        self.phase = Phase::Idle;
        ServerEvent::Ready(self.about.clone())
    }

    fn refuse(&mut self, reason: String) -> Vec<ServerEvent> {
        self.phase = Phase::Idle;
        vec![ServerEvent::Unusable(reason)]
    }

    fn is_stateless(&self) -> bool {
        self.about.revision == STATELESS
    }

    fn request(&mut self, method: &str, mut parameters: Value) -> Value {
        self.last_id += 1;
        if self.is_stateless() {
            let meta = &mut parameters["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
            meta["io.modelcontextprotocol/clientInfo"] = client();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": parameters})
    }
}

fn client() -> Value {
    json!({"name": "q", "version": env!("CARGO_PKG_VERSION")})
}

/// The answer to a request of the server.
fn serve(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn notification(method: &str, parameters: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": parameters})
}

/// What a JSON-RPC error says: its message, code and data. An error without a message is shown as JSON.
fn words(error: &Value) -> String {
    let Some(message) = error["message"].as_str() else {
        return error.to_string();
    };
    let mut words = message.to_owned();
    if let Some(code) = error["code"].as_i64() {
        words += &format!(" ({code})");
    }
    match &error["data"] {
        Value::Null => (),
        Value::String(text) => words += &format!(": {text}"),
        data => words += &format!(": {data}"),
    }
    words
}

/// The tool that an entry of the list means, if it is one that q can call.
fn listed_tool(tool: &Value) -> Option<ListedTool> {
    if tool["execution"]["taskSupport"] == "required" {
        return None;
    }
    let name = string(&tool["name"]);
    if name.is_empty() {
        return None;
    }
    let mut description = string(&tool["description"]);
    if description.is_empty() {
        description = string(&tool["title"]);
    }
    let mut schema = tool["inputSchema"].clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    if !has_valid_headers(&schema, &mut Vec::new()) {
        return None;
    }
    // By default, a tool may change, overwrite and reach anything.
    let hints = &tool["annotations"];
    let reads = hints["readOnlyHint"] == true;
    let stays_inside = hints["openWorldHint"] == false;
    let destroys = hints["destructiveHint"] == true;
    let is_harmless = reads && stays_inside && !destroys;
    Some(ListedTool {
        name,
        description,
        schema,
        reads,
        is_harmless,
    })
}

/// Whether the headers that a schema asks for can be sent: their names are valid and differ, and their values are no
/// objects, arrays or fractions. The specification forbids clients to call other tools.
fn has_valid_headers(schema: &Value, names: &mut Vec<HeaderName>) -> bool {
    for (_, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(header) = property.get(HEADER) {
            let kind = property["type"].as_str().unwrap_or_default();
            let has_valid_type = ["string", "integer", "boolean"].contains(&kind);
            match header.as_str().unwrap_or_default().parse() {
                Ok(name) if has_valid_type && !names.contains(&name) => names.push(name),
                _ => return false,
            }
        }
        if !has_valid_headers(property, names) {
            return false;
        }
    }
    true
}

/// The arguments that a tool's schema wants in headers, too. Proxies can see them there.
fn mirrored(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let argument = &arguments[name];
        let value = match argument {
            Value::String(text) => Some(header_value(text)),
            Value::Number(_) | Value::Bool(_) => Some(argument.to_string()),
            _ => None,
        };
        if let Some(header) = property[HEADER].as_str()
            && let Some(value) = value
        {
            headers.push((format!("mcp-param-{header}"), value));
        } else {
            headers.extend(mirrored(property, argument));
        }
    }
    headers
}

/// A text as the value of a header, encoded if it cannot stand there as it is.
fn header_value(text: &str) -> String {
    let mut bytes = text.bytes();
    let is_printable = bytes.all(|byte| matches!(byte, b' '..=b'~'));
    let is_trimmed = text.trim() == text;
    if is_printable && is_trimmed && !text.starts_with(ENCODED) {
        return text.to_owned();
    }
    let encoded = BASE64_STANDARD.encode(text);
    format!("{ENCODED}{encoded}?=")
}

/// The beginning of what a server wrote, on one line.
fn quote(text: &[u8]) -> String {
    let length = text.len().min(MAX_QUOTE);
    let text = String::from_utf8_lossy(&text[..length]);
    on_one_line(&text)
}

/// A string in a message; empty for any other value.
fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads a line. Bytes that are not UTF-8, and lone surrogates, become U+FFFD.
fn parse(line: &[u8]) -> serde_json::Result<Value> {
    surrogates::lossy(&String::from_utf8_lossy(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::tests::rows;

    #[test]
    fn odd_text_in_a_line_costs_no_answer() {
        for (line, text) in [
            (&b"{\"a\":\"x\xff\"}"[..], "x\u{fffd}"),
            (br#"{"a":"x\ud800y"}"#, "x\u{fffd}y"),
        ] {
            let value = parse(line).expect("JSON");
            assert_eq!(value["a"], text, "{}", String::from_utf8_lossy(line));
        }
        assert!(parse(b"{\"a\":\"\\ud800").is_err());
    }

    /// What a server says about itself, with the version and the capabilities of the test.
    fn introduction(version: &str, capabilities: &Value) -> String {
        let about = json!({"name": "db", "version": "1.2"});
        let result = json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": about,
                            "instructions": "Be brief."});
        answer(1, &result)
    }

    fn answer(id: Id, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "description": "D", "inputSchema": {"type": "object"}})
    }

    /// The messages to send.
    fn sent(events: &[ServerEvent]) -> Vec<Value> {
        let messages = events.iter().filter_map(|event| match event {
            ServerEvent::Send(message) | ServerEvent::Reply(message) => Some(message),
            _ => None,
        });
        messages.cloned().collect()
    }

    fn names(events: &[ServerEvent]) -> Vec<&str> {
        match events {
            [ServerEvent::Ready(about)] => {
                about.tools.iter().map(|tool| tool.name.as_str()).collect()
            }
            other => panic!("not ready: {other:?}"),
        }
    }

    /// A protocol that has asked for the first page of tools, with the number 2.
    fn listing() -> Protocol {
        let (mut protocol, _) = Protocol::open(false, None);
        protocol.receive(introduction(HANDSHAKE, &json!({"tools": {}})).as_bytes());
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
        let line = Protocol::open(false, None).1;
        let client = json!({"name": "q", "version": env!("CARGO_PKG_VERSION")});
        let parameters =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        assert_eq!(
            line,
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters})
        );
    }

    #[test]
    fn an_error_without_a_number_counts_if_only_one_request_waits() {
        let nameless = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        for over_http in [false, true] {
            let mut protocol = Protocol {
                over_http,
                ..listing()
            };
            let is_refused = matches!(protocol.receive(nameless)[..], [ServerEvent::Unusable(_)]);
            assert_eq!(is_refused, over_http);
            let mut protocol = Protocol {
                over_http,
                ..ready()
            };
            let (id, _) = protocol.call("a", &Map::new());
            let refusal = Err("what? (-32700)".to_owned());
            let events: Vec<ServerEvent> = over_http
                .then(|| ServerEvent::Answer(id, refusal))
                .into_iter()
                .collect();
            assert_eq!(protocol.receive(nameless), events);
        }
    }

    fn error(id: Id, code: i64, data: &Value) -> Vec<u8> {
        json!({"id": id, "error": {"code": code, "message": "no", "data": data}})
            .to_string()
            .into_bytes()
    }

    /// A request without a handshake.
    fn stateless(id: Id, method: &str, mut parameters: Value) -> Value {
        let meta = &mut parameters["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "q", "version": env!("CARGO_PKG_VERSION")});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
    }

    #[test]
    fn a_server_that_refuses_the_handshake_is_spoken_to_without_one() {
        for is_new_process in [false, true] {
            let (mut protocol, asked) = if is_new_process {
                Protocol::open(false, Some("refused".to_owned()))
            } else {
                let (mut protocol, _) = Protocol::open(false, None);
                let sent = sent(&protocol.receive(&error(1, -32601, &json!(null)))).remove(0);
                (protocol, sent)
            };
            let id = if is_new_process { 1 } else { 2 };
            assert_eq!(asked, stateless(id, "server/discover", json!({})));
            assert!(protocol.refusal().is_some());
            let meta =
                json!({"io.modelcontextprotocol/serverInfo": {"name": "db", "version": "1"}});
            let result = json!({"supportedVersions": ["2027-01-01", "2026-07-28"], "capabilities": {"tools": {}},
                                "instructions": "Be brief.", "resultType": "complete", "_meta": meta});
            let events = protocol.receive(answer(id, &result).as_bytes());
            assert_eq!(sent(&events), [stateless(id + 1, "tools/list", json!({}))]);
            assert_eq!(
                (protocol.revision(), protocol.refusal()),
                ("2026-07-28", None)
            );
            let tools = json!({"tools": [tool("a")], "resultType": "complete", "nextCursor": "n"});
            let events = protocol.receive(answer(id + 1, &tools).as_bytes());
            assert_eq!(
                sent(&events),
                [stateless(id + 2, "tools/list", json!({"cursor": "n"}))]
            );
            let events = protocol.receive(answer(id + 2, &json!({"tools": []})).as_bytes());
            let [ServerEvent::Ready(about)] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!(
                (&*about.name, &*about.instructions, about.tools.len()),
                ("db", "Be brief.", 1)
            );
            // It answers no request, and gives up a call like any other.
            assert_eq!(protocol.receive(br#"{"id":"p","method":"ping"}"#), []);
            let (number, call) = protocol.call("a", &Map::new());
            let parameters =
                json!({"name": "a", "arguments": {}, "_meta": {"progressToken": number}});
            assert_eq!(call, stateless(number, "tools/call", parameters));
            assert!(protocol.cancel(number).is_some());
            // Over HTTP the end of the connection says it.
            protocol.over_http = true;
            assert_eq!(protocol.cancel(number), None);
        }
    }

    #[test]
    fn a_server_that_speaks_neither_revision_says_so() {
        let refused = "refused to start a conversation: no (-1)";
        for answer in [
            error(2, -32601, &json!(null)),
            answer(2, &json!({"supportedVersions": ["2027-01-01", "x"]})).into_bytes(),
            answer(2, &json!({})).into_bytes(),
        ] {
            let (mut protocol, _) = Protocol::open(false, None);
            protocol.receive(&error(1, -1, &json!(null)));
            assert_eq!(
                protocol.receive(&answer),
                [ServerEvent::Unusable(refused.to_owned())]
            );
        }
    }

    #[test]
    fn tools_that_ask_for_headers_that_cannot_be_sent_are_left_out() {
        for [is_listed, properties] in rows(
            r#"
            yes | {"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"B"}}
            yes | {"x-mcp-header":{"type":"string"}}
            no | {"a":{"type":"string","x-mcp-header":""}}
            no | {"a":{"type":"string","x-mcp-header":7}}
            no | {"a":{"type":"string","x-mcp-header":"A B"}}
            no | {"a":{"type":"string","x-mcp-header":"A:B"}}
            no | {"a":{"type":"string","x-mcp-header":"é"}}
            no | {"a":{"type":"number","x-mcp-header":"A"}}
            no | {"a":{"type":"object","x-mcp-header":"A"}}
            no | {"a":{"x-mcp-header":"A"}}
            no | {"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}
            no | {"a":{"properties":{"b":{"type":"array","x-mcp-header":"A"}}}}
        "#,
        ) {
            let schema = format!(r#"{{"properties": {properties}}}"#);
            let schema: Value = serde_json::from_str(&schema).expect("JSON");
            let tool = json!({"name": "a", "inputSchema": schema});
            assert_eq!(
                listed_tool(&tool).is_some(),
                is_listed == "yes",
                "{properties}"
            );
        }
    }

    #[test]
    fn a_server_that_answers_the_handshake_with_the_revision_without_one_is_asked_what_it_has() {
        let (mut protocol, first) = Protocol::open(true, None);
        assert_eq!(first["params"]["protocolVersion"], "2025-06-18");
        let events = protocol.receive(introduction("2026-07-28", &json!({})).as_bytes());
        assert_eq!(sent(&events)[0]["method"], "server/discover");
        let unknown = protocol.receive(&error(2, -32601, &json!(null)));
        let reason = "speaks version 2026-07-28 of the protocol, but does not say what it has";
        assert_eq!(unknown, [ServerEvent::Unusable(reason.to_owned())]);
    }

    #[test]
    fn headers_say_what_a_message_is_where_there_is_no_handshake() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let (mut protocol, first) = Protocol::open(true, None);
        assert_eq!(protocol.headers(&first), [pair("mcp-method", "initialize")]);
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}, "row": {"type": "integer", "x-mcp-header": "Row"},
            "gone": {"type": "string", "x-mcp-header": "Gone"}, "null": {"type": "string", "x-mcp-header": "Null"},
            "plain": {},
            "deep": {"properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
        }});
        let names = ["a b", "größe", " a", "=?base64?x?="]
            .map(|name| json!({"name": name, "inputSchema": schema}));
        let discover = sent(&protocol.receive(&error(1, -32601, &json!(null)))).remove(0);
        let version = pair("mcp-protocol-version", "2026-07-28");
        assert_eq!(
            protocol.headers(&discover),
            [version.clone(), pair("mcp-method", "server/discover")]
        );
        protocol.receive(
            answer(
                2,
                &json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            )
            .as_bytes(),
        );
        let tools: Vec<Value> = [tool("plain")].into_iter().chain(names).collect();
        protocol.receive(answer(3, &json!({"tools": tools})).as_bytes());
        for (name, encoded) in [
            ("a b", "a b"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            let arguments = json!({"region": "ä", "row": -7, "null": null, "plain": "x", "deep": {"on": true}, "more": 1});
            let (_, call) = protocol.call(name, arguments.as_object().expect("an object"));
            let mut headers = protocol.headers(&call);
            headers[3..].sort();
            let expected = [
                version.clone(),
                pair("mcp-method", "tools/call"),
                pair("mcp-name", encoded),
                pair("mcp-param-On", "true"),
                pair("mcp-param-Region", "=?base64?w6Q=?="),
                pair("mcp-param-Row", "-7"),
            ];
            assert_eq!(headers, expected);
        }
        // After a handshake there is only the version.
        let (mut protocol, _) = Protocol::open(true, None);
        protocol.receive(introduction("2025-06-18", &json!({})).as_bytes());
        let call = protocol.call("a", &Map::new()).1;
        assert_eq!(
            protocol.headers(&call),
            [pair("mcp-protocol-version", "2025-06-18")]
        );
    }

    #[test]
    fn every_handshake_version_is_spoken() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let (mut protocol, _) = Protocol::open(false, None);
            let events = protocol.receive(
                introduction(version, &json!({"tools": {"listChanged": true}})).as_bytes(),
            );
            let initialized =
                json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}});
            let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
            assert_eq!(sent(&events), [initialized, list], "{version}");
            let changed = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            assert_eq!(protocol.receive(changed), []);
            let schema = json!({"type": "object"});
            let tool_a = ListedTool {
                name: "a".into(),
                description: "D".into(),
                schema,
                reads: false,
                is_harmless: false,
            };
            let about = About {
                name: "db".into(),
                version: "1.2".into(),
                revision: version.into(),
                instructions: "Be brief.".into(),
                tools: vec![tool_a],
            };
            let events = protocol.receive(answer(2, &json!({"tools": [tool("a")]})).as_bytes());
            assert_eq!(events, [ServerEvent::Ready(about)], "{version}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_spoken_to_is_unusable() {
        for [expected, result] in rows(
            r#"
            speaks version "2027-07-28" of the protocol, and q speaks 2024-11-05 to 2026-07-28 | {"protocolVersion": "2027-07-28"}
            speaks version null of the protocol, and q speaks 2024-11-05 to 2026-07-28 | {}
        "#,
        ) {
            let line = format!(r#"{{"id": 1, "result": {result}}}"#);
            let (mut protocol, _) = Protocol::open(false, None);
            let events = protocol.receive(line.as_bytes());
            assert_eq!(
                events,
                [ServerEvent::Unusable(expected.to_owned())],
                "{result}"
            );
            assert_eq!(protocol.receive(line.as_bytes()), [], "{result}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_makes_a_server_unusable() {
        let refused = json!({"id": 2, "error": {"code": -1, "message": "broken"}}).to_string();
        for (line, expected) in [
            (refused, "refused to list its tools: broken (-1)"),
            (
                answer(2, &json!({"tools": null})),
                "answered tools/list without a list of tools",
            ),
        ] {
            assert_eq!(
                listing().receive(line.as_bytes()),
                [ServerEvent::Unusable(expected.to_owned())]
            );
        }
    }

    #[test]
    fn a_server_without_tools_is_not_asked_for_them() {
        let (mut protocol, _) = Protocol::open(false, None);
        let events = protocol.receive(introduction(HANDSHAKE, &json!({"prompts": {}})).as_bytes());
        assert_eq!(sent(&events).len(), 1);
        assert!(names(&events[1..]).is_empty());
    }

    #[test]
    fn pages_are_read_until_one_is_the_last_or_has_no_new_tools() {
        for (last, new) in [
            (json!(null), "b"),
            (json!(""), "b"),
            (json!(7), "b"),
            (json!("third"), "a"),
        ] {
            let mut protocol = listing();
            let events = protocol.receive(
                answer(2, &json!({"tools": [tool("a")], "nextCursor": "second"})).as_bytes(),
            );
            let page = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "second"}});
            assert_eq!(sent(&events), [page], "{last}");
            let tools = [tool(new), tool("a")];
            let events = protocol
                .receive(answer(3, &json!({"tools": tools, "nextCursor": last})).as_bytes());
            let mut expected = vec!["a", new];
            expected.dedup();
            assert_eq!(names(&events), expected, "{last}");
        }
    }

    #[test]
    fn a_list_without_end_is_ended() {
        for (tools_of_a_page, pages, tools) in [(1, 1001, 1000), (30, 35, 1000), (2000, 2, 1000)] {
            let mut protocol = listing();
            let mut events = Vec::new();
            let mut read = 0;
            while !matches!(events[..], [ServerEvent::Ready(_)]) {
                let page: Vec<Value> = (0..tools_of_a_page)
                    .map(|at| tool(&format!("t{read}-{at}")))
                    .collect();
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
        for [is_harmless, annotations] in rows(
            r#"
            yes | {"readOnlyHint": true, "openWorldHint": false}
            yes | {"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false}
            no | {"readOnlyHint": true, "openWorldHint": false, "destructiveHint": true}
            no | {"readOnlyHint": true, "openWorldHint": true}
            no | {"readOnlyHint": true}
            no | {"readOnlyHint": "true", "openWorldHint": false}
            no | {"readOnlyHint": false, "openWorldHint": false}
            no | {"openWorldHint": false}
            no | null
        "#,
        ) {
            let tool = format!(r#"{{"name": "a", "annotations": {annotations}}}"#);
            let tool = listed_tool(&serde_json::from_str(&tool).expect("JSON")).expect("a tool");
            assert_eq!(tool.is_harmless, is_harmless == "yes", "{annotations}");
        }
    }

    #[test]
    fn a_call_is_answered_by_its_number() {
        let mut protocol = ready();
        let arguments = json!({"x": "1\n2"});
        let (id, line) = protocol.call("a", arguments.as_object().expect("an object"));
        let parameters =
            json!({"name": "a", "arguments": {"x": "1\n2"}, "_meta": {"progressToken": 3}});
        assert_eq!(
            line,
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters})
        );
        for other in [
            answer(1, &json!({})),
            answer(99, &json!({})),
            json!({"id": null, "result": 1}).to_string(),
        ] {
            assert_eq!(protocol.receive(other.as_bytes()), [], "{other}");
        }
        let progress = |token: &str| {
            let parameters = format!(r#"{{"progressToken":{token},"progress":1}}"#);
            format!(r#"{{"method":"notifications/progress","params":{parameters}}}"#)
        };
        for (token, events) in [
            ("3", &[ServerEvent::Progress][..]),
            ("2", &[]),
            ("null", &[]),
        ] {
            assert_eq!(
                protocol.receive(progress(token).as_bytes()),
                events,
                "{token}"
            );
        }
        assert!(protocol.awaits(&json!(3)) && !protocol.awaits(&json!(2)));
        let result = answer(3, &json!({"content": []}));
        assert_eq!(
            protocol.receive(result.as_bytes()),
            [ServerEvent::Answer(3, Ok(json!({"content": []})))]
        );
        assert!(!protocol.awaits(&json!(3)), "its answer has come");
        assert_eq!(protocol.receive(result.as_bytes()), []);
        let (id, _) = protocol.call("a", &Map::new());
        let refused = json!({"id": id, "error": {"code": -32602, "message": "no"}}).to_string();
        assert_eq!(
            protocol.receive(refused.as_bytes()),
            [ServerEvent::Answer(4, Err("no (-32602)".to_owned()))]
        );
    }

    #[test]
    fn a_refusal_is_reported_with_code_and_data() {
        for [expected, error] in rows(
            r#"
            Unknown tool (-32602) | {"code": -32602, "message": "Unknown tool"}
            no (-1): disk full | {"code": -1, "message": "no", "data": "disk full"}
            no: {"row":1} | {"message": "no", "data": {"row": 1}}
            no | {"message": "no", "data": null}
            {"code":-1} | {"code": -1}
        "#,
        ) {
            let error: Value = serde_json::from_str(error).expect("JSON");
            assert_eq!(words(&error), expected);
        }
    }

    #[test]
    fn the_late_answer_to_a_call_that_was_given_up_is_dropped() {
        let mut protocol = ready();
        let (first, _) = protocol.call("a", &Map::new());
        let line = protocol.cancel(first).expect("a message");
        let parameters = json!({"requestId": first, "reason": "timed out"});
        assert_eq!(
            line,
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters})
        );
        assert_eq!(protocol.receive(answer(first, &json!({})).as_bytes()), []);
        let (second, _) = protocol.call("a", &Map::new());
        assert_eq!(protocol.receive(answer(first, &json!({})).as_bytes()), []);
        assert_eq!(
            protocol.receive(answer(second, &json!({})).as_bytes()),
            [ServerEvent::Answer(second, Ok(json!({})))]
        );
    }

    #[test]
    fn requests_of_the_server_are_answered_at_any_time() {
        let not_found = json!({"code": -32601, "message": "Method not found"});
        for mut protocol in [Protocol::open(false, None).0, listing(), ready()] {
            let events = protocol.receive(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            assert_eq!(
                sent(&events),
                [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]
            );
            let events = protocol.receive(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
            assert_eq!(
                sent(&events),
                [json!({"jsonrpc": "2.0", "id": 1, "error": not_found})]
            );
        }
    }

    #[test]
    fn what_is_not_a_message_is_a_detail() {
        let mut protocol = listing();
        let noise = |text: &str| {
            vec![ServerEvent::Detail(format!(
                "wrote a line that is not a message: {text}"
            ))]
        };
        assert_eq!(
            protocol.receive(b"Listening  on\tstdio\r"),
            noise("Listening on stdio")
        );
        assert_eq!(protocol.receive(b"\xff"), noise("\u{fffd}"));
        assert_eq!(protocol.receive(b"5"), noise("5"));
        assert_eq!(protocol.receive(b"[1,{}]"), noise("[1,{}]"));
        for debug in [
            r#"sending {"jsonrpc":"2.0","id":1}"#,
            r#"[{"jsonrpc":"2.0"}]"#,
            "{'jsonrpc': '2.0'}",
        ] {
            assert_eq!(protocol.receive(debug.as_bytes()), noise(debug));
        }
        assert_eq!(protocol.receive(b" "), []);
        let deep = "[".repeat(10_000);
        assert_eq!(
            protocol.receive(deep.as_bytes()),
            noise(&"[".repeat(MAX_QUOTE))
        );
    }

    #[test]
    fn a_message_that_cannot_be_parsed_fails_the_call_that_waits() {
        for result in [
            "NaN".to_owned(),
            format!("{}1{}", "[".repeat(200), "]".repeat(200)),
        ] {
            let mut protocol = ready();
            let (id, _) = protocol.call("a", &Map::new());
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
            let events = protocol.receive(line.as_bytes());
            let [ServerEvent::Answer(answered, Err(refusal))] = &events[..] else {
                panic!("{events:?}")
            };
            assert!(
                refusal.contains("sent a message that cannot be parsed"),
                "{refusal}"
            );
            assert_eq!(*answered, id);
        }
    }

    /// Lines of a server, most of them nearly right.
    fn lines() -> impl Strategy<Value = String> {
        let id = prop::sample::select(vec!["1", "2", "3", "4", "null", "{}", "-1"]);
        let body = prop::sample::select(vec![
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"version":1}}"#,
            r#""result":{"protocolVersion":"1999-01-01"}"#,
            r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
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
            let (mut protocol, first) = Protocol::open(false, None);
            let number = |message: &Value| message["id"].as_u64();
            let mut numbers = vec![number(&first)];
            let (mut ready, mut is_unusable) = (0, false);
            for line in lines {
                for event in protocol.receive(line.as_bytes()) {
                    match event {
                        ServerEvent::Ready(_) => {
                            ready += 1;
                            numbers.push(number(&protocol.call("a", &Map::new()).1));
                        }
                        ServerEvent::Unusable(_) => is_unusable = true,
                        ServerEvent::Send(message) if message["id"].is_u64() => numbers.push(number(&message)),
                        ServerEvent::Send(message) | ServerEvent::Reply(message) => prop_assert!(message.is_object()),
                        ServerEvent::Answer(..) => prop_assert!(ready == 1 && !is_unusable),
                        ServerEvent::Detail(_) | ServerEvent::Progress => {}
                    }
                }
            }
            prop_assert!(ready == 0 || (ready == 1 && !is_unusable));
            prop_assert!(numbers.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]), "{:?}", numbers);
        }
    }
}
