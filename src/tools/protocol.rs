//! A conversation in the Model Context Protocol: the messages that q writes, and what those of a server mean (pure).

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::about::ListedTool;
use super::headers;
use super::revision::{self, Handshake, HandshakeRefusal, Revision, STATELESS};
use super::rpc::{
    Id, MAX_ID, METHOD_NOT_FOUND, RpcAnswer, RpcError, RpcMessage, RpcRefusal, RpcResult,
    begins_message, notification, number_of, string, unreadable,
};
use crate::text::byte_order_mark::text_after_mark;
use crate::text::{not_a_number, surrogates};

/// How many requests a server may send. Even one that asks every second whether q is there needs hours for them.
const MAX_REQUESTS: usize = 10_000;

/// How many of the last lines of a server are kept.
pub const MAX_KEPT_LINES: usize = 20;

/// The most characters of a stray that are kept.
const MAX_STRAY: usize = 200;

/// A message from the server, by what it means.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// The answer to the request with this number.
    RpcAnswer(Id, RpcAnswer),
    /// The call that waits for its answer makes progress.
    Progress,
    /// This message answers a request of the server.
    Reply(Value),
    /// The server has sent too many requests, and gets no more answers.
    Flood,
}

/// The parameters of a notification, as far as q reads them.
#[derive(Deserialize)]
struct Progress<'m> {
    #[serde(borrow, rename = "progressToken")]
    token: &'m RawValue,
    #[serde(default)]
    progress: Value,
}

/// The most reports of a call that say no more than an earlier one, and still count: the protocol demands that progress increases,
/// but some servers only show that they work.
const MAX_REPEATS: usize = 100;

/// How far a call has come.
#[derive(Debug)]
struct CallProgress {
    /// The highest that was reported.
    furthest: f64,
    /// How many reports were no higher.
    repeats: usize,
}

impl CallProgress {
    fn new() -> CallProgress {
        CallProgress {
            furthest: f64::NEG_INFINITY,
            repeats: 0,
        }
    }

    /// Whether a report shows that the server works on the call. One that repeats itself without end shows nothing.
    fn counts(&mut self, progress: &Value) -> bool {
        match progress.as_f64() {
            Some(further) if further > self.furthest => {
                self.furthest = further;
                true
            }
            _ => {
                self.repeats += 1;
                self.repeats <= MAX_REPEATS
            }
        }
    }
}

/// The source of a message. It decides which request the message is about if that has no number or cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSource {
    /// The output of a program, in which all messages come.
    Program,
    /// The response to the last request over HTTP.
    LastResponse,
    /// The response to an earlier request, which was given up, or a stream of what the server asks.
    OtherResponse,
}

/// What a server has sent since the last request that answers nothing that was asked; of a program, since the last call.
#[derive(Debug, Clone, Default)]
pub struct Strays {
    pub count: usize,
    /// The beginnings of the last ones.
    pub kept: VecDeque<String>,
    /// Whether one may have been meant as a message.
    pub has_json: bool,
}

impl Strays {
    /// Returns the beginning of the last one.
    pub fn last(&self) -> &str {
        self.kept.back().map_or("", String::as_str)
    }

    /// Returns how many there were, to follow what has failed; nothing if there were none.
    pub fn summary(&self, who: &str, over_http: bool) -> String {
        let (sent, one, many) = if over_http {
            ("sent", "a message", "messages")
        } else {
            ("wrote", "a line", "lines")
        };
        match self.count {
            0 => String::new(),
            1 => format!("; {who} {sent} {one} that answers nothing that q asked"),
            count => format!("; {who} {sent} {count} {many} that answer nothing that q asked"),
        }
    }

    /// Returns the same with the last one.
    pub fn full_summary(&self, over_http: bool) -> String {
        let summary = self.summary("it", over_http);
        match self.count {
            0 => summary,
            1 => format!("{summary}: {}", self.last()),
            _ => format!("{summary}; the last: {}", self.last()),
        }
    }
}

/// What q has to know of a conversation to write the next message and to read one. One request at a time waits for its
/// answer.
#[derive(Debug, Default)]
pub struct Protocol {
    /// Whether each answer comes on the connection of its request.
    over_http: bool,
    /// The revision that the handshake asks for.
    pub offered: &'static str,
    pub revision: Revision,
    /// The tools that the server has listed.
    pub tools: Vec<ListedTool>,
    /// Whether the server has said that they have changed, since q last asked for them.
    pub has_changed_tools: bool,
    last_id: Id,
    /// Whether the last request waits for its answer.
    is_waiting: bool,
    /// How far it has come, if it is a call.
    progress: Option<CallProgress>,
    /// The requests that q has given up and whose late answers have not come.
    given_up: BTreeSet<Id>,
    pub strays: Strays,
    /// How many requests of the server have arrived.
    requests: usize,
    /// Whether the conversation is over: nothing that comes has a meaning.
    closed: bool,
}

