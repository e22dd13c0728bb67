//! Which local server q asks where no provider is named, and what it says where there is none: in time.
//! All else about providers is in `tests/transcripts/providers.txt`.

use std::time::Duration;

use serde_json::json;

use crate::fixtures::{CLOSED, everybody};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Reply, Server};

const LOCAL: [&str; 4] = ["ollama", "llamacpp", "lmstudio", "vllm"];

/// A sandbox in which no local server runs.
fn lonely() -> Sandbox {
    LOCAL.iter().fold(Sandbox::new(), |sandbox, name| {
        sandbox.env(format!("{}_BASE_URL", name.to_uppercase()), CLOSED)
    })
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
            .refused(&["\nq: export WORK_KEY or ANTHROPIC_API_KEY or OPENAI_API_KEY with your key; q --help "])
            .ended_within(limit);
        outcome.stderr_contains("\nq: or start a local server: ollama (ollama serve), ");
        outcome.stderr_has_lines(3);
        sandbox.expect_no_state();
    }
}
