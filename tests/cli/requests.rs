//! What the user and the provider decide about a request: effort, other fields, storage and the Responses API.

use std::fs;

use serde_json::{Value, json};

use crate::fixtures::{
    DIALECTS, OPENAI_MODEL, answering, anthropic_reply, calling, case, documents,
};
use crate::sandbox::{API_KEY, Q, Sandbox};
use crate::server::Server;
use crate::toolserver::section;

/// The body that would be sent.
#[track_caller]
fn dry_run(q: Q) -> Value {
    let outcome = q.arg("--dry-run").arg("hi").run();
    outcome.success();
    outcome.stdout_json()
}

/// A sandbox with these variables and nothing else.
fn with_variables(variables: &[(&str, &str)]) -> Sandbox {
    variables
        .iter()
        .fold(Sandbox::new(), |sandbox, (name, value)| {
            sandbox.env(name, value)
        })
}

// ---- Where the Responses API is spoken

#[test]
fn openai_speaks_the_responses_api_at_its_own_address_only() {
    let section = |rest: &str| format!("[providers.openai]\n{rest}\n");
    for (base, file, responses) in [
        ("", String::new(), true),
        ("https://api.openai.com/v1/", String::new(), true),
        ("https://API.OpenAI.com/v1", String::new(), true),
        ("http://127.0.0.1:1/v1", String::new(), false),
        (
            "http://127.0.0.1:1/v1",
            section("api = \"responses\""),
            true,
        ),
        ("", section("api = \"openai\""), false),
        ("", section("base_url = \"http://127.0.0.1:1/v1\""), false),
        (
            "",
            section("base_url = \"https://api.openai.com/v1\""),
            true,
        ),
    ] {
        let _case = case((base, &file));
        let sandbox = with_variables(&[("OPENAI_API_KEY", API_KEY), ("OPENAI_BASE_URL", base)]);
        sandbox.config(&file);
        let body = dry_run(sandbox.q(&[]));
        assert_eq!(
            (body.get("input").is_some(), body.get("messages").is_some()),
            (responses, !responses),
            "{body}"
        );
        assert_eq!(body["model"], OPENAI_MODEL);
        let spoken = if responses {
            "responses at http"
        } else {
            "openai at http"
        };
        let status = sandbox.q(&["--status"]).run().stdout_text();
        let line = status
            .lines()
            .find(|line| line.starts_with("* openai"))
            .expect("a line of openai");
        assert!(line.contains(spoken), "{line}");
    }
}

#[test]
fn the_manual_has_a_section_for_azure_that_works() {
    let documents = documents();
    let section: String = documents
        .lines()
        .skip_while(|line| line.trim() != "[providers.azure]")
        .take_while(|line| !line.is_empty())
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    let sandbox = with_variables(&[("AZURE_OPENAI_API_KEY", API_KEY)]);
    sandbox.config(&section);
    let outcome = sandbox
        .q(&["-p", "azure", "-v", "-S", "", "--dry-run", "hello"])
        .run();
    outcome
        .exit(0)
        .stderr_contains("https://RESOURCE.openai.azure.com/openai/v1");
    assert_eq!(
        outcome.stdout_json(),
        json!({
            "model": "the-name-of-your-deployment", "stream": true, "store": false,
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
        })
    );
}

// ---- Effort and other fields

