//! Conversations: how their file looks, when a follow-up continues one, and what is never touched.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::dialect::{
    DONE, INPUT_TOKENS, OUTPUT_TOKENS, failure, finish, first_word_then_silence, held_back,
    in_two_parts, openai_event, openai_reply, word,
};
use crate::fixtures::{
    ANTHROPIC_MODEL, ARCHIVED, CREATED, DAY, GROQ_MODEL, HOUR, LARGEST, MINUTE, OPENAI_MODEL,
    PIXEL, STORED_MODEL, case, change_when_created, idle_for, mode, numbered, prompt, snapshot,
    stored, texts, with,
};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Gate, Reply, Server};

#[test]
fn a_question_is_saved_in_the_documented_format() {
    let server = Server::openai("Hello there");
    let sandbox = Sandbox::new().server_env(&server);
    let before = OffsetDateTime::now_utc() - Duration::from_millis(1);
    // The modes are q's own, whatever the mask would let through.
    sandbox.shell("umask 0; q say hello").run().success();
    let after = OffsetDateTime::now_utc();

    let kept = sandbox.current();
    assert_eq!(
        keys(&kept),
        [
            "created", "messages", "model", "provider", "updated", "version"
        ]
    );
    assert_eq!(
        (&kept["version"], &kept["provider"], &kept["model"]),
        (&json!(1), &json!("openai"), &json!(OPENAI_MODEL))
    );
    let messages = kept["messages"].as_array().unwrap();
    for (message, role, content) in [
        (&messages[0], "user", "say hello"),
        (&messages[1], "assistant", "Hello there"),
    ] {
        assert_eq!(
            (&message["role"], &message["content"]),
            (&json!(role), &json!(content))
        );
    }
    assert_eq!(messages.len(), 2);
    assert_eq!(keys(&messages[0]), ["content", "role", "timestamp"]);
    let of_answers = ["content", "model", "provider", "role", "timestamp", "usage"];
    assert_eq!(
        keys(&messages[1]),
        of_answers,
        "interrupted only where true"
    );
    assert_eq!(
        (&messages[1]["provider"], &messages[1]["model"]),
        (&json!("openai"), &json!(OPENAI_MODEL))
    );
    assert_eq!(
        messages[1]["usage"],
        json!({"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS})
    );

    let written = [
        &kept["created"],
        &messages[0]["timestamp"],
        &messages[1]["timestamp"],
        &kept["updated"],
    ];
    let moments = written.map(|written| {
        let text = written.as_str().unwrap();
        assert!(
            text.len() == "2026-11-21T10:00:00.000Z".len() && text.ends_with('Z'),
            "{text}"
        );
        assert_eq!(text.as_bytes()[19], b'.', "{text}");
        OffsetDateTime::parse(text, &Rfc3339).unwrap()
    });
    assert!(
        moments.is_sorted() && moments[0] >= before && moments[3] <= after,
        "{before} {moments:?} {after}"
    );

    for (path, right) in [
        ("q", 0o700),
        ("q/sessions", 0o700),
        ("q/sessions/current.json", 0o600),
    ] {
        assert_eq!(mode(&sandbox.state().join(path)), right, "{path}");
    }
    // The folders above its own are private too.
    let above = sandbox.root().join("made/by/q");
    sandbox
        .shell("umask 0; q -n hello")
        .env("XDG_STATE_HOME", &above)
        .run()
        .success();
    assert_eq!([above.parent().unwrap(), &above].map(mode), [0o700; 2]);
}

#[test]
fn a_plain_question_starts_a_new_conversation_and_a_follow_up_continues_it() {
    let (server, sandbox) = numbered();
    for args in [
        &["one"][..],
        &["two"],
        &["-f", "three"],
        &["--follow", "four\n"],
    ] {
        sandbox.q(args).run().success();
    }
    let kept = sandbox.current();
    assert_eq!(
        texts(&kept),
        ["two", "answer 1", "three", "answer 2", "four\n", "answer 3"]
    );
    sandbox.expect_texts(&sandbox.only_archived(), &["one", "answer 0"]);
    let sent: Vec<String> = server.requests().iter().map(prompt).collect();
    assert_eq!(sent[1], "two");
    assert_eq!(
        sent[2],
        "Previous conversation:\nHuman: two\n\nAssistant: answer 1\n\nHuman: three"
    );
    let created: Vec<&Value> = [&kept["created"], &kept["messages"][0]["timestamp"]].into();
    assert_eq!(
        created[0], created[1],
        "the conversation is as old as its first question"
    );
    assert_eq!(kept["updated"], kept["messages"][5]["timestamp"]);
}

#[test]
fn nothing_is_saved_before_the_answer_is_complete() {
    for args in [&["two"][..], &["-f", "two"], &["-s", "work", "two"]] {
        let _case = case(args);
        let gate = Gate::new();
        let server = Server::always(in_two_parts("first ", &gate, "second"));
        let sandbox = Sandbox::new().server_env(&server);
        for name in ["current.json", "work.json"] {
            sandbox.write_session(name, &idle_for(HOUR, &["one", "1"]));
        }
        let before = snapshot(sandbox.root());
        let mut running = sandbox.q(args).spawn();
        running.read_stdout_until("first ");
        before.expect_unchanged();
        gate.open();
        running.wait().success().stdout("first second\n");
        let file = if args[0] == "-s" {
            "work.json"
        } else {
            "current.json"
        };
        assert!(
            texts(&sandbox.session(file)).ends_with(&["two".to_owned(), "first second".to_owned()])
        );
    }
}

#[test]
fn follow_ups_in_a_pipeline_continue_one_conversation_in_order() {
    let server = Server::start(|request, _| {
        let asked = prompt(request);
        let last = asked.rsplit("Human: ").next().unwrap_or_default();
        openai_reply(request, &format!("<{last}>"))
    });
    let sandbox = Sandbox::new().server_env(&server);
    let piped = sandbox
        .shell("q one </dev/null >/dev/null; q -f two </dev/null | q -f | q -f three")
        .run();
    piped.success();
    let kept = texts(&sandbox.current());
    assert_eq!(kept[..4], ["one", "<one>", "two", "<two>"]);
    assert_eq!(kept[4..6], ["<two>", "<<two>>"]);
    assert_eq!(kept[6], "<context>\n<<two>>\n</context>\n\nthree");
    assert_eq!(
        (kept.len(), sandbox.session_files()),
        (8, vec!["current.json".to_owned()])
    );
}

#[test]
fn a_conversation_is_continued_until_it_was_idle_for_too_long() {
    for (idle, variable, file) in [
        (23 * HOUR, "", ""),
        (25 * HOUR, "2d", ""),
        (1000 * DAY, "never", ""),
        (MINUTE, "90s", ""),
        (25 * HOUR, "", "expire = \"26h\""),
    ] {
        let _case = case((idle, variable, file));
        expect_followed(
            &idle_for(idle, &["one", "1"]),
            &["-f", "two"],
            ("Q_EXPIRE", variable),
            file,
        );
    }
    for (idle, variable, file) in [
        (25 * HOUR, "", ""),
        (2 * HOUR, "1h", ""),
        (2 * MINUTE, "90s", ""),
        (25 * HOUR, "24h", "expire = \"26h\""),
    ] {
        let _case = case((idle, variable, file));
        let old = idle_for(idle, &["one", "1"]);
        let outcome = expect_replaced(
            &old,
            &["-f", "two"],
            ("Q_EXPIRE", variable),
            file,
            OPENAI_MODEL,
        );
        let printed = outcome.stderr_text();
        let words = ["25 hours", "2 hours", "2 minutes"]
            .iter()
            .any(|age| printed.contains(&format!("idle for {age};")));
        outcome.check(words, || "expected the idle time in words".to_owned());
    }
}

#[test]
fn a_conversation_with_another_provider_or_model_is_not_continued() {
    let old = || with(idle_for(HOUR, &["one", "1"]), "model", "odd-model");
    for (args, variable, file) in [
        // Without a model in options and settings, the conversation continues with its own.
        (&["-f", "two"][..], "", ""),
        (&["-f", "-p", "openai", "two"], "", ""),
        (&["-f", "-m", "odd-model", "two"], "", ""),
        (&["-f", "two"], "odd-model", "model = \"other\""),
    ] {
        let _case = case((args, variable, file));
        expect_followed(&old(), args, ("Q_MODEL", variable), file);
    }
    for (args, variable, file, model) in [
        (&["-f", "-m", OPENAI_MODEL, "two"][..], "", "", OPENAI_MODEL),
        (&["-f", "two"], "other", "", "other"),
        (&["-f", "two"], "", "model = \"other\"", "other"),
        (
            &["-f", "two"],
            "",
            "[providers.openai]\nmodel = \"other\"",
            "other",
        ),
    ] {
        let _case = case((args, variable, file));
        let outcome = expect_replaced(&old(), args, ("Q_MODEL", variable), file, model);
        outcome
            .stderr_contains("model")
            .stderr_contains("; starting a new conversation;");
    }
    for (args, model) in [
        (&["-f", "-p", "groq", "two"][..], GROQ_MODEL),
        // The same model from another provider is another one.
        (&["-f", "-p", "groq", "-m", "odd-model", "two"], "odd-model"),
    ] {
        let outcome = expect_replaced(&old(), args, ("Q_MODEL", ""), "", model);
        outcome
            .stderr_contains("provider")
            .stderr_contains("; starting a new conversation;");
    }
}

/// A run that continues this conversation, with its model.
#[track_caller]
fn expect_followed(old: &Value, args: &[&str], variable: (&str, &str), file: &str) {
    let (server, sandbox) = with_current(old, file);
    sandbox
        .q(args)
        .env(variable.0, variable.1)
        .run()
        .success()
        .stdout("answer\n");
    let sent = server.request();
    assert_eq!(
        prompt(&sent),
        "Previous conversation:\nHuman: one\n\nAssistant: 1\n\nHuman: two"
    );
    assert_eq!(sent.json()["model"], old["model"]);
    sandbox.expect_texts("current.json", &["one", "1", "two", "answer"]);
    assert_eq!(sandbox.current()["model"], old["model"]);
    sandbox.expect_files(&["current.json"]);
}

/// A run that leaves this conversation, starts a new one with `model`, and says so.
#[track_caller]
fn expect_replaced(
    old: &Value,
    args: &[&str],
    variable: (&str, &str),
    file: &str,
    model: &str,
) -> Outcome {
    let (server, sandbox) = with_current(old, file);
    let outcome = sandbox.q(args).env(variable.0, variable.1).run();
    outcome
        .exit(0)
        .stdout("answer\n")
        .stderr_is_of_q()
        .stderr_has_lines(1);
    let left = sandbox.only_archived();
    // It ends with the command that continues the old one.
    let id = left.trim_end_matches(".json");
    outcome.check(
        outcome.stderr_text().ends_with(&format!("q -s {id}\n")),
        || format!("expected q -s {id} at the end"),
    );
    sandbox
        .q(&["--last", "-s", id])
        .run()
        .success()
        .stdout("1\n");
    let sent = server.request();
    assert_eq!(prompt(&sent), "two");
    assert_eq!(sent.json()["model"], model);
    sandbox.expect_texts("current.json", &["two", "answer"]);
    assert_eq!(sandbox.current()["model"], model);
    sandbox.expect_bytes(&left, old.to_string());
    outcome
}

/// A sandbox with this current conversation and this configuration, in which OpenAI and Groq are the server.
fn with_current(conversation: &Value, file: &str) -> (Server, Sandbox) {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new()
        .server_env(&server)
        .env("GROQ_API_KEY", "gsk-test-0123456789");
    let sandbox = sandbox.env("GROQ_BASE_URL", format!("{}/v1", server.url()));
    sandbox.config(file);
    sandbox.write_current(conversation);
    (server, sandbox)
}

#[test]
fn an_unreadable_conversation_is_archived_once_the_new_answer_has_come() {
    let valid = idle_for(HOUR, &["one", "1"]);
    let mut unknown_role = valid.clone();
    unknown_role["messages"][0]["role"] = json!("system");
    let padded = format!(
        "{valid}{}",
        " ".repeat(LARGEST + 1 - valid.to_string().len())
    );
    for (what, bytes) in [
        ("corrupt", "{\"version\": 1, \"prov".to_owned()),
        ("empty", String::new()),
        ("something else", "[]".to_owned()),
        ("a role that there is not", unknown_role.to_string()),
        ("a newer version", with(valid, "version", 2).to_string()),
        ("too large", padded),
    ] {
        let _case = case(what);
        let gate = Gate::new();
        let held = gate.clone();
        let server = Server::start(move |_, number| match number {
            0 => held_back(&Gate::new(), "never").cut(),
            _ => held_back(&held, "answer"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_bytes("current.json", &bytes);
        change_when_created(&sandbox.sessions().join("current.json"));
        let before = snapshot(sandbox.root());

        let mut failing = sandbox.q(&["-f", "two"]).spawn();
        server.wait_for_requests(1);
        failing.signal(libc::SIGKILL);
        failing.wait();
        let asking = sandbox.q(&["-f", "two"]).env("Q_KEEP", "never").spawn();
        server.wait_for_requests(2);
        before.expect_unchanged();
        gate.open();
        let asked = asking.wait();
        asked
            .exit(0)
            .stdout("answer\n")
            .stderr_is_of_q()
            .stderr_contains("; starting a new conversation");
        sandbox.expect_texts("current.json", &["two", "answer"]);
        let archived = sandbox.only_archived();
        assert_eq!(archived, format!("{ARCHIVED}.unreadable"));
        sandbox.expect_bytes(&archived, &bytes);
    }
}

#[test]
fn a_follow_up_with_nothing_to_continue_says_so_and_starts_a_conversation() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-f", "one"]).run();
    outcome
        .exit(0)
        .stdout("answer\n")
        .stderr("q: there is no conversation to continue; starting a new conversation\n");
    sandbox.q(&["-f", "two"]).run().success();
    sandbox.expect_texts("current.json", &["one", "answer", "two", "answer"]);
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn a_note_promises_no_old_conversation_where_it_is_not_kept() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server).env("Q_KEEP", "0");
    sandbox.write_current(&idle_for(25 * HOUR, &["one", "1"]));
    let outcome = sandbox.q(&["-f", "two"]).run();
    outcome
        .exit(0)
        .stderr_contains("idle")
        .stderr_lacks("q -s")
        .stderr_lacks("old");
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn the_current_conversation_keeps_its_last_pairs() {
    let server = Server::openai("answer");
    let old: Vec<String> = (0..40).map(|number| format!("text {number}")).collect();
    for (variable, file, kept) in [
        ("", "", 20),
        ("2", "", 2),
        ("1", "pairs = 7", 1),
        ("", "pairs = 7", 7),
        ("1000", "", 21),
        ("all", "", 21),
        ("", "pairs = \"all\"", 21),
    ] {
        let _case = case((variable, file));
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(file);
        sandbox.write_current(&idle_for(HOUR, &old));
        sandbox
            .q(&["-f", "new"])
            .env("Q_PAIRS", variable)
            .run()
            .success();
        let mut expected = old[old.len() - 2 * (kept - 1)..].to_vec();
        expected.extend(["new".to_owned(), "answer".to_owned()]);
        sandbox.expect_texts("current.json", &expected);
        sandbox.expect_files(&["current.json"]);
    }
}

#[test]
fn unknown_fields_keep_their_values() {
    let question = json!({"role": "user", "content": "café 😀", "timestamp": CREATED,
        "stars": 1e2, "attachments": [{"name": "a.png", "type": "image/png", "data": PIXEL, "alt": {"x": null}}]});
    let call = json!({"id": "c1", "name": "db__echo", "arguments": {"z": 1, "a": 1.50}, "result": "ok", "cached": false});
    let answer = json!({"role": "assistant", "content": "1", "interrupted": true, "rating": {"b": 0.10, "a": null},
        "usage": {"input_tokens": 3, "output_tokens": 4, "cached_tokens": 1, "cost": 0.5, "audio_tokens": 2},
        "steps": [{"text": "let me see", "calls": [call], "took": 1.25}]});
    let conversation = with(
        with(
            idle_for(HOUR, &[""; 0]),
            "x-tags",
            json!([1.50, "é/", {"deep": [null]}]),
        ),
        "title",
        "a \"b\"",
    );
    // As some editors begin a file.
    for beginning in ["", "\u{feff}"] {
        for (name, args) in [
            ("current.json", &["-f"][..]),
            ("work.json", &["-s", "work"]),
        ] {
            let _case = case((beginning, name));
            let (server, sandbox) = numbered();
            let old = with(conversation.clone(), "messages", json!([question, answer]));
            // A number with more digits than any type of Rust can hold.
            let text = format!("{beginning}{old}").replace("1.25", "12345678901234567890123");
            sandbox.write_bytes(name, text);
            for more in ["two", "three"] {
                sandbox.q(args).arg(more).run().success();
            }
            assert!(server.last_request().text().contains("café 😀"));
            sandbox.expect_texts(
                name,
                &["café 😀", "1", "two", "answer 0", "three", "answer 1"],
            );
            let kept = sandbox.session(name);
            let text = String::from_utf8(sandbox.read_bytes(name)).expect("text");
            assert_eq!(text.matches("12345678901234567890123").count(), 1, "{text}");
            for field in ["x-tags", "title"] {
                assert_eq!(kept[field], conversation[field]);
            }
            assert_eq!(kept["messages"][0], question);
            let mut answer = answer.clone();
            answer["steps"][0]["took"] = kept["messages"][1]["steps"][0]["took"].clone();
            assert_eq!(kept["messages"][1], answer);
        }
    }
}

#[test]
fn a_request_that_fails_before_its_first_word_changes_no_file() {
    for (what, reply) in [
        ("an error's status", failure(500, "overloaded")),
        ("a close", Reply::raw("")),
        (
            "a cut",
            Reply::sse([openai_event(
                json!({"role": "assistant", "content": ""}),
                None,
            )])
            .cut(),
        ),
        (
            "an error in the stream",
            Reply::sse(["data: {\"error\":{\"message\":\"overloaded\"}}\n\n"]),
        ),
        (
            "an empty answer",
            Reply::sse([finish("stop"), DONE.to_vec()]),
        ),
        (
            "no more than thoughts",
            Reply::sse([openai_event(json!({"reasoning": "hm"}), None)]).cut(),
        ),
        ("a blocked answer", Reply::sse([finish("content_filter")])),
        (
            "nothing but blanks",
            Reply::sse([word("\n\n"), finish("stop")]),
        ),
        ("blanks before a cut", Reply::sse([word(" \n")]).cut()),
    ] {
        let _case = case(what);
        nothing_changes(reply);
    }
}

/// A request that fails like this leaves the state as it is, whatever it was.
#[track_caller]
fn nothing_changes(reply: Reply) {
    let server = Server::always(reply);
    let blank = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    let recent = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    recent.write_current(&idle_for(HOUR, &["one", "1"]));
    let expired = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    expired.write_current(&idle_for(2 * DAY, &["one", "1"]));
    for (sandbox, args) in [
        (&blank, &["two"][..]),
        (&blank, &["-f", "two"]),
        (&recent, &["two"]),
        (&recent, &["-f", "two"]),
        (&expired, &["-f", "two"]),
    ] {
        let before = snapshot(sandbox.root());
        sandbox.q(args).run().exit(1);
        before.expect_unchanged();
    }
}

#[test]
fn no_save_leaves_no_trace() {
    let server = Server::openai("answer");
    for (args, variable, file) in [
        (&["--no-save", "two"][..], "", ""),
        (&["--no-save", "-f", "two"], "", ""),
        (&["-f", "two"], "false", ""),
        (&["two"], "", "save = false"),
        (&["two"], "false", "save = true"),
        (&["--no-save", "two"], "true", "save = true"),
    ] {
        let _case = case((args, variable, file));
        let blank = Sandbox::new().server_env(&server);
        let used = Sandbox::new().server_env(&server);
        used.write_current(&idle_for(HOUR, &["one", "1"]));
        for sandbox in [&blank, &used] {
            sandbox.config(file);
            let before = snapshot(sandbox.root());
            sandbox
                .q(args)
                .env("Q_SAVE", variable)
                .run()
                .exit(0)
                .stdout("answer\n");
            before.expect_unchanged();
        }
        // The conversation is sent all the same.
        let sent = prompt(&server.last_request());
        assert_eq!(
            sent.contains("Human: one\n\nAssistant: 1"),
            args.contains(&"-f"),
            "{sent}"
        );
    }
}

#[test]
fn an_interrupted_run_that_saves_nothing_leaves_no_trace() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    let before = snapshot(sandbox.root());
    let mut running = sandbox.q(&["--no-save", "one"]).spawn();
    running.read_stdout_until("first ");
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
    before.expect_unchanged();
}

#[test]
fn a_state_home_that_is_no_absolute_path_is_ignored() {
    let server = Server::openai("answer");
    for value in ["state", "../state", "./", ""] {
        let sandbox = Sandbox::new()
            .server_env(&server)
            .env("XDG_STATE_HOME", value);
        let outcome = sandbox.q(&["one"]).run();
        let kept = sandbox.home().join(".local/state/q/sessions/current.json");
        outcome.success().check(kept.is_file(), || {
            format!("expected the file {}", kept.display())
        });
        let beside = fs::read_dir(sandbox.home()).unwrap().count() - 1;
        outcome.check(beside == 0, || {
            "expected nothing but .local in the home folder".to_owned()
        });
        sandbox.expect_no_state();
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_conversation_is_handed_over_if_configured_and_stays_there() {
    let (openai, claude) = (
        Server::openai("from openai"),
        Server::anthropic("from anthropic"),
    );
    for (args, variable, provider, model, printed) in [
        (
            &["-p", "anthropic"][..],
            "",
            "anthropic",
            ANTHROPIC_MODEL,
            "q: 2 messages of this conversation go to anthropic\n",
        ),
        (
            &["-m", "big"],
            "",
            "openai",
            "big",
            "q: 2 messages of this conversation go to openai, model big\n",
        ),
        (
            &[],
            "big",
            "openai",
            "big",
            "q: 2 messages of this conversation go to openai, model big\n",
        ),
        (
            &["-p", "anthropic", "--messages", "1"],
            "",
            "anthropic",
            ANTHROPIC_MODEL,
            "q: 1 message of this conversation goes to anthropic\n",
        ),
        (
            &["-p", "anthropic", "--messages", "0"],
            "",
            "anthropic",
            ANTHROPIC_MODEL,
            "",
        ),
        (&[], "", "openai", STORED_MODEL, ""),
    ] {
        let _case = case((args, variable));
        let sandbox = Sandbox::new()
            .server_env(&openai)
            .anthropic_env(&claude)
            .env("Q_PROVIDER", "openai");
        sandbox.config("mismatch = \"continue\"\n");
        sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
        let outcome = sandbox
            .q(&["-f"])
            .args(args)
            .arg("two")
            .env("Q_MODEL", variable)
            .run();
        outcome.exit(0).stderr(printed);
        let server = if provider == "openai" {
            &openai
        } else {
            &claude
        };
        // That model is asked again, without another note.
        for question in ["three", "four"] {
            assert_eq!(server.last_request().json()["model"], model);
            let current = sandbox.current();
            assert_eq!(
                (&current["provider"], &current["model"]),
                (&json!(provider), &json!(model))
            );
            let answer = current["messages"]
                .as_array()
                .and_then(|messages| messages.last())
                .expect("an answer");
            assert_eq!(
                (&answer["provider"], &answer["model"]),
                (&json!(provider), &json!(model))
            );
            sandbox
                .q(&["-f", question])
                .env("Q_MODEL", variable)
                .run()
                .success();
        }
        assert_eq!(texts(&sandbox.current()).len(), 8);
        sandbox.expect_files(&["current.json"]);
    }
    // A conversation that is too old is not handed over.
    let sandbox = Sandbox::new()
        .server_env(&openai)
        .env("Q_MISMATCH", "continue");
    sandbox.write_current(&stored(&["one", "1"]));
    sandbox
        .q(&["-f", "-m", "big", "two"])
        .run()
        .exit(0)
        .stderr_contains("idle");
    sandbox.expect_texts("current.json", &["two", "from openai"]);
}

#[test]
fn a_provider_and_a_model_that_were_named_stay_with_their_conversation() {
    let server = Server::openai("answer");
    let groq = |sandbox: Sandbox| {
        sandbox
            .env("GROQ_API_KEY", "gsk-test-0123456789")
            .env("GROQ_BASE_URL", format!("{}/v1", server.url()))
    };
    // The first question, Q_MODEL at the second, its options: whether it continues, and which model is asked.
    for (first, variable, second, continues, model) in [
        (&["-m", "big"][..], "", &[][..], true, "big"),
        (&["-m", "big"], "other", &[], true, "big"),
        (&["-m", "big"], "", &["-m", "big"], true, "big"),
        (&["-m", "big"], "", &["-m", "other"], false, "other"),
        (&["-m", "big"], "", &["-p", "groq"], false, GROQ_MODEL),
        (&["-p", "groq"], "", &[], true, GROQ_MODEL),
        (&["-p", "groq"], "other", &[], true, GROQ_MODEL),
        (&["-p", "groq"], "", &["-m", "other"], false, "other"),
        (&[], "", &[], true, OPENAI_MODEL),
        (&[], "other", &[], false, "other"),
        (&[], "", &["-m", OPENAI_MODEL], true, OPENAI_MODEL),
    ] {
        let _case = case((first, variable, second));
        let sandbox = groq(Sandbox::new().server_env(&server));
        sandbox.q(first).arg("one").run().success();
        assert_eq!(
            sandbox.current().get("pinned"),
            (!first.is_empty()).then_some(&json!(true))
        );
        let outcome = sandbox
            .q(&["-f"])
            .args(second)
            .arg("two")
            .env("Q_MODEL", variable)
            .run();
        outcome
            .exit(0)
            .check(outcome.stderr.is_empty() == continues, || {
                "expected a note for a new one".to_owned()
            });
        assert_eq!(server.last_request().json()["model"], model);
        assert_eq!(
            texts(&sandbox.current()).len(),
            if continues { 4 } else { 2 }
        );
        // From now on the model is pinned, even if it was not before; a new conversation does not inherit it.
        sandbox.q(&["--undo"]).run().success();
        let pinned = !second.is_empty() || (continues && !first.is_empty());
        assert_eq!(
            sandbox.current().get("pinned"),
            pinned.then_some(&json!(true))
        );
        sandbox
            .q(&["-f", "three"])
            .env("Q_MODEL", if pinned { "another" } else { variable })
            .run()
            .success();
        assert_eq!(server.last_request().json()["model"], model);
        sandbox.q(&["new"]).run().success();
        assert_eq!(
            (&sandbox.current()["model"], sandbox.current().get("pinned")),
            (&json!(OPENAI_MODEL), None)
        );
    }
}

#[test]
fn a_note_says_how_many_messages_are_left_out() {
    for (limit, printed) in [
        ("30", ""),
        (
            "17",
            "q: the oldest message was not sent: the last messages have more than 17 bytes (max_history)\n",
        ),
        (
            "9",
            "q: the 2 oldest messages were not sent: the last messages have more than 9 bytes (max_history)\n",
        ),
        (
            "0",
            "q: the 4 oldest messages were not sent: the last messages have more than 0 bytes (max_history)\n",
        ),
    ] {
        let _case = case(limit);
        let (_server, sandbox) = numbered();
        sandbox.write_current(&idle_for(HOUR, &["four", "five5", "four", "five5"]));
        sandbox
            .q(&["-f", "more"])
            .env("Q_MAX_HISTORY", limit)
            .run()
            .exit(0)
            .stderr(printed);
    }
}

#[test]
fn a_system_prompt_belongs_to_its_conversation() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new()
        .server_env(&server)
        .env("Q_SYSTEM", "of the setting");
    let sent = |args: &[&str]| {
        sandbox.q(args).run().exit(0);
        let body = server.last_request().json();
        body["messages"][0]["content"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(sent(&["-S", "pirate", "one"]), "pirate");
    assert_eq!(sandbox.current()["system"], "pirate");
    assert_eq!(sent(&["-f", "two"]), "pirate");
    // The later one wins, and an undo leaves it.
    assert_eq!(sent(&["-f", "-S", "poet", "three"]), "poet");
    sandbox.q(&["--undo"]).run().exit(0);
    assert_eq!(sent(&["-f", "four"]), "poet");
    assert_eq!(sent(&["-f", "--no-save", "-S", "nobody", "five"]), "nobody");
    assert_eq!(sent(&["-f", "six"]), "poet");
    sandbox
        .q(&["--status"])
        .run()
        .success()
        .stdout_contains("its system prompt: poet");
    assert_eq!(
        sandbox.q(&["--status", "-j"]).run().success().stdout_json()["conversation"]["system"],
        "poet"
    );
    assert_eq!(
        sandbox
            .q(&["--history", "-j"])
            .run()
            .success()
            .stdout_json()["system"],
        "poet"
    );
    // A new conversation does not inherit it; neither does one that takes the place of an expired one.
    assert_eq!(sent(&["new"]), "of the setting");
    assert_eq!(sandbox.current().get("system"), None);
    assert_eq!(sent(&["-s", "work", "-S", "clerk", "one"]), "clerk");
    assert_eq!(sent(&["-s", "work", "two"]), "clerk");
    sandbox.write_current(&with(stored(&["one", "1"]), "system", "old"));
    assert_eq!(sent(&["-f", "two"]), "of the setting");
    // An empty system prompt stays, too: no other takes its place.
    assert_eq!(sent(&["-S", "", "one"]), "one");
    assert!(sent(&["-f", "two"]).ends_with("Human: two"));
    assert!(sent(&["-f", "--messages", "0", "three"]).ends_with("three"));
}
