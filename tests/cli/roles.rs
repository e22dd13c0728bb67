//! Roles: options under a name, from a section of the configuration or from files beside it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::dialect::DIALECTS;
use crate::fixtures::{
    ANTHROPIC_MODEL, case, everybody, make_pipe, numbered, prompt, set_mode, stored,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::Server;
use crate::toolserver::section;

/// A sandbox with a tool server `db`, a conversation, and this section of the role `review`.
fn with_role(server: &Server, lines: &str) -> Sandbox {
    let sandbox = Sandbox::new()
        .every_env(server)
        .env("Q_PROVIDER", "openai")
        .env("Q_EXPIRE", "never");
    let more = "[roles.other]\nmodel = \"other\"\n";
    sandbox.config(&format!(
        "{more}[roles.review]\n{lines}\n{}",
        section(&sandbox, "db", "", "only = [\"echo\", \"fail\"]")
    ));
    sandbox.write_current(&stored(&["one", "two", "three", "four"]));
    sandbox
}

/// Writes a file beside the configuration file.
fn beside(sandbox: &Sandbox, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = sandbox.config_file().with_file_name(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    fs::write(&path, bytes).expect("the file");
    path
}

/// The request that these options would send.
#[track_caller]
fn request(sandbox: &Sandbox, options: &[&str]) -> Value {
    sandbox
        .q(&[&["--dry-run"], options].concat())
        .run()
        .exit(0)
        .stdout_json()
}

/// The system prompt that a role sends.
#[track_caller]
fn system(sandbox: &Sandbox, role: &str) -> Value {
    let body = request(sandbox, &["-r", role, "hi"]);
    let first = &body["messages"][0];
    if first["role"] == "system" {
        first["content"].clone()
    } else {
        Value::Null
    }
}

#[test]
fn each_key_stands_for_its_option() {
    let server = Server::openai("never");
    for (lines, role, options) in [
        (
            "provider = \"anthropic\"",
            &["hi"][..],
            &["-p", "anthropic", "hi"][..],
        ),
        ("model = \"big\"", &["hi"], &["-m", "big", "hi"]),
        (
            "provider = \"gemini\"\nmodel = \"big\"",
            &["hi"],
            &["-p", "gemini", "-m", "big", "hi"],
        ),
        ("effort = \"high\"", &["hi"], &["-e", "high", "hi"]),
        (
            "messages = 2",
            &["-f", "hi"],
            &["--messages", "2", "-f", "hi"],
        ),
        (
            "messages = 0",
            &["-f", "hi"],
            &["--messages", "0", "-f", "hi"],
        ),
        (
            "system = \"Be blunt.\"",
            &["hi"],
            &["-S", "Be blunt.", "hi"],
        ),
        ("system = \"\"", &["hi"], &["-S", "", "hi"]),
        ("tools = [\"db\"]", &["hi"], &["-t", "db", "hi"]),
        (
            "tools = [\"db__echo\", \"db__f*\"]",
            &["hi"],
            &["-t", "db__echo,db__f*", "hi"],
        ),
        (
            "schema = \"name, age int\"",
            &["hi"],
            &["--schema", "name, age int", "hi"],
        ),
        (
            "schema = '{\"type\":\"object\"}'",
            &["hi"],
            &["--schema", "{\"type\":\"object\"}", "hi"],
        ),
        (
            "schema = 'name: in a file such as a.json'",
            &["hi"],
            &["--schema", "name: in a file such as a.json", "hi"],
        ),
        (
            "provider = \"gemini\"\nweb = true",
            &["hi"],
            &["-p", "gemini", "-w", "hi"],
        ),
        (
            "provider = \"gemini\"\nweb = false",
            &["-w", "hi"],
            &["-p", "gemini", "-w", "hi"],
        ),
        (
            "options = { temperature = 0, stop = \"5\" }",
            &["hi"],
            &["-o", "temperature=0", "-o", "stop=\"5\"", "hi"],
        ),
        (
            "options.reasoning = { summary = [1.5, true] }",
            &["hi"],
            &["-o", "reasoning={\"summary\":[1.5,true]}", "hi"],
        ),
        ("options = { \"a.b\" = 1 }", &["hi"], &["-o", "a.b=1", "hi"]),
        ("question = \"Review this.\"", &[], &["Review this."]),
    ] {
        let _case = case(lines);
        let sandbox = with_role(&server, lines);
        let plain = request(&sandbox, &["hi"]);
        assert_eq!(
            request(&sandbox, &[&["-r", "review"], role].concat()),
            request(&sandbox, options)
        );
        assert_ne!(request(&sandbox, options), plain);
        // What the section lists holds for this role alone.
        assert_eq!(
            request(
                &sandbox,
                &[
                    "-r",
                    "other",
                    "-m",
                    plain["model"].as_str().expect("a model"),
                    "hi"
                ]
            ),
            plain
        );
    }
    server.expect_requests(0);
}

#[test]
fn options_win_over_a_role_and_some_add_to_it() {
    let server = Server::openai("never");
    let both = "provider = \"anthropic\"\nmodel = \"big\"";
    for (lines, typed, options) in [
        (
            "model = \"big\"",
            &["-r", "review", "-m", "small", "hi"][..],
            &["-m", "small", "hi"][..],
        ),
        (
            "model = \"big\"",
            &["-m", "small", "-r", "review", "hi"],
            &["-m", "small", "hi"],
        ),
        (
            "effort = \"high\"",
            &["-e", "low", "-r", "review", "hi"],
            &["-e", "low", "hi"],
        ),
        (
            "messages = 4",
            &["-r", "review", "--messages", "2", "-f", "hi"],
            &["--messages", "2", "-f", "hi"],
        ),
        (
            "system = \"Be blunt.\"",
            &["-r", "review", "-S", "Be kind.", "hi"],
            &["-S", "Be kind.", "hi"],
        ),
        (
            "system = \"Be blunt.\"",
            &["-r", "review", "-S", "", "hi"],
            &["-S", "", "hi"],
        ),
        // The file need not even exist.
        (
            "system_file = \"none.md\"",
            &["-r", "review", "-S", "Be kind.", "hi"],
            &["-S", "Be kind.", "hi"],
        ),
        (
            "schema = \"none.json\"",
            &["-r", "review", "--schema", "age int", "hi"],
            &["--schema", "age int", "hi"],
        ),
        (
            "schema = \"name\"",
            &["-r", "review", "--schema", "age int", "hi"],
            &["--schema", "age int", "hi"],
        ),
        (
            "schema = \"name\"",
            &["-r", "review", "-x", "hi"],
            &["-x", "hi"],
        ),
        (
            "schema = \"none.json\"",
            &["-r", "review", "-x", "hi"],
            &["-x", "hi"],
        ),
        (
            both,
            &["-r", "review", "-p", "gemini", "hi"],
            &["-p", "gemini", "hi"],
        ),
        (
            both,
            &["-r", "review", "-p", "anthropic", "hi"],
            &["-p", "anthropic", "hi"],
        ),
        (
            "model = \"big\"",
            &["-r", "review", "-p", "gemini", "hi"],
            &["-p", "gemini", "hi"],
        ),
        (
            both,
            &["-r", "review", "-m", "small", "hi"],
            &["-p", "anthropic", "-m", "small", "hi"],
        ),
        (
            both,
            &["-r", "review", "-p", "gemini", "-m", "small", "hi"],
            &["-p", "gemini", "-m", "small", "hi"],
        ),
        (
            "tools = [\"db__echo\"]",
            &["-r", "review", "-t", "db__fail", "hi"],
            &["-t", "db__echo,db__fail", "hi"],
        ),
        (
            "tools = [\"db\"]",
            &["-r", "review", "-t", "none", "hi"],
            &["hi"],
        ),
        (
            "tools = [\"gone\"]",
            &["-r", "review", "-t", "none", "hi"],
            &["hi"],
        ),
        (
            "tools = [\"none\"]",
            &["-r", "review", "-t", "db", "hi"],
            &["-t", "db", "hi"],
        ),
        (
            "options = { seed = 1, stop = \"a\" }",
            &["-r", "review", "-o", "seed=2", "-o", "n=3", "hi"],
            &["-o", "seed=2", "-o", "stop=a", "-o", "n=3", "hi"],
        ),
        (
            "question = \"Review this.\"",
            &["-r", "review", "Why?"],
            &["Why?"],
        ),
        (
            "question = \"Review this.\"",
            &["-r", "review", " "],
            &["Review this."],
        ),
        (
            "question = \"Review this.\"",
            &["-r", "review", "--again"],
            &["--again"],
        ),
        (
            "question = \"Review this.\"",
            &["-r", "review", "--again", "Why?"],
            &["--again", "Why?"],
        ),
        (
            "system = \"Be blunt.\"",
            &["-r", "review", "-r", "other", "hi"],
            &["-m", "other", "hi"],
        ),
        (
            "model = \"big\"",
            &["-r", "other", "--role=review", "hi"],
            &["-m", "big", "hi"],
        ),
        (
            "model = \"big\"",
            &["-fnrreview", "hi"],
            &["-m", "big", "-fn", "hi"],
        ),
    ] {
        let _case = case((lines, typed));
        let sandbox = with_role(&server, lines);
        assert_eq!(request(&sandbox, typed), request(&sandbox, options));
    }
    server.expect_requests(0);
}

#[test]
fn a_role_wins_over_file_and_environment() {
    let server = everybody("fine");
    let sandbox = with_role(
        &server,
        "model = \"big\"\nsystem = \"Be blunt.\"\neffort = \"high\"",
    )
    .env("Q_MODEL", "small")
    .env("Q_SYSTEM", "Be kind.")
    .env("Q_EFFORT", "low");
    let body = request(&sandbox, &["-r", "review", "hi"]);
    assert_eq!(
        (&body["model"], &body["reasoning_effort"]),
        (&json!("big"), &json!("high"))
    );
    assert_eq!(body["messages"][0]["content"], "Be blunt.");
    // A provider without a model is asked for its own.
    let sandbox = with_role(&server, "provider = \"anthropic\"").env("Q_MODEL", "small");
    assert_eq!(
        request(&sandbox, &["-r", "review", "hi"])["model"],
        ANTHROPIC_MODEL
    );
}

#[test]
fn a_file_is_the_system_prompt_of_a_role() {
    let server = Server::openai("never");
    let sandbox = with_role(&server, "question = \"Why?\"");
    beside(&sandbox, "roles/blunt.md", "# Be blunt.\n\nAlways.\n");
    beside(
        &sandbox,
        "roles/Fabric_2-x/system.md",
        "\u{feff}# IDENTITY\r\n",
    );
    beside(&sandbox, "roles/review.md", "From the file.\n");
    beside(&sandbox, "roles/both.md", "nearer");
    beside(&sandbox, "roles/both/system.md", "farther");
    for (role, prompt) in [
        ("blunt", "# Be blunt.\n\nAlways."),
        ("Fabric_2-x", "# IDENTITY"),
        ("review", "From the file."),
        ("both", "nearer"),
    ] {
        assert_eq!(system(&sandbox, role), prompt, "{role}");
    }
    // The section's other options hold, too.
    assert_eq!(prompt_of(&request(&sandbox, &["-r", "review"])), "Why?");
    beside(&sandbox, "roles/empty.md", "\n");
    assert_eq!(system(&sandbox, "empty"), Value::Null);
}

fn prompt_of(body: &Value) -> Value {
    body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message")["content"]
        .clone()
}

#[test]
fn a_section_that_names_a_system_prompt_needs_no_file() {
    let server = Server::openai("never");
    for (lines, prompt) in [
        ("system = \"In the section.\"", "In the section."),
        ("system_file = \"prompts/own.md\"", "In a file."),
        ("system_file = \"../q/prompts/own.md\"", "In a file."),
    ] {
        let _case = case(lines);
        let sandbox = with_role(&server, lines);
        let own = beside(&sandbox, "prompts/own.md", "In a file.\n");
        // Reading this would never end.
        fs::create_dir(sandbox.config_file().with_file_name("roles")).expect("a folder");
        make_pipe(&sandbox.config_file().with_file_name("roles/review.md"));
        assert_eq!(system(&sandbox, "review"), prompt);
        sandbox.config(&format!("[roles.review]\nsystem_file = {own:?}\n"));
        assert_eq!(system(&sandbox, "review"), "In a file.");
    }
}

#[test]
fn a_schema_file_of_a_role_is_beside_the_configuration() {
    let (server, schema) = (
        Server::openai("{\"name\": \"Ann\"}"),
        "{\"type\":\"object\",\"required\":[\"name\"]}",
    );
    let sandbox = with_role(&server, "schema = \"shapes/person.json\"");
    let path = beside(
        &sandbox,
        "shapes/person.json",
        format!("\u{feff}{schema}\n"),
    );
    fs::create_dir(sandbox.home().join("shapes")).expect("a folder");
    sandbox.write_home("shapes/person.json", "{\"type\":\"array\"}");
    let body = request(&sandbox, &["--schema", schema, "hi"]);
    assert_eq!(request(&sandbox, &["-r", "review", "hi"]), body);
    sandbox.config(&format!("[roles.review]\nschema = {path:?}\n"));
    assert_eq!(request(&sandbox, &["-r", "review", "hi"]), body);
    sandbox
        .q(&["-r", "review", "hi"])
        .run()
        .success()
        .stdout("{\"name\": \"Ann\"}\n");
}

#[test]
fn the_question_of_a_role_is_asked_where_no_words_are_typed() {
    let server = Server::openai("fine");
    let sandbox = with_role(&server, "question = \"Review this.\"");
    sandbox.write_home("a.txt", "text\n");
    for (args, input, asked) in [
        (&["-r", "review"][..], None, "Review this."),
        (
            &["-r", "review"],
            Some("+line\n"),
            "<context>\n+line\n</context>\n\nReview this.",
        ),
        (
            &["-r", "review", "Why?"],
            Some("+line\n"),
            "<context>\n+line\n</context>\n\nWhy?",
        ),
        (&["-r", "review", "-n"], Some("+line\n"), "Review this."),
        (
            &["-r", "review", "-a", "a.txt"],
            None,
            "<file name=\"a.txt\">\ntext\n</file>\n\nReview this.",
        ),
        (&["-r", "other"], Some("+line\n"), "+line"),
    ] {
        let _case = case(args);
        let q = sandbox.q(args);
        let outcome = if let Some(input) = input {
            q.stdin(input)
        } else {
            q
        }
        .run();
        outcome.success().stdout("fine\n");
        assert_eq!(prompt(&server.last_request()), asked);
    }
    sandbox
        .q(&["-r", "review"])
        .stdin("")
        .run()
        .exit(0)
        .stderr("q: standard input was empty\n");
    sandbox
        .q(&["-r", "other", "-n"])
        .run()
        .exit(2)
        .stderr_contains("there is no question");
    sandbox.config("[roles.blank]\nquestion = \" \\n\"\n");
    sandbox.q(&["-r", "blank"]).stdin("+line\n").run().success();
    assert_eq!(prompt(&server.last_request()), "+line");
    sandbox
        .q(&["-r", "blank"])
        .run()
        .exit(2)
        .stderr_contains("there is no question");
}

#[test]
fn a_role_leaves_with_a_conversation_what_its_options_would() {
    let server = everybody("fine");
    let lines = "provider = \"anthropic\"\nmodel = \"big\"\nsystem = \"Be blunt.\"\ntools = [\"db\"]\neffort = \"high\"";
    let sandbox = with_role(&server, lines);
    // Tools of a role are used in a pipe, as if -t were typed.
    sandbox
        .q(&["-r", "review", "one"])
        .stdin("input")
        .run()
        .success();
    let saved = sandbox.current();
    assert_eq!(
        (&saved["system"], &saved["tools"]),
        (&json!("Be blunt."), &json!(["db"]))
    );
    assert_eq!(
        (&saved["provider"], &saved["model"], &saved["pinned"]),
        (&json!("anthropic"), &json!("big"), &json!(true))
    );
    let anthropic = &DIALECTS[1];
    let first = server.last_request().json();
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(2));
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["-f", "two"])
        .stdin_from(terminal.end())
        .run()
        .success();
    let body = server.last_request().json();
    assert_eq!(
        (&body["model"], &body["tools"]),
        (&json!("big"), &first["tools"])
    );
    assert_eq!(
        anthropic.sent(&server.last_request()).0,
        anthropic.sent(&server.requests()[0]).0
    );
    assert_eq!(
        (
            &first["output_config"]["effort"],
            &body["output_config"]["effort"]
        ),
        (&json!("high"), &Value::Null)
    );
    // Another role's model is another model, so a new conversation begins, which inherits nothing.
    let outcome = sandbox.q(&["-f", "-r", "other", "three"]).run();
    outcome
        .exit(0)
        .stderr_contains("starting a new conversation");
    sandbox.q(&["four"]).run().success();
    for field in ["system", "tools", "pinned"] {
        assert_eq!(sandbox.current()[field], Value::Null, "{field}");
    }
    assert_ne!(sandbox.current()["model"], "big");
}

