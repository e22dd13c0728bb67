//! What the user and the provider decide about a request: effort, other fields, storage, the Responses API, and a default
//! model that is no longer served.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixtures::{
    ANTHROPIC_MODEL, DIALECTS, GROQ_MODEL, OPENAI_MODEL, STORED_MODEL, answering, anthropic_reply, calling, case,
    documents, failure, idle_for, openai_reply, responses_reply, snapshot, with,
};
use crate::sandbox::{API_KEY, Outcome, Q, Sandbox};
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
    variables.iter().fold(Sandbox::new(), |sandbox, (name, value)| sandbox.env(name, value))
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
        ("http://127.0.0.1:1/v1", section("api = \"responses\""), true),
        ("", section("api = \"openai\""), false),
        ("", section("base_url = \"http://127.0.0.1:1/v1\""), false),
        ("", section("base_url = \"https://api.openai.com/v1\""), true),
    ] {
        let _case = case((base, &file));
        let sandbox = with_variables(&[("OPENAI_API_KEY", API_KEY), ("OPENAI_BASE_URL", base)]);
        sandbox.config(&file);
        let body = dry_run(sandbox.q(&[]));
        assert_eq!((body.get("input").is_some(), body.get("messages").is_some()), (responses, !responses), "{body}");
        assert_eq!(body["model"], OPENAI_MODEL);
        let spoken = if responses { "responses at http" } else { "openai at http" };
        let status = sandbox.q(&["--status"]).run().stdout_text();
        let line = status.lines().find(|line| line.starts_with("* openai")).expect("a line of openai");
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
    let outcome = sandbox.q(&["-p", "azure", "-v", "-S", "", "--dry-run", "hello"]).run();
    outcome.exit(0).stderr_contains("https://RESOURCE.openai.azure.com/openai/v1");
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
fn effort_is_sent_as_each_dialect_has_it() {
    let places = [
        "/reasoning_effort",
        "/output_config/effort",
        "/generationConfig/thinkingConfig/thinkingLevel",
        "/reasoning/effort",
    ];
    for (dialect, place) in DIALECTS.iter().zip(places) {
        let _case = case(dialect.provider);
        let (server, sandbox) = (answering(dialect, "ok"), Sandbox::new());
        let effort = |args: &[&str], variable: &str| {
            let q = dialect.q(&sandbox, &server, args).env("Q_EFFORT", variable);
            dry_run(q).pointer(place).cloned()
        };
        assert_eq!(effort(&[], ""), None);
        for args in [&["-e", "high"], &["--effort", "high"], &["-e", "its own word"]] {
            assert_eq!(effort(args, "medium"), Some(json!(args[1])));
        }
        assert_eq!(effort(&[], "medium"), Some(json!("medium")));
    }
}

#[test]
fn deepseek_thinks_little_unless_it_is_told_to_think_more() {
    let sandbox = with_variables(&[("DEEPSEEK_API_KEY", API_KEY)]);
    for (args, effort) in [(&[][..], "low"), (&["-e", "high"], "high")] {
        assert_eq!(dry_run(sandbox.q(args))["reasoning_effort"], effort);
    }
}

#[test]
fn nothing_is_sent_by_itself_that_changes_how_a_model_answers() {
    for dialect in &DIALECTS {
        let (server, sandbox) = (answering(dialect, "ok"), Sandbox::new());
        let body = dry_run(dialect.q(&sandbox, &server, &[])).to_string();
        for word in ["temperature", "top_p", "effort", "reasoning", "thinking", "seed"] {
            assert!(!body.contains(word), "{} {word}: {body}", dialect.provider);
        }
    }
}

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
        let args = ["-o", "temperature=0", "--option=reply.form=long", "-o", "model=null", "-o", "a.b=x=y"];
        dialect.q(&sandbox, &server, &args).args(&["-o", "id=98765432109876543210987", "hi"]).run().success();
        assert!(server.request().text().contains("\"id\":98765432109876543210987"), "{}", server.request().text());
        let body = server.request().json();
        assert_eq!((&body["temperature"], &body["seed"]), (&json!(0), &json!(7)));
        assert_eq!(body["reply"], json!({"form": "long", "lines": [1, 2]}));
        assert_eq!((body.get("model"), &body["a"]["b"]), (None, &json!("x=y")));
        // They are not stored, so that a follow-up has those of the file only.
        assert!(!sandbox.current().to_string().contains("x=y"));
        dialect.q(&sandbox, &server, &["-f", "hi"]).run().success();
        let body = server.last_request().json();
        assert_eq!((&body["temperature"], body.get("a")), (&json!(0.5), None));
    }
}

