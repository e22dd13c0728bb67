//! Commands as tools: what the model's arguments may become, what runs, what comes of it, and that nothing is left.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{
    case, documents, in_foreground, lacks, session, set_mode, shown, wait_until,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};
use crate::toolserver::{is_there, section};

/// Its calls come in one piece, so that their arguments may have any characters.
const GEMINI: &Dialect = &DIALECTS[2];

/// A server of models that makes these calls with its first reply, and then answers.
fn model(calls: Vec<(&'static str, Value)>) -> Server {
    let ids: Vec<String> = (0..calls.len())
        .map(|number| format!("call{number:05}"))
        .collect();
    Server::start(move |request, number| {
        let calls: Vec<_> = ids
            .iter()
            .zip(&calls)
            .map(|(id, (name, arguments))| (id.as_str(), *name, arguments.clone()))
            .collect();
        if number == 0 && !calls.is_empty() {
            GEMINI.calling("", &calls)
        } else {
            (GEMINI.reply)(request, "the answer")
        }
    })
}

/// A server that calls `shop__sql` with each of these arguments.
fn model_of(arguments: Vec<Value>) -> Server {
    model(
        arguments
            .into_iter()
            .map(|arguments| ("shop__sql", arguments))
            .collect(),
    )
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

/// What comes of calls of a command, each with these arguments.
fn run(sandbox: &Sandbox, arguments: Vec<Value>) -> Vec<(String, bool)> {
    let server = model_of(arguments);
    GEMINI
        .q(sandbox, &server, &["-t", "shop", "go"])
        .run()
        .success()
        .stdout("the answer\n");
    results(sandbox)
}

/// What comes of one call.
fn run_once(lines: &str, arguments: Value) -> (String, bool) {
    run(&with_command(lines), vec![arguments]).remove(0)
}

#[test]
fn a_command_is_a_tool_that_runs_when_the_model_calls_it() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = Server::start(move |request, number| match number {
            0 => dialect.calling(
                "",
                &[("aaaaaaaa1", "shop__sql", json!({"query": "one", "n": 2}))],
            ),
            _ => (dialect.reply)(request, "the answer"),
        });
        let sandbox = with_command(
            "run = [\"printf\", \"<%s>\", \"{query}\", \"-n={n}\"]\nabout = \"Ask the shop.\"\n\
             input = \"query: one SELECT, n int\"",
        );
        dialect
            .q(&sandbox, &server, &["-t", "shop", "go"])
            .run()
            .success()
            .stdout("the answer\n");
        let first = server.requests()[0].text();
        for part in [
            "\"shop__sql\"",
            "\"Ask the shop.\"",
            "one SELECT",
            "\"integer\"",
            "\"required\":[\"query\",\"n\"]",
        ] {
            assert!(first.contains(part), "{part} in {first}");
        }
        assert!(server.last_request().text().contains("<one><-n=2>"));
        assert_eq!(results(&sandbox), [("<one><-n=2>".to_owned(), false)]);
        assert_eq!(sandbox.current()["tools"], json!(["shop"]));
    }
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
    let arguments = hostile
        .iter()
        .map(|text| json!({"a": text, "b": "{a}", "l": [text, "-"]}));
    let refused: Vec<Value> = arguments.collect();
    let arguments = refused
        .iter()
        .map(|all| json!({"a": all["a"], "b": "{a}", "l": [all["a"], "{a}"]}));
    let results = self::run(&sandbox, arguments.collect());
    for (a, (result, is_error)) in hostile.iter().zip(results) {
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
    for (result, is_error) in self::run(&sandbox, refused) {
        assert!(
            is_error && result.contains("because l begins with “-”"),
            "{result}"
        );
    }
    assert!(!fs::exists(sandbox.home().join("pwned")).unwrap());
}

#[test]
fn a_program_is_looked_for_in_full_folders_of_path() {
    let sandbox = with_command("run = [\"tool\"]").env("PATH", ".:bin::/usr/bin");
    fs::create_dir(sandbox.home().join("bin")).unwrap();
    for name in ["tool", "bin/tool"] {
        sandbox.write_home(name, "#!/bin/sh\necho ran\n");
        set_mode(&sandbox.home().join(name), 0o755);
    }
    let server = model_of(vec![json!({})]);
    let q = |sandbox: &Sandbox| GEMINI.q(sandbox, &server, &["-t", "shop", "go"]).run();
    q(&sandbox)
        .exit(2)
        .stdout_is_empty()
        .stderr_contains("there is no program tool");
    let bin = sandbox.home().join("bin").display().to_string();
    let sandbox = sandbox.env("PATH", format!(".:{bin}"));
    q(&sandbox).success();
    assert_eq!(results(&sandbox), [("ran\n".to_owned(), false)]);
    // The variable of the section counts, as the command has it.
    sandbox.config(&format!(
        "[tools.shop]\nenv = {{ PATH = \"{bin}\" }}\n[tools.shop.sql]\nrun = [\"tool\"]\nreads = true"
    ));
    assert_eq!(run(&sandbox, vec![json!({})])[0].0, "ran\n");
    // The program sees the name that it is called by.
    let (name, _) = run_once(
        "run = [\"sh\", \"-c\", \"echo $0; tr '\\\\0' ' ' </proc/$$/cmdline\"]",
        json!({}),
    );
    assert!(
        !cfg!(target_os = "linux") || name.starts_with("sh\nsh -c "),
        "{name}"
    );
}

#[test]
fn a_list_of_all_tools_lacks_only_the_command_whose_program_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.config("[tools.shop.a]\nrun = [\"no-such-program\"]\n[tools.shop.b]\nrun = [\"ls\"]\n");
    let listed = sandbox.q(&["--list-tools"]).run();
    listed
        .exit(0)
        .stdout("shop__b\twrites\tasks\t\n")
        .stderr("q: tools.shop.a: there is no program no-such-program\n");
    sandbox
        .q(&["--list-tools", "-t", "shop"])
        .run()
        .exit(2)
        .stderr_contains("there is no program no-such-program");
}

