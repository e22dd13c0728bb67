//! Settings: the file, the environment above it, options above both; and what is said where one of them is wrong.

use std::fs;

use serde_json::Value;

use crate::dialect::openai_reply;
use crate::fixtures::{OPENAI_MODEL, UNKNOWN_HOST, case, lacks, make_pipe, talked};
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Recorded, Reply, Server};

/// What can be seen from outside of one run.
struct Seen {
    request: Recorded,
    requests: usize,
    files: Vec<String>,
    current: Value,
}

impl Seen {
    fn body(&self) -> Value {
        self.request.json()
    }

    /// What is said apart from the system prompt.
    fn messages(&self) -> Vec<String> {
        let body = self.body();
        let said = body["messages"].as_array().expect("messages").iter();
        let said = said.filter(|message| message["role"] != "system");
        said.map(|message| message["content"].as_str().expect("text").to_owned())
            .collect()
    }

    /// How many messages of the conversation the flattened prompt holds.
    fn history(&self) -> String {
        let prompt = self.messages().concat();
        (prompt.matches("Human: question").count() + prompt.matches("Assistant: answer").count())
            .to_string()
    }
}

/// A setting: its variable, what is asked, how one sees which of its levels has won, and what is seen where nothing is set,
/// in the file, in the variable and as an option (none where there is none). The conversation has the pairs 1 and 2.
type Setting = (
    &'static str,
    &'static str,
    fn(&Seen) -> String,
    &'static str,
    [(&'static str, &'static str); 3],
);

const SETTINGS: &[Setting] = &[
    (
        "Q_PROVIDER",
        "hi",
        |seen| seen.request.path.replace("/chat/completions", ""),
        "/v1",
        [
            ("provider = \"groq\"", "/groq"),
            ("mistral", "/mistral"),
            ("-p xai", "/xai"),
        ],
    ),
    (
        "Q_MODEL",
        "hi",
        |seen| seen.body()["model"].as_str().expect("a model").to_owned(),
        OPENAI_MODEL,
        [
            ("model = \"of-file\"", "of-file"),
            ("of-variable", "of-variable"),
            ("-m of-option", "of-option"),
        ],
    ),
    (
        "Q_SYSTEM",
        "hi",
        |seen| {
            seen.body()["messages"][0]["content"]
                .as_str()
                .expect("text")
                .split(' ')
                .next()
                .unwrap_or("")
                .to_owned()
        },
        "You",
        [
            ("system = \"of-file\"", "of-file"),
            ("of-variable", "of-variable"),
            ("-S of-option", "of-option"),
        ],
    ),
    (
        "Q_MESSAGES",
        "-f hi",
        Seen::history,
        "4",
        [("messages = 3", "3"), ("2", "2"), ("--messages 1", "1")],
    ),
    (
        "Q_MAX_HISTORY",
        "-f hi",
        Seen::history,
        "4",
        [("max_history = 1_8", "2"), ("9", "1"), ("", "")],
    ),
    (
        "Q_HISTORY",
        "-f hi",
        |seen| seen.messages().len().to_string(),
        "1",
        [("history = \"messages\"", "5"), ("prompt", "1"), ("", "")],
    ),
    (
        "Q_PAIRS",
        "-f hi",
        |seen| {
            seen.current["messages"]
                .as_array()
                .expect("messages")
                .len()
                .to_string()
        },
        "6",
        [("pairs = 2", "4"), ("1", "2"), ("", "")],
    ),
    (
        "Q_EXPIRE",
        "-f hi",
        Seen::history,
        "0",
        [("expire = \"never\"", "4"), ("1s", "0"), ("", "")],
    ),
    (
        "Q_KEEP",
        "hi",
        |seen| seen.files.len().to_string(),
        "2",
        [("keep = \"0\"", "1"), ("never", "2"), ("", "")],
    ),
    (
        "Q_MAX_TOKENS",
        "hi",
        |seen| seen.body()["max_tokens"].to_string(),
        "null",
        [("max_tokens = 7_000", "7000"), ("8", "8"), ("", "")],
    ),
    (
        "Q_EFFORT",
        "hi",
        |seen| seen.body()["reasoning_effort"].to_string(),
        "null",
        [
            ("effort = \"low\"", "\"low\""),
            ("medium", "\"medium\""),
            ("-e high", "\"high\""),
        ],
    ),
    (
        "Q_RETRIES",
        "busy",
        |seen| seen.requests.to_string(),
        "4",
        [("retries = 1", "2"), ("0", "1"), ("", "")],
    ),
    (
        "Q_MISMATCH",
        "-f -m other hi",
        Seen::history,
        "0",
        [("mismatch = \"continue\"", "4"), ("new", "0"), ("", "")],
    ),
    (
        "Q_SAVE",
        "hi",
        |seen| {
            seen.current["messages"][0]["content"]
                .as_str()
                .expect("text")
                .to_owned()
        },
        "hi",
        [
            ("save = false", "question 1"),
            ("true", "hi"),
            ("--no-save", "question 1"),
        ],
    ),
];

