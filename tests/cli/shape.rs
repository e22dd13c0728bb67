//! `--schema`: how the shape of an answer is asked for, and which answers are printed.

use serde_json::{Value, json};

use crate::fixtures::{
    DIALECTS, Dialect, HOUR, answering, built_in_dialects, calling, case, data, failure, finish,
    first_word_then_silence, idle_for, lacks, numbered, openai_stream, prompt, refused, shown, word,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Recorded, Reply, Server};
use crate::toolserver::section;

const PERSON: &str = "name, age int";
const ANN: &str = r#"{"name":"Ann","age":7}"#;

/// The JSON Schema of `PERSON`.
fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
           "required": ["name", "age"], "additionalProperties": false})
}

/// What a request says about the form of the answer.
fn form(dialect: &Dialect, request: &Recorded) -> Value {
    let body = request.json();
    let found = match dialect.provider {
        "openai" => body.get("response_format"),
        "responses" => body.pointer("/text/format"),
        "anthropic" => body.pointer("/output_config/format"),
        _ => body.get("generationConfig"),
    };
    found.cloned().unwrap_or(Value::Null)
}

/// The form of an answer of this schema, as the dialect has it.
fn shaped(dialect: &Dialect, schema: &Value, strict: bool) -> Value {
    match dialect.provider {
        "openai" => {
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}})
        }
        "responses" => json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}),
        "anthropic" => json!({"type": "json_schema", "schema": schema}),
        _ => json!({"responseMimeType": "application/json", "responseJsonSchema": schema}),
    }
}

/// A sandbox and a server of OpenAI's kind that answers with this.
fn answered_with(answer: &'static str) -> (Server, Sandbox) {
    let server = Server::openai(answer);
    let sandbox = Sandbox::new().server_env(&server);
    (server, sandbox)
}

#[test]
fn a_shape_is_sent_in_the_form_of_each_api() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, ANN);
        let sandbox = Sandbox::new();
        let outcome = dialect.q(&sandbox, &server, &["--schema", PERSON, "who?"]).run();
        outcome.success().stdout(format!("{ANN}\n")).stderr("");
        let sent = server.request();
        assert_eq!(form(dialect, &sent), shaped(dialect, &person(), true));
        // The question stays as it is where the API sees to the shape.
        assert_eq!(dialect.sent(&sent).1, [("user".to_owned(), "who?".to_owned())]);
        // The order of the fields is the order in which models answer.
        let text = sent.text();
        assert!(text.find("\"name\":{") < text.find("\"age\":{"), "{text}");
    }
}

#[test]
fn a_shape_is_a_schema_a_file_or_the_short_form() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let text = schema.to_string();
    let list = json!({"type": "object", "properties": {"items": {"type": "array", "items": person()}},
                      "required": ["items"], "additionalProperties": false});
    for (spec, schema, strict, answer) in [
        (text.as_str(), &schema, false, ANN),
        (" {\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}\n", &schema, false, ANN),
        ("shapes/person.json", &schema, false, ANN),
        ("name\nage int", &person(), true, ANN),
        ("[name, age int]", &list, true, "{\"items\":[]}"),
    ] {
        let _case = case(spec);
        let (server, sandbox) = answered_with(answer);
        std::fs::create_dir(sandbox.home().join("shapes")).expect("a folder");
        sandbox.write_home("shapes/person.json", &text);
        sandbox.q(&["-p", "openai", "--schema", spec, "who?"]).run().success().stdout(format!("{answer}\n"));
        assert_eq!(form(&DIALECTS[0], &server.request()), shaped(&DIALECTS[0], schema, strict));
    }
}

