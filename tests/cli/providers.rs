//! Which provider q asks: the one that is named, else the first with a key, else the first local server; where, with which
//! model, and with whose key.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::dialect::{DIALECTS, built_in_dialects, openai_reply};
use crate::fixtures::{
    ANTHROPIC_MODEL, CLOSED, GROQ_MODEL, OPENAI_MODEL, XAI_MODEL, answering, case, everybody,
};
use crate::sandbox::{API_KEY, Outcome, Sandbox};
use crate::server::{Reply, Server};

/// The built-in providers with a key, in the order in which they are looked for.
const WITH_KEY: [(&str, &str); 12] = [
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("gemini", "GEMINI_API_KEY"),
    ("gemini", "GOOGLE_API_KEY"),
    ("groq", "GROQ_API_KEY"),
    ("mistral", "MISTRAL_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
    ("deepseek", "DEEPSEEK_API_KEY"),
    ("xai", "XAI_API_KEY"),
    ("cerebras", "CEREBRAS_API_KEY"),
    ("zai", "ZAI_API_KEY"),
    ("moonshot", "MOONSHOT_API_KEY"),
];

const LOCAL: [&str; 4] = ["ollama", "llamacpp", "lmstudio", "vllm"];

/// A sandbox in which every built-in provider is at `server`.
fn sandbox_of(server: &Server) -> Sandbox {
    let names = WITH_KEY.iter().map(|(name, _)| *name).chain(LOCAL);
    names.fold(Sandbox::new(), |sandbox, name| {
        sandbox.env(
            format!("{}_BASE_URL", name.to_uppercase()),
            format!("{}/{name}", server.url()),
        )
    })
}

/// A sandbox in which no local server runs.
fn lonely() -> Sandbox {
    LOCAL.iter().fold(Sandbox::new(), |sandbox, name| {
        sandbox.env(format!("{}_BASE_URL", name.to_uppercase()), CLOSED)
    })
}

/// A sandbox with the section `[providers.work]`, which is asked where nothing else is said.
fn work(server: &Server, rest: &str) -> Sandbox {
    let sandbox = lonely();
    let base = server.url();
    sandbox.config(&format!(
        "provider = \"work\"\n[providers.work]\nbase_url = \"{base}\"\n{rest}\n"
    ));
    sandbox
}

#[test]
fn the_first_provider_with_its_key_set_is_asked() {
    let server = everybody("ok");
    let sandbox = sandbox_of(&server);
    for (index, (name, _)) in WITH_KEY.iter().enumerate() {
        let _case = case(name);
        // All keys from this one on; those before it are there and empty.
        let mut q = sandbox.q(&["hi"]);
        for (at, (_, variable)) in WITH_KEY.iter().enumerate() {
            q = q.env(variable, if at < index { "" } else { API_KEY });
        }
        q.run().success();
        let path = server.last_request().path;
        assert!(path.starts_with(&format!("/{name}/")), "{path}");
    }
    // No local server is asked for its models where a key is set.
    server.expect_requests(WITH_KEY.len());
}

#[test]
fn each_provider_has_its_default_model() {
    let server = everybody("ok");
    let sandbox = sandbox_of(&server);
    for (name, variable, model) in [
        ("anthropic", "ANTHROPIC_API_KEY", ANTHROPIC_MODEL),
        ("openai", "OPENAI_API_KEY", OPENAI_MODEL),
        ("gemini", "GOOGLE_API_KEY", "gemini-flash-latest"),
        ("groq", "GROQ_API_KEY", GROQ_MODEL),
        ("mistral", "MISTRAL_API_KEY", "mistral-small-latest"),
        ("openrouter", "OPENROUTER_API_KEY", "openrouter/auto"),
        ("deepseek", "DEEPSEEK_API_KEY", "deepseek-flash"),
        ("xai", "XAI_API_KEY", XAI_MODEL),
        ("cerebras", "CEREBRAS_API_KEY", "gpt-oss-120b"),
        ("zai", "ZAI_API_KEY", "glm-5.3-flash"),
        ("moonshot", "MOONSHOT_API_KEY", "kimi-k2.6"),
    ] {
        let _case = case(name);
        sandbox
            .q(&["-p", name, "hi"])
            .env(variable, API_KEY)
            .run()
            .success();
        let request = server.last_request();
        let asked = if name == "gemini" {
            json!(null)
        } else {
            request.json()["model"].clone()
        };
        assert!(
            asked == model || request.path.contains(&format!("/models/{model}:")),
            "{asked} at {}",
            request.path
        );
        assert_eq!(sandbox.current()["model"], model);
        assert_eq!(sandbox.current()["provider"], name);
        assert!(
            request
                .headers
                .values()
                .any(|value| value.contains(API_KEY)),
            "no key in {:?}",
            request.headers
        );
    }
    for name in LOCAL {
        let _case = case(name);
        sandbox.q(&["-p", name, "hi"]).run().success();
        let request = server.last_request();
        assert_eq!(request.json()["model"], "first");
        assert_eq!(sandbox.current()["model"], "first");
        assert_eq!(sandbox.current()["provider"], name);
        // A server that wants no key is sent none.
        assert!(
            !request
                .headers
                .values()
                .any(|value| value.contains(API_KEY)),
            "a key in {:?}",
            request.headers
        );
    }
}

#[test]
fn a_provider_of_the_file_speaks_the_dialect_that_it_names() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "ok");
        let slash = if dialect.provider == "gemini" {
            "/"
        } else {
            ""
        };
        let sandbox = lonely().env("WORK_KEY", API_KEY);
        sandbox.config(&format!(
            "[providers.work]\napi = \"{}\"\nbase_url = \"{}/deep/er{slash}\"\nkey_env = \"WORK_KEY\"\nmodel = \"own\"\n\
             headers = {{ x-team = \"infra\", X-Other = \"a b\" }}\n",
            dialect.provider,
            server.url(),
        ));
        sandbox.q(&["hi"]).run().success().stdout("ok\n");
        let request = server.request();
        let (path, key) = match dialect.provider {
            "openai" => ("/deep/er/chat/completions", "authorization"),
            "responses" => ("/deep/er/responses", "authorization"),
            "anthropic" => ("/deep/er/v1/messages", "x-api-key"),
            _ => (
                "/deep/er/v1beta/models/own:streamGenerateContent?alt=sse",
                "x-goog-api-key",
            ),
        };
        assert_eq!(request.path, path);
        assert!(
            request
                .header(key)
                .is_some_and(|value| value.ends_with(API_KEY)),
            "{:?}",
            request.headers
        );
        assert_eq!(
            (request.header("x-team"), request.header("x-other")),
            (Some("infra"), Some("a b"))
        );
        assert_eq!(sandbox.current()["provider"], "work");
    }
}

