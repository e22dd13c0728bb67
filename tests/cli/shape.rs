//! `--schema`: how the shape of an answer is asked for, and which answers are printed.

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{case, shown};
use crate::machine::lacks;
use crate::pty::WIDE;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

/// A sandbox and a server of OpenAI's kind that answers with this.
fn answered_with(answer: &'static str) -> (Server, Sandbox) {
    let server = Server::openai(answer);
    let sandbox = Sandbox::new().server_env(&server);
    (server, sandbox)
}

#[test]
fn an_answer_with_a_schema_is_printed_as_bare_json_on_a_terminal() {
    const ANN: &str = r#"{"name":"Ann","age":7}"#;
    const TWO_LINES: &str = "{\"age\": 7,\n \"name\": \"Ann\"}";
    for (answer, printed) in [
        (ANN, ANN),
        ("\n{\"age\": 7,\n \"name\": \"Ann\"}\n\n", TWO_LINES),
        ("```json\n{\"name\":\"Ann\",\"age\":7}\n```\n", ANN),
    ] {
        let (_server, sandbox) = answered_with(answer);
        let q = sandbox.q(&["--schema", "name, age int", "who?"]);
        assert_eq!(q.shown_on(WIDE).text(), format!("{printed}\n"));
    }
}

#[test]
fn the_commands_with_schemas_in_the_documents_work() {
    if lacks("jq", "jq --version") {
        return;
    }
    let city =
        shown("q --schema 'city, population int' \"the largest city of France\" | jq .population");
    let csv = shown(
        "q --schema '[time, service, message]' \"the errors in this log\" <app.log |\n        \
         jq -r '.items[] | [.time, .service, .message] | @csv' >errors.csv",
    );
    let review = shown(
        "q --schema '[file, line int, problem]' -a src/main.rs \"review this\" | \
         jq -r '.items[] | \"\\(.file):\\(.line): \\(.problem)\"'",
    );
    let csv = format!("{csv}; cat errors.csv");
    let places = shown(
        "q --schema '[file, line int, problem]' --lines -a src \"review this\" |\n        \
         jq --unbuffered -r '[.file, .line, .problem] | @tsv' |\n        \
         fzf -d '\\t' --bind 'enter:execute($EDITOR +{2} -- {1})'",
    );
    let places = format!("fzf() {{ cat; }}; {places}");
    let films =
        shown("q --schema '[title, year int]' --lines \"fifty films about trains\" | head -n 3");
    let person =
        shown("q --schema 'name, age int, tags list: what they like' \"make up a person\"");
    let error = r#"{"items":[{"time":"10:00","service":"db","message":"it said \"no\""}]}"#;
    let problem = r#"{"items":[{"file":"src/main.rs","line":1,"problem":"empty"}]}"#;
    let general = r#"{"items":[{"title":"The General","year":1926}]}"#;
    let ann = r#"{"name":"Ann","age":7,"tags":["tea"]}"#;
    let row = "\"10:00\",\"db\",\"it said \"\"no\"\"\"";
    let paris = r#"{"city":"Paris","population":2102650}"#;
    for (command, answer, printed) in [
        (city, paris, "2102650"),
        (&csv, error, row),
        (review, problem, "src/main.rs:1: empty"),
        (&places, problem, "src/main.rs\t1\tempty"),
        (films, general, r#"{"title":"The General","year":1926}"#),
        (person, ann, ann),
    ] {
        let _case = case(command);
        let (server, sandbox) = answered_with(answer);
        std::fs::create_dir(sandbox.home().join("src")).expect("a directory");
        sandbox.write_home("src/main.rs", "fn main() {}\n");
        sandbox.write_home("app.log", "10:00 db: it said \"no\"\n");
        let outcome = sandbox.shell(command).run();
        outcome.success().stdout(format!("{printed}\n"));
        let asked = &server.request().json()["response_format"];
        assert_eq!(asked["json_schema"]["strict"], true);
    }
}

/// A reply with a list in these pieces, in which the server waits at a gate behind each item.
fn held_back(dialect: &Dialect, pieces: &[&str], gates: &[Gate]) -> Reply {
    let mut reply = Reply::sse::<&[u8]>([]);
    let mut gates = gates.iter();
    for event in (dialect.stream)(pieces) {
        let has_item = String::from_utf8_lossy(&event).contains("\\\"n\\\":");
        reply = reply.piece(event);
        // A later event may have the whole answer again.
        if has_item && let Some(gate) = gates.next() {
            reply = reply.wait_for(gate);
        }
    }
    assert!(gates.next().is_none(), "an item before each gate");
    reply
}

#[test]
fn each_item_is_printed_before_the_next_arrives() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let gates = [Gate::new(), Gate::new()];
        let pieces = [r#"{"items":[{"n":1}"#, r#",{"n":2}"#, "]}"];
        let server = Server::always(held_back(dialect, &pieces, &gates));
        let sandbox = Sandbox::new();
        let arguments = &["--schema", "[n int]", "--lines", "count"];
        let mut running = dialect.q(&sandbox, &server, arguments).spawn();
        let mut expected = String::new();
        for (line, gate) in ["{\"n\":1}\n", "{\"n\":2}\n"].iter().zip(&gates) {
            expected.push_str(line);
            assert_eq!(running.read_stdout_until(line), expected.as_bytes());
            gate.open();
        }
        running.wait().success().stdout(expected);
    }
}