#[test]
fn what_is_no_shape_is_refused() {
    for (spec, reason) in [
        ("", "a field is empty"),
        ("{\"type\":", "--schema: it is not JSON"),
        ("missing.json", "missing.json"),
        ("broken.json", "broken.json: it is not JSON"),
        ("list.json", "list.json: it is JSON, but not an object"),
        ("latin1.json", "latin1.json: it is not UTF-8"),
        ("age number", "the types are str, int, float, bool, list"),
        ("name, name", "“name” is given twice"),
        ("what is your name?", "the types are"),
        ("[name", "the bracket is not closed"),
    ] {
        let _case = case(spec);
        let outcome = refused(|sandbox| {
            sandbox.write_home("broken.json", "{");
            sandbox.write_home("list.json", "[]");
            sandbox.write_home("latin1.json", b"{\"title\":\"gr\xFC\xDFe\"}");
            sandbox.q(&["--schema", spec, "who?"])
        });
        outcome.stderr_contains("--schema: ").stderr_contains(reason);
    }
    let outcome = refused(|sandbox| sandbox.q(&["-x", "--schema", PERSON, "who?"]));
    outcome.stderr_contains("--extract and --schema cannot be used together");
    let outcome = refused(|sandbox| sandbox.q(&["--schema", PERSON, "--last"]));
    outcome.stderr_contains("--last cannot use --schema");
}

#[test]
fn an_answer_is_printed_when_it_has_the_shape_and_not_before() {
    for (answer, printed) in [
        (ANN, ANN),
        ("\n{\"age\": 7,\n \"name\": \"Ann\"}\n\n", "{\"age\": 7,\n \"name\": \"Ann\"}"),
        ("```json\n{\"name\":\"Ann\",\"age\":7}\n```\n", ANN),
    ] {
        let _case = case(answer);
        for args in [&["--schema", PERSON, "who?"][..], &["--no-stream", "--schema", PERSON, "who?"]] {
            let (_server, sandbox) = answered_with(answer);
            sandbox.q(args).run().success().stdout(format!("{printed}\n")).stderr("");
            // What the model said is kept as it came.
            sandbox.expect_texts("current.json", &["who?", answer]);
        }
        // On a terminal too.
        let (_server, sandbox) = answered_with(answer);
        let terminal = Terminal::new(WIDE);
        sandbox.q(&["--schema", PERSON, "who?"]).stdout_to(terminal.end()).run().success();
        let shown = String::from_utf8(terminal.bytes()).expect("text").replace("\r\n", "\n");
        assert_eq!(shown, format!("{printed}\n"));
    }
}

#[test]
fn an_answer_of_another_shape_is_not_printed_but_kept() {
    for (answer, reason) in [
        ("Ann is 7.", "it is not JSON"),
        ("{\"name\":\"Ann\"}", "the field “age” is missing"),
        ("{\"name\":\"Ann\",\"age\":", "it is not JSON"),
        ("[]", "it is not an object"),
        ("Here it is:\n{\"name\":\"Ann\",\"age\":7}", "it is not JSON"),
    ] {
        let _case = case(answer);
        let (_server, sandbox) = answered_with(answer);
        let outcome = sandbox.q(&["--schema", PERSON, "who?"]).run();
        outcome
            .exit(1)
            .stdout_is_empty()
            .stderr_contains(reason)
            .stderr_contains("q --last prints the answer as it came");
        sandbox.q(&["--last"]).run().success().stdout(format!("{answer}\n"));
        let printed = sandbox.q(&["-j", "--schema", PERSON, "who?"]).run().exit(1).stdout_json();
        assert!(printed["error"]["message"].as_str().expect("a message").contains(reason), "{printed}");
    }
}