#[test]
fn a_header_of_the_file_replaces_the_one_of_q() {
    let server = answering(&DIALECTS[1], "ok");
    let sandbox = work(
        &server,
        "api = \"anthropic\"\nmodel = \"m\"\nheaders = { anthropic-version = \"2024-01-01\", user-agent = \"team\" }",
    );
    sandbox.q(&["hi"]).run().success();
    let request = server.request();
    assert_eq!(request.header("anthropic-version"), Some("2024-01-01"));
    assert_eq!(request.header("user-agent"), Some("team"));
}

#[test]
fn a_section_changes_what_it_names_of_a_built_in_provider_and_the_environment_wins() {
    let server = everybody("ok");
    let sandbox = lonely()
        .env("ANTHROPIC_API_KEY", API_KEY)
        .env("OTHER_KEY", "sk-of-the-other-variable");
    let url = server.url();
    let section = |rest: &str| {
        sandbox.config(&format!(
            "[providers.anthropic]\nbase_url = \"{url}/file/\"\n{rest}"
        ))
    };
    section("");
    sandbox.q(&["hi"]).run().success();
    let request = server.last_request();
    assert_eq!(request.path, "/file/v1/messages");
    assert_eq!(
        (request.header("x-api-key"), &request.json()["model"]),
        (Some(API_KEY), &json!(ANTHROPIC_MODEL))
    );

    section("model = \"own\"\nkey_env = \"OTHER_KEY\"\n");
    sandbox
        .q(&["hi"])
        .env("ANTHROPIC_BASE_URL", format!("{url}/variable"))
        .run()
        .success();
    let request = server.last_request();
    assert_eq!(request.path, "/variable/v1/messages");
    assert_eq!(
        request.header("x-api-key"),
        Some("sk-of-the-other-variable")
    );
    assert_eq!(request.json()["model"], "own");
}

