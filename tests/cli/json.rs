//! `--json`: one line for a program, whatever happens.

use serde_json::{Value, json};

use crate::dialect::{INPUT_TOKENS, OUTPUT_TOKENS, failure, openai_stream};
use crate::fixtures::case;
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Reply, Server};

#[test]
fn an_answer_is_one_line_with_exactly_these_fields_in_this_order() {
    let server = Server::openai("one \"two\"\n\u{1b} é\n");
    let sandbox = Sandbox::new().server_env(&server);
    let line = |id: &Value, session: &Value, sent: usize| {
        format!(
            concat!(
                r#"{{"answer":"one \"two\"\n\u001b é\n","provider":"openai","model":"m","finish":"stop","#,
                r#""usage":{{"input_tokens":{},"output_tokens":{}}},"id":{},"session":{},"messages_sent":{}}}"#,
                "\n"
            ),
            INPUT_TOKENS, OUTPUT_TOKENS, id, session, sent
        )
    };
    let q = |args: &[&str]| sandbox.q(&["-j", "-m", "m"]).args(args).run();
    let first = q(&["one"]);
    let id = json!(sandbox.current_id());
    let path = sandbox
        .sessions()
        .join(format!("{}.json", sandbox.current_id()));
    first.success().stdout(line(&id, &json!(path), 0));
    q(&["-f", "two"])
        .success()
        .stdout(line(&id, &json!(path), 2));
    q(&["-f", "--messages", "3", "three"])
        .success()
        .stdout(line(&id, &json!(path), 3));
    let before = sandbox.read_bytes("current.json");
    q(&["-f", "--no-save", "four"])
        .success()
        .stdout(line(&Value::Null, &Value::Null, 6));
    q(&["--no-stream", "--no-save", "five"])
        .success()
        .stdout(line(&Value::Null, &Value::Null, 0));
    sandbox.expect_bytes("current.json", before);
    let named = sandbox.sessions().join("work.json");
    q(&["-s", "work", "six"])
        .success()
        .stdout(line(&json!("work"), &json!(named), 0));
    let file = sandbox.home().join("talk.json");
    q(&["-s", "talk.json", "seven"])
        .success()
        .check(file.exists(), || {
            format!("expected the file {}", file.display())
        });
    let printed = q(&["-s", "talk.json", "eight"]).stdout_json();
    let printed = printed["session"].as_str().expect("a path").to_owned();
    assert_eq!(
        sandbox.home().join(printed).canonicalize().expect("a file"),
        file
    );
}

#[test]
fn a_failure_is_one_line_of_json_and_the_error_on_stderr_too() {
    let half = || openai_stream(&["half "])[..2].to_vec();
    // What goes wrong, the reply to the question, and the status and exit code that say so.
    for (what, reply, args, status, exit) in [
        (
            "refused",
            failure(401, "bad key"),
            &["hi"][..],
            json!(401),
            1,
        ),
        (
            "not json",
            Reply::new(404).piece("nothing here"),
            &["hi"],
            json!(404),
            1,
        ),
        ("cut", Reply::sse(half()).cut(), &["hi"], Value::Null, 1),
        (
            "empty",
            Reply::sse(openai_stream::<&str>(&[])),
            &["hi"],
            Value::Null,
            1,
        ),
        (
            "no code",
            Reply::sse(openai_stream(&["text"])),
            &["-x", "hi"],
            Value::Null,
            1,
        ),
        ("no question", Reply::new(500), &[], Value::Null, 2),
        (
            "no provider",
            Reply::new(500),
            &["-p", "nobody", "hi"],
            Value::Null,
            2,
        ),
        (
            "wrong setting",
            Reply::new(500),
            &["--messages", "x", "hi"],
            Value::Null,
            2,
        ),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(&["--json"]).args(args).run();
        let one_line =
            outcome.stdout.ends_with(b"}\n") && outcome.stdout_text().lines().count() == 1;
        outcome
            .exit(exit)
            .check(one_line, || "expected one line of JSON".to_owned());
        let printed = outcome.stdout_json();
        let message = printed["error"]["message"].as_str().unwrap_or_default();
        let right = printed == json!({"error": {"message": message, "status": status}})
            && !message.is_empty();
        outcome.check(right, || {
            format!("expected an error with the status {status}")
        });
        outcome
            .stderr_contains(&format!("q: {message}\n"))
            .stdout_lacks(API_KEY);
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_reported_in_json_too() {
    for args in [
        &["--json", "hi", "-v"][..],
        &["-j", "--nonsense", "hi"],
        &["--nonsense=x", "-qj", "hi"],
        &["-j", "--models"],
        &["-fj", "--history"],
        &["--last", "--json", "words"],
        &["--undo", "--json", "words"],
        &["--clear", "--json", "words"],
    ] {
        let outcome = Sandbox::new().q(args).run();
        let printed = outcome.exit(2).stdout_json();
        let message = printed["error"]["message"].as_str().unwrap_or_default();
        outcome.check(
            !message.is_empty() && printed["error"]["status"].is_null(),
            || "expected an error".to_owned(),
        );
        outcome.stderr_contains(&format!("q: {message}\n"));
    }
}

#[test]
fn an_answer_that_breaks_off_in_json_is_saved_as_interrupted() {
    let server = Server::always(Reply::sse(&openai_stream(&["half "])[..2]).cut());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["-j", "hi"]).run().exit(1).stdout_lacks("half");
    sandbox.expect_answer("half ", true);
}

#[test]
fn json_with_code_has_the_code_as_answer_and_all_of_it_is_saved() {
    let answer = "Try:\n```sh\nls\n```\n";
    let server = Server::openai(answer);
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-j", "-x", "hi"]).run();
    assert_eq!(outcome.success().stdout_json()["answer"], "ls\n");
    sandbox.expect_answer(answer, false);
}

#[test]
fn notes_stay_on_stderr() {
    let server = Server::openai("x");
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-j", "-f", "hi"]).run();
    outcome
        .exit(0)
        .stderr_contains("q: there is no conversation");
    assert_eq!(outcome.stdout_json()["answer"], "x");
}
