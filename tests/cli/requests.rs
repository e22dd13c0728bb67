//! What the user and the provider decide about a request: effort, other fields, storage and the Responses API.

use std::fs;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, anthropic_reply, openai_reply};
use crate::fixtures::{OPENAI_MODEL, XAI_MODEL, answering, case, documents};
use crate::sandbox::{API_KEY, Q, Sandbox};
use crate::server::{Reply, Server};
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
fn openai_and_xai_speak_the_responses_api_at_their_own_hosts_only() {
    for (name, host, model) in [
        ("openai", "api.openai.com", OPENAI_MODEL),
        ("xai", "api.x.ai", XAI_MODEL),
    ] {
        let (away, region) = (
            "http://127.0.0.1:1/v1",
            format!("https://eu-west-1.{host}/v1"),
        );
        let home = format!("https://{}/v1/", host.to_uppercase());
        let section = |rest: &str| format!("[providers.{name}]\n{rest}\n");
        for (base, file, responses) in [
            ("", String::new(), true),
            (&*home, String::new(), true),
            (&*region, String::new(), true),
            (away, String::new(), false),
            (away, section("api = \"responses\""), true),
            ("", section("api = \"openai\""), false),
            ("", section(&format!("base_url = \"{away}\"")), false),
            ("", section(&format!("base_url = \"{region}\"")), true),
        ] {
            let _case = case((base, &file));
            let variable = |end: &str| format!("{}_{end}", name.to_uppercase());
            let sandbox = with_variables(&[
                (&variable("API_KEY"), API_KEY),
                (&variable("BASE_URL"), base),
            ]);
            sandbox.config(&file);
            let body = dry_run(sandbox.q(&[]));
            assert_eq!(
                (body.get("input").is_some(), body.get("messages").is_some()),
                (responses, !responses)
            );
            assert_eq!(body["model"], model);
            let spoken = if responses {
                "responses at http"
            } else {
                "openai at http"
            };
            let status = sandbox.q(&["--status"]).run().stdout_text();
            let line = status
                .lines()
                .find(|line| line.starts_with(&format!("* {name}")))
                .expect("its line");
            assert!(line.contains(spoken), "{line}");
        }
    }
}

#[test]
fn a_server_is_asked_as_its_host_wants_it_whatever_the_providers_name() {
    let sandbox = Sandbox::new()
        .env("OWN_API_KEY", API_KEY)
        .env("Q_MAX_TOKENS", "77");
    sandbox.write_home("page.pdf", "%PDF-1.4\nx");
    let asked = |name: &str, base: &str, more: &str| {
        sandbox.config(&format!(
            "[providers.{name}]\nbase_url = \"{base}\"\nkey_env = \"OWN_API_KEY\"\nmodel = \"m\"\n{more}"
        ));
        dry_run(sandbox.q(&["-p", name, "-a", "page.pdf"]))
    };
    let status = sandbox.q(&["--status", "-j"]).run().stdout_json();
    let providers = status["providers"].as_array().expect("providers");
    let rows: Vec<_> = providers
        .iter()
        .map(|row| [&row["name"], &row["address"]].map(|value| value.as_str().expect("text")))
        .collect();
    let hosted: Vec<_> = rows
        .iter()
        .filter(|[_, address]| address.starts_with("https"))
        .collect();
    assert_eq!(hosted.len(), 11);
    for [name, address] in hosted {
        let _case = case((name, address));
        let built_in = asked(name, address, "");
        assert_eq!(asked("own", address, ""), built_in);
        assert_eq!(
            asked("own", &address.replace("https://", "https://eu."), ""),
            built_in
        );
    }
    // What the file says wins; and some hosts have more than one API.
    for (name, base, more, has, lacks) in [
        (
            "own",
            "https://api.openai.com/v1",
            "api = \"openai\"",
            "max_completion_tokens",
            "input",
        ),
        (
            "own",
            "https://api.anthropic.com/v1",
            "",
            "stream_options",
            "system",
        ),
        (
            "own",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "",
            "stream_options",
            "contents",
        ),
        (
            "anthropic",
            "https://api.z.ai/api/anthropic",
            "",
            "system",
            "stream_options",
        ),
        (
            "own",
            "https://api.mistral.ai.example/v1",
            "",
            "stream_options",
            "input",
        ),
        (
            "mistral",
            "https://llm.corp.example/v1",
            "",
            "stream_options",
            "input",
        ),
    ] {
        let body = asked(name, base, more);
        assert_eq!(
            (body.get(has).is_some(), body.get(lacks)),
            (true, None),
            "{name} {base} {body}"
        );
    }
}

#[test]
fn the_effort_of_the_table_is_left_out_where_its_server_refuses_it() {
    // The test's server stands in for Z.ai's as a proxy.
    let server = Server::start(|request, _| match request.text() {
        _ if request.method == "CONNECT" => Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive(),
        body if body.contains("\"reasoning_effort\":\"low\"") => Reply::json(
            400,
            json!({"error": {"code": "1210", "message": "Invalid API parameter."}}),
        ),
        _ => openai_reply(request, "ok"),
    });
    let sandbox = with_variables(&[
        ("ZAI_API_KEY", API_KEY),
        ("ZAI_BASE_URL", "http://api.z.ai/api/paas/v4"),
    ]);
    let outcome = sandbox.q(&["hi"]).env("HTTP_PROXY", server.url()).run();
    outcome
        .exit(0)
        .stdout("ok\n")
        .stderr_contains("q: zai refuses the effort low, so q asks without it\n");
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
        text if text.contains("call it") && text.matches("tool_result").count() < 2 => {
            DIALECTS[1].calling("", &[("call00001", "db__echo", json!({"text": "hi"}))])
        }
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