#[test]
fn a_base_url_may_end_in_a_slash() {
    for dialect in built_in_dialects() {
        let _case = case(dialect.provider);
        let server = answering(dialect, "ok");
        let name = format!("{}_BASE_URL", dialect.provider.to_uppercase());
        for end in ["", "/", "//"] {
            dialect
                .q(&Sandbox::new(), &server, &["hi"])
                .env(&name, format!("{}/b{end}", server.url()))
                .run()
                .success();
        }
        let paths: Vec<String> = server
            .requests()
            .into_iter()
            .map(|request| request.path)
            .collect();
        assert_eq!(paths[0], paths[1]);
        assert_eq!(paths[0], paths[2]);
        assert!(
            paths[0].starts_with("/b/") && !paths[0].contains("//"),
            "{paths:?}"
        );
    }
}

#[test]
fn the_query_of_a_base_url_ends_every_address_of_the_provider() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let reply = dialect.reply;
        let server = Server::start(move |request, _| match request.method.as_str() {
            "GET" => Reply::json(
                200,
                json!({"data": [{"id": "a"}], "models": [{"name": "a"}]}),
            ),
            _ => reply(request, "ok"),
        });
        let sandbox = work(
            &server,
            &format!("api = \"{}\"\nmodel = \"m\"", dialect.provider),
        );
        // The variable wins over the file.
        let sandbox = sandbox.env(
            "WORK_BASE_URL",
            format!("{}/b/?api-version=2024-10-21&a=b", server.url()),
        );
        sandbox.q(&["hi"]).run().success().stdout("ok\n");
        sandbox.q(&["--models"]).run().success().stdout("a\n");
        let [asked, listed] = [0, 1].map(|at| server.requests()[at].path.clone());
        let (expected, models) = match dialect.provider {
            "gemini" => ("?alt=sse&", "?pageSize=1000&"),
            "anthropic" => ("?", "?limit=1000&"),
            _ => ("?", "?"),
        };
        assert!(
            asked.ends_with(&format!("{expected}api-version=2024-10-21&a=b")),
            "{asked}"
        );
        assert!(
            listed.ends_with(&format!("{models}api-version=2024-10-21&a=b")),
            "{listed}"
        );
        assert!(
            [asked, listed]
                .iter()
                .all(|path| path.starts_with("/b/") && !path.contains("//"))
        );
    }
}

#[test]
fn a_named_local_server_is_asked_for_its_first_model_without_a_note() {
    for name in LOCAL {
        let _case = case(name);
        let server = everybody("ok");
        let sandbox = sandbox_of(&server);
        sandbox
            .q(&["-p", name, "hi"])
            .run()
            .success()
            .stdout("ok\n");
        let requests = server.requests();
        assert_eq!(requests[0].path, format!("/{name}/models"));
        assert_eq!(requests[1].json()["model"], "first");
        // A model that is named is taken as it is.
        sandbox
            .q(&["-p", name, "-m", "named", "hi"])
            .run()
            .success();
        server.expect_requests(3);
        assert_eq!(server.last_request().json()["model"], "named");
    }
}

#[test]
fn a_provider_of_the_file_without_a_model_is_asked_for_its_first_with_its_key() {
    let server = everybody("ok");
    let sandbox = work(
        &server,
        "key_env = \"WORK_KEY\"\nheaders = { x-team = \"infra\" }",
    )
    .env("WORK_KEY", API_KEY);
    sandbox.q(&["hi"]).run().success();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/models");
    for request in requests {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {API_KEY}").as_str()),
            "{}",
            request.path
        );
        assert_eq!(request.header("x-team"), Some("infra"), "{}", request.path);
    }
}