#[test]
fn a_role_is_shown_where_it_is_used() {
    let (_server, sandbox) = numbered();
    sandbox.config("[roles.review]\nquestion = \"Why?\"\n");
    beside(&sandbox, "roles/blunt.md", "Be blunt.");
    for role in ["review", "blunt"] {
        let line = format!("q: role {role}\n");
        sandbox
            .q(&["-v", "-r", role, "hi"])
            .run()
            .exit(0)
            .stderr_contains(&line);
        sandbox
            .q(&["--dry-run", "-r", role, "hi"])
            .run()
            .exit(0)
            .stderr(&line);
        sandbox.q(&["-r", role, "hi"]).run().success();
        let printed = sandbox
            .q(&["-j", "-r", role, "hi"])
            .run()
            .success()
            .stdout_json();
        assert_eq!(printed["role"], role);
    }
    assert_eq!(
        sandbox
            .q(&["-j", "hi"])
            .run()
            .success()
            .stdout_json()
            .get("role"),
        None
    );
}

#[test]
fn the_status_lists_the_roles() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.q(&["--status", "-j"]).run().success().stdout_json()["roles"],
        json!([])
    );
    sandbox.config("[roles.review]\n[roles.commit]\nmodel = \"m\"\n");
    for name in [
        "review.md",
        "blunt.md",
        "fabric/system.md",
        "empty/user.md",
        "no role.md",
        "notes.txt",
        "system.md",
    ] {
        beside(&sandbox, &format!("roles/{name}"), "x");
    }
    let roles = json!(["blunt", "commit", "fabric", "review", "system"]);
    assert_eq!(
        sandbox.q(&["--status", "-j"]).run().success().stdout_json()["roles"],
        roles
    );
    let line = "  roles        blunt, commit, fabric, review, system\n";
    sandbox
        .q(&["--status"])
        .run()
        .success()
        .stdout_contains(line);
}