impl Protocol {
    /// Returns a conversation that has not begun.
    pub fn new(over_http: bool) -> Protocol {
        Protocol {
            over_http,
            offered: revision::first_offer(over_http),
            ..Protocol::default()
        }
    }

    /// Returns the parameters of `initialize`, which begins a conversation.
    pub fn handshake(&self) -> Value {
        json!({"protocolVersion": self.offered, "capabilities": {}, "clientInfo": client()})
    }

    /// Takes the result of the handshake, in which there is no [`revision::unknown_version`].
    pub fn agree(&mut self, result: Value) -> Handshake {
        let Some(version) = revision::known_version(&result) else {
            return Handshake::Refused(HandshakeRefusal::WantsNone);
        };
        self.revision = Revision::WithHandshake(version);
        Handshake::Agreed(result)
    }

    /// Returns a request, and its number. An earlier one without an answer is given up.
    pub fn request(&mut self, method: &str, mut parameters: Value) -> (Id, Value) {
        if self.is_waiting {
            self.given_up.insert(self.last_id);
        }
        self.last_id += 1;
        self.is_waiting = true;
        // What a program writes while it starts may come before the request that it never answers.
        if self.over_http || method == "tools/call" {
            self.strays = Strays::default();
        }
        // A page after the first may be of either list.
        if method == "tools/list" && parameters.get("cursor").is_none() {
            self.has_changed_tools = false;
        }
        let id = self.last_id;
        self.progress = None;
        // Progress shows that the server still works on a call.
        if method == "tools/call" {
            parameters["_meta"]["progressToken"] = id.into();
            self.progress = Some(CallProgress::new());
        }
        if self.is_stateless() {
            let meta = &mut parameters["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
            meta["io.modelcontextprotocol/clientInfo"] = client();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        // Not copied, because it may be large.
        message["params"] = parameters;
        (id, message)
    }

    /// Whether the answer to this request is still wanted.
    pub fn awaits(&self, id: Id) -> bool {
        self.is_waiting && id == self.last_id
    }

    /// Ends the conversation.
    pub fn close(&mut self) {
        self.closed = true;
        self.is_waiting = false;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Gives up the request that waits, whose late answer will be dropped. Returns the message that says so, unless the end
    /// of the connection says it.
    pub fn give_up(&mut self) -> Option<Value> {
        self.is_waiting = false;
        self.given_up.insert(self.last_id);
        if self.over_http && self.is_stateless() {
            return None;
        }
        let parameters = json!({"requestId": self.last_id, "reason": "timed out"});
        Some(notification("notifications/cancelled", parameters))
    }

    /// Returns the headers that a message has over HTTP.
    pub fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(revision) = self.revision.name() {
            headers.push(("mcp-protocol-version".to_owned(), revision.to_owned()));
        }
        // Which revision the first request is for is only known from its answer.
        let needs_more = self.revision == Revision::Unknown || self.is_stateless();
        if needs_more && let Some(method) = message["method"].as_str() {
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            let parameters = &message["params"];
            if let Some(name) = parameters["name"].as_str() {
                headers.push(("mcp-name".to_owned(), headers::value(name)));
                let mut tools = self.tools.iter();
                if let Some(tool) = tools.find(|tool| tool.name == name) {
                    headers.extend(headers::mirrored(&tool.schema, &parameters["arguments"]));
                }
            }
        }
        headers
    }

    /// Returns what a line of a program means, without its newline. A line that is too long is cut, so that it cannot be parsed.
    pub fn receive(&mut self, line: &[u8]) -> Option<ServerEvent> {
        self.read(line, MessageSource::Program)
    }

    /// Counts a line within which the output of a program ended, unless it is the beginning of a message.
    pub fn receive_part(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.trim_ascii());
        if !begins_message(&text) {
            self.strayed(&text, MessageSource::Program);
        }
    }

    /// Returns what a message over HTTP means, which came in the response to this request; `None`: in a stream of what the server
    /// asks.
    pub fn receive_over_http(
        &mut self,
        message: &[u8],
        request: Option<Id>,
    ) -> Option<ServerEvent> {
        let source = if request == Some(self.last_id) {
            MessageSource::LastResponse
        } else {
            MessageSource::OtherResponse
        };
        self.read(message, source)
    }

    fn read(&mut self, bytes: &[u8], source: MessageSource) -> Option<ServerEvent> {
        let decoded = String::from_utf8_lossy(bytes.trim_ascii());
        let has_odd_bytes = matches!(decoded, Cow::Owned(_));
        // Some libraries begin their output with a byte order mark.
        let text = text_after_mark(&decoded);
        if self.closed {
            return None;
        }
        let is_object = text.starts_with('{');
        let may_be_message = begins_message(text);
        if !is_object && !may_be_message {
            // Servers write other lines, too.
            return self.strayed(text, source);
        }
        let read = |json: &str| {
            if !is_object {
                // It is no batch, or has been taken apart.
                let parsed = serde_json::from_str::<IgnoredAny>(json);
                return parsed.map(|_| self.strayed(text, source));
            }
            let message: RpcMessage = serde_json::from_str(json)?;
            let is_repaired = has_odd_bytes || json != text;
            Ok(self.meaning(&message, text, source, is_repaired))
        };
        match not_a_number::read_with(text, |_| may_be_message, read) {
            Ok(event) => event,
            // It may have been the answer.
            Err(error)
                if self.is_waiting && source != MessageSource::OtherResponse && may_be_message =>
            {
                Some(self.answered(Err(RpcError::Unreadable(unreadable(&error)))))
            }
            Err(_) => self.strayed(text, source),
        }
    }

    /// Returns what a message means. `text` is all of it, as it came.
    fn meaning(
        &mut self,
        message: &RpcMessage,
        text: &str,
        source: MessageSource,
        is_repaired: bool,
    ) -> Option<ServerEvent> {
        if let Some(method) = message.method.and_then(string) {
            return match message.id {
                Some(id) => self.requested(&method, id),
                None => self.notified(&method, message.params),
            };
        }
        let answer = match (message.error, message.result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result),
            // A line of a log may have the number of the request that it is about.
            (None, None) => return self.strayed(text, source),
        };
        if let Some(id) = message.id
            && self.is_late(id)
        {
            return None;
        }
        // A server that could not read a request does not know its number.
        let is_nameless =
            message.id.is_none() && answer.is_err_and(|error| self.is_about_last(error, source));
        let is_own = message.id.is_some_and(|id| self.is_last(id)) || is_nameless;
        if !self.is_waiting || !is_own {
            return self.strayed(text, source);
        }
        let result = answer.map(|result| RpcResult {
            json: result.get().to_owned(),
            is_repaired,
        });
        Some(self.answered(result.map_err(|error| RpcError::Refused(RpcRefusal::read(error)))))
    }