#[track_caller]
fn check(setting: &Setting, file: &str, variable: Option<&str>, options: &str, expected: &str) {
    let (name, args, see, ..) = setting;
    let _case = case((name, file, variable, options));
    let server = Server::start(|request, _| match request.text().contains("busy") {
        true => Reply::new(503).header("retry-after", "0.5"),
        false => openai_reply(request, "ok"),
    });
    let sandbox = talked("openai", 2).server_env(&server);
    sandbox.config(file);
    let args: Vec<&str> = options
        .split(' ')
        .chain(args.split(' '))
        .filter(|arg| !arg.is_empty())
        .collect();
    let mut q = sandbox.q(&args);
    if *name == "Q_EXPIRE" {
        q = q.env_remove(name);
    }
    for name in ["GROQ", "MISTRAL", "XAI"] {
        let url = format!("{}/{}", server.url(), name.to_lowercase());
        q = q
            .env(format!("{name}_BASE_URL"), url)
            .env(format!("{name}_API_KEY"), API_KEY);
    }
    if let Some(value) = variable {
        q = q.env(name, value);
    }
    let outcome = q.run();
    let seen = Seen {
        request: server.last_request(),
        requests: server.requests().len(),
        files: sandbox.session_files(),
        current: sandbox.current(),
    };
    let found = see(&seen);
    outcome.check(found == expected, || {
        format!("expected {expected:?}, found {found:?}, with {file:?}")
    });
}

#[test]
fn options_win_over_variables_and_variables_over_the_file() {
    for setting in SETTINGS {
        let (.., default, [(file, of_file), (value, of_variable), (options, of_option)]) = setting;
        check(setting, "", None, "", default);
        check(setting, file, None, "", of_file);
        // One that is empty counts as unset.
        check(setting, file, Some(""), "", of_file);
        check(setting, "", Some(value), "", of_variable);
        check(setting, file, Some(value), "", of_variable);
        if !options.is_empty() {
            check(setting, file, Some(value), options, of_option);
        }
    }
}

#[test]
fn a_variable_that_is_empty_counts_as_unset_whatever_it_is_for() {
    let variables = "SSL_CERT_FILE SSL_CERT_DIR HTTPS_PROXY https_proxy ALL_PROXY NO_PROXY OLLAMA_HOST GROQ_BASE_URL \
                     GROQ_API_KEY Q_SESSION Q_MCP Q_PROVIDER Q_EFFORT Q_TIMEOUT";
    let sandbox = Sandbox::new().openai_at(format!("https://{UNKNOWN_HOST}/v1"));
    let empty = variables
        .split(' ')
        .fold(sandbox.q(&["hi"]), |q, name| q.env(name, ""));
    // It gets as far as a question can get there; a wrong setting would be an exit status of 2.
    empty.run().exit(1).stderr_contains(UNKNOWN_HOST);
}

#[test]
fn the_timeout_is_the_variables_else_the_files() {
    let server = Server::always(Reply::raw("").hang());
    let sandbox = Sandbox::new().server_env(&server);
    let ask = |file: &str, variable: &str| {
        sandbox.config(file);
        let outcome = sandbox.q(&["hi"]).env("Q_TIMEOUT", variable).run();
        outcome.exit(1).stderr_contains("timeout");
    };
    ask("timeout = \"1s\"", "");
    ask("timeout = \"5m\"", "1s");
}

#[test]
fn the_file_is_below_home_where_no_other_folder_is_named() {
    let server = Server::openai("ok");
    let sandbox = Sandbox::new().server_env(&server);
    let file = sandbox.home().join(".config/q/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "model = \"of-home\"").unwrap();
    for q in [
        sandbox.q(&["hi"]).env_remove("XDG_CONFIG_HOME"),
        sandbox.q(&["hi"]).env("XDG_CONFIG_HOME", ""),
        // The XDG specification has relative paths ignored.
        sandbox.q(&["hi"]).env("XDG_CONFIG_HOME", "elsewhere"),
    ] {
        q.run().success();
        assert_eq!(server.last_request().json()["model"], "of-home");
    }
}

#[test]
fn a_wrong_variable_is_named() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    for (name, values) in [
        ("Q_PROVIDER", &["nobody", "OpenAI", " "][..]),
        (
            "Q_MESSAGES",
            &["ten", "-1", "1.5", " 1", "99999999999999999999"],
        ),
        ("Q_MAX_HISTORY", &["1_000", "1k", "-1"]),
        ("Q_HISTORY", &["chat", "Prompt"]),
        ("Q_PAIRS", &["0", "-1", "x"]),
        (
            "Q_EXPIRE",
            &["24", "1w", "-1h", "1.5h", "h", "1h30m", "NEVER"],
        ),
        ("Q_KEEP", &["30", "d", "always"]),
        ("Q_MAX_TOKENS", &["0", "-1", "4k"]),
        (
            "Q_TIMEOUT",
            &["0s", "0", "5", "1ms", "99999999999999999999d"],
        ),
        ("Q_RETRIES", &["-1", "two"]),
        ("Q_SAVE", &["no", "0", "False"]),
        ("Q_WRAP", &["no", "0", "False"]),
        ("Q_MISMATCH", &["old", "New"]),
        ("Q_ROUNDS", &["0", "-1", "ten"]),
    ] {
        for value in values {
            sandbox
                .q(&["hi"])
                .env(name, value)
                .stdin_open()
                .run()
                .refused(&[name, value]);
        }
    }
    server.expect_requests(0);
}