#[test]
fn a_wrong_section_is_an_error_with_file_line_and_key_whatever_is_asked() {
    let server = Server::openai("never");
    for (text, words) in [
        (
            "colour = \"red\"",
            "line 2: roles.review.colour: there is no setting “colour”",
        ),
        (
            "sytem = \"x\"",
            "line 2: roles.review.sytem: there is no setting “sytem”",
        ),
        (
            "name = \"x\"",
            "line 2: roles.review.name: there is no setting",
        ),
        (
            "provider = 1",
            "line 2: roles.review.provider: must be a string",
        ),
        (
            "\nprovider = \"nobody\"",
            "line 3: roles.review.provider: there is no provider “nobody”",
        ),
        ("model = 1", "line 2: roles.review.model: must be a string"),
        ("model = \"\"", "line 2: roles.review.model: it is empty"),
        (
            "effort = 1",
            "line 2: roles.review.effort: must be a string",
        ),
        ("effort = \"\"", "line 2: roles.review.effort: it is empty"),
        (
            "messages = \"2\"",
            "line 2: roles.review.messages: must be a whole number",
        ),
        ("messages = -1", "line 2: roles.review.messages: “-1”"),
        (
            "messages = 99_999_999_999",
            "line 2: roles.review.messages: “99999999999” is not a whole number from 0",
        ),
        (
            "system = 1",
            "line 2: roles.review.system: must be a string",
        ),
        (
            "system_file = 1",
            "line 2: roles.review.system_file: must be a string",
        ),
        (
            "system_file = \"\"",
            "line 2: roles.review.system_file: it is empty",
        ),
        (
            "system = \"x\"\nsystem_file = \"y\"",
            "line 1: roles.review: has both system and system_file",
        ),
        (
            "tools = \"db\"",
            "line 2: roles.review.tools: must be a list such as [\"git\"]",
        ),
        (
            "tools = [1]",
            "line 2: roles.review.tools: must be a string",
        ),
        (
            "tools = [\"db\", \"none\"]",
            "line 2: roles.review.tools: “none” must be the only name",
        ),
        (
            "schema = 1",
            "line 2: roles.review.schema: must be a string",
        ),
        (
            "schema = \"\"",
            "line 2: roles.review.schema: a field is empty",
        ),
        (
            "schema = \"name number\"",
            "line 2: roles.review.schema: the field “name” has the type “number”",
        ),
        (
            "schema = \"{\"",
            "line 2: roles.review.schema: it is not JSON",
        ),
        (
            "web = \"yes\"",
            "line 2: roles.review.web: must be true or false",
        ),
        (
            "options = \"x=1\"",
            "line 2: roles.review.options: must be a table such as",
        ),
        (
            "options = { model = \"m\" }",
            "line 2: roles.review.options: the model belongs",
        ),
        (
            "options = { \"\" = 1 }",
            "line 2: roles.review.options: “” is not the name of a field",
        ),
        (
            "question = 1",
            "line 2: roles.review.question: must be a string",
        ),
        (
            "question = \"\"",
            "line 2: roles.review.question: it is empty",
        ),
        (
            "[roles.\"../x\"]",
            "line 2: roles.../x: the name of a role has only",
        ),
        (
            "[roles.\"\"]",
            "line 2: roles.: the name of a role has only",
        ),
        ("[roles]\nx = 1", "line 3: roles.x: must be a section"),
    ] {
        let _case = case(text);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(
            &format!("[roles.review]\n{text}\n").replace("[roles.review]\n[roles]", "\n[roles]"),
        );
        let place = format!("{}, {words}", sandbox.config_file().display());
        for args in [&["hi"][..], &["-r", "review", "hi"]] {
            sandbox.q(args).run().refused(&[&place]);
        }
        sandbox
            .q(&["--status"])
            .run()
            .success()
            .stdout_contains(&place);
        sandbox.q(&["--list"]).run().exit(0);
    }
    for text in ["roles = 1", "[[roles]]"] {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(text);
        sandbox
            .q(&["hi"])
            .run()
            .refused(&["line 1: roles: must be sections such as [roles.work]"]);
    }
    server.expect_requests(0);
}

