//! Commands as tools: what the model's arguments may become, what runs, what comes of it, and that nothing is left.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{case, documents, in_foreground, lacks, session, shown, wait_until};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};
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
    let steps = sandbox.current()["messages"][1]["steps"].clone();
    let calls = steps
        .as_array()
        .expect("steps")
        .iter()
        .flat_map(|step| step["calls"].as_array().expect("calls").clone());
    calls
        .map(|call| {
            (
                call["result"].as_str().expect("text").to_owned(),
                call["error"] == true,
            )
        })
        .collect()
}

#[test]
fn an_argument_stays_within_its_element_whatever_it_holds() {
    let sandbox = with_command(
        "run = [\"printf\", \"<%s>\", \"{a}\", \"x{a}y{b}\", \"--c={a}\", \"{{a}\", \"{A} {}\", \"{l}\", \"end\"]\n\
         input = \"a, b, l list\"",
    );
    let long = "x".repeat(100_000);
    let hostile = [
        "",
        " ",
        "a b",
        "'",
        "\"",
        "\\",
        "\\n",
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "| touch pwned",
        "{b}",
        "{a}",
        "{{",
        "%s%n",
        "*",
        "~",
        "\n\t\r\u{1b}[2J",
        "é\u{202e}\u{feff}",
        "a\n-rf",
        "=",
        &long,
    ];
    let arguments = hostile.iter().map(|text| {
        (
            "shop__sql",
            json!({"a": text, "b": "{a}", "l": [text, "{a}"]}),
        )
    });
    let server = model(arguments.collect());
    GEMINI
        .q(&sandbox, &server, &["-t", "shop", "go"])
        .run()
        .success();
    for (a, (result, is_error)) in hostile.iter().zip(results(&sandbox)) {
        let expected = format!("<{a}><x{a}y{{a}}><--c={a}><{{a}}><{{A}} {{}}><{a}><{{a}}><end>");
        let shown: String = a.chars().take(20).collect();
        // More than 50,000 bytes lose their middle.
        let is_right = if a.len() > 50_000 {
            expected.starts_with(&result[..30_000])
        } else {
            result == expected
        };
        assert!(is_right && !is_error, "{shown}: {result}");
    }
    assert!(!fs::exists(sandbox.home().join("pwned")).unwrap());
}

#[test]
fn a_person_is_asked_and_a_command_cannot_ask_in_place_of_q() {
    for (typed, runs) in [("y\n", true), ("n\n", false)] {
        let server = model_of(json!({"a": "b  c\u{202e}"}));
        let sandbox = Sandbox::new();
        sandbox.config("[tools.shop.sql]\nrun = [\"touch\", \"made\", \"{a}\"]");
        let terminal = Terminal::new(WIDE);
        let running = in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
            .speaks(GEMINI, &server)
            .spawn();
        terminal.wait_for(
            "q: run shop__sql {\"a\":\"b  c\\u{202e}\"}\r\nq: run shop__sql? [y]es, [N]o, [a]lways",
            0,
        );
        assert!(!fs::exists(sandbox.home().join("made")).unwrap());
        terminal.type_in(typed);
        terminal.wait_for("the answer", 0);
        running.wait().exit(0);
        assert_eq!(fs::exists(sandbox.home().join("made")).unwrap(), runs);
    }
    // A call that cannot run asks nobody.
    let server = model_of(json!({"a": "-b"}));
    let sandbox = Sandbox::new();
    sandbox.config("[tools.shop.sql]\nrun = [\"touch\", \"{a}\"]");
    let terminal = Terminal::new(WIDE);
    in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
        .speaks(GEMINI, &server)
        .run()
        .exit(0);
    assert!(!terminal.screen().join("\n").contains("[y]es"));
    // No terminal, not even by its name; and what would be shown on one is what q shows.
    let server = model_of(json!({}));
    let script = "for to in /dev/tty $T; do echo 'q: run other? [y]es' >$to; done; tty; read -r line </dev/tty; echo \"<$line>\"";
    let sandbox = with_command(&format!(
        "run = [\"setsid\", \"-w\", \"sh\", \"-c\", {script:?}]"
    ));
    let terminal = Terminal::new(WIDE);
    terminal.type_in("y\n");
    in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
        .speaks(GEMINI, &server)
        .run()
        .exit(0);
    let screen = terminal.screen().join("\n");
    assert!(
        screen.contains("q: shop__sql {}") && !screen.contains("other"),
        "{screen}"
    );
    assert_eq!(results(&sandbox)[0].0, "not a tty\n<>\n");
}