#[test]
fn an_answer_that_is_incomplete_is_never_printed() {
    let cut = Reply::sse([word(ANN), finish("length")]);
    let broken = Reply::sse([word(ANN)]);
    for (name, reply, status) in [("cut", cut, 3), ("silent", first_word_then_silence(), 1), ("broken off", broken, 1)]
    {
        let _case = case(name);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server).env("Q_TIMEOUT", "1s");
        let outcome = sandbox.q(&["--schema", PERSON, "who?"]).run();
        outcome.exit(status).stdout_is_empty().stderr_contains("q --last prints ");
        assert_eq!(sandbox.current()["messages"][0]["content"], "who?");
    }
    // Nobody must take it out of JSON either.
    let half = Reply::sse([word("```\n{\"name\":"), finish("length")]);
    for options in [&["-j", "--schema", PERSON][..], &["-j", "-x"]] {
        let server = Server::always(half.clone());
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(options).arg("who?").run();
        let printed = outcome.exit(3).stdout_json();
        let message = printed["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("token limit (length)") && printed.get("answer").is_none(), "{printed}");
        outcome.stderr_contains("q --last prints the incomplete answer");
        sandbox.q(options).args(&["-q", "who?"]).run().exit(3).stderr_is_empty();
        sandbox.q(&["--last"]).run().exit(0).stdout("```\n{\"name\":\n");
    }
}

#[test]
fn a_pipe_never_sees_half_an_object() {
    let (_server, sandbox) = answered_with("{\"name\":\"Ann\"");
    let script = format!("q --schema '{PERSON}' 'who?' | wc -c");
    assert_eq!(sandbox.shell(&script).run().exit(0).stdout_text().trim(), "0");
}

#[test]
fn json_has_the_answer_as_a_string() {
    let (_server, sandbox) = answered_with("```json\n{\"name\":\"Ann\",\"age\":7}\n```");
    let printed = sandbox.q(&["-j", "--schema", PERSON, "who?"]).run().success().stdout_json();
    assert_eq!((&printed["answer"], &printed["finish"]), (&json!(ANN), &json!("stop")));
}

#[test]
fn a_shape_goes_with_follow_ups_and_is_not_remembered() {
    let (server, sandbox) = answered_with(ANN);
    sandbox.write_current(&idle_for(HOUR, &["one", "two"]));
    sandbox.q(&["-f", "-p", "openai", "-m", "stored-model", "--schema", PERSON, "who?"]).run().success();
    assert!(prompt(&server.request()).ends_with("Human: who?"));
    sandbox.expect_texts("current.json", &["one", "two", "who?", ANN]);
    sandbox.q(&["-f", "and?"]).run().success();
    assert_eq!(form(&DIALECTS[0], &server.last_request()), Value::Null);
    sandbox.q(&["--again", "--schema", PERSON]).run().success().stdout(format!("{ANN}\n"));
    assert_eq!(form(&DIALECTS[0], &server.last_request()), shaped(&DIALECTS[0], &person(), true));
    assert!(!String::from_utf8_lossy(&sandbox.read_bytes("current.json")).contains("schema"));
}

/// The words with which a server refuses a form that it does not know.
const REFUSAL: &str = "This model does not support response format `json_schema`.";

/// What the prompt says where the API does not see to the shape.
fn order() -> String {
    format!("who?\n\nAnswer with nothing but JSON that fits this JSON Schema:\n{}", person())
}

/// A server that refuses the form so many times and then gives this answer.
fn refusing(dialect: &Dialect, refusals: usize, answer: &'static str) -> Server {
    let (error, reply) = (dialect.error(400, REFUSAL), dialect.reply);
    Server::start(
        move |request, index| {
            if index < refusals { Reply::json(400, error.clone()) } else { reply(request, answer) }
        },
    )
}

#[test]
fn a_server_that_refuses_the_form_is_asked_for_less() {
    let object = json!({"type": "json_object"});
    let json_alone = json!({"responseMimeType": "application/json"});
    let [openai, anthropic, gemini, responses] = &DIALECTS;
    for (dialect, refusals, expected) in [
        (openai, 1, &object),
        (openai, 2, &Value::Null),
        (responses, 1, &object),
        (responses, 2, &Value::Null),
        (anthropic, 1, &Value::Null),
        (gemini, 1, &json_alone),
        (gemini, 2, &Value::Null),
    ] {
        let _case = case((dialect.provider, refusals));
        let server = refusing(dialect, refusals, ANN);
        let sandbox = Sandbox::new();
        let outcome = dialect.q(&sandbox, &server, &["--schema", PERSON, "who?"]).run();
        outcome.success().stdout(format!("{ANN}\n")).stderr("");
        server.expect_requests(refusals + 1);
        let sent = server.last_request();
        assert_eq!(dialect.sent(&sent).1, [("user".to_owned(), order())]);
        assert_eq!(form(dialect, &sent), *expected);
        // The file has the question as it was asked.
        sandbox.expect_texts("current.json", &["who?", ANN]);
    }
}