#[test]
fn an_option_that_names_no_field_is_refused_before_anything_is_asked() {
    for option in ["temperature", "=1", "a..b=1", ".=1", ""] {
        let _case = case(option);
        let server = Server::openai("never");
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.q(&["-o", option, "hi"]).run().refused(&["--option"]);
        server.expect_requests(0);
    }
}

#[test]
fn an_option_cannot_choose_the_model() {
    for option in ["model=m2", "model=", "model.x=1"] {
        let _case = case(option);
        let server = Server::openai("never");
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.q(&["-o", option, "hi"]).run().refused(&["--option", "-m chooses the model"]);
        server.expect_requests(0);
    }
}

// ---- Storage at the provider

#[test]
fn servers_that_store_requests_by_default_are_asked_not_to() {
    let moved = "http://127.0.0.1:1";
    for (variables, args, refuses) in [
        (&[("OPENAI_API_KEY", API_KEY)][..], &[][..], true),
        (&[("OPENAI_API_KEY", API_KEY), ("OPENAI_BASE_URL", moved)], &[], false),
        (&[("GEMINI_API_KEY", API_KEY)], &[], true),
        (&[("GEMINI_API_KEY", API_KEY), ("GEMINI_BASE_URL", moved)], &[], false),
        (&[("ANTHROPIC_API_KEY", API_KEY)], &[], false),
        (&[("OPENAI_API_KEY", API_KEY)], &["-o", "store=null"], false),
    ] {
        let body = dry_run(with_variables(variables).q(args));
        assert_eq!(body.get("store"), refuses.then_some(&json!(false)), "{body}");
    }
}

#[test]
fn a_server_that_refuses_the_field_is_asked_without_it() {
    let responses = &DIALECTS[3];
    for (status, body) in [
        (400, json!({"error": {"message": "Unknown parameter: 'store'."}})),
        (400, json!({"error": {"message": "Unsupported parameter", "param": "store"}})),
        (422, json!({"detail": [{"loc": ["body", "store"], "msg": "Extra inputs are not permitted"}]})),
    ] {
        let _case = case(body.clone());
        let server = Server::start(move |request, _| match request.json().get("store") {
            Some(_) => Reply::json(status, body.clone()),
            None => responses_reply(request, "fine"),
        });
        responses.q(&Sandbox::new(), &server, &["hi"]).run().success().stdout("fine\n");
        server.expect_requests(2);
        let verbose = responses.q(&Sandbox::new(), &server, &["-v", "hi"]).run();
        verbose.exit(0).stderr_contains("; asking without that field\n");
    }

    // Another fault is not mended that way, and a server that goes on refusing is not asked for ever.
    for (message, requests) in [("Unknown parameter: 'stored'.", 1), ("Unknown parameter: 'store'.", 2)] {
        let server = Server::always(failure(400, message));
        responses.q(&Sandbox::new(), &server, &["hi"]).run().exit(1).stderr_contains(message);
        server.expect_requests(requests);
    }
}

// ---- The provider's cache

