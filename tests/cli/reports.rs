//! What q says of itself: notes and none, details, requests that are not sent, its status and its models; no secrets.

use serde_json::{Value, json};

use crate::dialect::{Dialect, failure, openai_reply, word};
use crate::fixtures::{
    ARCHIVED, HOUR, OPENAI_MODEL, STORED_MODEL, case, everybody, idle_for, snapshot, stored, with,
};
use crate::sandbox::{API_KEY, Outcome, Sandbox};
use crate::server::{Recorded, Reply, Server};

/// Secrets that must never be shown, each long enough to be recognized.
const HEADER: &str = "header-secret-1";
const PASSWORD: &str = "p%40ss-secret-2";
const DECODED_PASSWORD: &str = "p@ss-secret-2";
const PROXY_PASSWORD: &str = "proxy-secret-3";
const QUERY_KEY: &str = "query-secret-4";

/// Variables and their values.
type Environment = &'static [(&'static str, &'static str)];

#[test]
fn verbose_shows_what_is_sent_and_how_it_went() {
    let server = Server::start(|request, number| match number {
        1 => Reply::new(503).header("retry-after", "0.5").piece("{}"),
        _ => openai_reply(request, "answer"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["-m", "m", "first"]).run().success();
    // The first of them is tried again.
    for (history, retried) in [
        (
            "prompt",
            &["503 Service Unavailable", "; retrying in 0.5 s\n"][..],
        ),
        ("messages", &[]),
    ] {
        let outcome = sandbox
            .q(&["-v", "-f", "--no-save", "sécond"])
            .env("Q_HISTORY", history)
            .run();
        outcome.exit(0).stdout("answer\n").stderr_lacks(API_KEY);
        let printed = outcome.stderr_text();
        let lines: Vec<&str> = printed
            .lines()
            .filter(|line| !line.contains("retrying"))
            .collect();
        let expected = [
            &format!(
                "q: continues conversation {}, 2 messages",
                sandbox.current_id()
            ),
            &format!("q: provider openai, model m, at {}/v1", server.url()),
            "q: message 1: user, 5 bytes",
            "q: message 2: assistant, 6 bytes",
            "q: message 3: user, 7 bytes",
        ];
        outcome.check(lines[..5] == expected, || format!("expected {expected:#?}"));
        let timing = lines[5]
            .strip_prefix("q: first word after ")
            .and_then(|rest| rest.split_once(" s, all after "));
        outcome.check(
            timing.is_some_and(|(first, _)| first.parse::<f64>().is_ok()),
            || "expected times".to_owned(),
        );
        let end = [
            "q: the answer ended with stop",
            "q: usage: 11 tokens in, 7 tokens out",
        ];
        outcome.check(lines[6..] == end, || format!("expected {end:?}"));
        outcome.stderr_contains_all(retried);
    }
}

#[test]
fn verbose_names_the_conversation_that_is_continued_and_the_one_that_has_the_exchange() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let saved = |name: &str| {
        let path = sandbox.sessions().join(format!("{name}.json"));
        format!("q: saved in conversation {name}, {}\n", path.display())
    };
    let first = sandbox.q(&["-v", "one"]).run();
    first
        .exit(0)
        .stderr_contains("q: begins a conversation\n")
        .stderr_contains(&saved(&sandbox.current_id()));
    let id = sandbox.current_id();
    let second = sandbox.q(&["-v", "-f", "two"]).run();
    second
        .exit(0)
        .stderr_contains(&format!("q: continues conversation {id}, 2 messages\n"))
        .stderr_contains(&saved(&id));
    let call = json!({"id": "1", "name": "db__get", "arguments": {}, "result": "r"});
    let mut called = stored(&["one", "two"]);
    called["messages"][1]["steps"] = json!([{"text": "", "calls": [call, call]}]);
    sandbox.write_session("tools.json", &called);
    let third = sandbox
        .q(&["--dry-run", "-v", "-s", "tools", "three"])
        .run();
    third
        .exit(0)
        .stderr_contains("q: message 1: user, 3 bytes\n")
        .stderr_contains(" bytes, calls: 2\n");
    sandbox
        .q(&["-v", "-s", "work", "two"])
        .run()
        .exit(0)
        .stderr_contains(&saved("work"));
    sandbox
        .q(&["-v", "--no-save", "two"])
        .run()
        .exit(0)
        .stderr_lacks("saved in");
    sandbox.q(&["two"]).run().exit(0).stderr("");
}

#[test]
fn the_status_shows_what_is_set_up_and_the_model_that_is_asked() {
    let sandbox = Sandbox::new()
        .env("OPENAI_API_KEY", API_KEY)
        .env("OLLAMA_HOST", "127.0.0.1:1");
    sandbox.config("[providers.work]\nbase_url = \"http://h/v1\"\nmodel = \"w\"\n[providers.unset]\nbase_url = \"http://h/v1\"\nkey_env = \"NO_KEY\"\n");
    let text = sandbox.q(&["--status"]).run().success().stdout_text();
    let begin = text
        .lines()
        .position(|line| line.starts_with("  work "))
        .expect("a line");
    let shown: Vec<&str> = text
        .lines()
        .skip(begin)
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(shown.len(), 4, "{text}");
    assert!(
        shown[1].starts_with("* openai ") && shown[2].starts_with("  ollama "),
        "{text}"
    );
    assert!(
        shown[3].starts_with("  not set up   unset, anthropic, gemini, "),
        "{text}"
    );
    assert!(
        !shown[3].contains("ollama") && shown[3].contains("llamacpp"),
        "{text}"
    );
    sandbox.write_session("talk.json", &stored(&["one", "two"]));
    let file = sandbox.config_file().display().to_string();
    for (args, environment, value, origin) in [
        (
            &[][..],
            &[][..],
            OPENAI_MODEL,
            "the default of openai".to_owned(),
        ),
        (&["-m", "x"], &[], "x", "--model".to_owned()),
        (&[], &[("Q_MODEL", "y")], "y", "Q_MODEL".to_owned()),
        (
            &["-p", "work"],
            &[("Q_MODEL", "y")],
            "w",
            format!("{file}, line 1"),
        ),
        (
            &["-p", "ollama"],
            &[],
            "",
            "the first on its list".to_owned(),
        ),
        (
            &["-s", "talk"],
            &[("Q_MODEL", "y")],
            STORED_MODEL,
            "the conversation's own".to_owned(),
        ),
    ] {
        assert_setting(&sandbox, args, environment, "model", value, &origin);
    }
}

#[test]
fn q_shows_no_secret_anywhere() {
    // A server that gives back all that it was sent, in every way that q may show.
    let echo =
        |request: &Recorded| format!("you said {:?} {PASSWORD} {}", request.headers, request.path);
    let server = Server::start(move |request, _| {
        let message = echo(request);
        match (request.method.as_str(), request.text()) {
            ("GET", _) => Reply::json(403, json!({"error": {"message": message}})),
            (_, text) if text.contains("json") => {
                Reply::json(400, json!({"error": {"message": message}}))
            }
            (_, text) if text.contains("text") => Reply::new(400).piece(message),
            (_, text) if text.contains("stream") => {
                Reply::sse([format!("data: {}\n\n", json!({"error": message}))])
            }
            (_, text) if text.contains("blocked") => {
                Reply::sse([word("x"), format!("data: {message}\n\n").into_bytes()])
            }
            (_, text) if text.contains("again") => {
                Reply::json(503, json!({"error": message})).header("retry-after", "0")
            }
            (_, text) if text.contains("type") => {
                Reply::new(200).header("content-type", &message).piece("?")
            }
            _ => openai_reply(request, "x"),
        }
    });
    let sandbox = secretive(&server, "key_env = \"WORK_KEY\"");
    for args in [
        &["-v", "hi"][..],
        &["-v", "json"],
        &["-j", "json"],
        &["-v", "text"],
        &["-v", "stream"],
        &["-v", "blocked"],
        &["-v", "again"],
        &["-v", "type"],
        &["--dry-run", "-v", "hi"],
        &["--models", "-v"],
        &["--status", "-v"],
        &["--status", "-j"],
    ] {
        assert_no_secret(&sandbox.q(args).run());
    }
    let sent: Vec<Recorded> = server.requests();
    assert!(
        sent.iter()
            .any(|request| request.header("x-team") == Some(HEADER)),
        "{sent:#?}"
    );
    assert!(
        sent.iter()
            .all(|request| request.path.ends_with(&format!("?key={QUERY_KEY}"))),
        "{sent:#?}"
    );
    // The same where the file is wrong after the secrets.
    let broken = secretive(&server, "model = 7");
    for args in [&["hi"][..], &["--status"], &["--status", "-j"]] {
        assert_no_secret(&broken.q(args).run());
    }
}

#[test]
fn a_password_in_an_address_is_sent_and_never_shown() {
    // What stands for `me:p@ss-secret-2` (RFC 7617).
    let credentials = "bWU6cEBzcy1zZWNyZXQtMg==";
    let server = Server::start(|request, _| {
        let message = format!(
            "{:?}, so {DECODED_PASSWORD}, is wrong",
            request.header("authorization")
        );
        Reply::json(401, json!({"error": {"message": message}}))
    });
    let outcome = secretive(&server, "").q(&["-v", "-j", "hi"]).run();
    assert_no_secret(outcome.exit(1));
    let sent = server.request().header("authorization").map(str::to_owned);
    assert_eq!(sent, Some(format!("Basic {credentials}")));
    outcome.stdout_lacks(credentials).stderr_lacks(credentials);
}

#[test]
fn no_part_of_a_key_is_shown_where_an_error_is_cut_short() {
    for length in [180, 190, 198] {
        let _case = case(length);
        let error = format!("{}{API_KEY} is wrong", " .".repeat(length / 2));
        let server = Server::always(Reply::new(400).piece(error));
        Sandbox::new()
            .server_env(&server)
            .q(&["hi"])
            .run()
            .exit(1)
            .stderr_lacks("sk-");
    }
}

#[test]
fn a_list_of_models_that_cannot_be_read_gives_no_key_away() {
    let server = Server::start(|request, _| {
        let authorization = request.header("authorization").unwrap_or_default();
        Reply::json(200, json!({"data": authorization}))
    });
    let outcome = Sandbox::new().server_env(&server).q(&["--models"]).run();
    outcome
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("cannot be read")
        .stderr_lacks(API_KEY);
}

#[test]
fn a_key_inside_the_key_command_is_not_shown() {
    let server = Server::always(failure(401, "wrong key"));
    let sandbox = secretive(&server, &format!("key_cmd = [\"echo\", \"{API_KEY}\"]"));
    for args in [
        &["hi"][..],
        &["-v", "-j", "hi"],
        &["--models"],
        &["--status"],
        &["--dry-run", "hi"],
    ] {
        assert_no_secret(&sandbox.q(args).run());
    }
}

#[test]
fn the_password_of_a_proxy_is_not_shown() {
    let server = Server::start(|request, _| {
        let message = format!("{PROXY_PASSWORD} of {:?} is wrong", request.headers);
        Reply::json(403, json!({"error": {"message": message}}))
    });
    let proxy = format!("http://me:{PROXY_PASSWORD}@{}", server.address());
    let sandbox = Sandbox::new()
        .openai_at("http://llm.test/v1")
        .env("HTTP_PROXY", proxy);
    let asked = sandbox.q(&["-v", "hi"]).run();
    assert_no_secret(asked.exit(1).stderr_contains("HTTP_PROXY"));
    for args in [
        &["-j", "hi"][..],
        &["--models"],
        &["--status"],
        &["--dry-run", "hi"],
    ] {
        assert_no_secret(&sandbox.q(args).run());
    }
    let unusable = Sandbox::new()
        .openai_at("http://llm.test/v1")
        .env("HTTP_PROXY", format!("ftp://me:{PROXY_PASSWORD}@llm.test"));
    let outcome = unusable.q(&["hi"]).run();
    assert_no_secret(outcome.exit(2).stderr_contains("HTTP_PROXY"));
}

#[test]
fn a_dry_run_prints_exactly_the_body_that_would_be_sent() {
    // Each: arguments, environment, and what the body must have.
    let table: [(&[&str], Environment, &str); 7] = [
        (&["-p", "openai", "hi"], &[], "\"stream\":true"),
        (
            &["-p", "openai", "--no-stream", "-S", "be \u{1b}kind", "hi"],
            &[],
            "be \\u001bkind",
        ),
        (&["-p", "anthropic", "hi"], &[], "16384"),
        (
            &["-p", "gemini", "hi"],
            &[("Q_MAX_TOKENS", "7")],
            "\"maxOutputTokens\":7",
        ),
        (&["-p", "openai", "-f", "hi"], &[], "Previous conversation:"),
        (
            &["-p", "openai", "-f", "hi"],
            &[("Q_HISTORY", "messages")],
            "\"assistant\"",
        ),
        (
            &["-p", "openai", "-f", "--messages", "0", "hi"],
            &[],
            "log of today",
        ),
    ];
    for (args, environment, has) in table {
        let _case = case((args, environment));
        let server = Server::always(Reply::json(500, json!({})));
        let sandbox = Sandbox::new().every_env(&server);
        sandbox.write_current(&idle_for(HOUR, &["question", "answer"]));
        let before = snapshot(sandbox.state());
        let environment = [("Q_SYSTEM", "be brief"), ("Q_RETRIES", "0")]
            .iter()
            .chain(environment);
        let [dry, sent] = [&["--dry-run"][..], &["--no-save"]].map(|first| {
            let q = sandbox.q(first).args(args).stdin("log of today\n");
            environment
                .clone()
                .fold(q, |q, (name, value)| q.env(name, value))
                .run()
        });
        sent.exit(1);
        dry.success()
            .stdout(server.request().text() + "\n")
            .stdout_contains(has);
        before.expect_unchanged();
    }
}

#[test]
fn a_dry_run_asks_a_local_server_for_its_list_alone() {
    let server = everybody("never");
    let sandbox = Sandbox::new().env("OLLAMA_HOST", server.url());
    for args in [
        &["--dry-run", "-p", "ollama", "hi"][..],
        &["--dry-run", "-q", "hi"],
    ] {
        let _case = case(args);
        assert_eq!(
            sandbox.q(args).run().success().stdout_json()["model"],
            "first"
        );
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.method == "GET")
    );
    sandbox.expect_no_state();
}