    /// Counts what answers nothing, unless it is about an earlier request.
    fn strayed(&mut self, text: &str, source: MessageSource) -> Option<ServerEvent> {
        if !text.is_empty() && source != MessageSource::OtherResponse {
            let strays = &mut self.strays;
            strays.count += 1;
            strays.has_json |= text.starts_with(['{', '}', '[', '"']);
            if strays.kept.len() == MAX_KEPT_LINES {
                strays.kept.pop_front();
            }
            strays
                .kept
                .push_back(text.chars().take(MAX_STRAY).collect());
        }
        None
    }

    /// Whether this is the number of a request that was given up, whose answer has now come.
    fn is_late(&mut self, id: &RawValue) -> bool {
        number_of(id).is_some_and(|id| self.given_up.remove(&id))
    }

    /// Whether an error without a number can only be about the last request. That of a program may be about one that was given
    /// up, or about a notification, which some programs refuse although it is no request.
    fn is_about_last(&self, error: &RawValue, source: MessageSource) -> bool {
        match source {
            MessageSource::LastResponse => true,
            MessageSource::OtherResponse => false,
            MessageSource::Program if self.last_id == 1 => true,
            MessageSource::Program => {
                let refusal = RpcRefusal::read(error);
                let is_notification = refusal.is_unknown_method()
                    || refusal.words.to_lowercase().contains("notification");
                self.given_up.is_empty() && !is_notification
            }
        }
    }