#[test]
fn a_server_that_refuses_any_form_has_the_last_word() {
    let [openai, anthropic, gemini, responses] = &DIALECTS;
    for (dialect, requests) in [(openai, 3), (responses, 3), (anthropic, 2), (gemini, 3)] {
        let _case = case(dialect.provider);
        let server = refusing(dialect, usize::MAX, ANN);
        let sandbox = Sandbox::new();
        let outcome = dialect.q(&sandbox, &server, &["--schema", PERSON, "who?"]).run();
        outcome.exit(1).stdout_is_empty().stderr_contains(REFUSAL);
        server.expect_requests(requests);
    }
}

#[test]
fn a_list_is_never_asked_for_as_an_object() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = refusing(dialect, 1, "[\"Ann\"]");
        let sandbox = Sandbox::new();
        let list = r#"{"type":"array","items":{"type":"string"}}"#;
        let outcome = dialect.q(&sandbox, &server, &["--schema", list, "who?"]).run();
        outcome.success().stdout("[\"Ann\"]\n").stderr("");
        server.expect_requests(2);
        assert_eq!(form(dialect, &server.last_request()), Value::Null);
    }
}

#[test]
fn another_refusal_is_final() {
    for (status, message) in [(400, "bad temperature"), (401, "json_schema"), (429, "response_format"), (500, "schema")]
    {
        let _case = case((status, message));
        let server = Server::always(failure(status, message));
        let sandbox = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
        sandbox.q(&["--schema", PERSON, "who?"]).run().exit(1).stderr_contains(message);
        server.expect_requests(1);
    }
    // Without a shape there is nothing to take back.
    let server = Server::always(failure(400, REFUSAL));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["who?"]).run().exit(1);
    server.expect_requests(1);
}

#[test]
fn verbose_shows_that_less_is_asked_for() {
    let server = Server::start(|_, index| match index {
        0 => failure(400, REFUSAL),
        _ => Reply::sse(openai_stream(&[ANN])),
    });
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-v", "--schema", PERSON, "who?"]).run();
    outcome.exit(0).stderr_contains(REFUSAL).stderr_contains("the prompt describes the shape instead");
}

#[test]
fn with_tools_the_shape_stands_in_the_prompt_alone() {
    for dialect in built_in_dialects() {
        let _case = case(dialect.provider);
        let (calls, answer) =
            (calling(dialect, "{\"half\":", &[("x1", "x__echo", json!({"text": "a"}))]), dialect.reply);
        let server = Server::start(move |request, index| if index == 0 { calls.clone() } else { answer(request, ANN) });
        let sandbox = Sandbox::new();
        sandbox.config(&section(&sandbox, "x", "", ""));
        let outcome = dialect.q(&sandbox, &server, &["-t", "x", "--yes", "--schema", PERSON, "who?"]).run();
        // What the model said before its call is no part of the answer.
        outcome.success().stdout(format!("{ANN}\n"));
        for sent in server.requests() {
            assert_eq!(form(dialect, &sent), Value::Null, "{}", sent.text());
            assert!(sent.text().contains("Answer with nothing but JSON that fits this JSON Schema"));
        }
        server.expect_requests(2);
    }
}

#[test]
fn a_dry_run_shows_the_form() {
    let (server, sandbox) = numbered();
    let body = sandbox.q(&["--dry-run", "--schema", PERSON, "who?"]).run().success().stdout_json();
    assert_eq!(body["response_format"], shaped(&DIALECTS[0], &person(), true));
    server.expect_requests(0);
}