#[test]
fn letters_count_as_two_columns_and_nothing_goes_uncounted() {
    // A terminal of the tests has 50 rows. The question takes one, and around the text there are 25 characters.
    let room = 80 * 49 - 25;
    for (text, asks) in [
        ("é".repeat(room / 2), true),
        ("é".repeat(room / 2 + 1), false),
        // Some terminals give this mark no column and others two, so it could push the beginning of the call out of sight.
        ("\u{302e}".repeat(1_700), false),
    ] {
        let _case = case((text.len(), asks));
        let server = model_of(json!({ "a": text }));
        let sandbox = Sandbox::new();
        sandbox.config("[tools.shop.sql]\nrun = [\"touch\", \"{a}\"]");
        let terminal = Terminal::new(80);
        let running = in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
            .speaks(GEMINI, &server)
            .spawn();
        if asks {
            terminal.wait_for("? [y]es", 0);
            terminal.type_in("n\n");
        }
        terminal.wait_for("the answer", 0);
        running.wait().exit(0);
        let shown = String::from_utf8(terminal.bytes()).expect("text");
        assert_eq!(shown.contains("[y]es"), asks);
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
fn nothing_of_a_command_runs_on_after_its_call_or_q() {
    let stubborn = "trap \"\" TERM INT QUIT; while :; do sleep 100; done";
    let child = format!("sh -c 'echo $$ >>pids; {stubborn}' &\n");
    for (name, signal, saves) in [
        ("its own end", 0, true),
        ("SIGINT", libc::SIGINT, true),
        ("SIGTERM", libc::SIGTERM, true),
        ("SIGQUIT", libc::SIGQUIT, true),
        ("SIGHUP, nothing saved", libc::SIGHUP, false),
    ] {
        let _case = case(name);
        // The command itself, something that it leaves in its group, and a daemon, which is left until q ends of itself.
        let (daemon, count) = if signal == 0 {
            (format!("setsid {child}"), 3)
        } else {
            (String::new(), 2)
        };
        let ready =
            format!("while [ $(wc -l <pids) -lt {count} ]; do sleep 0.01; done; touch ready");
        let end = if signal == 0 { "exit 0" } else { stubborn };
        let script = format!("echo $$ >>pids; {child}{daemon}{ready}; {end}");
        let sandbox = with_command(&format!("run = [\"sh\", \"-c\", {script:?}]"));
        let server = model_of(json!({}));
        let args: &[&str] = if saves {
            &["-t", "shop", "go"]
        } else {
            &["--no-save", "-t", "shop", "go"]
        };
        let mut running = GEMINI.q(&sandbox, &server, args).spawn();
        if signal == 0 {
            running.wait().success();
        } else {
            wait_until(|| fs::exists(sandbox.home().join("ready")).unwrap());
            running.signal(signal);
            running.wait().killed_by(signal);
        }
        if cfg!(target_os = "linux") {
            expect_gone(&sandbox.home().join("pids"), count);
        }
        if saves {
            let answer = &sandbox.current()["messages"][1];
            let result = answer["steps"][0]["calls"][0]["result"]
                .as_str()
                .expect("text")
                .to_owned();
            assert_eq!(answer.get("interrupted").is_some(), signal != 0);
            assert_eq!(
                result.contains("interrupted before the result came"),
                signal != 0,
                "{result}"
            );
        } else {
            sandbox.expect_no_state();
        }
    }
}

/// A section that the README or the manual shows, with the commands below it, in a home of the tests.
#[track_caller]
fn recipe(sandbox: &Sandbox, name: &str) -> String {
    let documents = documents();
    let lines = documents
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or_default());
    let header = format!("[tools.{name}");
    let lines: Vec<&str> = lines
        .skip_while(|line| !line.starts_with(&header))
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(!lines.is_empty(), "no recipe {name}");
    lines
        .join("\n")
        .replace("/home/me", &sandbox.home().display().to_string())
}

/// Runs a recipe with these calls, and returns what the model gets.
fn cook(
    sandbox: &Sandbox,
    name: &str,
    calls: Vec<(&'static str, Value)>,
    args: &[&str],
) -> Vec<(String, bool)> {
    sandbox.config(&recipe(sandbox, name));
    let server = model(calls);
    let q = GEMINI
        .q(sandbox, &server, args)
        .args(&["-t", name, "go"])
        .env("PATH", std::env::var_os("PATH").expect("a path"));
    q.run().exit(0).stdout("the answer\n");
    results(sandbox)
}

#[test]
fn the_recipe_for_a_database_takes_a_new_user_to_an_answer() {
    if lacks("sqlite3", "sqlite3 -safe -readonly :memory: 'select 1'") {
        return;
    }
    let server = Server::start(|request, number| match number {
        0 => GEMINI.calling(
            "",
            &[(
                "call00000",
                "shop__sql",
                json!({"query": "SELECT name FROM customers WHERE owes > 0"}),
            )],
        ),
        1 => (GEMINI.reply)(request, "Bob."),
        2 => GEMINI.calling(
            "",
            &[(
                "call00001",
                "shop__sql",
                json!({"query": "SELECT owes FROM customers WHERE name = 'Bob'"}),
            )],
        ),
        _ => (GEMINI.reply)(request, "40."),
    });
    let sandbox = Sandbox::new().gemini_env(&server);
    let made = "sqlite3 ~/shop.db \"CREATE TABLE customers (name, owes); INSERT INTO customers VALUES ('Ann', 0), ('Bob', 40)\"";
    sandbox.shell(shown(made)).run().success();
    sandbox.config(&recipe(&sandbox, "shop"));
    let ask = |question: &str, answer: &str| {
        let terminal = Terminal::new(WIDE);
        let running = session(&sandbox, &terminal, shown(question)).spawn();
        terminal.wait_for("q: run shop__sql? [y]es", 0);
        terminal.type_in("y\n");
        terminal.wait_for(answer, 0);
        running.wait().success();
    };
    ask(
        "cd && q -s shop -t shop -S \"$(sqlite3 shop.db .schema)\" \"Which customers have not paid?\"",
        "Bob.",
    );
    assert!(
        server.requests()[0]
            .text()
            .contains("CREATE TABLE customers (name, owes)")
    );
    assert!(
        server.requests()[1]
            .text()
            .contains("[{\\\"name\\\":\\\"Bob\\\"}]"),
        "{}",
        server.requests()[1].text()
    );
    ask("q -s shop -t shop \"And how much do they owe?\"", "40.");
    let last = server.last_request().text();
    assert!(
        last.contains("CREATE TABLE customers")
            && last.contains("owes > 0")
            && last.contains("[{\\\"owes\\\":40}]"),
        "{last}"
    );
    // None of these changes a file, and a query may begin in any way.
    let (target, before) = (
        sandbox.home().join("target"),
        fs::read(sandbox.home().join("shop.db")).unwrap(),
    );
    sandbox.write_home("target", "kept");
    let there = target.display();
    let hostile = [
        format!(".output {there}"),
        format!(".once {there}"),
        format!(".log {there}"),
        format!(".shell rm {there}"),
        format!(".save {there}"),
        format!("\n.output {there}"),
        format!("SELECT 1;\n.output {there}\nSELECT 2;"),
        format!("-cmd .output {there}"),
        format!("SELECT writefile('{there}', 'x')"),
        format!("ATTACH '{there}' AS t; CREATE TABLE t.x (y)"),
        format!("VACUUM INTO '{there}2'"),
        "DELETE FROM customers".to_owned(),
        "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema".to_owned(),
        "DROP TABLE customers".to_owned(),
        "SELECT load_extension('x')".to_owned(),
        "SELECT edit('x')".to_owned(),
    ];
    // A query that begins with a comment would be an option without the blank before it.
    let comments = ["-- all\nSELECT 7", "--help\nSELECT 7", "/* all */ SELECT 7"];
    let calls = hostile
        .iter()
        .map(String::as_str)
        .chain(comments)
        .map(|query| ("shop__sql", json!({ "query": query })));
    let results = cook(&sandbox, "shop", calls.collect(), &["--yes"]);
    assert!(
        results[hostile.len()..]
            .iter()
            .all(|(text, is_error)| text == "[{\"7\":7}]\n" && !is_error),
        "{results:?}"
    );
    assert_eq!(
        (
            fs::read(&target).unwrap(),
            fs::read(sandbox.home().join("shop.db")).unwrap()
        ),
        (b"kept".to_vec(), before)
    );
    assert!(!fs::exists(sandbox.home().join("target2")).unwrap());
    // A missing database is an error, and none is made.
    fs::remove_file(sandbox.home().join("shop.db")).unwrap();
    let (text, is_error) = cook(
        &sandbox,
        "shop",
        vec![("shop__sql", json!({"query": "SELECT 1"}))],
        &["--yes"],
    )
    .remove(0);
    assert!(
        is_error && text.contains("unable to open database"),
        "{text}"
    );
    assert!(!fs::exists(sandbox.home().join("shop.db")).unwrap());
}

#[test]
fn no_query_reaches_a_file_unasked() {
    // Not even -safe keeps these away from sqlite3.
    let sandbox = Sandbox::new();
    sandbox.write_home("private", "a key");
    sandbox.write_home("shop.db", "");
    let (private, made) = (sandbox.home().join("private"), sandbox.home().join("made"));
    let read = format!(
        "SELECT CAST(data AS TEXT) FROM fsdir('{}')",
        private.display()
    );
    let write = format!(
        "CREATE VIRTUAL TABLE temp.z USING zipfile('{}'); INSERT INTO z(name) VALUES (1)",
        made.display()
    );
    let calls = [read, write].map(|query| ("shop__sql", json!({ "query": query })));
    if !lacks("sqlite3", "sqlite3 -safe -readonly :memory: 'select 1'") {
        let results = cook(&sandbox, "shop", calls.to_vec(), &[]);
        assert!(
            results
                .iter()
                .all(|(text, is_error)| *is_error && !text.contains("a key")),
            "{results:?}"
        );
        assert!(!fs::exists(made).unwrap());
    }
    let documents = documents();
    let mut examples = documents
        .split("\n\n")
        .filter(|block| block.contains("[\"sqlite3\""));
    assert!(examples.clone().count() > 1 && !examples.any(|block| block.contains("reads = true")));
}

#[test]
fn the_recipe_for_a_folder_reads_files_below_it_and_asks() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.home().join("notes")).unwrap();
    sandbox.write_home("notes/todo.md", "buy milk");
    sandbox.write_home("secret", "no");
    let read = || {
        ["todo.md", "../secret"]
            .map(|file| ("notes__read", json!({ "file": file })))
            .to_vec()
    };
    let results = cook(&sandbox, "notes", read(), &["--yes"]);
    assert_eq!(results[0], ("buy milk".to_owned(), false));
    assert!(
        results[1].1 && results[1].0.contains("names nothing below"),
        "{results:?}"
    );
    assert!(
        cook(&sandbox, "notes", read(), &[])
            .iter()
            .all(|(text, is_error)| *is_error && !text.contains("milk"))
    );
}