#[test]
fn what_is_wrong_in_the_file_is_reported_with_file_line_and_key() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    for (text, line, key) in [
        ("\nprovidr = \"openai\"", 2, "providr"),
        ("Model = \"m\"", 1, "Model"),
        ("provider = \"nobody\"", 1, "nobody"),
        ("model = 5", 1, "model"),
        ("system = [\"a\"]", 1, "system"),
        ("messages = 1.5", 1, "messages"),
        ("max_history = \"1k\"", 1, "max_history"),
        ("history = \"chat\"", 1, "history"),
        ("pairs = 0", 1, "pairs"),
        ("expire = 24", 1, "expire"),
        ("expire = \"1w\"", 1, "expire"),
        ("max_tokens = 0", 1, "max_tokens"),
        ("timeout = \"0s\"", 1, "timeout"),
        ("retries = true", 1, "retries"),
        ("wrap = 0", 1, "wrap"),
        ("mismatch = \"old\"", 1, "mismatch"),
        ("effort = 3", 1, "effort"),
        ("rounds = 0", 1, "rounds"),
        ("mcp = [\"/a\"]", 1, "mcp"),
        ("messages = 1\nmodel = \"unfinished\nsave = true", 2, ""),
        (
            "[providers.work]\nbase_url = \"http://h\"\nmodle = \"m\"",
            3,
            "modle",
        ),
        (
            "[providers.work]\nbase_url = \"http://h/v1#a\"",
            2,
            "base_url",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\nkey_cmd = []",
            3,
            "key_cmd",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\nkey_cmd = [\"a\", 1]",
            3,
            "key_cmd",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\nheaders = \"x-a: b\"",
            3,
            "headers",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\nheaders = { a = 1 }",
            3,
            "headers",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\noptions = \"temperature=0\"",
            3,
            "options",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\noptions = { seed = 99999999999999999999 }",
            3,
            "options",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\noptions = { stop = [{ a = inf }] }",
            3,
            "options",
        ),
        (
            "[providers.work]\nbase_url = \"http://h\"\nheaders = { a = \"b\\nc\" }",
            3,
            "headers",
        ),
        ("[providers.openai]\nkey = \"sk-in-the-file\"", 2, "key"),
        ("[tools.db]\ncomand = [\"sh\"]", 2, "comand"),
        ("[tools.db]\ncommand = \"sh\"", 2, "command"),
    ] {
        let _case = case(text);
        sandbox.config(text);
        let place = format!("{}, line {line}", sandbox.config_file().display());
        let outcome = sandbox.q(&["hi"]).stdin_open().run();
        outcome
            .refused(&[key, &place])
            .stderr_lacks("sk-in-the-file");
    }
    // The provider without an address is wrong where it is asked.
    sandbox.config("[providers.work]\nmodel = \"m\"");
    let place = format!("{}, line 1", sandbox.config_file().display());
    sandbox
        .q(&["-p", "work", "hi"])
        .stdin_open()
        .run()
        .refused(&["work", &place]);
    server.expect_requests(0);
}

#[test]
fn a_model_without_a_name_is_refused() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox
        .q(&["-m", "", "hi"])
        .stdin_open()
        .run()
        .refused(&["--model"]);
    sandbox.config("model = \"\"");
    sandbox
        .q(&["hi"])
        .stdin_open()
        .run()
        .refused(&["line 1", "model"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.config("");
    let file = sandbox.config_file();
    fs::write(&file, b"model = \"\xff\"").unwrap();
    sandbox
        .q(&["hi"])
        .stdin_open()
        .run()
        .refused(&[file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    sandbox
        .q(&["hi"])
        .stdin_open()
        .run()
        .refused(&[file.to_str().unwrap()]);
    fs::remove_dir(&file).unwrap();
    make_pipe(&file);
    sandbox
        .q(&["hi"])
        .stdin_open()
        .run()
        .refused(&[file.to_str().unwrap()]);
    // This one has nothing in it.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    sandbox.q(&["hi"]).run().success();
}

#[test]
fn a_file_that_a_failing_disk_hides_does_not_count_as_missing() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    let file = sandbox.config_file();
    let script =
        "exec strace -f -o trace -P \"$1\" -e inject=?stat,?newfstatat,?statx:error=EIO q hi";
    let outcome = sandbox.shell(script).arg("sh").arg(&file).run();
    outcome.refused(&[&format!(
        "q: cannot read {}: Input/output error",
        file.display()
    )]);
    server.expect_requests(0);
}