#[test]
fn a_local_server_that_has_no_model_or_no_list_is_a_failure() {
    let none = "ollama: the provider lists no models (http://127.0.0.1:";
    for (what, reply, words) in [
        ("an empty list", Reply::json(200, json!({"data": []})), none),
        ("no list", Reply::json(200, json!({"data": null})), none),
        ("an empty list alone", Reply::json(200, json!([])), none),
        (
            "a text",
            Reply::json(200, json!("nonsense")),
            "cannot be read",
        ),
        (
            "a failure",
            Reply::json(500, json!({"error": "broken inside"})),
            "broken inside",
        ),
        (
            "a failure with a list",
            Reply::json(200, json!({"error": "broken inside", "data": null})),
            "broken inside",
        ),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        for args in [&["-p", "ollama", "hi"][..], &["-p", "ollama", "--models"]] {
            let outcome = sandbox_of(&server).q(args).env("Q_RETRIES", "0").run();
            // A request was sent, so it is not the configuration that is wrong.
            outcome
                .exit(1)
                .stdout_is_empty()
                .stderr_contains("ollama")
                .stderr_contains(words);
        }
    }
}

#[test]
fn a_list_of_models_that_cannot_be_read_may_come_from_a_wrong_address() {
    let server = Server::always(Reply::json(200, json!("nonsense")));
    let outcome = sandbox_of(&server).q(&["-p", "ollama", "--models"]).run();
    outcome
        .exit(1)
        .stderr_contains("cannot be read")
        .stderr_contains("q: name a model with -m, or check base_url\n");
}

#[test]
fn a_list_of_models_may_stand_alone() {
    let server = Server::start(|request, _| match request.method.as_str() {
        "GET" => Reply::json(200, json!([{"id": "a"}, {"id": "b"}])),
        _ => openai_reply(request, "ok"),
    });
    let sandbox = sandbox_of(&server);
    sandbox
        .q(&["-p", "ollama", "--models"])
        .run()
        .success()
        .stdout("a\nb\n");
    sandbox
        .q(&["-p", "ollama", "hi"])
        .run()
        .success()
        .stdout("ok\n");
    assert_eq!(server.last_request().json()["model"], "a");
}

/// Local servers have 300 ms for their answer. On a busy machine those of a test may miss them: then q is asked again.
fn in_time(ask: impl Fn() -> Outcome, right: impl Fn(&Outcome) -> bool) -> Outcome {
    let first = ask();
    if right(&first) {
        return first;
    }
    (0..5).map(|_| ask()).find(right).unwrap_or(first)
}

#[test]
fn without_a_provider_the_first_local_server_with_a_model_is_asked_with_a_note() {
    let running = everybody("ok");
    let empty = Server::always(Reply::json(200, json!({"data": []})));
    let hanging = Server::always(Reply::raw("").hang());
    let (running_url, empty_url, hanging_url) = (running.url(), empty.url(), hanging.url());
    let (running_url, empty_url, hanging_url) = (
        running_url.as_str(),
        empty_url.as_str(),
        hanging_url.as_str(),
    );
    for (ollama, llamacpp, lmstudio, vllm, expected) in [
        (running_url, running_url, running_url, running_url, "ollama"),
        (CLOSED, running_url, running_url, running_url, "llamacpp"),
        (CLOSED, empty_url, running_url, running_url, "lmstudio"),
        (hanging_url, CLOSED, running_url, CLOSED, "lmstudio"),
        (CLOSED, CLOSED, CLOSED, running_url, "vllm"),
    ] {
        let sandbox = Sandbox::new()
            .env("OLLAMA_BASE_URL", ollama)
            .env("LLAMACPP_BASE_URL", llamacpp)
            .env("LMSTUDIO_BASE_URL", lmstudio)
            .env("VLLM_BASE_URL", vllm);
        let named = format!("Q_PROVIDER={expected}");
        let outcome = in_time(
            || sandbox.q(&["hi"]).run(),
            |outcome| outcome.stderr_text().contains(&named),
        );
        outcome
            .exit(0)
            .stdout("ok\n")
            .stderr_has_lines(1)
            .stderr_contains(expected)
            .stderr_contains("Q_PROVIDER");
        assert_eq!(sandbox.current()["provider"], expected);
        assert_eq!(sandbox.current()["model"], "first");
        // The setting that the note names silences it.
        sandbox
            .q(&["hi"])
            .env("Q_PROVIDER", expected)
            .run()
            .success();
    }
    // A key anywhere comes first: no local server is asked.
    let asked = running.requests().len();
    let server = Server::openai("of the key");
    let local = Sandbox::new()
        .env("OLLAMA_BASE_URL", running_url)
        .server_env(&server);
    local.q(&["hi"]).run().success().stdout("of the key\n");
    running.expect_requests(asked);
}