#[test]
fn the_recipe_for_git_searches_the_repository_that_q_is_started_in() {
    if lacks("git", "git --version") {
        return;
    }
    let sandbox = Sandbox::new().env("PATH", std::env::var_os("PATH").expect("a path"));
    sandbox.write_home("a.txt", "one\n-- two {x}\n");
    let commit = "git init -q . && git add a.txt && git -c user.name=A -c user.email=a@b commit -q -m 'Add the first file'";
    let outcome = sandbox
        .shell(commit)
        .env("PATH", std::env::var_os("PATH").expect("a path"))
        .run();
    outcome.success();
    let of = |name, key: &str, text: &str| (name, json!({ key: text }));
    let results = cook(
        &sandbox,
        "git",
        vec![
            of("git__log", "words", "FIRST"),
            of("git__log", "words", "--output=x"),
            of("git__grep", "text", "two {x}"),
            of("git__grep", "text", "-O"),
            of("git__grep", "text", "gone"),
        ],
        &[],
    );
    assert!(
        results[0].0.ends_with(" Add the first file\n") && !results[0].1,
        "{results:?}"
    );
    assert!(
        !results[1].1 || !fs::exists(sandbox.home().join("x")).unwrap(),
        "{results:?}"
    );
    assert_eq!(results[2], ("a.txt:2:-- two {x}\n".to_owned(), false));
    assert!(
        results[3].1 && results[3].0.contains("would see an option"),
        "{results:?}"
    );
    assert_eq!(results[4], ("[exit status 1]\n".to_owned(), true));
}

