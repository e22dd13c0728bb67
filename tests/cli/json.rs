//! `--json`: one line for a program, whatever happens.

use serde_json::{Value, json};

use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{
    INPUT_TOKENS, OUTPUT_TOKENS, Reply, Server, anthropic_event, anthropic_stream, gemini_stream, openai_event,
    openai_stream,
};

#[test]
fn an_answer_is_one_line_with_exactly_these_fields_in_this_order() {
    let server = Server::openai("one \"two\"\n\u{1b} é\n");
    let sandbox = Sandbox::new().server_env(&server);
    let path = sandbox.sessions().join("current.json");
    let line = |session: &Value, sent: usize| {
        format!(
            concat!(
                r#"{{"answer":"one \"two\"\n\u001b é\n","provider":"openai","model":"m","finish":"stop","#,
                r#""usage":{{"input_tokens":{},"output_tokens":{}}},"session":{},"messages_sent":{}}}"#,
                "\n"
            ),
            INPUT_TOKENS, OUTPUT_TOKENS, session, sent
        )
    };
    let q = |args: &[&str]| sandbox.q(&["-j", "-m", "m"]).args(args).run();
    q(&["one"]).success().stdout(line(&json!(path), 0));
    q(&["-f", "two"]).success().stdout(line(&json!(path), 2));
    q(&["-f", "--messages", "3", "three"]).success().stdout(line(&json!(path), 3));
    let before = sandbox.read_bytes("current.json");
    q(&["-f", "--no-save", "four"]).success().stdout(line(&Value::Null, 6));
    q(&["--no-stream", "--no-save", "five"]).success().stdout(line(&Value::Null, 0));
    assert_eq!(sandbox.read_bytes("current.json"), before);
    let named = sandbox.sessions().join("work.json");
    q(&["-s", "work", "six"]).success().stdout(line(&json!(named), 0));
    let file = sandbox.home().join("talk.json");
    q(&["-s", "talk.json", "seven"]).success();
    assert!(file.exists());
    let told = q(&["-s", "talk.json", "eight"]).stdout_json();
    let told = told["session"].as_str().expect("a path").to_owned();
    assert_eq!(sandbox.home().join(told).canonicalize().expect("a file"), file);
}

#[test]
fn finish_and_usage_are_told_in_the_same_words_for_every_dialect() {
    let openai = |word: &'static str| {
        let mut events = openai_stream(&["x"]);
        let end = events.len() - 3;
        events[end] = openai_event(json!({}), Some(word));
        events
    };
    let anthropic = |word: &'static str| replaced(anthropic_stream(&["x"]), "end_turn", word);
    let gemini = |word: &'static str| replaced(gemini_stream(&["x"]), "STOP", word);
    let table: Vec<(&str, Vec<Vec<u8>>, &str)> = vec![
        ("openai", openai("stop"), "stop"),
        ("openai", openai("length"), "length"),
        ("openai", openai("tool_calls"), "tool_calls"),
        ("anthropic", anthropic("end_turn"), "stop"),
        ("anthropic", anthropic("stop_sequence"), "stop"),
        ("anthropic", anthropic("max_tokens"), "length"),
        ("anthropic", anthropic("pause_turn"), "pause_turn"),
        ("gemini", gemini("STOP"), "stop"),
        ("gemini", gemini("MAX_TOKENS"), "length"),
        ("gemini", gemini("OTHER_WORD"), "OTHER_WORD"),
    ];
    for (provider, events, finish) in table {
        let server = Server::start(move |_, _| Reply::sse(&events));
        let sandbox = Sandbox::new().server_env(&server).anthropic_env(&server).gemini_env(&server);
        let outcome = sandbox.q(&["-j", "-p", provider, "hi"]).run();
        let told = outcome.exit(0).stdout_json();
        outcome.check(told["finish"] == finish && told["provider"] == provider, || format!("expected {finish:?}"));
        assert_eq!(told["usage"], json!({"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}));
        assert_eq!(told["answer"], "x");
        if finish == "length" {
            outcome.stderr_contains("limit of tokens");
        } else {
            outcome.stderr_is_empty();
        }
    }
}

#[test]
fn usage_that_nobody_told_is_null() {
    let openai = vec![openai_event(json!({"content": "x"}), Some("stop")), b"data: [DONE]\n\n".to_vec()];
    let anthropic = ["message_start", "content_block_delta", "message_stop"].map(|name| {
        anthropic_event(json!({"type": name, "message": {}, "delta": {"type": "text_delta", "text": "x"}}))
    });
    let gemini = json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]});
    let gemini = vec![format!("data: {gemini}\n\n").into_bytes()];
    for (provider, events) in [("openai", openai), ("anthropic", anthropic.to_vec()), ("gemini", gemini)] {
        let server = Server::start(move |_, _| Reply::sse(&events));
        let sandbox = Sandbox::new().server_env(&server).anthropic_env(&server).gemini_env(&server);
        let outcome = sandbox.q(&["-j", "-p", provider, "hi"]).run();
        let told = outcome.success().stdout_json();
        outcome.check(told["usage"].is_null() && told["answer"] == "x", || "expected an answer without usage".into());
    }
}

