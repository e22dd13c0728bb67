//! Commands as tools: what the model's arguments may become, what runs, what comes of it, and that nothing is left.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{case, documents, in_foreground, session, shown};
use crate::machine::{cannot_confine, lacks};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::Server;
use crate::times::wait_until;
use crate::toolserver::is_there;

/// Its calls come in one piece, so that their arguments may have any characters.
const GEMINI: &Dialect = &DIALECTS[2];

/// A server of models that makes these calls with its first reply, and then answers.
fn model(calls: Vec<(&'static str, Value)>) -> Server {
    Server::start(move |request, number| {
        if number > 0 {
            return (GEMINI.reply)(request, "the answer");
        }
        let ids: Vec<String> = (0..calls.len()).map(|at| format!("call{at:05}")).collect();
        let mut named = Vec::new();
        for (id, (name, arguments)) in ids.iter().zip(&calls) {
            named.push((id.as_str(), *name, arguments.clone()));
        }
        GEMINI.calling("", &named)
    })
}

/// A server that calls `shop__sql` with these arguments.
fn model_of(arguments: Value) -> Server {
    model(vec![("shop__sql", arguments)])
}

/// A sandbox in which `shop__sql` is a command that these lines describe, and runs without asking.
fn with_command(lines: &str) -> Sandbox {
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    sandbox.config(&format!("[tools.shop.sql]\nreads = true\n{lines}\n"));
    sandbox
}

/// The results of the calls of the current conversation's last answer, and which of them are errors.
fn results(sandbox: &Sandbox) -> Vec<(String, bool)> {
    let mut results = Vec::new();
    let steps = sandbox.current()["messages"][1]["steps"].clone();
    for step in steps.as_array().expect("steps") {
        for call in step["calls"].as_array().expect("calls") {
            let result = call["result"].as_str().expect("text");
            results.push((result.to_owned(), call["error"] == true));
        }
    }
    results
}

#[test]
fn a_command_runs_only_after_the_user_has_approved_it() {
    for (typed, runs) in [("y\n", true), ("n\n", false)] {
        let server = model_of(json!({"a": "b  c\u{202e}"}));
        let sandbox = Sandbox::new();
        sandbox.config("[tools.shop.sql]\nrun = [\"touch\", \"made\", \"{a}\"]");
        let terminal = Terminal::new(WIDE);
        let running = in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
            .speaks(GEMINI, &server)
            .spawn();
        let question = "q: shop__sql wants to run:\r\n   a = b  c\\u{202e}\r\n\
                        q: run shop__sql? [y]es, [N]o, [a]lways";
        terminal.wait_for(question, 0);
        let made = sandbox.home().join("made");
        assert!(!made.exists());
        terminal.type_in(typed);
        running.wait().exit(0);
        assert_eq!(made.exists(), runs);
    }
}

/// None of the processes that have written themselves down is left.
#[track_caller]
fn expect_gone(list: &Path, count: usize) {
    let list = fs::read_to_string(list).expect("processes");
    assert_eq!(list.lines().count(), count, "{list}");
    for process in list.lines().map(|line| line.parse().expect("a number")) {
        wait_until(|| !is_there(process));
    }
}

#[test]
fn no_process_of_a_command_outlives_its_call_or_q() {
    let stubborn = "trap \"\" TERM INT QUIT; while :; do sleep 100; done";
    let child = format!("sh -c 'echo $$ >>pids; {stubborn}' &\n");
    let started = [
        (0, "-n"),
        (libc::SIGINT, "-n"),
        (libc::SIGTERM, "-n"),
        (libc::SIGQUIT, "-n"),
        (libc::SIGHUP, "--no-save"),
    ]
    .map(|(signal, option)| {
        // The command itself, and something that it leaves in its group.
        let end = if signal == 0 { "exit 0" } else { stubborn };
        let ready = "while [ $(wc -l <pids) -lt 2 ]; do sleep 0.01; done; touch ready";
        let script = format!("echo $$ >>pids; {child}{ready}; {end}");
        let sandbox = with_command(&format!("run = [\"sh\", \"-c\", {script:?}]"));
        let server = model_of(json!({}));
        let running = GEMINI
            .q(&sandbox, &server, &[option, "-t", "shop", "go"])
            .spawn();
        (signal, option, server, sandbox, running)
    });
    for (signal, option, _server, sandbox, mut running) in started {
        let _case = case(signal);
        let was_stopped = signal != 0;
        if was_stopped {
            wait_until(|| sandbox.home().join("ready").exists());
            running.signal(signal);
            running.wait().killed_by(signal);
        } else {
            running.wait().success();
        }
        if cfg!(target_os = "linux") {
            expect_gone(&sandbox.home().join("pids"), 2);
        }
        if option == "--no-save" {
            sandbox.expect_no_state();
            continue;
        }
        let interrupted = sandbox.current()["messages"][1]["interrupted"].as_bool();
        assert_eq!(interrupted, was_stopped.then_some(true));
        let (result, _) = results(&sandbox).remove(0);
        let is_marked = result.contains("interrupted before the result came");
        assert_eq!(is_marked, was_stopped, "{result}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_q_while_a_program_is_being_started_which_then_does_not_run() {
    if lacks("strace", "strace -f -e trace=execve -o log true") {
        return;
    }
    let sandbox = with_command("run = [\"/bin/sh\", \"-c\", \">ran\"]");
    let server = model_of(json!({}));
    // Beginning the program takes longer than the test waits, as on a file system that does not answer. With -D, q is the child of
    // the test, and strace has q's output no longer than q.
    let slow = "exec strace -D -f -qq -o log -P /bin/sh -e trace=execve -e inject=execve:delay_enter=150000000 \
                q -t shop go >/dev/null 2>&1";
    let mut running = sandbox.shell(slow).speaks(GEMINI, &server).spawn();
    server.wait_for_requests(1);
    let tasks = format!("/proc/{}/task", running.pid());
    let children = || {
        let threads = fs::read_dir(&tasks).expect("threads").flatten();
        let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
        lists.flatten().collect::<String>()
    };
    wait_until(|| !children().is_empty());
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("a status");
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    let tracer: i32 = tracer
        .and_then(|id| id.trim().parse().ok())
        .expect("a tracer");
    running.signal(libc::SIGINT);
    running.wait().killed_by(libc::SIGINT);
    // It would wait for the delay to be over.
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(tracer, libc::SIGKILL) }, 0);
    wait_until(|| !is_there(tracer));
    let (result, _) = results(&sandbox).remove(0);
    assert!(
        result.contains("interrupted before the result came"),
        "{result}"
    );
    assert!(!sandbox.home().join("ran").exists());
}

/// The confined sections of this name that the README and the manual show, with the commands below them, in a home of the tests.
#[track_caller]
fn recipes(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let header = format!("[tools.{name}");
    let mut recipes = Vec::new();
    for block in documents().split("\n\n") {
        let lines = block
            .lines()
            .map(|line| line.strip_prefix("    ").unwrap_or_default())
            .skip_while(|line| !line.starts_with(&header))
            .take_while(|line| !line.is_empty());
        let section = Vec::from_iter(lines).join("\n");
        if section.contains("confine ") {
            recipes.push(in_home(&section, &sandbox.home().display().to_string()));
        }
    }
    assert!(recipes.len() > 1, "too few recipes {name}");
    recipes
}

/// Runs a recipe with these calls, and returns what the model gets.
fn run_recipe(
    sandbox: &Sandbox,
    recipe: &str,
    calls: Vec<(&'static str, Value)>,
) -> Vec<(String, bool)> {
    sandbox.config(recipe);
    let server = model(calls);
    let q = GEMINI
        .q(sandbox, &server, &["-t", "shop", "go"])
        .env("PATH", std::env::var_os("PATH").expect("a path"));
    q.run().exit(0).stdout("the answer\n");
    results(sandbox)
}

#[test]
fn the_recipe_for_a_database_in_the_manual_answers_a_new_users_question() {
    if lacks("sqlite3", "sqlite3 -safe -readonly :memory: 'select 1'") || cannot_confine() {
        return;
    }
    let query =
        |sql: &str| GEMINI.calling("", &[("call00000", "shop__sql", json!({"query": sql}))]);
    let server = Server::start(move |request, number| match number {
        0 => query("SELECT name FROM customers WHERE owes > 0"),
        1 => (GEMINI.reply)(request, "Bob."),
        2 => query("SELECT owes FROM customers WHERE name = 'Bob'"),
        _ => (GEMINI.reply)(request, "40."),
    });
    let sandbox = Sandbox::new().gemini_env(&server);
    let made = "sqlite3 ~/shop.db \"CREATE TABLE customers (name, owes); INSERT INTO customers VALUES ('Ann', 0), ('Bob', 40)\"";
    sandbox.shell(shown(made)).run().success();
    let role = shown("    [roles.shop]\n    tools = [\"shop\"]\n");
    let recipe = recipes(&sandbox, "shop").remove(0);
    sandbox.config(&format!("{role}{recipe}"));
    let ask = |question: &str, answer: &str, sent: &[&str]| {
        let terminal = Terminal::new(WIDE);
        let running = session(&sandbox, &terminal, shown(question)).spawn();
        running.wait().success();
        let shown = terminal.text();
        // The kernel holds the command, so nobody is asked.
        assert!(
            shown.contains(answer) && !shown.contains("q: run "),
            "{shown}"
        );
        let last = server.last_request().text();
        assert!(sent.iter().all(|text| last.contains(text)), "{last}");
    };
    let schema = "CREATE TABLE customers (name, owes)";
    let first = "q -r shop \"Which customers have not paid?\"";
    ask(first, "Bob.", &[schema, "[{\\\"name\\\":\\\"Bob\\\"}]"]);
    let second = "q -f \"And how much do they owe?\"";
    let owed = "[{\\\"owes\\\":40}]";
    ask(second, "40.", &[schema, "owes > 0", owed]);
    // None of these changes a file, and a query may begin in any way.
    let target = sandbox.home().join("target");
    let database = sandbox.home().join("shop.db");
    let before = fs::read(&database).unwrap();
    sandbox.write_home("target", "kept");
    let hostile = [
        ".output TARGET",
        ".once TARGET",
        ".log TARGET",
        ".shell rm TARGET",
        ".save TARGET",
        "\n.output TARGET",
        "SELECT 1;\n.output TARGET\nSELECT 2;",
        "-cmd .output TARGET",
        "SELECT writefile('TARGET', 'x')",
        "ATTACH 'TARGET' AS t; CREATE TABLE t.x (y)",
        "VACUUM INTO 'TARGET2'",
        "DELETE FROM customers",
        "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema",
        "DROP TABLE customers",
        "SELECT load_extension('x')",
        "SELECT edit('x')",
    ]
    .map(|query| query.replace("TARGET", &target.display().to_string()));
    // A query that begins with a comment would be an option without the blank before it.
    let comments = ["-- all\nSELECT 7", "--help\nSELECT 7", "/* all */ SELECT 7"];
    let queries = hostile.iter().map(String::as_str).chain(comments);
    let calls = queries.map(|query| ("shop__sql", json!({ "query": query })));
    let results = run_recipe(&sandbox, &recipe, calls.collect());
    let seven = ("[{\"7\":7}]\n".to_owned(), false);
    assert_eq!(results[hostile.len()..], vec![seven; 3]);
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert_eq!(fs::read(&database).unwrap(), before);
    assert!(!sandbox.home().join("target2").exists());
    // A missing database is an error, and none is made.
    fs::remove_file(&database).unwrap();
    let run = sandbox.q(&["-t", "shop", "go"]).run();
    run.exit(2).stderr_contains("there is no");
    assert!(!database.exists());
}

#[test]
fn a_query_of_the_recipes_for_sqlite_reaches_no_other_file_unasked() {
    // Not even -safe keeps these away from sqlite3, but the kernel does.
    if cannot_confine() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_home("private", "a key");
    sandbox.write_home("shop.db", "");
    let home = sandbox.home().display().to_string();
    let calls = [
        format!("SELECT CAST(data AS TEXT) FROM fsdir('{home}/private')"),
        format!("CREATE VIRTUAL TABLE temp.z USING zipfile('{home}/made'); INSERT INTO z(name) VALUES (1)"),
    ]
    .map(|query| ("shop__sql", json!({ "query": query })));
    if !lacks("sqlite3", "sqlite3 -safe -readonly :memory: 'select 1'") {
        for recipe in recipes(&sandbox, "shop") {
            let _case = case(&recipe);
            let results = run_recipe(&sandbox, &recipe, calls.to_vec());
            assert_eq!(results.len(), calls.len());
            for (text, _) in results {
                assert!(!text.contains("a key"), "{text}");
            }
            assert_eq!(fs::read(sandbox.home().join("shop.db")).unwrap(), b"");
            assert!(!sandbox.home().join("made").exists());
        }
    }
    let documents = documents();
    let blocks = documents.split("\n\n");
    let mut examples = blocks.filter(|block| block.contains("[\"sqlite3\""));
    let runs_free = |block: &str| block.contains("reads = true") && !block.contains("confine ");
    assert!(examples.clone().count() > 1 && !examples.any(runs_free));
}

#[test]
fn no_example_in_the_documents_lets_code_of_the_model_run_unasked() {
    if cannot_confine() {
        return;
    }
    let mut examples = 0;
    for block in documents().split("\n\n") {
        if !block.starts_with("    [") || !block.contains("run ") {
            continue;
        }
        let sandbox = Sandbox::new();
        let lines = block.lines().filter(|line| line.starts_with("    "));
        // A block may go on with what is typed.
        let lines = lines.take_while(|line| !line.starts_with("    q "));
        let home = sandbox.home().display().to_string();
        let config = Vec::from_iter(lines).join("\n");
        sandbox.config(&in_home(&config, &home));
        // What a confined command may read has to be there.
        for path in ["notes", "data", "shop.db", "sales.duckdb", "journal"] {
            fs::create_dir(sandbox.home().join(path)).unwrap();
        }
        let status = sandbox.q(&["--status", "-j"]).run();
        let status: Value = serde_json::from_str(&status.success().stdout_text()).expect("JSON");
        assert_eq!(status["error"], Value::Null, "{block}");
        // Not every machine has the programs.
        let is_missing = |fault: &&Value| fault.to_string().contains("there is no program");
        let faults = status["tool_faults"].as_array().expect("an array");
        let others = Vec::from_iter(faults.iter().filter(|fault| !is_missing(fault)));
        assert!(others.is_empty(), "{others:?}: {block}");
        examples += 1;
    }
    assert!(examples > 10, "{examples}");
}

/// The settings of an example in this home, with the system's journal, which not every system has.
fn in_home(example: &str, home: &str) -> String {
    example
        .replace("/home/me", home)
        .replace("/var/log/journal", &format!("{home}/journal"))
        .replace("/etc/machine-id", "/etc/passwd")
}
