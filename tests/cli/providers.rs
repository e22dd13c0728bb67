//! Which local server q asks where no provider is named, and what it says where there is none.
//! All else about providers is in `tests/transcripts/server/providers.txt`.

use serde_json::json;

use crate::dialect::openai_reply;
use crate::fixtures::{CLOSED, case, every_provider};
use crate::sandbox::Sandbox;
use crate::server::{Recorded, Reply, Server};

const LOCAL: [&str; 4] = ["ollama", "llamacpp", "lmstudio", "vllm"];

/// A sandbox in which no local server runs.
fn without_local_servers() -> Sandbox {
    LOCAL.iter().fold(Sandbox::new(), |sandbox, name| {
        sandbox.env(format!("{}_BASE_URL", name.to_uppercase()), CLOSED)
    })
}

/// Local servers have 300 ms for their answer. On a busy machine those of a test may miss them: then q is asked again.
fn in_time<T>(ask: impl Fn() -> T, right: impl Fn(&T) -> bool) -> T {
    let first = ask();
    if right(&first) {
        return first;
    }
    (0..5).map(|_| ask()).find(right).unwrap_or(first)
}

#[test]
fn without_a_provider_the_first_local_server_with_a_model_is_asked_with_a_note() {
    let running = every_provider("ok");
    let empty = Server::always(Reply::json(200, json!({"data": []})));
    let hanging = Server::always(Reply::raw("").hang());
    let (runs, is_empty, hangs) = (running.url(), empty.url(), hanging.url());
    let (runs, is_empty, hangs) = (runs.as_str(), is_empty.as_str(), hangs.as_str());
    for (urls, expected) in [
        ([runs, runs, runs, runs], "ollama"),
        ([CLOSED, runs, runs, runs], "llamacpp"),
        ([CLOSED, is_empty, runs, runs], "lmstudio"),
        ([hangs, CLOSED, runs, CLOSED], "lmstudio"),
        ([CLOSED, CLOSED, CLOSED, runs], "vllm"),
    ] {
        let mut sandbox = Sandbox::new();
        for (name, url) in LOCAL.iter().zip(urls) {
            sandbox = sandbox.env(format!("{}_BASE_URL", name.to_uppercase()), url);
        }
        let named = format!("Q_PROVIDER={expected}");
        let outcome = in_time(
            || sandbox.q(&["hi"]).run(),
            |outcome| outcome.stderr_text().contains(&named),
        );
        outcome.exit(0).stdout("ok\n").stderr_has_lines(1);
        outcome.stderr_contains_all(&[expected, "Q_PROVIDER"]);
        assert_eq!(sandbox.current()["provider"], expected);
        assert_eq!(sandbox.current()["model"], "first");
        // The setting that the note names silences it.
        let named = sandbox.q(&["hi"]).env("Q_PROVIDER", expected).run();
        named.success().stderr_is_empty();
    }
    // A key anywhere comes first: no local server is asked.
    let asked = running.requests().len();
    let server = Server::openai("of the key");
    let local = Sandbox::new()
        .env("OLLAMA_BASE_URL", runs)
        .server_env(&server);
    local.q(&["hi"]).run().success().stdout("of the key\n");
    running.expect_requests(asked);
}

#[test]
fn an_error_with_one_line_of_advice_says_how_to_get_a_provider_where_there_is_none() {
    let hanging = Server::always(Reply::raw("").hang());
    let silent = without_local_servers().env("OLLAMA_BASE_URL", hanging.url());
    for sandbox in [without_local_servers(), silent] {
        sandbox.config("[providers.work]\nbase_url = \"http://h\"\nkey_env = \"WORK_KEY\"\n");
        // Neither a server that says nothing nor an input that stays open is waited for without end.
        let q = sandbox.q(&["hi"]).env("Q_TIMEOUT", "never");
        let outcome = q.stdin_open().run();
        outcome.refused(&[
            "; or export WORK_KEY or ANTHROPIC_API_KEY or OPENAI_API_KEY with your key; run q --status ",
        ]);
        outcome.stderr_contains_all(&[
            "\nq: start ollama (ollama serve), because it does not answer with a model at http://127.0.0.1:",
            "; start vllm (vllm serve MODEL), because it does not answer with a model at http://127.0.0.1:1/v1, which VLLM_BASE_URL names; ",
        ]);
        outcome.stderr_has_lines(2);
        sandbox.expect_no_state();
    }
}

/// The words of llama.cpp, and of others, while a model is being loaded.
fn loading(words: &str) -> Reply {
    Reply::json(
        503,
        json!({"error": {"code": 503, "message": words, "type": "unavailable_error"}}),
    )
}

