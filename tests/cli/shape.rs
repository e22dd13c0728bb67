//! `--schema`: how the shape of an answer is asked for, and which answers are printed.

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, finish, first_word_then_silence, word};
use crate::fixtures::{answering, case, lacks, shown};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Recorded, Reply, Server};

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
        "responses" => {
            json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict})
        }
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
        let outcome = dialect
            .q(&sandbox, &server, &["--schema", PERSON, "who?"])
            .run();
        outcome.success().stdout(format!("{ANN}\n")).stderr("");
        let sent = server.request();
        assert_eq!(form(dialect, &sent), shaped(dialect, &person(), true));
        // The question stays as it is where the API sees to the shape.
        assert_eq!(
            dialect.sent(&sent).1,
            [("user".to_owned(), "who?".to_owned())]
        );
        // The order of the fields is the order in which models answer.
        let text = sent.text();
        assert!(text.find("\"name\":{") < text.find("\"age\":{"), "{text}");
    }
}

#[test]
fn an_answer_is_printed_when_it_has_the_shape_and_not_before() {
    for (answer, printed) in [
        (ANN, ANN),
        (
            "\n{\"age\": 7,\n \"name\": \"Ann\"}\n\n",
            "{\"age\": 7,\n \"name\": \"Ann\"}",
        ),
        ("```json\n{\"name\":\"Ann\",\"age\":7}\n```\n", ANN),
    ] {
        let _case = case(answer);
        for args in [
            &["--schema", PERSON, "who?"][..],
            &["--no-stream", "--schema", PERSON, "who?"],
        ] {
            let (_server, sandbox) = answered_with(answer);
            sandbox
                .q(args)
                .run()
                .success()
                .stdout(format!("{printed}\n"))
                .stderr("");
            // What the model said is kept as it came.
            sandbox.expect_texts("current.json", &["who?", answer]);
        }
        // On a terminal too.
        let (_server, sandbox) = answered_with(answer);
        let terminal = Terminal::new(WIDE);
        sandbox
            .q(&["--schema", PERSON, "who?"])
            .stdout_to(terminal.end())
            .run()
            .success();
        let shown = String::from_utf8(terminal.bytes())
            .expect("text")
            .replace("\r\n", "\n");
        assert_eq!(shown, format!("{printed}\n"));
    }
}

#[test]
fn an_answer_that_is_incomplete_is_never_printed() {
    let cut = Reply::sse([word(ANN), finish("length")]);
    let broken = Reply::sse([word(ANN)]);
    for (name, reply, status) in [
        ("cut", cut, 3),
        ("silent", first_word_then_silence(), 1),
        ("broken off", broken, 1),
    ] {
        let _case = case(name);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server).env("Q_TIMEOUT", "1s");
        let outcome = sandbox.q(&["--schema", PERSON, "who?"]).run();
        outcome
            .exit(status)
            .stdout_is_empty()
            .stderr_contains("q --last prints ");
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
        assert!(
            message.contains("token limit (length)") && printed.get("answer").is_none(),
            "{printed}"
        );
        outcome.stderr_contains("q --last prints the incomplete answer");
        sandbox
            .q(options)
            .args(&["-q", "who?"])
            .run()
            .exit(3)
            .stderr_is_empty();
        sandbox
            .q(&["--last"])
            .run()
            .exit(0)
            .stdout("```\n{\"name\":\n");
    }
}

/// The words with which a server refuses a form that it does not know.
const REFUSAL: &str = "This model does not support response format `json_schema`.";

/// What the prompt says where the API does not see to the shape.
fn order() -> String {
    format!(
        "who?\n\nAnswer with nothing but JSON that fits this JSON Schema:\n{}",
        person()
    )
}

/// A server that refuses the form so many times and then gives this answer.
fn refusing(dialect: &Dialect, refusals: usize, answer: &'static str) -> Server {
    let (error, reply) = ((dialect.error)(400, REFUSAL), dialect.reply);
    Server::start(move |request, index| {
        if index < refusals {
            Reply::json(400, error.clone())
        } else {
            reply(request, answer)
        }
    })
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
        let outcome = dialect
            .q(&sandbox, &server, &["--schema", PERSON, "who?"])
            .run();
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
fn the_commands_with_shapes_of_the_documents_work() {
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
    for (command, answer, printed) in [
        (
            city,
            r#"{"city":"Paris","population":2102650}"#,
            "2102650\n",
        ),
        (
            &format!("{csv}; cat errors.csv"),
            r#"{"items":[{"time":"10:00","service":"db","message":"it said \"no\""}]}"#,
            "\"10:00\",\"db\",\"it said \"\"no\"\"\"\n",
        ),
        (
            review,
            r#"{"items":[{"file":"src/main.rs","line":1,"problem":"empty"}]}"#,
            "src/main.rs:1: empty\n",
        ),
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
        assert_eq!(
            server.request().json()["response_format"]["json_schema"]["strict"],
            true
        );
    }
}