#[test]
fn files_and_tools_of_a_role_must_exist_when_it_is_used() {
    let server = Server::openai("fine");
    for (lines, words) in [
        (
            "system_file = \"none.md\"",
            "line 4: roles.review.system_file: ",
        ),
        (
            "system_file = \"folder\"",
            "line 4: roles.review.system_file: ",
        ),
        ("system_file = \"pipe\"", "pipe: it is not a regular file"),
        (
            "system_file = \"large\"",
            "large: it has more than 1000000 bytes",
        ),
        ("system_file = \"latin\"", "latin: it is not UTF-8"),
        ("schema = \"none.json\"", "line 4: roles.review.schema: "),
        (
            "schema = \"pipe.json\"",
            "pipe.json: it is not a regular file",
        ),
        (
            "schema = \"text.json\"",
            "line 4: roles.review.schema: it is not JSON",
        ),
        (
            "schema = \"list.json\"",
            "line 4: roles.review.schema: it is JSON, but not an object",
        ),
        (
            "tools = [\"git\"]",
            "line 4: roles.review.tools: there are no tools named “git”",
        ),
        (
            "tools = [\"db\", \"git__log\"]",
            "line 4: roles.review.tools: there are no tools named “git”",
        ),
    ] {
        let _case = case(lines);
        let sandbox = with_role(&server, lines);
        for (name, bytes) in [
            ("folder/x", "x".to_owned()),
            ("large", "x".repeat(1_000_001)),
            ("text.json", "text".to_owned()),
            ("list.json", "[]".to_owned()),
        ] {
            beside(&sandbox, name, bytes);
        }
        beside(&sandbox, "latin", b"caf\xe9");
        for name in ["pipe", "pipe.json"] {
            make_pipe(&sandbox.config_file().with_file_name(name));
        }
        let outcome = sandbox.q(&["-r", "review", "hi"]).run();
        outcome.refused(&["config.toml, line 4: roles.review.", words]);
        if lines.starts_with("tools") {
            outcome.stderr_contains("there are db");
        }
        // Only a question with this role fails.
        sandbox.q(&["-r", "other", "hi"]).run().success();
    }
    let sandbox = with_role(&server, "system_file = \"longest\"");
    beside(&sandbox, "longest", "x".repeat(1_000_000));
    sandbox.q(&["-r", "review", "hi"]).run().success();
}

