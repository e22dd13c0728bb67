//! That a dry run shows what would be sent, and that what is sent again can be cached.

use serde_json::{Value, json};

use crate::conversations::idle_for;
use crate::dialect::{Dialect, anthropic_reply};
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};
use crate::snapshot::snapshot;
use crate::times::HOUR;
use crate::toolserver::section;

#[test]
fn a_dry_run_prints_exactly_the_body_that_would_be_sent() {
    let whole = &["-p", "openai", "--no-stream", "-S", "be \u{1b}kind"];
    let alone = &["-p", "openai", "-f", "--messages", "0"];
    // Each: arguments, the form of the history, and what the body must have.
    let table: [(&[&str], &str, &str); 7] = [
        (&["-p", "openai"], "prompt", "\"stream\":true"),
        (whole, "prompt", "be \\u001bkind"),
        (&["-p", "anthropic"], "prompt", "\"max_tokens\":7"),
        (&["-p", "gemini"], "prompt", "\"maxOutputTokens\":7"),
        (&["-p", "openai", "-f"], "prompt", "Previous conversation:"),
        (&["-p", "openai", "-f"], "messages", "\"assistant\""),
        (alone, "prompt", "log of today"),
    ];
    for (args, history, has) in table {
        let _case = case((args, history));
        let server = Server::always(Reply::json(500, json!({})));
        let sandbox = Sandbox::new().every_env(&server);
        sandbox.write_current(&idle_for(HOUR, &["question", "answer"]));
        let before = snapshot(sandbox.state());
        let [dry, sent] = ["--dry-run", "--no-save"].map(|first| {
            let q = sandbox.q(&[first]).args(args).arg("hi");
            let q = q.stdin("log of today\n").env("Q_RETRIES", "0");
            let q = q.env("Q_SYSTEM", "be brief").env("Q_MAX_TOKENS", "7");
            q.env("Q_HISTORY", history).run()
        });
        sent.exit(1);
        dry.success()
            .stdout(server.request().text() + "\n")
            .stdout_contains(has);
        before.expect_unchanged();
    }
}

#[test]
fn each_further_request_begins_with_the_same_json_as_the_one_before() {
    let anthropic = Dialect::named("anthropic");
    let server = Server::start(
        move |request, _| match request.json()["messages"].to_string() {
            text if text.contains("call it") && text.matches("tool_result").count() < 2 => {
                anthropic.calling("", &[("call00001", "db__echo", json!({"text": "hi"}))])
            }
            _ => anthropic_reply(request, "fine"),
        },
    );
    let sandbox = Sandbox::new();
    sandbox.config(&section(&sandbox, "db", "", ""));
    sandbox.write_home("page.pdf", format!("%PDF-1.4\n{}", "x".repeat(3_700_000)));
    let asked = |args: &[&str]| {
        let q = anthropic.q(&sandbox, &server, args).env("Q_ROUNDS", "2");
        q.run().exit(0).stdout("fine\n");
    };
    let begins = |number: usize, same: &[&str]| {
        let requests = server.requests();
        let always = ["/model", "/system", "/tools", "/cache_control"];
        for place in same.iter().chain(&always) {
            let at = |number: usize| requests[number].json().pointer(place).map(Value::to_string);
            assert_eq!(at(number), at(number + 1), "{place}");
        }
    };
    asked(&["-a", "page.pdf", "one"]);
    asked(&["-f", "two"]);
    begins(0, &["/messages/0/content/0"]);
    asked(&["-a", "page.pdf", "-t", "db", "call it"]);
    begins(2, &["/messages/0"]);
    begins(3, &["/messages/0", "/messages/1", "/messages/2"]);
    server.expect_requests(5);
}