#[test]
fn the_status_begins_with_the_provider_that_q_would_ask_and_why() {
    let server = everybody("never");
    let first = |sandbox: &Sandbox, args: &[&str]| {
        let text = sandbox
            .q(&["--status"])
            .args(args)
            .run()
            .success()
            .stdout_text();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let sandbox = Sandbox::new()
        .env("OPENAI_API_KEY", API_KEY)
        .env("XAI_API_KEY", API_KEY);
    let by_key =
        format!("asks openai, model {OPENAI_MODEL} (the first with a key: OPENAI_API_KEY is set)");
    assert_eq!(first(&sandbox, &[]), by_key);
    assert_eq!(
        first(&sandbox, &["-p", "xai", "-m", "m"]),
        "asks xai, model m (--provider)"
    );
    assert!(
        first(&sandbox, &["-p", "groq"]).starts_with("no provider to ask: "),
        "{}",
        first(&sandbox, &["-p", "groq"])
    );
    sandbox.write_session(
        "work.json",
        &with(stored(&["one", "two"]), "provider", "xai"),
    );
    let held = format!("asks xai, model {STORED_MODEL} (the conversation is with it)");
    assert_eq!(first(&sandbox, &["-s", "work"]), held);
    sandbox.config("provider = \"xai\"\n");
    assert!(
        first(&sandbox, &[]).starts_with("asks xai, model ")
            && first(&sandbox, &[]).contains("config.toml")
    );
    sandbox.config("colour = 1\n");
    assert_eq!(
        first(&sandbox, &[]),
        "no provider to ask: the configuration is wrong"
    );
    let local = Sandbox::new().env("OLLAMA_HOST", server.url());
    let why = "(no key is set, and this is the first local server that answers)";
    assert_eq!(
        first(&local, &[]),
        format!("asks ollama, model first {why}")
    );
    let printed = local.q(&["--status", "-j"]).run().success().stdout_json();
    assert_eq!(
        (&printed["asks"]["provider"], &printed["asks"]["model"]),
        (&json!("ollama"), &json!("first"))
    );
    let nobody = first(&Sandbox::new().env("OLLAMA_HOST", "127.0.0.1:1"), &[]);
    assert_eq!(
        nobody,
        "no provider to ask: no key is set, and no local server answers with a model"
    );
}

#[test]
fn the_status_shows_how_much_is_kept() {
    let sandbox = Sandbox::new();
    for (name, length) in [
        ("current.json", 10),
        ("work.json", 1_200_000),
        (ARCHIVED, 500),
    ] {
        sandbox.write_session(name, &stored(&["q", &"x".repeat(length)]));
    }
    let bytes: u64 = sandbox
        .session_files()
        .iter()
        .map(|name| sandbox.read_bytes(name).len() as u64)
        .sum();
    // It leads nowhere, and so it is not listed either.
    sandbox.link("gone.json", "unmounted/gone.json");
    sandbox
        .q(&["--status"])
        .run()
        .success()
        .stdout_contains("(3, 1.2 MB)");
    let printed = sandbox.q(&["--status", "-j"]).run().success().stdout_json();
    assert_eq!(
        (&printed["kept"], &printed["bytes"]),
        (&json!(3), &json!(bytes))
    );
}

#[test]
fn the_status_shows_every_setting_and_where_it_comes_from() {
    // Key, default, value in the file, value of the variable.
    let table = [
        ("messages", "10", "11", "12"),
        ("max_history", "400000", "5_000", "6000"),
        ("history", "prompt", "\"messages\"", "prompt"),
        ("pairs", "20", "21", "22"),
        ("expire", "24h", "\"1h\"", "never"),
        ("keep", "30d", "\"0\"", "2d"),
        ("max_tokens", "", "100", "200"),
        ("timeout", "5m", "\"10s\"", "20s"),
        ("retries", "3", "2", "4"),
        ("save", "true", "false", "true"),
        ("wrap", "true", "false", "true"),
        ("style", "true", "false", "true"),
        ("mismatch", "new", "\"continue\"", "new"),
        ("rounds", "10", "5", "6"),
        ("mcp", "", "\"/a\"", "/b"),
        ("effort", "", "\"low\"", "medium"),
        ("provider", "", "\"groq\"", "mistral"),
        ("model", "", "\"one\"", "two"),
        ("system", "", "\"be brief\"", "be kind"),
    ];
    let options: [(&str, &[&str], &str, &str); 6] = [
        ("messages", &["--messages", "13"], "13", "--messages"),
        ("save", &["--no-save"], "false", "--no-save"),
        ("provider", &["-p", "xai"], "xai", "--provider"),
        ("model", &["-m", "three"], "three", "--model"),
        ("system", &["-S", "be quick"], "be quick", "--system"),
        ("effort", &["-e", "high"], "high", "--effort"),
    ];
    let sandbox = Sandbox::new();
    for (key, default, _, _) in table {
        let origin = if default.is_empty() {
            "unset"
        } else {
            "default"
        };
        assert_setting(&sandbox, &[], &[], key, default, origin);
    }
    let lines: Vec<String> = table
        .iter()
        .map(|(key, _, value, _)| format!("{key} = {value}\n"))
        .collect();
    sandbox.config(&lines.concat());
    for (line, (key, _, value, _)) in table.iter().enumerate() {
        let origin = format!("{}, line {}", sandbox.config_file().display(), line + 1);
        assert_setting(
            &sandbox,
            &[],
            &[],
            key,
            &value.replace(['"', '_'], ""),
            &origin,
        );
    }
    for (key, _, _, value) in table {
        let name = format!("Q_{}", key.to_uppercase());
        assert_setting(&sandbox, &[], &[(&name, value)], key, value, &name);
        // An empty variable counts as unset.
        let file = sandbox.config_file().display().to_string();
        let origin = setting(&sandbox, &[], &[(&name, "")], key)["origin"].clone();
        assert!(
            origin.as_str().is_some_and(|text| text.starts_with(&file)),
            "{key}: {origin}"
        );
    }
    for (key, args, value, origin) in options {
        let name = format!("Q_{}", key.to_uppercase());
        let variable = table.iter().find(|row| row.0 == key).expect("a setting").3;
        assert_setting(&sandbox, args, &[(&name, variable)], key, value, origin);
    }
}

#[test]
fn the_status_shows_paths_providers_and_the_conversation() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server).env("OPENAI_MODEL", "");
    sandbox.config(
        "[providers.work]\nbase_url = \"https://llm.corp.example/v1/\"\nkey_cmd = [\"false\", \"x\"]\nmodel = \"w\"\n",
    );
    let empty = sandbox.q(&["--status", "--json"]).stdin_open().run();
    let printed = empty.success().stdout_json();
    assert_eq!(printed["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(printed["config"], json!(sandbox.config_file()));
    assert_eq!(printed["sessions"], json!(sandbox.sessions()));
    assert_eq!(
        (&printed["conversation"], &printed["error"]),
        (&Value::Null, &Value::Null)
    );
    let provider = |name: &str| {
        let providers = printed["providers"].as_array().expect("providers").iter();
        providers
            .clone()
            .find(|provider| provider["name"] == name)
            .expect("a provider")
            .clone()
    };
    // The file's own come first, and its key counts as set without being asked for.
    assert_eq!(printed["providers"][0], provider("work"));
    assert_eq!(provider("work")["chosen"], true);
    assert_eq!(provider("work")["address"], "https://llm.corp.example/v1");
    assert_eq!(provider("openai")["key"], "OPENAI_API_KEY is set");
    assert_eq!(provider("groq")["key"], "GROQ_API_KEY is not set");
    assert_eq!(
        provider("openai")["address"],
        format!("{}/v1", server.url())
    );
    assert_eq!(printed["providers"].as_array().map(Vec::len), Some(16));

    sandbox
        .q(&["-p", "openai", "-m", "m", "hi"])
        .run()
        .success();
    let printed = sandbox.q(&["--status", "-j"]).run().success().stdout_json();
    let file = format!("{}.json", sandbox.current_id());
    assert_eq!(
        printed["conversation"]["path"],
        json!(sandbox.sessions().join(&file))
    );
    assert_eq!(printed["conversation"]["messages"], 2);
    assert_eq!(printed["conversation"]["model"], "m");
    let text = sandbox.q(&["--status"]).run();
    for part in [
        env!("CARGO_PKG_VERSION"),
        "work",
        "openai/m",
        "2 messages",
        &file,
        "config.toml",
    ] {
        text.success().stdout_contains(part);
    }
    let printed = sandbox
        .q(&["--status", "-s", "none", "-j"])
        .run()
        .success()
        .stdout_json();
    assert_eq!(printed["conversation"], Value::Null);
    sandbox
        .q(&["--status", "-s", "none"])
        .run()
        .success()
        .stdout_contains("there is no conversation");
    server.expect_requests(1);
    sandbox.write_bytes("current.json", "{");
    let broken = sandbox.q(&["--status"]).run();
    broken.success().stdout_contains("cannot be parsed");
    sandbox.expect_bytes("current.json", b"{");
}

#[test]
fn the_status_shows_what_is_wrong_with_the_settings() {
    let table: [(&str, Environment, &str); 5] = [
        ("messages = 1\ncolour = \"red\"\n", &[], "line 2: "),
        ("retries = \"many\"\n", &[], "line 1: retries"),
        ("[providers.work\n", &[], "line 1: "),
        ("", &[("Q_MESSAGES", "ten")], "Q_MESSAGES: "),
        (
            "provider = \"nobody\"\n",
            &[],
            "there is no provider “nobody”",
        ),
    ];
    for (text, environment, has) in table {
        let _case = case((text, environment));
        let sandbox = Sandbox::new().env("GROQ_API_KEY", API_KEY);
        sandbox.config(text);
        let status = |args: &[&str]| {
            environment
                .iter()
                .fold(sandbox.q(args), |q, (name, value)| q.env(name, value))
                .run()
        };
        let outcome = status(&["--status"]);
        outcome.success().stdout_contains(has);
        let printed = status(&["--status", "-j"]).success().stdout_json();
        // The providers with a key are shown all the same.
        let providers = printed["providers"].as_array().cloned().unwrap_or_default();
        let groq = providers
            .iter()
            .find(|one| one["name"] == "groq")
            .map(|one| &one["key"]);
        assert_eq!(groq, Some(&json!("GROQ_API_KEY is set")));
        let error = printed["error"].as_str().unwrap_or_default().to_owned();
        outcome.check(error.contains(has), || {
            format!("expected {has:?} in the JSON's error: {error:?}")
        });
        assert_eq!(printed["settings"].as_array().map(Vec::len), Some(19));
        // And it is what a question says.
        status(&["hi"])
            .exit(2)
            .stderr_contains(&format!("q: {error}\n"));
    }
}

#[test]
fn models_are_listed_one_a_line_in_every_dialect() {
    let ids = ["b/two", "a:one", "c three"];
    let table = [
        ("openai", "/v1/models", "data", "id", "", "authorization"),
        ("anthropic", "/v1/models", "data", "id", "", "x-api-key"),
        (
            "gemini",
            "/v1beta/models",
            "models",
            "name",
            "models/",
            "x-goog-api-key",
        ),
        ("responses", "/v1/models", "data", "id", "", "authorization"),
        ("ollama", "/v1/models", "data", "id", "", ""),
    ];
    for (provider, path, list, field, prefix, header) in table {
        let _case = case(provider);
        let models = ids.map(|id| json!({field: format!("{prefix}{id}"), "other": 1}));
        let server = Server::always(Reply::json(200, json!({list: models})));
        let sandbox = Sandbox::new()
            .every_env(&server)
            .env("OLLAMA_HOST", server.address().to_string());
        let outcome = sandbox
            .q(&["--models", "-p", provider])
            .speaks(Dialect::named("responses"), &server)
            .stdin_open()
            .run();
        outcome.success().stdout("b/two\na:one\nc three\n");
        let request = server.request();
        assert_eq!(
            (request.method.as_str(), request.path.split('?').next()),
            ("GET", Some(path))
        );
        assert_eq!(
            request
                .header(header)
                .is_some_and(|value| value.ends_with(API_KEY)),
            !header.is_empty()
        );
        sandbox.expect_no_files();
    }
    let empty = Server::always(Reply::json(200, json!({"data": []})));
    Sandbox::new()
        .server_env(&empty)
        .q(&["--models"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("no models");
    let none = Sandbox::new().q(&["--models", "-p", "openai"]).run();
    none.exit(2)
        .stdout_is_empty()
        .stderr_contains("OPENAI_API_KEY");
}

#[test]
fn a_list_that_is_compressed_by_gzip_is_an_error_that_says_so() {
    let compressed = Reply::new(200)
        .header("content-encoding", "gzip")
        .piece(b"\x1F\x8B\x08\x00\x00");
    let listed = Sandbox::new()
        .server_env(&Server::always(compressed))
        .q(&["--models"])
        .run();
    listed
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("compressed by gzip");
}

/// A provider with a password and a key in its address, a header and a key, and a proxy with a password in the environment.
fn secretive(server: &Server, more: &str) -> Sandbox {
    let sandbox = Sandbox::new()
        .env("WORK_KEY", API_KEY)
        .env(
            "HTTP_PROXY",
            format!("http://me:{PROXY_PASSWORD}@127.0.0.1:9"),
        )
        .env("Q_PROVIDER", "work")
        .env("Q_MODEL", "m")
        .env("Q_RETRIES", "1");
    sandbox.config(&format!(
        "[providers.work]\nbase_url = \"http://me:{PASSWORD}@{}/v1?key={QUERY_KEY}\"\nheaders = {{ x-team = \"{HEADER}\" }}\n{more}\n\
         [providers.other]\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"m\"\n",
        server.address(),
    ));
    sandbox
}

#[track_caller]
fn assert_no_secret(outcome: &Outcome) {
    for secret in [
        API_KEY,
        HEADER,
        PASSWORD,
        DECODED_PASSWORD,
        PROXY_PASSWORD,
        QUERY_KEY,
    ] {
        outcome.stdout_lacks(secret).stderr_lacks(secret);
    }
}

fn setting(sandbox: &Sandbox, args: &[&str], environment: &[(&str, &str)], key: &str) -> Value {
    let q = environment.iter().fold(
        sandbox.q(&["--status", "-j"]).args(args),
        |q, (name, value)| q.env(name, value),
    );
    let outcome = q.run();
    let printed = outcome.success().stdout_json();
    let settings = printed["settings"].as_array().cloned().unwrap_or_default();
    let found = settings.into_iter().find(|setting| setting["name"] == key);
    outcome.check(found.is_some(), || format!("expected the setting {key}"));
    found.unwrap_or_default()
}

#[track_caller]
fn assert_setting(
    sandbox: &Sandbox,
    args: &[&str],
    environment: &[(&str, &str)],
    key: &str,
    value: &str,
    origin: &str,
) {
    let printed = setting(sandbox, args, environment, key);
    let value = if value.is_empty() {
        Value::Null
    } else {
        json!(value)
    };
    assert_eq!(
        (&printed["value"], &printed["origin"]),
        (&value, &json!(origin)),
        "{key}"
    );
    let text = environment
        .iter()
        .fold(sandbox.q(&["--status"]).args(args), |q, (name, value)| {
            q.env(name, value)
        })
        .run();
    let shown = format!("{key:<13}  {}  ({origin})\n", value.as_str().unwrap_or("-"));
    text.success().stdout_contains(&shown);
}
