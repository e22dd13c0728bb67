//! What each option does, and how q answers a command line that makes no sense.

use crate::fixtures::{asked_by, case, refused, snapshot, with_every_kind};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::Server;

/// A configuration that cannot be read at all.
const BROKEN: &str = "this is [ not TOML";

/// A command line that must be refused without a look at input, network or state.
#[track_caller]
fn refused_at_once(args: &[&str]) -> Outcome {
    refused(|sandbox| sandbox.q(args).stdin_open())
}

#[test]
fn help_and_version_need_neither_home_nor_settings_nor_input() {
    let sandbox = Sandbox::new()
        .env("Q_PAIRS", "nonsense")
        .env("OPENAI_BASE_URL", "nonsense");
    sandbox.config(BROKEN);
    for (option, part) in [
        ("-h", "--follow"),
        ("--help", "Q_MAX_HISTORY"),
        ("-V", "q 0."),
        ("--version", "q 0."),
    ] {
        sandbox
            .q(&[option])
            .stdin_open()
            .run()
            .success()
            .stdout_contains(part);
        let homeless = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
        let bare = homeless
            .into_iter()
            .fold(sandbox.q(&[option]), |run, name| run.env_remove(name));
        bare.stdin_open().run().success().stdout_contains(part);
    }
    sandbox.q(&["-r", "review", "--help"]).run().success();
    let short = sandbox.q(&["-h"]).run();
    short.check(short.stdout_text().lines().count() < 45, || {
        "expected less than a tall screen".to_owned()
    });
    let long = sandbox.q(&["--help"]).run();
    long.check(long.stdout.len() > 2 * short.stdout.len(), || {
        "expected everything".to_owned()
    });
    sandbox.expect_no_files();
}

#[test]
fn a_misspelt_option_is_answered_with_the_nearest() {
    for (typed, meant) in [
        ("--folow", "--follow"),
        ("--follow-up", "--follow"),
        ("--modle", "--model"),
        ("--provder", "--provider"),
        ("--sytem", "--system"),
        ("--message", "--messages"),
        ("--nosave", "--no-save"),
        ("--no-straem", "--no-stream"),
        ("--cler", "--clear"),
        ("--hlep", "--help"),
        ("--verison", "--version"),
        ("--Help", "--help"),
        // As other programs have them.
        ("-c", "-f"),
        ("-C", "-f"),
        ("--continue", "-f"),
        ("--resume", "-f"),
        ("--contiue", "-f"),
        ("--no-input", "-n"),
        ("--file", "-a"),
    ] {
        let outcome = refused_at_once(&[typed, "why"]);
        outcome
            .stderr_contains(typed)
            .stderr_contains(&format!("did you mean {meant}?"));
    }
    for (typed, name) in [
        ("--zzzz", "--zzzz"),
        ("-z", "-z"),
        ("-fz", "-z"),
        ("--format", "--format"),
        ("--save", "--save"),
        ("--stream", "--stream"),
        ("--input", "--input"),
    ] {
        let outcome = refused_at_once(&[typed, "why"]);
        outcome
            .stderr_contains(&format!("no option {name}\n"))
            .stderr_contains("q -h")
            .stderr_lacks("did you mean");
    }
}

#[test]
fn an_option_after_a_word_is_refused_with_advice() {
    for typed in [
        &["what", "does", "ls", "-l", "do"][..],
        &["why", "-f"],
        &["why", "--clear"],
        &["why", "--"],
        &["why", "--", "-f"],
        &["-", "-l"],
        &["", "-l"],
        &["-f", "why", "--no-such-option"],
    ] {
        let outcome = refused_at_once(typed);
        outcome
            .stderr_contains("before the question")
            .stderr_contains("quote")
            .stderr_contains("--");
    }
}