#[test]
fn a_path_leads_to_something_below_the_folder() {
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    let root = sandbox.root().display().to_string();
    for folder in ["notes/deep", "notes-2"] {
        fs::create_dir_all(sandbox.root().join(folder)).unwrap();
    }
    for (name, text) in [
        ("notes/a", "in"),
        ("notes/-n", "dash"),
        ("notes/deep/b", "deep"),
        ("notes-2/c", "out"),
        ("d", "out"),
    ] {
        fs::write(sandbox.root().join(name), text).unwrap();
    }
    for (name, target) in [
        ("away", "../d"),
        ("up", ".."),
        ("here", "deep"),
        ("loop", "loop"),
        ("broken", "nothing"),
    ] {
        std::os::unix::fs::symlink(target, sandbox.root().join("notes").join(name)).unwrap();
    }
    sandbox.config(&format!(
        "[tools.shop]\ncwd = \"{root}/notes\"\n[tools.shop.sql]\nreads = true\nrun = [\"sh\", \"-c\", \"echo $1; cat $1\", \"-\", \"{{file}}\"]\n\
         input = \"file path\""
    ));
    let cases = [
        ("a", Some(("a", "in"))),
        ("./deep/../a", Some(("a", "in"))),
        ("-n", Some(("-n", "dash"))),
        ("here/b", Some(("deep/b", "deep"))),
        ("up/notes/a", Some(("a", "in"))),
        (&format!("{root}/notes/a"), Some(("a", "in"))),
        ("..", None),
        ("../d", None),
        ("../notes-2/c", None),
        ("deep/../../d", None),
        ("away", None),
        ("up/d", None),
        (&format!("{root}/d"), None),
        ("/etc/passwd", None),
        ("broken", None),
        ("loop", None),
        ("gone", None),
        ("", None),
        ("a/", None),
        ("~/a", None),
    ];
    let results = run(
        &sandbox,
        cases
            .iter()
            .map(|(path, _)| json!({ "file": path }))
            .collect(),
    );
    for ((path, found), (result, is_error)) in cases.into_iter().zip(results) {
        let _case = case(path);
        match found {
            Some((file, text)) => assert_eq!(result, format!("{root}/notes/{file}\n{text}")),
            None => assert!(
                is_error && result.contains("file names nothing below"),
                "{result}"
            ),
        }
        assert_eq!(is_error, found.is_none());
    }
}

#[test]
fn much_goes_into_a_command_and_out_of_it() {
    let (text, is_error) = run_once("run = [\"yes\"]", json!({}));
    assert!(
        text.ends_with("[cut after 1000000 bytes]\n") && !is_error,
        "{is_error}"
    );
    let long = "ü\n".repeat(20_000);
    let count = "run = [\"sh\", \"-c\", \"wc -c | tr -d ' '\"]\nstdin = \"{text}\"";
    assert_eq!(
        run_once(count, json!({ "text": long })),
        ("60000\n".to_owned(), false)
    );
    // Nobody reads it.
    let unread = run_once(
        "run = [\"true\"]\nstdin = \"{text}\"",
        json!({"text": "x".repeat(1_000_000)}),
    );
    assert_eq!(unread, ("[exit status 0]\n".to_owned(), false));
    // What is too long for the system.
    let (result, is_error) = run_once(
        "run = [\"true\", \"{a}\"]",
        json!({"a": "x".repeat(3_000_000)}),
    );
    assert!(
        is_error && result.contains("its arguments are too long"),
        "{result}"
    );
}