#[test]
fn only_the_file_of_the_role_is_opened_and_only_a_regular_one() {
    let server = Server::openai("fine");
    let sandbox = with_role(&server, "");
    let folder = beside(&sandbox, "roles/blunt.md", "Be blunt.").with_file_name("");
    for number in 0..200 {
        make_pipe(&folder.join(format!("pipe{number}.md")));
    }
    beside(&sandbox, "roles/large.md", "x".repeat(1_000_001));
    beside(&sandbox, "roles/latin.md", b"caf\xe9");
    beside(&sandbox, "roles/binary.md", "a\0b");
    fs::create_dir(folder.join("folder.md")).expect("a folder");
    set_mode(&beside(&sandbox, "roles/closed.md", "x"), 0);
    sandbox.q(&["-r", "blunt", "hi"]).run().success();
    for (role, words) in [
        ("pipe7", "pipe7.md: it is not a regular file"),
        ("large", "large.md: it has more than 1000000 bytes"),
        ("latin", "latin.md: it is not UTF-8"),
        ("binary", "binary.md: it has a NUL byte"),
        ("folder", "folder.md: it is not a regular file"),
        ("closed", "closed.md: Permission denied"),
    ] {
        sandbox
            .q(&["-r", role, "hi"])
            .obeying_modes()
            .run()
            .refused(&["q: --role: ", words]);
    }
    let roles = json!([
        "binary", "blunt", "closed", "large", "latin", "other", "review"
    ]);
    assert_eq!(
        sandbox.q(&["--status", "-j"]).run().success().stdout_json()["roles"],
        roles
    );
}