#[test]
fn an_option_after_a_word_is_refused_with_the_command_that_is_meant() {
    let long = "x".repeat(400);
    // The advice if it was meant as an option, and if it is part of the question.
    let table: &[(&[&str], &str, &str)] = &[
        (
            &["what", "is", "this", "-v"],
            ": q -v what is this",
            ": q -- what is this -v",
        ),
        (
            &["-f", "what's", "new?", "-m", "x"],
            ": q -f -m x 'what'\\''s' 'new?'",
            ": q -f -- 'what'\\''s' 'new?' -m x",
        ),
        (
            &["why", "-fmx", "--messages=2"],
            ": q -fmx --messages=2 why",
            ": q -- why -fmx --messages=2",
        ),
        (
            &["--list", "a b", "-j"],
            ": q --list -j 'a b'",
            ": q --list -- 'a b' -j",
        ),
        (&["why", "-v", "-l"], ": q -v -- why -l", ": q -- why -v -l"),
        (
            &["what", "does", "ls", "-l", "do"],
            "",
            ": q -- what does ls -l do",
        ),
        (&["why", "-m"], "", ": q -- why -m"),
        // An option that deletes is not suggested.
        (&["why", "--clear"], "", ": q -- why --clear"),
        (&["why", "--all"], "", ": q -- why --all"),
        (&["two\nlines", "-v"], "", ""),
        (&[&long, "-v"], "", ""),
    ];
    for (typed, option, part) in table {
        let _case = case(typed);
        refused_at_once(typed).stderr_contains_all(&[
            &format!("q: put options before the question{option}\n"),
            &format!(
                "q: if it is part of the question, quote the question or put -- before it{part}\n"
            ),
        ]);
    }
}

#[test]
fn dashes_end_the_options_and_a_dash_alone_is_a_word() {
    let table: &[(&[&str], &str)] = &[
        (&["--", "-l", "--clear", "--"], "-l --clear --"),
        (&["-n", "--", "--help"], "--help"),
        (&["-"], "-"),
        (&["-n", "-", "and", "-"], "- and -"),
        (&["what does ls -l do"], "what does ls -l do"),
    ];
    for (typed, expected) in table {
        assert_eq!(asked_by(|sandbox| sandbox.q(typed)), *expected, "{typed:?}");
    }
}

#[test]
fn an_action_is_refused_with_what_it_cannot_take() {
    for typed in [
        &["--clear", ""][..],
        &["--clear", "--", "-f"],
        &["-hV"],
        &["--clear", "--help", "--undo"],
        &["--clear=all"],
        &["--clear", "--all", "-s", "work"],
        &["--all"],
        &["--all", "words"],
    ] {
        refused_at_once(typed);
    }
}

/// Every action and the options that it can use.
const USABLE: &[(&[&str], &[&str])] = &[
    (&["--history"], &["-s", "-j", "-q", "-v"]),
    (&["--last"], &["-s", "-x", "-j", "-q", "-v"]),
    (&["--undo"], &["-s", "-j", "-q", "-v"]),
    (&["--list"], &["--all", "-j", "-q", "-v"]),
    (&["--copy", "branch"], &["-s", "-j", "-q", "-v"]),
    (&["--clear"], &["-s", "--all", "--yes", "-j", "-q", "-v"]),
    (&["--list-tools"], &["-t", "-j", "-q", "-v"]),
    (
        &["--status"],
        &[
            "-s",
            "-p",
            "-m",
            "-e",
            "-o",
            "-S",
            "--messages",
            "--no-save",
            "-j",
            "-q",
            "-v",
        ],
    ),
    (&["--models"], &["-p", "-j", "-q", "-v"]),
    (&["--generate", "man"], &[]),
];

/// Every option that is no action, with a value where it takes one.
const OPTIONS: &str = "-f|-s work|-r review|-w|-p openai|-m m|-e low|-o seed=1|-S brief|-a file|-t db|--yes|--schema name\
                       |--messages 2|-n|--no-save|-x|-j|--no-stream|-q|-v|--dry-run|--again|--all";

/// A run beside conversations that must be refused with these words and change none of them.
#[track_caller]
fn refused_beside_conversations(runs: impl IntoIterator<Item = Vec<&'static str>>, words: &str) {
    let server = Server::openai("never");
    let sandbox = with_every_kind().server_env(&server);
    let before = snapshot(sandbox.root());
    let mut count = 0;
    for args in runs {
        let _case = case(&args);
        sandbox
            .q(&args)
            .stdin_open()
            .run()
            .exit(2)
            .stderr_contains(words);
        count += 1;
    }
    assert!(count > 0);
    before.expect_unchanged();
    server.expect_requests(0);
}