#[test]
fn three_lines_say_how_to_get_a_provider_where_there_is_none_to_ask() {
    let hanging = Server::always(Reply::raw("").hang());
    let silent = lonely().env("OLLAMA_BASE_URL", hanging.url());
    for sandbox in [lonely(), silent] {
        sandbox.config("[providers.work]\nbase_url = \"http://h\"\nkey_env = \"WORK_KEY\"\n");
        let limit = Duration::from_millis(1500);
        let outcome = in_time(
            || sandbox.q(&["hi"]).stdin_open().run(),
            |outcome| outcome.elapsed() < limit,
        );
        outcome
            .refused(&["\nq: for example: export WORK_KEY=your-key, or ANTHROPIC_API_KEY or OPENAI_API_KEY; q --help "])
            .ended_within(limit);
        outcome.stderr_contains("\nq: or start a local server: ollama (at http://127.0.0.1:");
        outcome.stderr_has_lines(3);
        sandbox.expect_no_state();
    }
}

#[test]
fn the_command_of_a_key_is_run_without_a_shell_and_its_first_line_is_the_key() {
    for (command, key) in [
        (r#"["printf", "%s\n", "$HOME;`x`"]"#, "$HOME;`x`"),
        (
            r#"["printf", "sk-first-line\\nlogin: me\\n"]"#,
            "sk-first-line",
        ),
        (r#"["printf", "sk-no-line-end"]"#, "sk-no-line-end"),
        (r#"["printf", "sk-crlf\\r\\nmore\\r\\n"]"#, "sk-crlf"),
        // Standard input is q's own; the command has none.
        (
            r#"["sh", "-c", "cat; echo sk-of-the-command"]"#,
            "sk-of-the-command",
        ),
    ] {
        let _case = case(command);
        let server = everybody("ok");
        let sandbox = work(&server, &format!("model = \"m\"\nkey_cmd = {command}"))
            .env("PATH", "/usr/bin:/bin");
        sandbox
            .q(&["-n", "hi"])
            .stdin("sk-of-the-input\n")
            .run()
            .success()
            .stdout("ok\n");
        assert_eq!(
            server.request().header("authorization"),
            Some(format!("Bearer {key}").as_str())
        );
        let kept = sandbox.current().to_string();
        assert!(!kept.contains(key), "{kept}");
    }
}

#[test]
fn the_command_of_a_key_is_run_only_when_a_request_is_about_to_be_sent() {
    let server = everybody("ok");
    let command =
        r#"key_cmd = ["sh", "-c", "echo unlocking >&2; echo >> ../ran; echo sk-from-command"]"#;
    let sandbox = work(&server, &format!("model = \"m\"\n{command}")).env("PATH", "/usr/bin:/bin");
    let ran = || fs::read(sandbox.root().join("ran")).map_or(0, |lines| lines.len());
    sandbox.q(&[]).run().exit(2);
    sandbox.q(&["-n"]).run().exit(2);
    sandbox.q(&["hi", "-f"]).run().exit(2);
    sandbox.q(&["hi"]).stdin("binary\0").run().exit(2);
    sandbox.q(&["hi"]).env("Q_MESSAGES", "x").run().exit(2);
    for action in ["--history", "--list", "--clear", "--help"] {
        sandbox.q(&[action]).run().exit(0);
    }
    assert_eq!((ran(), server.requests().len()), (0, 0));
    sandbox
        .q(&["hi"])
        .run()
        .exit(0)
        .stdout("ok\n")
        .stderr("unlocking\n");
    assert_eq!((ran(), server.requests().len()), (1, 1));
    // Named elsewhere, it is not even looked at.
    let other = Server::openai("other");
    sandbox
        .q(&["-p", "openai", "hi"])
        .server_env(&other)
        .run()
        .success();
    assert_eq!(ran(), 1);
}