#[test]
fn a_server_that_is_loading_its_model_is_waited_for_with_one_note() {
    for words in ["Loading model", "Model m is currently loading"] {
        let ask = || {
            let server = Server::start(move |request, number| match number {
                // While it is looked for, and at the first two times that it is asked for its list.
                0..=2 => loading(words),
                _ if request.method == "GET" => Reply::json(200, json!({"data": [{"id": "m"}]})),
                // A router loads the model when it is asked.
                4 => loading(words),
                _ => openai_reply(request, "ok"),
            });
            let sandbox = without_local_servers()
                .env("LLAMACPP_BASE_URL", server.url())
                .env("Q_RETRIES", "0");
            let outcome = sandbox.q(&["hi"]).run();
            (outcome, server, sandbox)
        };
        let (outcome, server, sandbox) =
            in_time(ask, |(outcome, ..)| outcome.stdout_text() == "ok\n");
        outcome.exit(0).stdout("ok\n");
        outcome.stderr_contains_all(&[
            "q: no provider is set: asking llamacpp at ",
            "q: llamacpp is loading the model; q waits for it\n",
        ]);
        server.expect_requests(6);
        assert_eq!(sandbox.current()["model"], "m");
    }
}

#[test]
fn a_model_that_is_loading_for_longer_than_the_timeout_is_a_failure_with_advice() {
    let server = Server::always(loading("Loading model"));
    let sandbox = without_local_servers()
        .env("LLAMACPP_BASE_URL", server.url())
        .env("Q_PROVIDER", "llamacpp")
        .env("Q_TIMEOUT", "2s");
    let outcome = sandbox.q(&["-m", "m", "hi"]).run();
    outcome.exit(1).stderr_contains_all(&[
        "q: llamacpp: 503 Service Unavailable: Loading model",
        "q: raise the timeout setting (Q_TIMEOUT) to wait longer, because the model is still loading",
    ]);
    let asked = server.requests().len();
    assert!((2..=3).contains(&asked), "{asked} requests");
    // What only says that it failed is not waited for.
    let server = Server::always(Reply::json(
        500,
        json!({"error": "error loading model: no memory"}),
    ));
    let sandbox = sandbox
        .env("LLAMACPP_BASE_URL", server.url())
        .env("Q_RETRIES", "0");
    sandbox.q(&["-m", "m", "hi"]).run().exit(1);
    server.expect_requests(1);
}

#[test]
fn a_local_server_that_wants_a_key_is_named_where_no_other_runs() {
    let locked = Server::start(|request, _| match request.header("authorization") {
        Some("Bearer sesame-sesame") => match request.method.as_str() {
            "GET" => Reply::json(200, json!({"data": [{"id": "m"}]})),
            _ => openai_reply(request, "ok"),
        },
        _ => Reply::json(401, json!({"error": {"message": "Invalid API Key"}})),
    });
    let sandbox = without_local_servers().env("LMSTUDIO_BASE_URL", locked.url());
    let outcome = in_time(
        || sandbox.q(&["hi"]).run(),
        |outcome| outcome.stderr_text().contains("LM_API_TOKEN"),
    );
    outcome.refused(&["\nq: export LM_API_TOKEN=your-key, because lmstudio wants a key; start ollama (ollama serve)"]);
    let sandbox = sandbox.env("LM_API_TOKEN", "sesame-sesame");
    let outcome = in_time(
        || sandbox.q(&["hi"]).run(),
        |outcome| outcome.stdout_text() == "ok\n",
    );
    outcome.exit(0).stdout("ok\n");
}

#[test]
fn a_look_for_local_servers_sends_neither_login_nor_key_of_a_url_to_one_that_wants_none() {
    let has_secret = |request: &Recorded| {
        let login = request.header("authorization");
        login == Some("Basic bWU6c2VzYW1l") || request.path.contains("key=open")
    };
    // Another program may listen there. What comes before the host and at the end of the URL; whether the server wants it.
    for (login, query, is_wanted) in [
        ("me:sesame@", "", false),
        ("me:sesame@", "", true),
        ("", "?version=1&key=open", false),
        ("", "?version=1&key=open", true),
        ("me:sesame@", "?subscription-key=open&version=1", false),
        ("me:sesame@", "?subscription-key=open&version=1", true),
    ] {
        let _case = case(format!("{login} {query} {is_wanted}"));
        let server = Server::start(move |request, _| {
            if is_wanted && !has_secret(request) {
                return Reply::json(401, json!({"error": "who are you?"}));
            }
            match request.method.as_str() {
                "GET" => Reply::json(200, json!({"data": [{"id": "m"}]})),
                _ => openai_reply(request, "ok"),
            }
        });
        let url = server.url().replace("://", &format!("://{login}"));
        let sandbox = without_local_servers().env("LLAMACPP_BASE_URL", format!("{url}/v1{query}"));
        let outcome = in_time(
            || sandbox.q(&["hi"]).run(),
            |outcome| outcome.stdout_text() == "ok\n",
        );
        outcome.exit(0).stdout("ok\n").stderr_lacks("sesame");
        let requests = server.requests();
        let (looks, questions): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| request.method == "GET");
        assert!(!has_secret(looks[0]));
        assert_eq!(looks.iter().any(|look| has_secret(look)), is_wanted);
        assert!(questions.iter().all(|question| has_secret(question)));
        let has_version = |request: &&Recorded| request.path.contains("version=1");
        assert!(query.is_empty() || requests.iter().all(|it| has_version(&it)));
    }
}