/// A sandbox with a tool server, a PDF and a conversation, and the server of Anthropic's dialect that answers there.
fn with_much_to_send() -> (Server, Sandbox) {
    let server = Server::start(|request, _| match request.json()["messages"].to_string() {
        text if text.contains("call it") && text.matches("tool_result").count() < 2 => {
            calling(&DIALECTS[1], "", &[("call00001", "db__echo", json!({"text": "hi"}))])
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
        let body = dry_run(DIALECTS[1].q(&sandbox, &server, args).env("Q_HISTORY", history));
        assert_eq!(body.get("cache_control"), caches.then_some(&json!({"type": "ephemeral"})));
    }
    for dialect in DIALECTS.iter().filter(|dialect| dialect.provider != "anthropic") {
        let body = dry_run(dialect.q(&sandbox, &server, &["-t", "db"]));
        assert_eq!(body.get("cache_control"), None, "{}", dialect.provider);
    }
}

#[test]
fn what_is_sent_again_begins_with_the_same_bytes() {
    let (server, sandbox) = with_much_to_send();
    let begins = |number: usize, same: &[&str]| {
        let (one, other) = (server.requests()[number].json(), server.requests()[number + 1].json());
        for place in same.iter().chain(&["/model", "/system", "/tools", "/cache_control"]) {
            assert_eq!(one.pointer(place).map(Value::to_string), other.pointer(place).map(Value::to_string), "{place}");
        }
    };
    DIALECTS[1].q(&sandbox, &server, &["-a", "page.pdf", "one"]).run().success();
    DIALECTS[1].q(&sandbox, &server, &["-f", "two"]).run().success();
    begins(0, &["/messages/0/content/0"]);
    let q = DIALECTS[1].q(&sandbox, &server, &["-a", "page.pdf", "-t", "db", "call it"]).env("Q_ROUNDS", "2");
    q.run().exit(0).stdout("fine\n");
    begins(2, &["/messages/0"]);
    begins(3, &["/messages/0", "/messages/1", "/messages/2"]);
    server.expect_requests(5);
}

#[test]
fn a_server_that_refuses_the_cache_is_asked_without_it() {
    for (refused, requests) in [
        (json!({"error": {"message": "cache_control: Extra inputs are not permitted"}}), 2),
        (json!({"message": "cache_control: Extra inputs are not permitted"}), 2),
        (json!({"error": {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}}), 1),
    ] {
        let _case = case(refused.clone());
        let server = Server::start(move |request, _| match request.json().get("cache_control") {
            Some(_) => Reply::json(400, refused.clone()),
            None => anthropic_reply(request, "fine"),
        });
        let sandbox = Sandbox::new();
        sandbox.write_home("page.pdf", "%PDF-1.4\nx");
        let outcome = DIALECTS[1].q(&sandbox, &server, &["-a", "page.pdf", "hi"]).run();
        match requests {
            2 => outcome.success().stdout("fine\n"),
            _ => outcome.exit(1).stdout_is_empty(),
        };
        server.expect_requests(requests);
    }
}

// ---- A model that is no longer served

/// A server that lists these models, each with the time when it was made, and knows no others.
fn serving(models: &'static [(&'static str, u64)]) -> Server {
    refusing(models, |model| failure(404, &format!("The model `{model}` does not exist")))
}

/// The same, with its own words for a model that it does not know.
fn refusing(models: &'static [(&'static str, u64)], refusal: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |request, _| {
        if request.method == "GET" {
            let list: Vec<Value> = models.iter().map(|(id, created)| json!({"id": id, "created": created})).collect();
            return Reply::json(200, json!({"data": list}));
        }
        let body = request.json();
        let model = body["model"].as_str().expect("a model");
        match models.iter().any(|(id, _)| *id == model) {
            true => openai_reply(request, "fine"),
            false => refusal(model),
        }
    })
}

const LUNAS: &[(&str, u64)] = &[("gpt-7-luna", 70), ("gpt-9-sol", 90), ("gpt-8-luna", 80), ("gpt-5-luna", 50)];

fn expect_note(outcome: &Outcome) {
    outcome.exit(0).stdout("fine\n").stderr_has_lines(1).stderr_contains_all(&[
        "q: openai no longer serves gpt-6-luna",
        "gpt-8-luna",
        "Q_MODEL=gpt-8-luna",
        "config.toml",
    ]);
}

#[test]
fn a_default_that_is_no_longer_served_gives_way_to_the_newest_of_its_family() {
    let server = serving(LUNAS);
    let sandbox = Sandbox::new().server_env(&server);
    expect_note(&sandbox.q(&["hi"]).run());
    // The question, the list, and the question again.
    server.expect_requests(3);
    assert_eq!(sandbox.current()["model"], "gpt-8-luna");
    // The conversation has learned it.
    sandbox.q(&["-f", "hi"]).run().success().stderr_is_empty();
    server.expect_requests(4);
    let outcome = sandbox.q(&["--no-save", "--json", "hi"]).run();
    outcome.exit(0);
    assert_eq!(outcome.stdout_json()["model"], "gpt-8-luna");
}

#[test]
fn the_model_of_a_conversation_heals_too() {
    let server = serving(LUNAS);
    for (args, file, kept) in [
        (&["-f", "hi"][..], "current.json", &["one", "two", "hi", "fine"][..]),
        (&["-s", "work", "hi"], "work.json", &["one", "two", "hi", "fine"]),
        (&["--again"], "current.json", &["one", "fine"]),
    ] {
        let _case = case(args);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_session(file, &with(idle_for(Duration::ZERO, &["one", "two"]), "model", OPENAI_MODEL));
        expect_note(&sandbox.q(args).run());
        assert_eq!(sandbox.session(file)["model"], "gpt-8-luna");
        sandbox.expect_texts(file, kept);
    }
}

#[test]
fn the_model_of_a_conversation_does_not_give_way_where_an_option_names_it() {
    for args in [&["-f", "-m", OPENAI_MODEL, "hi"][..], &["-s", "work", "-m", OPENAI_MODEL, "hi"]] {
        let _case = case(args);
        let server = serving(LUNAS);
        let sandbox = Sandbox::new().server_env(&server);
        for file in ["current.json", "work.json"] {
            sandbox.write_session(file, &with(idle_for(Duration::ZERO, &["one", "two"]), "model", OPENAI_MODEL));
        }
        let before = snapshot(sandbox.sessions());
        sandbox.q(args).run().exit(1).stderr_contains("`gpt-6-luna` does not exist");
        // The second asks for the list.
        server.expect_requests(2);
        before.expect_unchanged();
    }
}