#[test]
fn a_form_that_is_refused_within_a_stream_is_given_up_before_the_first_word() {
    let error = data(&json!({"error": {"code": 400, "message": REFUSAL}}));
    let refusal = Reply::sse([error.clone()]);
    let server = Server::start(move |_, index| match index {
        0 => refusal.clone(),
        _ => Reply::sse(openai_stream(&[ANN])),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["--schema", PERSON, "who?"]).run().success().stdout(format!("{ANN}\n")).stderr("");
    server.expect_requests(2);
    assert_eq!(form(&DIALECTS[0], &server.last_request()), json!({"type": "json_object"}));
    // After the first word it is too late.
    let server = Server::always(Reply::sse([word("{"), error]));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["--schema", PERSON, "who?"]).run().exit(1).stdout_is_empty();
    server.expect_requests(1);
}

#[test]
fn the_commands_with_shapes_of_the_documents_work() {
    if lacks("jq", "jq --version") {
        return;
    }
    let city = shown("q --schema 'city, population int' \"the largest city of France\" | jq .population");
    let csv = shown(
        "q --schema '[time, service, message]' \"the errors in this log\" <app.log |\n        \
         jq -r '.items[] | [.time, .service, .message] | @csv' >errors.csv",
    );
    let review = shown(
        "q --schema '[file, line int, problem]' -a src/main.rs \"review this\" | \
         jq -r '.items[] | \"\\(.file):\\(.line): \\(.problem)\"'",
    );
    for (command, answer, printed) in [
        (city, r#"{"city":"Paris","population":2102650}"#, "2102650\n"),
        (
            &format!("{csv}; cat errors.csv"),
            r#"{"items":[{"time":"10:00","service":"db","message":"it said \"no\""}]}"#,
            "\"10:00\",\"db\",\"it said \"\"no\"\"\"\n",
        ),
        (review, r#"{"items":[{"file":"src/main.rs","line":1,"problem":"empty"}]}"#, "src/main.rs:1: empty\n"),
        (
            shown("q --schema 'name, age int, tags list: what they like' \"make up a person\""),
            r#"{"name":"Ann","age":7,"tags":["tea"]}"#,
            "{\"name\":\"Ann\",\"age\":7,\"tags\":[\"tea\"]}\n",
        ),
    ] {
        let _case = case(command);
        let (server, sandbox) = answered_with(answer);
        std::fs::create_dir(sandbox.home().join("src")).expect("a folder");
        sandbox.write_home("src/main.rs", "fn main() {}\n");
        sandbox.write_home("app.log", "10:00 db: it said \"no\"\n");
        sandbox.shell(command).run().success().stdout(printed);
        assert_eq!(server.request().json()["response_format"]["json_schema"]["strict"], true);
    }
}

#[test]
fn a_shape_that_an_api_cannot_enforce_stands_in_the_prompt() {
    let map = r#"{"type":"object","properties":{"ages":{"type":"object","additionalProperties":{"type":"integer"}}}}"#;
    for (provider, is_enforced) in [("openai", true), ("anthropic", false), ("gemini", true), ("responses", true)] {
        let _case = case(provider);
        let dialect = DIALECTS.iter().find(|dialect| dialect.provider == provider).expect("a dialect");
        let server = answering(dialect, "{\"ages\":{\"Ann\":7}}");
        let sandbox = Sandbox::new();
        dialect.q(&sandbox, &server, &["--schema", map, "who?"]).run().success();
        assert_eq!(form(dialect, &server.request()) != Value::Null, is_enforced);
        assert_eq!(server.request().text().contains("fits this JSON Schema"), !is_enforced);
    }
}

#[test]
fn a_file_without_end_is_no_schema() {
    let outcome = refused(|sandbox| {
        std::os::unix::fs::symlink("/dev/zero", sandbox.home().join("zero.json")).expect("a link");
        sandbox.q(&["--schema", "zero.json", "who?"])
    });
    outcome.stderr_contains("zero.json: it has more than 1000000 bytes");
}