#[test]
fn a_command_gets_the_environment_of_a_server_and_its_folder() {
    let server = model(vec![("shop__sql", json!({})), ("shop__own", json!({}))]);
    let sandbox = Sandbox::new()
        .gemini_env(&server)
        .env("Q_RETRIES", "0")
        .env("GROQ_API_KEY", "groq-key");
    let sandbox = sandbox
        .env("SHOP_TOKEN", "token-of-the-shop")
        .env("AWS_KEY", "key-of-aws")
        .env("LANG", "C");
    let script = "pwd; env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort | tr '\\n' ' '";
    sandbox.config(&format!(
        "[tools.shop]\nenv = {{ A = \"1\", B = \"value-of-b\" }}\nenv_from = [\"SHOP_TOKEN\"]\n\
         [tools.shop.sql]\nreads = true\nrun = [\"sh\", \"-c\", {script:?}]\n\
         [tools.shop.own]\nreads = true\nrun = [\"sh\", \"-c\", {script:?}]\ncwd = \".\"\nenv = {{ A = \"2\" }}\nenv_from = [\"AWS_*\"]"
    ));
    let home = sandbox.home().display().to_string();
    fs::create_dir(sandbox.home().join("work")).unwrap();
    let outcome = sandbox.shell("cd work && exec q -v -t shop go").run();
    outcome
        .exit(0)
        .stderr_lacks("token-of-the-shop")
        .stderr_lacks("value-of-b");
    let results = results(&sandbox);
    // Keys do not go to the model.
    let variables = |more: [&str; 2]| {
        let folders = [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
        ];
        let known = folders
            .map(|(name, folder)| format!("{name}={}", sandbox.root().join(folder).display()));
        let known = known.iter().map(String::as_str).chain([
            "B=value-of-b",
            "LANG=C",
            "SHOP_TOKEN=[redacted]",
        ]);
        let mut all: Vec<String> = known
            .chain(more)
            .filter(|pair| !pair.is_empty())
            .map(str::to_owned)
            .collect();
        all.sort();
        all
    };
    for ((result, _), (folder, more)) in results.iter().zip([
        (home.clone(), ["A=1", ""]),
        (home.clone() + "/work", ["A=2", "AWS_KEY=[redacted]"]),
    ]) {
        let (first, rest) = result.split_once('\n').expect("a folder");
        let mut given: Vec<String> = rest
            .split_whitespace()
            .filter(|pair| !pair.starts_with("PATH="))
            .map(str::to_owned)
            .collect();
        given.sort();
        assert_eq!((first, given), (folder.as_str(), variables(more)));
    }
}

#[test]
fn the_passwords_of_urls_among_its_variables_reach_nobody() {
    let index = "corp=https://me:index%2Dsecret@h/simple https://me:second-secret@h/@x";
    let server = model_of(vec![json!({})]);
    let sandbox =
        with_command("run = [\"env\"]\nenv = { SHOP = \"postgres://me:pa/ss@w0rd@h/db\" }");
    let sandbox = sandbox
        .gemini_env(&server)
        .env("UV_INDEX", index)
        .env("all_proxy", "http://me:short@h:1");
    let sandbox = sandbox
        .env("http_proxy", "http://me:proxy-secret@h:1")
        .env("HTTPS_PROXY", "me:bare-secret@h:1");
    sandbox.q(&["-t", "shop", "go"]).run().success();
    let result = results(&sandbox).remove(0).0;
    for line in [
        "UV_INDEX=corp=https://me:[redacted]@h/simple https://me:[redacted]@x\n",
        "SHOP=postgres://me:[redacted]@h/db\n",
        "http_proxy=http://me:[redacted]@h:1\n",
        "HTTPS_PROXY=me:[redacted]@h:1\n",
        // It could be an ordinary word.
        "all_proxy=http://me:short@h:1\n",
    ] {
        assert!(result.contains(line), "{line}{result}");
    }
    assert!(!server.last_request().text().contains("secret"));
    // Notes hide them, too.
    let script = "echo I know $http_proxy, index-secret and $SHOP >&2; exit 1";
    let env = "env = { SHOP = \"postgres://me:pa/ss@w0rd@h/db\" }";
    sandbox.config(&format!(
        "[tools.db]\ncommand = [\"sh\", \"-c\", {script:?}]\n{env}\n"
    ));
    let outcome = sandbox.q(&["-t", "db", "go"]).run();
    outcome.exit(1).stderr_contains(
        "I know http://me:[redacted]@h:1, [redacted] and postgres://me:[redacted]@h/db",
    );
}