    /// Returns what a request of the server means. Without a handshake, a server sends none.
    fn requested(&mut self, method: &str, id: &RawValue) -> Option<ServerEvent> {
        if self.is_stateless() || self.requests > MAX_REQUESTS || id.get().len() > MAX_ID {
            return None;
        }
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return Some(ServerEvent::Flood);
        }
        let id: Value = surrogates::lossy(id.get()).ok()?;
        Some(ServerEvent::Reply(serve(method, &id)))
    }

    fn notified(&mut self, method: &str, parameters: Option<&RawValue>) -> Option<ServerEvent> {
        if method == "notifications/tools/list_changed" {
            self.has_changed_tools = true;
        }
        if method != "notifications/progress" || !self.is_waiting {
            return None;
        }
        let progress: Progress = serde_json::from_str(parameters?.get()).ok()?;
        let is_alive =
            self.is_last(progress.token) && self.progress.as_mut()?.counts(&progress.progress);
        is_alive.then_some(ServerEvent::Progress)
    }

    /// Whether this is the number of the last request.
    fn is_last(&self, id: &RawValue) -> bool {
        number_of(id) == Some(self.last_id)
    }

    fn answered(&mut self, answer: RpcAnswer) -> ServerEvent {
        self.is_waiting = false;
        ServerEvent::RpcAnswer(self.last_id, answer)
    }

    pub fn is_stateless(&self) -> bool {
        self.revision == Revision::WithoutHandshake
    }
}