#[test]
fn a_failure_is_one_line_of_json_and_the_error_on_stderr_too() {
    let whole = |reply: Reply| move |_: usize| reply.clone();
    let half = || openai_stream(&["half "])[..2].to_vec();
    // What goes wrong, and the status and exit code that tell of it.
    type Case = (&'static str, Box<dyn Fn(usize) -> Reply + Send + Sync>, &'static [&'static str], Value, i32);
    let table: Vec<Case> = vec![
        (
            "refused",
            Box::new(whole(Reply::json(401, json!({"error": {"message": "bad key"}})))),
            &["hi"],
            json!(401),
            1,
        ),
        ("not json", Box::new(whole(Reply::new(404).piece("nothing here"))), &["hi"], json!(404), 1),
        ("cut", Box::new(whole(Reply::sse(half()).cut())), &["hi"], Value::Null, 1),
        ("empty", Box::new(whole(Reply::sse(openai_stream::<&str>(&[])))), &["hi"], Value::Null, 1),
        ("no code", Box::new(whole(Reply::sse(openai_stream(&["text"])))), &["-x", "hi"], Value::Null, 1),
        ("no question", Box::new(whole(Reply::new(500))), &[], Value::Null, 2),
        ("no provider", Box::new(whole(Reply::new(500))), &["-p", "nobody", "hi"], Value::Null, 2),
        ("wrong setting", Box::new(whole(Reply::new(500))), &["--messages", "x", "hi"], Value::Null, 2),
    ];
    for (what, reply, args, status, exit) in table {
        let server = Server::start(move |_, number| reply(number));
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(&["--json"]).args(args).run();
        outcome.check(outcome.status.code() == Some(exit), || format!("{what}: expected exit code {exit}"));
        outcome.check(outcome.stdout.ends_with(b"}\n") && outcome.stdout_text().lines().count() == 1, || {
            format!("{what}: expected one line of JSON")
        });
        let told = outcome.stdout_json();
        let message = told["error"]["message"].as_str().unwrap_or_default();
        let right = told == json!({"error": {"message": message, "status": status}}) && !message.is_empty();
        outcome.check(right, || format!("{what}: expected an error with the status {status}"));
        outcome.stderr_contains(&format!("q: {message}\n")).stdout_lacks(API_KEY);
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_in_json_too() {
    for args in [&["--json", "hi", "-v"][..], &["-j", "--nonsense", "hi"], &["-j", "--models"], &["-fj", "--history"]] {
        let outcome = Sandbox::new().q(args).run();
        let told = outcome.exit(2).stdout_json();
        let message = told["error"]["message"].as_str().unwrap_or_default();
        outcome.check(!message.is_empty() && told["error"]["status"].is_null(), || "expected an error".to_owned());
        outcome.stderr_contains(&format!("q: {message}\n"));
    }
}

#[test]
fn a_failure_in_json_of_an_answer_that_began_is_saved_as_interrupted() {
    let server = Server::start(|_, _| Reply::sse(&openai_stream(&["half "])[..2]).cut());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["-j", "hi"]).run().exit(1).stdout_lacks("half");
    let answer = &sandbox.current()["messages"][1];
    assert_eq!((&answer["content"], &answer["interrupted"]), (&json!("half "), &json!(true)));
}

#[test]
fn json_with_code_has_the_code_as_answer_and_the_whole_is_saved() {
    let answer = "Try:\n```sh\nls\n```\n";
    let server = Server::openai(answer);
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-j", "-x", "hi"]).run();
    assert_eq!(outcome.success().stdout_json()["answer"], "ls\n");
    assert_eq!(sandbox.current()["messages"][1]["content"], answer);
}

#[test]
fn notes_stay_on_stderr() {
    let server = Server::openai("x");
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-j", "-f", "hi"]).run();
    outcome.exit(0).stderr_contains("q: there is no conversation");
    assert_eq!(outcome.stdout_json()["answer"], "x");
}

fn replaced(events: Vec<Vec<u8>>, word: &str, by: &str) -> Vec<Vec<u8>> {
    let replaced = |event: Vec<u8>| String::from_utf8_lossy(&event).replace(word, by).into_bytes();
    events.into_iter().map(replaced).collect()
}