#[test]
fn an_unknown_role_is_answered_with_the_nearest_and_the_list() {
    let server = Server::openai("never");
    let sandbox = with_role(&server, "");
    beside(&sandbox, "roles/commit.md", "x");
    fs::write(sandbox.config_file().with_file_name("secret.md"), "x").expect("a file");
    let list = "the roles are commit, other, review";
    for (role, words) in [
        (
            "reveiw",
            &[
                "there is no role “reveiw”",
                "did you mean review?",
                list,
                "[roles.NAME]",
            ][..],
        ),
        (
            "comit",
            &["there is no role “comit”", "did you mean commit?", list],
        ),
        ("zzz", &["there is no role “zzz”", list]),
        (
            "../secret",
            &["“../secret”: the name of a role has only letters"],
        ),
        ("commit.md", &["“commit.md”: the name of a role"]),
        ("", &["“”: the name of a role"]),
        ("käse", &["“käse”: the name of a role"]),
    ] {
        let outcome: Outcome = sandbox.q(&["-r", role, "hi"]).stdin_open().run();
        outcome.refused(words);
    }
    sandbox
        .q(&["-r", "zzz", "hi"])
        .run()
        .stderr_lacks("did you mean");
    Sandbox::new()
        .q(&["-r", "x", "hi"])
        .run()
        .refused(&["there is no role “x”", "there are no roles"]);
    // Without a home there is no folder, and the current one does not count.
    let sandbox = Sandbox::new().server_env(&server);
    fs::create_dir(sandbox.home().join("roles")).expect("a folder");
    sandbox.write_home("roles/x.md", "x");
    let homeless = sandbox
        .q(&["-r", "x", "hi"])
        .env("HOME", "")
        .env("XDG_CONFIG_HOME", "roles");
    homeless.run().refused(&["there is no role “x”"]);
    sandbox
        .q(&["-r"])
        .run()
        .refused(&["--role needs a value: --role NAME"]);
    server.expect_requests(0);
}