#[test]
fn a_person_is_asked_and_a_command_cannot_ask_in_place_of_q() {
    for (typed, runs) in [("y\n", true), ("n\n", false)] {
        let server = model_of(vec![json!({"a": "b  c\u{202e}"})]);
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
    let server = model_of(vec![json!({"a": "-b"})]);
    let sandbox = Sandbox::new();
    sandbox.config("[tools.shop.sql]\nrun = [\"touch\", \"{a}\"]");
    let terminal = Terminal::new(WIDE);
    in_foreground(&sandbox, &terminal, &["-t", "shop", "go"])
        .speaks(GEMINI, &server)
        .run()
        .exit(0);
    assert!(!terminal.screen().join("\n").contains("[y]es"));
    // No terminal, not even by its name; and what would be shown on one is what q shows.
    let server = model_of(vec![json!({})]);
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
        let server = model_of(vec![json!({ "a": text })]);
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

#[test]
fn tools_are_chosen_listed_and_remembered_by_their_names() {
    let server = model(vec![]);
    let sandbox = Sandbox::new().gemini_env(&server).env("Q_EXPIRE", "never");
    let ran = sandbox.home().join("ran");
    sandbox.config(&format!(
        "[tools.shop]\nonly = [\"list-*\", \"sql\", \"write\"]\nallow = [\"write\"]\n\
         [tools.shop.sql]\nrun = [\"touch\", \"{ran}\", \"{{a}}\"]\nabout = \"Ask.\\nMore.\"\nreads = true\n\
         [tools.shop.list-all]\nrun = [\"touch\", \"{ran}\"]\n[tools.shop.write]\nrun = [\"touch\", \"{ran}\"]\n\
         [tools.shop.other]\nrun = [\"touch\", \"{ran}\"]\n{}",
        section(&sandbox, "db", "", "only = [\"echo\"]"),
        ran = ran.display(),
    ));
    let listed = "shop__list-all\twrites\tasks\t\nshop__sql\treads\truns\tAsk.\nshop__write\twrites\truns\t\n";
    sandbox
        .q(&["--list-tools"])
        .run()
        .success()
        .stdout(format!("db__echo\treads\truns\tdoes echo\n{listed}"));
    sandbox
        .q(&["--list-tools", "-t", "shop"])
        .run()
        .success()
        .stdout(listed);
    let outcome = sandbox
        .q(&["--list-tools", "-t", "shop__sql", "--json"])
        .run();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let all = json!([{"name": "shop__sql", "description": "Ask.\nMore.", "reads": true, "asks": false, "schema": schema}]);
    assert_eq!(outcome.success().stdout_json(), all);
    sandbox
        .q(&["--status"])
        .run()
        .success()
        .stdout_contains("tools shop   commands sql, list-all, write, other\n");
    let outcome = sandbox.q(&["--dry-run", "-t", "shop__*l*", "go"]).run();
    outcome
        .success()
        .stdout_contains("shop__list-all")
        .stdout_contains("shop__sql")
        .stdout_lacks("shop__write");
    server.expect_requests(0);
    for (args, names) in [
        (
            &["-t", "shop"][..],
            &["shop__list-all", "shop__sql", "shop__write"][..],
        ),
        (&["-t", "shop__sql"], &["shop__sql"]),
        (
            &["-t", "shop__*e*", "-t", "db,shop__sql"],
            &["db__echo", "shop__sql", "shop__write"],
        ),
        (&[], &[]),
    ] {
        sandbox.q(args).arg("go").run().success();
        assert_eq!(
            GEMINI.offered(&server.last_request().json()),
            names,
            "{args:?}"
        );
    }
    // On a terminal a conversation uses its tools again, in a pipe it does not.
    sandbox.q(&["-t", "shop__s*", "go"]).run().success();
    assert_eq!(sandbox.current()["tools"], json!(["shop__s*"]));
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["-f", "go"])
        .stdin_from(terminal.end())
        .run()
        .success();
    assert_eq!(GEMINI.offered(&server.last_request().json()), ["shop__sql"]);
    sandbox
        .q(&["-f", "go"])
        .run()
        .exit(0)
        .stderr_contains("-t shop__s* uses them");
    assert!(GEMINI.offered(&server.last_request().json()).is_empty());
    sandbox.config("");
    sandbox
        .q(&["-f", "go"])
        .stdin_from(terminal.end())
        .run()
        .exit(2)
        .stderr_contains_all(&["“shop”", "-t none drops them"]);
    assert!(!fs::exists(ran).unwrap());
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
        let server = model_of(vec![json!({})]);
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