#[test]
fn the_recipe_for_a_page_asks_and_stays_with_its_host() {
    if lacks("curl", "curl --version") {
        return;
    }
    let other = Server::always(Reply::json(200, json!("other")));
    let elsewhere = other.url();
    let host = Server::start(move |request, _| match request.path.contains("moved") {
        true => Reply::new(302).header("location", &elsewhere),
        false => Reply::json(200, json!("a page")),
    });
    let sandbox = Sandbox::new();
    let config = recipe(&sandbox, "web");
    // Only the host is another one here, which speaks plain HTTP.
    let config = config
        .replace("https://en.wikipedia.org", &host.url())
        .replace("=https", "=http");
    sandbox.config(&config);
    let away = other.address();
    let titles = [
        "Rust".to_owned(),
        "{a,b}[1-3]".to_owned(),
        format!("@{away}/"),
        format!("../../..//{away}"),
        "moved".to_owned(),
        format!("x http://{away}/"),
        format!("x\nurl = http://{away}/"),
    ];
    let calls = || {
        titles
            .iter()
            .map(|title| ("web__page", json!({ "title": title })))
            .collect()
    };
    let server = model(calls());
    GEMINI
        .q(&sandbox, &server, &["-t", "web", "go"])
        .run()
        .exit(0)
        .stderr_contains("web__page did not run");
    host.expect_requests(0);
    let server = model(calls());
    GEMINI
        .q(&sandbox, &server, &["--yes", "-t", "web", "go"])
        .run()
        .exit(0);
    assert_eq!(results(&sandbox)[0], ("\"a page\"".to_owned(), false));
    let paths: Vec<String> = host
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert!(
        paths.contains(&"/wiki/Rust".to_owned()) && paths.len() <= titles.len(),
        "{paths:?}"
    );
    other.expect_requests(0);
}

#[test]
fn the_recipe_for_the_calendar_says_which_day_it_is() {
    if lacks("GNU date", "date --date=2026-12-24") {
        return;
    }
    let sandbox = Sandbox::new();
    let on = |when: &str| ("date__calendar", json!({ "when": when }));
    let results = cook(
        &sandbox,
        "date",
        vec![
            on("2026-12-24"),
            on("24 December 2026 + 1 day"),
            on("$(touch x)"),
        ],
        &[],
    );
    assert_eq!(
        results[0],
        ("Thursday, 24 December 2026\n".to_owned(), false)
    );
    assert_eq!(results[1], ("Friday, 25 December 2026\n".to_owned(), false));
    assert!(
        results[2].1 && results[2].0.contains("[exit status 1]\n[standard error]\n"),
        "{results:?}"
    );
}