#[test]
fn a_model_that_somebody_named_never_gives_way() {
    for (args, variable, file) in [
        (&["-m", "gpt-6-luna"][..], "", ""),
        (&[], "gpt-6-luna", ""),
        (&[], "", "model = \"gpt-6-luna\"\n"),
        (&[], "", "[providers.openai]\nmodel = \"gpt-6-luna\"\n"),
    ] {
        let _case = case((args, variable, file));
        let server = serving(LUNAS);
        let sandbox = Sandbox::new().server_env(&server).env("Q_MODEL", variable);
        sandbox.config(file);
        let refused = sandbox.q(&[args, &["hi"]].concat()).run();
        refused.exit(1).stderr_contains("`gpt-6-luna` does not exist").explains();
        refused.stderr_contains("q: did you mean gpt-5-luna? q --models -p openai lists its models\n");
        // The second asks for the list.
        server.expect_requests(2);
        sandbox.expect_no_files();
    }
}

#[test]
fn without_a_model_of_the_family_the_error_names_those_that_are_there() {
    const MANY: &[(&str, u64)] = &[
        ("m1", 1),
        ("m2", 2),
        ("m3", 3),
        ("m4", 4),
        ("m5", 5),
        ("m6", 6),
        ("m7", 7),
        ("m8", 8),
        ("m9", 9),
        ("m10", 10),
        ("m11", 11),
    ];
    let all = "m1, m2, m3, m4, m5, m6, m7, m8, m9, m10\n";
    let server = serving(MANY);
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["hi"]).run();
    outcome.exit(1).stderr_contains_all(&["`gpt-6-luna` does not exist", all]).stderr_lacks("m11");
    server.expect_requests(2);
    // A provider whose default has no family.
    let groq = Sandbox::new().env("GROQ_API_KEY", API_KEY).env("GROQ_BASE_URL", server.url());
    let outcome = groq.q(&["hi"]).run();
    outcome.exit(1).stderr_contains_all(&[format!("`{GROQ_MODEL}` does not exist").as_str(), all]).stderr_lacks("m11");
    // An empty list says nothing.
    sandbox.q(&["hi"]).server_env(&serving(&[])).run().exit(1).stderr_lacks("chooses a model");
    // A conversation stays in its family as well.
    let model = with(idle_for(Duration::ZERO, &["one", "two"]), "model", STORED_MODEL);
    sandbox.write_current(&model);
    let server = serving(LUNAS);
    let outcome = sandbox.q(&["-f", "hi"]).server_env(&server).run();
    outcome.exit(1).stderr_contains_all(&["`stored-model` does not exist", "gpt-7-luna, gpt-9-sol"]);
    assert_eq!(sandbox.current(), model);
}

#[test]
fn each_dialect_says_in_its_own_way_that_it_does_not_know_a_model() {
    let not_found =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model: claude-haiku-5-5"}});
    let server = Server::start(move |request, _| match request.method.as_str() {
        "GET" => Reply::json(200, json!({"data": [{"id": "claude-opus-7"}, {"id": "claude-haiku-6"}]})),
        _ if request.json()["model"] == ANTHROPIC_MODEL => Reply::json(404, not_found.clone()),
        _ => anthropic_reply(request, "fine"),
    });
    let sandbox = Sandbox::new().anthropic_env(&server);
    let outcome = sandbox.q(&["hi"]).run();
    outcome.exit(0).stdout("fine\n").stderr_contains("asking claude-haiku-6");
    assert_eq!(sandbox.current()["model"], "claude-haiku-6");

    for (status, message) in [
        (400, "Unknown Model, please check the model code."),
        (400, "模型不存在，请检查模型代码。"),
        (200, "Unknown Model, please check the model code."),
    ] {
        let _case = case((status, message));
        let refusal = Reply::json(status, json!({"error": {"code": "1211", "message": message}}));
        let server = refusing(&[("glm-9", 9), ("glm-6-flash", 6), ("glm-7-flash", 7)], move |_| refusal.clone());
        let sandbox = Sandbox::new().env("ZAI_API_KEY", API_KEY).env("ZAI_BASE_URL", server.url());
        sandbox.q(&["hi"]).run().exit(0).stdout("fine\n").stderr_contains("asking glm-7-flash");
    }
}