#[test]
fn no_action_takes_an_option_that_it_cannot_use() {
    let unusable = USABLE.iter().flat_map(|(action, usable)| {
        let options = OPTIONS
            .split('|')
            .map(|option| option.split(' ').collect::<Vec<_>>());
        let others = options.filter(|option| !usable.contains(&option[0]));
        others.map(|option| [&option[..], *action].concat())
    });
    refused_beside_conversations(unusable, " cannot use -");
}

#[test]
fn no_action_can_be_combined_with_another() {
    let also: [&[&str]; 3] = [&["-h"], &["--help"], &["-V"]];
    let actions: Vec<&[&str]> = USABLE
        .iter()
        .map(|(action, _)| *action)
        .chain(also)
        .collect();
    let pairs = actions.iter().flat_map(|one| {
        let others = actions.iter().filter(move |other| *other != one);
        others.map(move |other| [*one, *other].concat())
    });
    refused_beside_conversations(pairs.collect::<Vec<_>>(), " cannot be used together");
}

#[test]
fn no_action_but_the_list_takes_words() {
    let also: [&[&str]; 3] = [&["-h"], &["--help"], &["-V"]];
    let actions = USABLE
        .iter()
        .map(|(action, _)| *action)
        .filter(|action| *action != ["--list"])
        .chain(also);
    refused_beside_conversations(
        actions.map(|action| [action, &["rebase"]].concat()),
        " takes no words",
    );
}

#[test]
fn an_option_without_its_value_or_with_a_wrong_one_is_refused() {
    let table: &[(&[&str], &str)] = &[
        (&["-p"], "--provider"),
        (
            &["-s", "-f", "why"],
            "--session needs a value, but “-f” is an option",
        ),
        (
            &["-s", "-f", "why"],
            "the value comes right after --session: --session NAME -f",
        ),
        (&["-s", "-fx", "why"], "“-fx” is an option"),
        (&["-s", "--follow", "why"], "“--follow” is an option"),
        (&["-p", "-m", "why"], "--provider NAME -m"),
        (&["-m", "-r", "why"], "--model ID -r"),
        (&["-r", "--model=x", "why"], "--role NAME --model=x"),
        (&["-t", "-x", "why"], "--tools NAME -x"),
        (&["-e", "-v", "why"], "--effort LEVEL -v"),
        (&["--copy", "-s", "work"], "--copy NAME -s"),
        (
            &["-s", "-zzz", "why"],
            "must not begin with a dot, a hyphen or",
        ),
        (
            &["-s", "-", "why"],
            "must not begin with a dot, a hyphen or",
        ),
        (
            &["-s", "--", "why"],
            "must not begin with a dot, a hyphen or",
        ),
        (
            &["--copy", "-zzz"],
            "must not begin with a dot, a hyphen or",
        ),
        (&["--model"], "--model"),
        (&["-f", "-S"], "--system"),
        (&["--messages"], "--messages"),
        (&["--model", "", "why"], "--model: it is empty"),
        (&["--generate"], "--generate man|bash|zsh|fish|keys-bash|"),
        (&["--generate", "nope"], "“nope” is not one of man, bash, "),
        (&["--messages", "-1", "why"], "-1"),
        (&["--messages", "ten", "why"], "ten"),
        (&["--messages", "", "why"], "--messages"),
        (
            &["--messages=99999999999999999999", "why"],
            "99999999999999999999",
        ),
        (&["--follow=yes", "why"], "yes"),
        (&["-f=yes", "why"], "yes"),
        (&["-p", "nobody", "why"], "openai, gemini"),
        (&["-p", "", "why"], "openai, gemini"),
    ];
    for (typed, part) in table {
        refused_at_once(typed).stderr_contains(part);
    }
}

#[test]
fn no_stream_asks_for_the_answer_in_one_piece() {
    let server = Server::openai("all at once");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox
        .q(&["--no-stream", "why"])
        .run()
        .success()
        .stdout("all at once\n");
    let body = server.request().json();
    assert_eq!(body["stream"], false);
    assert!(body.get("stream_options").is_none(), "{body}");
    sandbox.expect_answer("all at once", false);
}