#[test]
fn options_are_merged_last_and_those_of_the_line_over_those_of_the_file() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "ok");
        let sandbox = Sandbox::new();
        // The section goes on what the dialect may have written there itself.
        dialect.q(&sandbox, &server, &[]);
        let options = "options = { temperature = 0.5, seed = 7, reply = { form = \"short\", lines = [1, 2] } }\n";
        let file = fs::read_to_string(sandbox.config_file()).unwrap_or_default();
        let section = format!("[providers.{}]\n", dialect.provider);
        sandbox.config(&match file.contains(&section) {
            true => file + options,
            false => section + options,
        });
        let args = [
            "-o",
            "temperature=0",
            "--option=reply.form=long",
            "-o",
            "model=null",
            "-o",
            "a.b=x=y",
        ];
        dialect
            .q(&sandbox, &server, &args)
            .args(&["-o", "id=98765432109876543210987", "hi"])
            .run()
            .success();
        assert!(
            server
                .request()
                .text()
                .contains("\"id\":98765432109876543210987"),
            "{}",
            server.request().text()
        );
        let body = server.request().json();
        assert_eq!(
            (&body["temperature"], &body["seed"]),
            (&json!(0), &json!(7))
        );
        assert_eq!(body["reply"], json!({"form": "long", "lines": [1, 2]}));
        assert_eq!((body.get("model"), &body["a"]["b"]), (None, &json!("x=y")));
        // They are not stored, so that a follow-up has those of the file only.
        assert!(!sandbox.current().to_string().contains("x=y"));
        dialect.q(&sandbox, &server, &["-f", "hi"]).run().success();
        let body = server.last_request().json();
        assert_eq!((&body["temperature"], body.get("a")), (&json!(0.5), None));
    }
}

// ---- Storage at the provider

// ---- The provider's cache

/// A sandbox with a tool server, a PDF and a conversation, and the server of Anthropic's dialect that answers there.
fn with_much_to_send() -> (Server, Sandbox) {
    let server = Server::start(|request, _| match request.json()["messages"].to_string() {
        text if text.contains("call it") && text.matches("tool_result").count() < 2 => calling(
            &DIALECTS[1],
            "",
            &[("call00001", "db__echo", json!({"text": "hi"}))],
        ),
        _ => anthropic_reply(request, "fine"),
    });
    let sandbox = Sandbox::new();
    sandbox.config(&section(&sandbox, "db", "", ""));
    sandbox.write_home("page.pdf", format!("%PDF-1.4\n{}", "x".repeat(3_700_000)));
    (server, sandbox)
}

#[test]
fn anthropic_is_asked_to_cache_what_may_be_sent_again() {
    let (server, sandbox) = with_much_to_send();
    DIALECTS[1].q(&sandbox, &server, &["one"]).run().success();
    for (args, history, caches) in [
        (&[][..], "prompt", false),
        (&[], "messages", false),
        (&["-f"], "prompt", false),
        (&["-f"], "messages", true),
        (&["-a", "page.pdf"], "prompt", true),
        (&["-t", "db"], "prompt", true),
        (&["-t", "db", "-o", "cache_control=null"], "prompt", false),
    ] {
        let _case = case((args, history));
        let body = dry_run(
            DIALECTS[1]
                .q(&sandbox, &server, args)
                .env("Q_HISTORY", history),
        );
        assert_eq!(
            body.get("cache_control"),
            caches.then_some(&json!({"type": "ephemeral"}))
        );
    }
    for dialect in DIALECTS
        .iter()
        .filter(|dialect| dialect.provider != "anthropic")
    {
        let body = dry_run(dialect.q(&sandbox, &server, &["-t", "db"]));
        assert_eq!(body.get("cache_control"), None, "{}", dialect.provider);
    }
}

#[test]
fn what_is_sent_again_begins_with_the_same_bytes() {
    let (server, sandbox) = with_much_to_send();
    let begins = |number: usize, same: &[&str]| {
        let (one, other) = (
            server.requests()[number].json(),
            server.requests()[number + 1].json(),
        );
        for place in same
            .iter()
            .chain(&["/model", "/system", "/tools", "/cache_control"])
        {
            assert_eq!(
                one.pointer(place).map(Value::to_string),
                other.pointer(place).map(Value::to_string),
                "{place}"
            );
        }
    };
    DIALECTS[1]
        .q(&sandbox, &server, &["-a", "page.pdf", "one"])
        .run()
        .success();
    DIALECTS[1]
        .q(&sandbox, &server, &["-f", "two"])
        .run()
        .success();
    begins(0, &["/messages/0/content/0"]);
    let q = DIALECTS[1]
        .q(
            &sandbox,
            &server,
            &["-a", "page.pdf", "-t", "db", "call it"],
        )
        .env("Q_ROUNDS", "2");
    q.run().exit(0).stdout("fine\n");
    begins(2, &["/messages/0"]);
    begins(3, &["/messages/0", "/messages/1", "/messages/2"]);
    server.expect_requests(5);
}