#[test]
fn items_of_a_later_message_are_printed_before_the_end_of_the_answer() {
    let dialect = Dialect::named("responses");
    let message = json!({"type": "response.output_item.added", "item": {"type": "message"}});
    let text = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    let event = |data: &Value| format!("data: {data}\n\n");
    let gate = Gate::new();
    let reply = Reply::sse([event(&message), event(&text("Let me see."))])
        .piece(event(&message))
        .piece(event(&text(r#"{"items":[{"n":1}"#)))
        .wait_for(&gate)
        .pieces([event(&text("]}")), event(&end)]);
    let server = Server::always(reply);
    let sandbox = Sandbox::new();
    let arguments = &["--schema", "[n int]", "--lines", "count"];
    let mut running = dialect.q(&sandbox, &server, arguments).spawn();
    running.read_stdout_until("{\"n\":1}\n");
    gate.open();
    running.wait().success().stdout("{\"n\":1}\n");
}

#[test]
fn an_answer_whose_reader_of_lines_has_gone_is_saved_as_interrupted() {
    let dialect = Dialect::named("openai");
    let gates = [Gate::new(), Gate::new()];
    // It is more than a pipe holds: a program that another test is just starting may have the pipe open for a moment.
    let long = format!(",{{\"n\":1{}}}", "0".repeat(100_000));
    let pieces = [r#"{"items":[{"n":1}"#, &long, "]}"];
    let server = Server::always(held_back(dialect, &pieces, &gates));
    let sandbox = Sandbox::new();
    let arguments = &["--schema", "[n int]", "--lines", "count"];
    let mut running = dialect.q(&sandbox, &server, arguments).spawn();
    running.read_stdout_until("{\"n\":1}\n");
    running.close_stdout();
    gates[0].open();
    running.wait().success().stderr("");
    let answer = &sandbox.current()["messages"][1];
    assert_eq!(answer["content"], pieces[..2].concat());
    assert_eq!(answer["interrupted"], true);
}

#[test]
fn items_are_printed_as_escaped_lines_on_a_terminal() {
    let (_server, sandbox) = answered_with("{\"items\":[{\"a\":\"**b**\"}, {\"a\":\"\u{202e}\"}]}");
    let q = sandbox.q(&["--schema", "[a]", "--lines", "who?"]);
    assert_eq!(
        q.shown_on(WIDE).text(),
        "{\"a\":\"**b**\"}\n{\"a\":\"<U+202E>\"}\n"
    );
}