fn client() -> Value {
    json!({"name": "q", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the answer to a request of the server.
fn serve(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_answer_with_invalid_utf8_or_lone_surrogates_is_read() {
        for (line, text) in [
            (&b"\"x\xff\""[..], "x\u{fffd}"),
            (br#""x\ud800y""#, "x\u{fffd}y"),
        ] {
            let line = [br#"{"id":1,"error":{"message":"#, line, b"}}"].concat();
            let event = waiting(false).receive(&line);
            let expected = ServerEvent::RpcAnswer(1, refused(text, None));
            assert_eq!(event, Some(expected), "{}", String::from_utf8_lossy(&line));
        }
    }

    fn answer(id: Id, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
    }

    fn accepted(json: &str) -> RpcAnswer {
        Ok(RpcResult {
            json: json.to_owned(),
            is_repaired: false,
        })
    }

    fn refused(words: &str, code: Option<i64>) -> RpcAnswer {
        Err(RpcError::Refused(RpcRefusal {
            code,
            words: words.to_owned(),
        }))
    }

    /// A conversation in which a first request waits for its answer.
    fn waiting(over_http: bool) -> Protocol {
        let mut protocol = Protocol::new(over_http);
        protocol.request("tools/list", json!({}));
        protocol
    }

    /// One in the revision without a handshake.
    fn stateless(over_http: bool) -> Protocol {
        Protocol {
            revision: Revision::WithoutHandshake,
            ..waiting(over_http)
        }
    }

    #[test]
    fn the_initialize_request_has_the_name_and_version_of_q() {
        let client = json!({"name": "q", "version": env!("CARGO_PKG_VERSION")});
        for (over_http, version) in [(false, "2025-11-25"), (true, "2025-06-18")] {
            let mut protocol = Protocol::new(over_http);
            let handshake = protocol.handshake();
            let parameters =
                json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
            let line =
                json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
            assert_eq!(protocol.request("initialize", handshake), (1, line));
        }
    }

    #[test]
    fn every_version_of_the_protocol_with_a_handshake_is_accepted() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut protocol = Protocol::default();
            let result = json!({"protocolVersion": version});
            assert_eq!(protocol.agree(result.clone()), Handshake::Agreed(result));
            assert_eq!(protocol.revision.name(), Some(version));
        }
        let stateless = json!({"protocolVersion": STATELESS});
        let silent = Protocol::default().agree(stateless);
        let expected =
            "speaks version \"2026-07-28\" of the protocol, but does not answer server/discover";
        assert_eq!(silent, Handshake::Refused(HandshakeRefusal::WantsNone));
        assert_eq!(HandshakeRefusal::WantsNone.explain(), expected);
    }

    #[test]
    fn without_a_handshake_every_request_has_the_version_of_the_protocol() {
        let mut protocol = stateless(false);
        let (id, request) = protocol.request("tools/call", json!({"name": "a"}));
        let meta = json!({
            "progressToken": 2,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "q", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let parameters = json!({"name": "a", "_meta": meta});
        let expected =
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": parameters});
        assert_eq!((id, request), (2, expected));
        // It answers no request, and gives up a call like any other. Over HTTP the end of the connection says it.
        assert_eq!(protocol.receive(br#"{"id":"p","method":"ping"}"#), None);
        assert!(protocol.give_up().is_some());
        assert_eq!(stateless(true).give_up(), None);
    }

    #[test]
    fn an_error_of_a_program_without_an_id_answers_the_only_request_that_is_open() {
        let error = |code: i64, message: &str| {
            json!({"id": null, "error": {"code": code, "message": message}}).to_string()
        };
        let boom = error(-32603, "boom");
        let expected = |id| {
            Some(ServerEvent::RpcAnswer(
                id,
                refused("boom (-32603)", Some(-32603)),
            ))
        };
        let mut protocol = waiting(false);
        assert_eq!(protocol.receive(boom.as_bytes()), expected(1));
        assert_eq!(protocol.receive(boom.as_bytes()), None, "nothing is open");
        protocol.request("tools/list", json!({}));
        for of_notification in [
            error(-32601, "Method not found"),
            error(-32600, "unknown: notifications/initialized"),
        ] {
            assert_eq!(protocol.receive(of_notification.as_bytes()), None);
        }
        assert_eq!(protocol.receive(boom.as_bytes()), expected(2));
        // It may be about one that was given up, until that has its answer.
        protocol.request("tools/call", json!({}));
        protocol.give_up();
        protocol.request("tools/call", json!({}));
        assert_eq!(protocol.receive(boom.as_bytes()), None);
        assert_eq!(protocol.receive(answer(3, &json!({})).as_bytes()), None);
        assert_eq!(protocol.receive(boom.as_bytes()), expected(4));
    }

    #[test]
    fn what_answers_nothing_is_counted_until_the_next_request() {
        let none = "";
        let one = "; it wrote a line that answers nothing that q asked: ";
        for (lines, summary, has_json) in [
            (&[][..], none.to_owned(), false),
            (&["", " "], none.to_owned(), false),
            (
                &[r#"{"method":"notifications/message"}"#],
                none.to_owned(),
                false,
            ),
            (&["Starting"], format!("{one}Starting"), false),
            (
                &[r#"{"id":0,"result":{}}"#],
                format!(r#"{one}{{"id":0,"result":{{}}}}"#),
                true,
            ),
            (
                &["{", r#"  "id": 1"#, "}"],
                "; it wrote 3 lines that answer nothing that q asked; the last: }".to_owned(),
                true,
            ),
        ] {
            let mut protocol = waiting(false);
            for line in lines {
                assert_eq!(protocol.receive(line.as_bytes()), None);
            }
            assert_eq!(protocol.strays.full_summary(false), summary);
            assert_eq!(protocol.strays.has_json, has_json, "{lines:?}");
            protocol.request("tools/call", json!({}));
            assert_eq!(protocol.strays.count, 0);
        }
        // Neither the late answer to a request that was given up, nor what comes in its response.
        let mut protocol = waiting(true);
        protocol.give_up();
        protocol.request("tools/call", json!({}));
        let late = answer(1, &json!({}));
        assert_eq!(protocol.receive_over_http(late.as_bytes(), Some(1)), None);
        assert_eq!(protocol.receive_over_http(b"{\"id\":0}", Some(1)), None);
        assert_eq!(protocol.strays.count, 0);
        assert_eq!(protocol.receive_over_http(b"{\"id\":0}", Some(2)), None);
        let expected = "; it sent a message that answers nothing that q asked: {\"id\":0}";
        assert_eq!(protocol.strays.full_summary(true), expected);
    }

    #[test]
    fn over_http_an_error_without_an_id_answers_the_request_of_its_response() {
        let nameless = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        let broken = br#"{"jsonrpc":"2.0","id":1,"result":nil}"#;
        assert!(waiting(false).receive(nameless).is_some());
        assert!(waiting(false).receive(broken).is_some());
        for message in [&nameless[..], broken] {
            // The first request was given up, and the second waits.
            let mut protocol = waiting(true);
            protocol.give_up();
            protocol.request("tools/call", json!({}));
            for other in [Some(1), None] {
                assert_eq!(protocol.receive_over_http(message, other), None);
                assert!(protocol.awaits(2));
            }
            let answered = protocol.receive_over_http(message, Some(2));
            let is_refused = matches!(&answered, Some(ServerEvent::RpcAnswer(2, Err(_))));
            assert!(is_refused, "{answered:?}");
        }
    }

    #[test]
    fn an_answer_after_a_byte_order_mark_is_read() {
        let line = format!("\u{feff}{}", answer(1, &json!({})));
        let expected = ServerEvent::RpcAnswer(1, accepted("{}"));
        assert_eq!(waiting(false).receive(line.as_bytes()), Some(expected));
    }

    #[test]
    fn without_a_handshake_headers_describe_each_message() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut protocol = waiting(true);
        let (_, first) = protocol.request("initialize", json!({}));
        assert_eq!(protocol.headers(&first), [pair("mcp-method", "initialize")]);
        let version = pair("mcp-protocol-version", "2026-07-28");
        let mut protocol = stateless(true);
        let (_, discover) = protocol.request("server/discover", json!({}));
        assert_eq!(
            protocol.headers(&discover),
            [version.clone(), pair("mcp-method", "server/discover")]
        );
        let schema = json!({"properties": {"row": {"type": "integer", "x-mcp-header": "Row"}}});
        for name in ["other", "ä"] {
            let tool = ListedTool::read(json!({"name": name, "inputSchema": schema}));
            protocol.tools.push(tool.expect("a tool"));
        }
        let (_, call) =
            protocol.request("tools/call", json!({"name": "ä", "arguments": {"row": 7}}));
        let expected = [
            version,
            pair("mcp-method", "tools/call"),
            pair("mcp-name", "=?base64?w6Q=?="),
            pair("mcp-param-Row", "7"),
        ];
        assert_eq!(protocol.headers(&call), expected);
        // After a handshake there is only the version.
        protocol.revision = Revision::WithHandshake(revision::first_offer(true));
        let (_, call) = protocol.request("tools/call", json!({"name": "a b"}));
        assert_eq!(
            protocol.headers(&call),
            [pair("mcp-protocol-version", "2025-06-18")]
        );
    }

    #[test]
    fn tools_count_as_changed_until_their_list_is_asked_for_again() {
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        for over_http in [false, true] {
            let mut protocol = waiting(over_http);
            for (request, parameters, expected) in [
                ("tools/call", json!({}), true),
                ("tools/list", json!({"cursor": "2"}), true),
                ("tools/list", json!({}), false),
            ] {
                if over_http {
                    protocol.receive_over_http(changed.as_bytes(), None);
                } else {
                    protocol.receive(changed.as_bytes());
                }
                assert!(protocol.has_changed_tools);
                protocol.request(request, parameters);
                assert_eq!(protocol.has_changed_tools, expected, "{request}");
            }
        }
    }

    #[test]
    fn a_request_is_answered_only_by_a_message_with_its_id() {
        let mut protocol = waiting(false);
        let (id, _) = protocol.request("tools/call", json!({}));
        for other in [
            answer(1, &json!({})),
            answer(99, &json!({})),
            json!({"id": null, "result": 1}).to_string(),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        ] {
            assert_eq!(protocol.receive(other.as_bytes()), None, "{other}");
        }
        for (token, event) in [
            ("1", None),
            ("null", None),
            ("2", Some(ServerEvent::Progress)),
        ] {
            assert_eq!(progress(&mut protocol, token, "1"), event, "{token}");
        }
        assert!(protocol.awaits(2) && !protocol.awaits(1));
        let result = answer(id, &json!({"content": []}));
        assert_eq!(
            protocol.receive(result.as_bytes()),
            Some(ServerEvent::RpcAnswer(id, accepted(r#"{"content":[]}"#)))
        );
        assert!(!protocol.awaits(2), "its answer has come");
        assert_eq!(protocol.receive(result.as_bytes()), None);
        let (id, _) = protocol.request("tools/call", json!({}));
        let refusal = json!({"id": id, "error": {"code": -32602, "message": "no"}}).to_string();
        assert_eq!(
            protocol.receive(refusal.as_bytes()),
            Some(ServerEvent::RpcAnswer(
                3,
                refused("no (-32602)", Some(-32602))
            ))
        );
    }

    /// Returns what a report of progress means.
    fn progress(protocol: &mut Protocol, token: &str, progress: &str) -> Option<ServerEvent> {
        let parameters = format!(r#"{{"progressToken":{token},"progress":{progress}}}"#);
        let line = format!(r#"{{"method":"notifications/progress","params":{parameters}}}"#);
        protocol.receive(line.as_bytes())
    }

    #[test]
    fn progress_that_does_not_grow_is_a_sign_of_life_a_hundred_times() {
        let mut protocol = waiting(false);
        assert_eq!(progress(&mut protocol, "1", "1"), None, "it is no call");
        for id in ["2", "3"] {
            protocol.request("tools/call", json!({}));
            let mut repeats = 0;
            for value in ["-1", "0", "0.0", "null", "0.1", "0.05", "7", "\"8\"", "8"] {
                let is_repeated = ["0.0", "null", "0.05", "\"8\""].contains(&value);
                repeats += usize::from(is_repeated);
                let event = progress(&mut protocol, id, value);
                assert_eq!(event, Some(ServerEvent::Progress), "{id} {value}");
            }
            for _ in repeats..MAX_REPEATS {
                let event = progress(&mut protocol, id, "8");
                assert_eq!(event, Some(ServerEvent::Progress), "{id}");
            }
            for (value, event) in [
                ("8", None),
                ("7", None),
                ("9", Some(ServerEvent::Progress)),
                ("9", None),
            ] {
                assert_eq!(progress(&mut protocol, id, value), event, "{id} {value}");
            }
        }
    }

    #[test]
    fn the_id_of_an_answer_counts_by_its_value_also_as_text() {
        for (id, is_answer) in [
            ("1", true),
            ("\"1\"", true),
            ("1.0", true),
            ("10e-1", true),
            ("\"\\u0031\"", true),
            ("1.5", false),
            ("-1", false),
            ("10", false),
            ("\"01\"", false),
            ("\"\"", false),
            ("\"", false),
            ("[1]", false),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            let event = waiting(false).receive(line.as_bytes());
            // A line that is no JSON is an answer that cannot be read.
            let is_read = matches!(event, Some(ServerEvent::RpcAnswer(1, Ok(_))));
            assert_eq!(is_read, is_answer, "{id}");
        }
        for token in ["2", "2.0", "\"2\""] {
            let parameters = format!(r#"{{"progressToken":{token},"progress":1}}"#);
            let line = format!(r#"{{"method":"notifications/progress","params":{parameters}}}"#);
            let mut protocol = waiting(false);
            protocol.request("tools/call", json!({}));
            let event = protocol.receive(line.as_bytes());
            assert_eq!(event, Some(ServerEvent::Progress), "{token}");
        }
        for late in ["1", "1.0", "\"1\""] {
            let mut protocol = waiting(false);
            protocol.give_up();
            let line = format!(r#"{{"id":{late},"result":{{}}}}"#);
            assert_eq!(protocol.receive(line.as_bytes()), None, "{late}");
            assert_eq!(protocol.strays.count, 0, "{late}");
        }
    }

    #[test]
    fn the_late_answer_to_a_call_that_was_given_up_is_dropped() {
        let mut protocol = waiting(false);
        let parameters = json!({"requestId": 1, "reason": "timed out"});
        assert_eq!(
            protocol.give_up(),
            Some(
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters})
            )
        );
        assert_eq!(protocol.receive(answer(1, &json!({})).as_bytes()), None);
        let (second, _) = protocol.request("tools/call", json!({}));
        assert_eq!(protocol.receive(answer(1, &json!({})).as_bytes()), None);
        assert_eq!(
            protocol.receive(answer(second, &json!({})).as_bytes()),
            Some(ServerEvent::RpcAnswer(second, accepted("{}")))
        );
    }

    #[test]
    fn requests_of_the_server_are_answered_at_any_time() {
        let not_found = json!({"code": -32601, "message": "Method not found"});
        for mut protocol in [Protocol::default(), waiting(false)] {
            let event = protocol.receive(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
            assert_eq!(event, Some(ServerEvent::Reply(pong)));
            let event = protocol.receive(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
            let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": not_found});
            assert_eq!(event, Some(ServerEvent::Reply(refusal)));
        }
    }

    #[test]
    fn requests_of_the_server_have_a_limit_as_has_the_id_of_each() {
        let ping = |size: usize| format!(r#"{{"id":"{}","method":"ping"}}"#, "i".repeat(size - 2));
        let mut protocol = waiting(false);
        assert_eq!(protocol.receive(ping(MAX_ID + 1).as_bytes()), None);
        for number in 1..=MAX_REQUESTS {
            let event = protocol.receive(ping(MAX_ID).as_bytes());
            assert!(matches!(event, Some(ServerEvent::Reply(_))), "{number}");
        }
        let event = protocol.receive(ping(MAX_ID).as_bytes());
        assert_eq!(event, Some(ServerEvent::Flood));
        assert_eq!(protocol.receive(ping(MAX_ID).as_bytes()), None);
    }

    #[test]
    fn a_line_that_is_not_a_message_is_ignored() {
        let deep = "[".repeat(10_000);
        for line in [
            " ",
            "5",
            "[1,{}]",
            r#"sending {"jsonrpc":"2.0","id":1}"#,
            "{'jsonrpc': '2.0'}",
            &deep,
            // Lines of a log, with the number of the request.
            r#"{"level":"info","id":1,"msg":"handling tools/list"}"#,
            r#"{"level":"info","id":1,"took":NaN}"#,
            r#"{"id":1}"#,
            r#"{"id":1,"error":null}"#,
            "[]",
            r#"[{"a":1},5]"#,
            "[info] x = NaN",
        ] {
            let mut protocol = waiting(false);
            assert_eq!(protocol.receive(line.as_bytes()), None, "{line}");
            assert!(protocol.awaits(1), "{line}");
            let strays = usize::from(line != " ");
            assert_eq!(protocol.strays.count, strays, "{line}");
        }
    }

    #[test]
    fn a_line_of_a_log_is_not_the_late_answer_to_a_request() {
        let mut protocol = waiting(false);
        protocol.give_up();
        for (line, strays) in [
            (r#"{"level":"info","id":1}"#, 1),
            (r#"{"id":1,"result":null}"#, 1),
            (r#"{"id":1,"result":null}"#, 2),
        ] {
            assert_eq!(protocol.receive(line.as_bytes()), None);
            assert_eq!(protocol.strays.count, strays, "{line}");
        }
    }

    #[test]
    fn a_result_may_be_null_and_what_was_replaced_in_its_message_is_known() {
        // What follows the number of the request, the result, and whether something was replaced.
        let table = r#"
            "result":null | null | no
            "error":null,"result":null | null | no
            "error":null,"result":{} | {} | no
            "result":"NaN" | "NaN" | no
            "result":[NaN,{"a":-Infinity}] | [null,{"a":null}] | yes
            "result":{},"x":nan | {} | yes
        "#;
        for [fields, json, is_repaired] in rows(table) {
            let line = format!(r#"{{"id":1,{fields}}}"#);
            let result = RpcResult {
                json: json.to_owned(),
                is_repaired: is_repaired == "yes",
            };
            let expected = Some(ServerEvent::RpcAnswer(1, Ok(result)));
            assert_eq!(waiting(false).receive(line.as_bytes()), expected, "{line}");
        }
        let result = RpcResult {
            json: "\"\u{fffd}\"".to_owned(),
            is_repaired: true,
        };
        let event = waiting(false).receive(b"{\"id\":1,\"result\":\"\xff\"}");
        assert_eq!(event, Some(ServerEvent::RpcAnswer(1, Ok(result))));
    }

    #[test]
    fn a_message_that_cannot_be_parsed_fails_the_call_that_waits() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":nil}"#,
            r#"{ "jsonrpc":"2.0","id":1,"result":"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":nil}]"#,
            r#"[ { "jsonrpc":"2.0","id":1,"result":{"#,
        ] {
            let event = waiting(false).receive(line.as_bytes());
            let Some(ServerEvent::RpcAnswer(1, Err(RpcError::Unreadable(what)))) = &event else {
                panic!("{event:?}")
            };
            assert!(
                what.starts_with("sent a message that cannot be parsed"),
                "{what}"
            );
            assert_eq!(waiting(true).receive_over_http(line.as_bytes(), None), None);
        }
    }

    /// Lines of a server, most of them nearly right.
    fn lines() -> impl Strategy<Value = String> {
        let id = prop::sample::select(vec!["1", "2", "3", "4", "null", "{}", "-1"]);
        let body = prop::sample::select(vec![
            r#""result":{"content":[{"type":"text","text":"x\ud800"}],"isError":true}"#,
            r#""error":{"code":-32601,"message":"no"}"#,
            r#""error":null"#,
            r#""level":"info","msg":"handling""#,
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
        fn each_request_has_at_most_one_answer_whatever_a_server_writes(
            lines in prop::collection::vec(lines(), 0..12),
        ) {
            let mut protocol = waiting(false);
            let mut id = 1;
            for line in lines {
                if let Some(ServerEvent::RpcAnswer(answered, _)) = protocol.receive(line.as_bytes()) {
                    prop_assert_eq!(answered, id);
                    id += 1;
                    prop_assert_eq!(protocol.request("tools/call", json!({})).0, id);
                }
            }
        }
    }
}
