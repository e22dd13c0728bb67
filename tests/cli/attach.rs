//! `-a`: text files in the question, images and PDFs beside it, and what cannot be attached.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, first_word_then_silence};
use crate::fixtures::{
    CREATED, HOUR, ID, PIXEL, PNG, STORED_MODEL, UPDATED, answering, attachment, case, id_of,
    idle_for, make_pipe, numbered, prompt, refused, shown, stored, texts, with_attachments,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Recorded, Server};

/// A sandbox with two text files and an image.
fn with_files() -> (Server, Sandbox) {
    let (server, sandbox) = numbered();
    write_files(&sandbox);
    (server, sandbox)
}

fn write_files(sandbox: &Sandbox) {
    sandbox.write_home("one.rs", "fn one() {}\n");
    sandbox.write_home("two.rs", "two, no line end");
    sandbox.write_home("error.png", PNG);
    sandbox.write_home("page.pdf", "%PDF-1.4\nx");
}

const ONE: &str = "<file name=\"one.rs\">\nfn one() {}\n</file>";
const TWO: &str = "<file name=\"two.rs\">\ntwo, no line end\n</file>";

/// The PDF in base64.
const PDF_DATA: &str = "JVBERi0xLjQKeA==";

#[test]
fn binary_input_gets_the_hint_to_attach_it() {
    let outcome = refused(|sandbox| sandbox.q(&["why?"]).stdin(PNG));
    outcome
        .stderr_contains("standard input is binary")
        .stderr_contains("-a - sends it if it is an image or a PDF");
}

#[test]
fn a_terminal_is_no_file_to_wait_for() {
    let terminal = Terminal::new(WIDE);
    let outcome = refused(|sandbox| sandbox.q(&["-a", "-", "why?"]).stdin_from(terminal.end()));
    outcome.stderr_contains("-a - reads standard input, which is a terminal");
}

/// The parts of the last message of a request; what a plain text is, where it is no list.
fn parts(dialect: &Dialect, request: &Recorded) -> Value {
    let body = request.json();
    let (list, content) = match dialect.provider {
        "gemini" => ("contents", "parts"),
        "responses" => ("input", "content"),
        _ => ("messages", "content"),
    };
    body[list]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message")[content]
        .clone()
}

/// An image, a PDF and text as the dialect has them.
fn image(dialect: &Dialect) -> Value {
    let url = format!("data:image/png;base64,{PIXEL}");
    match dialect.provider {
        "openai" => json!({"type": "image_url", "image_url": {"url": url}}),
        "responses" => json!({"type": "input_image", "detail": "auto", "image_url": url}),
        "anthropic" => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
        }
        _ => json!({"inlineData": {"mimeType": "image/png", "data": PIXEL}}),
    }
}

fn pdf(dialect: &Dialect) -> Value {
    let url = format!("data:application/pdf;base64,{PDF_DATA}");
    match dialect.provider {
        "openai" => json!({"type": "file", "file": {"filename": "page.pdf", "file_data": url}}),
        "responses" => json!({"type": "input_file", "filename": "page.pdf", "file_data": url}),
        "anthropic" => json!({"type": "document", "title": "page pdf",
                              "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_DATA}}),
        _ => json!({"inlineData": {"mimeType": "application/pdf", "data": PDF_DATA}}),
    }
}

fn text(dialect: &Dialect, text: &str) -> Value {
    match dialect.provider {
        "gemini" => json!({"text": text}),
        "responses" => json!({"type": "input_text", "text": text}),
        _ => json!({"type": "text", "text": text}),
    }
}

#[test]
fn images_and_pdfs_go_before_the_text_in_every_dialect() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "fine");
        let sandbox = Sandbox::new();
        write_files(&sandbox);
        let path = sandbox.home().join("page.pdf");
        let path = path.to_str().expect("a path");
        let args = ["-a", "error.png", "-a", "one.rs", "-a", path, "why?"];
        dialect.q(&sandbox, &server, &args).run().success();
        let said = format!("{ONE}\n\nwhy?");
        // Folders are left out, for privacy.
        let expected = json!([image(dialect), pdf(dialect), text(dialect, &said)]);
        assert_eq!(parts(dialect, &server.request()), expected);
        // An image can be all of a question, and come on standard input.
        dialect
            .q(&sandbox, &server, &["-a", "-"])
            .stdin(PNG)
            .run()
            .success();
        assert_eq!(
            parts(dialect, &server.last_request()),
            json!([image(dialect)])
        );
    }
}

#[test]
fn follow_ups_send_images_again_before_their_text() {
    for dialect in &DIALECTS {
        for (history, expected) in [
            (
                "prompt",
                json!([
                    image(dialect),
                    pdf(dialect),
                    text(
                        dialect,
                        "Previous conversation:\nHuman: why?\n\nAssistant: fine\n\nHuman: and this?"
                    )
                ]),
            ),
            (
                "messages",
                json!([pdf(dialect), text(dialect, "and this?")]),
            ),
        ] {
            let _case = case((dialect.provider, history));
            let server = answering(dialect, "fine");
            let sandbox = Sandbox::new().env("Q_HISTORY", history);
            write_files(&sandbox);
            dialect
                .q(&sandbox, &server, &["-a", "error.png", "why?"])
                .run()
                .success();
            // What is attached does not count towards the limit.
            let q = dialect.q(&sandbox, &server, &["-f", "-a", "page.pdf", "and this?"]);
            q.env("Q_MAX_HISTORY", "10").run().success().stderr("");
            let sent = server.last_request();
            assert_eq!(parts(dialect, &sent), expected);
            assert_eq!(sent.text().matches(PIXEL).count(), 1, "{}", sent.text());
        }
    }
}

#[test]
fn the_file_keeps_what_was_attached() {
    let (server, sandbox) = with_files();
    sandbox
        .q(&["-a", "./error.png", "-a", "one.rs", "why?"])
        .run()
        .success();
    let question = sandbox.current()["messages"][0].clone();
    assert_eq!(question["content"], format!("{ONE}\n\nwhy?"));
    assert_eq!(
        question["attachments"],
        json!([{"name": "./error.png", "type": "image/png", "data": PIXEL}])
    );
    // A question without any has no such field.
    sandbox.q(&["-f", "and?"]).run().success();
    assert_eq!(sandbox.current()["messages"][0], question);
    assert_eq!(sandbox.current()["messages"][2].get("attachments"), None);
    server.expect_requests(2);
}

#[test]
fn an_image_is_kept_where_the_answer_breaks_off() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new()
        .server_env(&server)
        .env("Q_TIMEOUT", "1s")
        .env("Q_RETRIES", "0");
    write_files(&sandbox);
    sandbox.q(&["-a", "error.png", "why?"]).run().exit(1);
    sandbox.expect_answer("first ", true);
    assert_eq!(
        sandbox.current()["messages"][0]["attachments"][0]["data"],
        PIXEL
    );
}

#[test]
fn asking_again_keeps_the_files_until_there_are_others() {
    for (args, input, names, content) in [
        (
            &["--again"][..],
            None,
            &["error.png"][..],
            format!("{ONE}\n\nwhy?"),
        ),
        (
            &["--again", "how?"],
            None,
            &["error.png"],
            format!("{ONE}\n\nhow?"),
        ),
        (
            &["--again", "how?"],
            Some("log"),
            &["error.png"],
            format!("{ONE}\n\n<context>\nlog\n</context>\n\nhow?"),
        ),
        (
            &["--again", "-a", "page.pdf"],
            None,
            &["page.pdf"],
            "why?".to_owned(),
        ),
        (
            &["--again", "-a", "two.rs"],
            Some("log"),
            &[],
            format!("{TWO}\n\n<context>\nlog\n</context>\n\nwhy?"),
        ),
        (&["--again", "-a", "-", "how?"], Some("fn one() {}"), &[], {
            "<file name=\"-\">\nfn one() {}\n</file>\n\nhow?".to_owned()
        }),
    ] {
        let _case = case((args, input));
        let (_server, sandbox) = with_files();
        sandbox
            .q(&["-a", "error.png", "-a", "one.rs", "why?"])
            .run()
            .success();
        let q = sandbox.q(args);
        input
            .into_iter()
            .fold(q, |q, input| q.stdin(input))
            .run()
            .success();
        let question = sandbox.current()["messages"][0].clone();
        let attached = question["attachments"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let attached: Vec<&str> = attached
            .iter()
            .map(|one| one["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(
            (attached.as_slice(), question["content"].as_str()),
            (names, Some(content.as_str()))
        );
        assert_eq!(texts(&sandbox.current()).len(), 2);
    }
}

#[test]
fn a_dry_run_shortens_base64_for_eyes_alone() {
    let sandbox = Sandbox::new().openai_at("http://127.0.0.1:1/v1");
    write_files(&sandbox);
    let outcome = sandbox.q(&["--dry-run", "-a", "error.png", "why?"]).run();
    assert!(outcome.success().stdout_text().contains(PIXEL));
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["--dry-run", "-a", "error.png", "why?"])
        .stdout_to(terminal.end())
        .run()
        .success();
    let shown = String::from_utf8(terminal.bytes()).expect("text");
    let beginning = &PIXEL[..32];
    assert!(
        shown.contains(&format!("{beginning}… (96 bytes of base64)")) && !shown.contains(PIXEL),
        "{shown}"
    );
}

#[test]
fn a_pattern_names_text_and_images_in_order_and_not_what_is_hidden_or_linked() {
    let names = |pattern: &str| -> (Vec<String>, String) {
        let (server, sandbox) = with_files();
        for name in [
            "src/b.rs",
            "src/a.rs",
            "src/in/deep.rs",
            "src/.hidden.rs",
            "src/.git/x.rs",
            "src/[x].rs",
            "in/in/e.rs",
        ] {
            std::fs::create_dir_all(sandbox.home().join(name).parent().expect("a folder"))
                .expect("a folder");
            sandbox.write_home(name, "x");
        }
        sandbox.write_home("src/program", b"\x7fELF\0");
        std::os::unix::fs::symlink("..", sandbox.home().join("src/up")).expect("a link");
        std::os::unix::fs::symlink("b.rs", sandbox.home().join("src/link.rs")).expect("a link");
        let outcome = sandbox.q(&["-a", pattern, "why?"]).run();
        outcome.exit(0);
        let sent = prompt(&server.request());
        let names = sent
            .lines()
            .filter_map(|line| Some(line.split_once("<file name=\"")?.1.trim_end_matches("\">")));
        (names.map(str::to_owned).collect(), outcome.stderr_text())
    };
    for (pattern, found) in [
        ("*.rs", &["one.rs", "two.rs"][..]),
        ("./on[a-f].r?", &["./one.rs"]),
        ("[^o]*.rs", &["two.rs"]),
        (
            "src/**/*.rs",
            &["src/[x].rs", "src/a.rs", "src/b.rs", "src/in/deep.rs"],
        ),
        ("**/deep.rs", &["src/in/deep.rs"]),
        ("in/in/*.rs", &["in/in/e.rs"]),
        (
            "src/*.rs",
            &["src/[x].rs", "src/a.rs", "src/b.rs", "src/link.rs"],
        ),
        ("src/up/on*.rs", &["src/up/one.rs"]),
        ("src/.h*", &["src/.hidden.rs"]),
        ("src/.git/*", &["src/.git/x.rs"]),
        // There is a file of this name.
        ("src/[x].rs", &["src/[x].rs"]),
    ] {
        let _case = case(pattern);
        assert_eq!(
            names(pattern),
            (
                found.iter().map(|name| (*name).to_owned()).collect(),
                String::new()
            )
        );
    }
    let (found, notes) = names("src/**");
    assert_eq!(
        found,
        ["src/[x].rs", "src/a.rs", "src/b.rs", "src/in/deep.rs"]
    );
    assert_eq!(
        notes,
        "q: src/program is neither text nor a JPEG, PNG, GIF, WebP or PDF; it is left out\n"
    );
}

#[test]
fn what_is_no_file_is_left_out_of_a_pattern() {
    let (_server, sandbox) = with_files();
    make_pipe(&sandbox.home().join("pipe.rs"));
    std::os::unix::fs::symlink("nowhere", sandbox.home().join("gone.rs")).expect("a link");
    std::fs::create_dir(sandbox.home().join("folder.rs")).expect("a folder");
    let outcome = sandbox.q(&["-a", "*.rs", "why?"]).run();
    let left_out = |name: &str| format!("q: {name} is not a regular file; it is left out\n");
    outcome
        .exit(0)
        .stderr_contains_all(&[left_out("pipe.rs"), left_out("gone.rs")])
        .stderr_has_lines(2);
}

#[test]
fn a_folder_that_cannot_be_listed_is_left_out_of_a_pattern() {
    let (_server, sandbox) = with_files();
    let closed = sandbox.home().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, Permissions::from_mode(0o300)).expect("a mode");
    let outcome = sandbox.q(&["-a", "**/*.rs", "why?"]).obeying_modes().run();
    outcome
        .exit(0)
        .stderr("q: cannot list closed: Permission denied (os error 13); it is left out\n");
}

#[test]
fn the_commands_with_files_of_the_documents_work() {
    let (server, sandbox) = with_files();
    sandbox.write_home("main.rs", "fn main() {}\n");
    let sent = |command: &str| {
        sandbox.shell(command).run().success();
        server.last_request().json()["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("a message")["content"]
            .clone()
    };
    let both = sent(shown("q -a error.png -a main.rs \"what went wrong?\""));
    assert_eq!(
        (&both[0], both.as_array().map(Vec::len)),
        (&image(&DIALECTS[0]), Some(2))
    );
    // A follow-up has the screenshot too.
    assert_eq!(
        sent(shown("q -f \"how do I fix it?\""))[0],
        image(&DIALECTS[0])
    );
    let plan = shown("curl -s https://example.com/plan.pdf | q -a - \"when does it open?\"");
    let plan = sent(&plan.replace("curl -s https://example.com/plan.pdf", "cat page.pdf"));
    assert_eq!(
        plan[0]["file"]["file_data"],
        format!("data:application/pdf;base64,{PDF_DATA}")
    );
    let copied = shown("wl-paste -t image/png | q -a - \"what does this say?\"");
    assert_eq!(
        sent(&copied.replace("wl-paste -t image/png", "cat error.png"))[0],
        image(&DIALECTS[0])
    );
}

#[test]
fn what_a_command_prints_is_a_file_in_a_shell_that_knows_how() {
    let (server, sandbox) = numbered();
    let command =
        shown("q -a <(git diff main) -a notes.txt \"does the change do what the notes say?\"");
    sandbox.write_home("notes.txt", "notes\n");
    sandbox.write_home("run.sh", command.replace("git diff main", "echo changed"));
    sandbox.shell("bash run.sh").run().success();
    let sent = prompt(&server.request());
    assert!(
        sent.starts_with("<file name=\"/dev/fd/")
            && sent.contains("\nchanged\n</file>\n\n<file name=\"notes"),
        "{sent}"
    );
}

#[test]
fn a_name_that_is_not_utf8_or_has_a_line_end_is_shown_on_one_line() {
    let (server, sandbox) = numbered();
    let name = OsStr::from_bytes(b"gr\xFCn.png");
    std::fs::write(sandbox.home().join(name), PNG).expect("a file");
    let outcome = sandbox.q(&["-a"]).arg(name).arg("why?").run();
    outcome
        .exit(0)
        .stderr("q: the name of a file is not all UTF-8: its other bytes are sent as U+FFFD\n");
    sandbox.write_home("two\nq: lines.png", PNG);
    let outcome = sandbox.q(&["-v", "-a", "two\nq: lines.png", "why?"]).run();
    outcome
        .exit(0)
        .stderr_contains("message 1: two q: lines.png, image/png");
    server.expect_requests(2);
}

#[test]
fn a_signal_while_a_file_is_waited_for_leaves_the_terminal_clean() {
    let (_server, sandbox) = numbered();
    make_pipe(&sandbox.home().join("pipe"));
    let terminal = Terminal::new(WIDE);
    let q = sandbox
        .q(&["-a", "pipe", "why?"])
        .stdout_to(terminal.end())
        .stderr_to(terminal.end());
    let mut running = q.spawn();
    terminal.wait_for("waiting for pipe", 0);
    running.signal(libc::SIGINT);
    running.wait().killed_by(libc::SIGINT);
    assert_eq!(terminal.screen(), [""]);
}

// ---- In the files of conversations, and where these are shown

/// Two exchanges, the first with an image.
fn talked() -> Value {
    with_attachments(
        idle_for(HOUR, &["what went wrong?", "a", "and now?", "b"]),
        0,
        &[error_png()],
    )
}

fn error_png() -> Value {
    attachment("error.png", "image/png", PIXEL)
}

/// An image that has so many bytes in base64.
fn png(name: &str, bytes: usize) -> Value {
    attachment(name, "image/png", &"A".repeat(bytes))
}

#[test]
fn a_follow_up_leaves_attachments_as_the_file_has_them() {
    for (name, ask) in [
        ("current.json", &["-f", "more"][..]),
        ("work.json", &["-s", "work", "more"]),
    ] {
        let (server, sandbox) = numbered();
        let talked = talked();
        sandbox.write_session(name, &talked);
        sandbox.q(ask).run().success().stderr_is_empty();
        assert_eq!(sandbox.session(name)["messages"][0], talked["messages"][0]);
        assert_eq!(texts(&sandbox.session(name))[4], "more");
        server.expect_requests(1);
    }
}

#[test]
fn a_history_names_attachments() {
    let attachments = [
        error_png(),
        attachment(
            "big\u{1b}[31m.pdf\n[x]",
            "application/pdf",
            &"A".repeat(164_000),
        ),
        attachment("old.webp", "image/webp", PIXEL),
    ];
    let conversation = with_attachments(stored(&["what is it?", "a", "", "b"]), 0, &attachments);
    let conversation = with_attachments(conversation, 2, &attachments[..1]);
    let sandbox = Sandbox::new();
    sandbox.write_current(&conversation);
    let big = "[attached: big\u{1b}[31m.pdf [x], application/pdf, 123 kB]\n";
    let expected = format!(
        "[user {CREATED}]\n[attached: error.png, image/png, 1 kB]\n{big}\
         [attached: old.webp, image/webp, 1 kB]\nwhat is it?\n\n[assistant {CREATED} openai/{STORED_MODEL}]\na\n\n\
         [user {CREATED}]\n[attached: error.png, image/png, 1 kB]\n\n\n[assistant {CREATED} openai/{STORED_MODEL}]\nb\n"
    );
    sandbox.q(&["--history"]).run().success().stdout(&expected);
    sandbox
        .q(&["--history", "--json"])
        .run()
        .success()
        .stdout(format!("{conversation}\n"));
    let terminal = Terminal::new(100);
    sandbox
        .q(&["--history"])
        .stdout_to(terminal.end())
        .run()
        .success();
    let lines = terminal.screen();
    assert_eq!(
        lines[2],
        "[attached: big^[[31m.pdf [x], application/pdf, 123 kB]"
    );
}

#[test]
fn an_undo_says_that_its_question_had_attachments() {
    for (attachments, note) in [
        (
            vec![error_png()],
            "q: the images and PDFs of the question are not printed\n",
        ),
        (vec![], ""),
    ] {
        for json in [false, true] {
            let _case = case((note, json));
            let sandbox = Sandbox::new();
            let talked = talked();
            sandbox.write_current(&with_attachments(talked.clone(), 2, &attachments));
            let before = sandbox.read_bytes("current.json");
            let args = if json {
                &["--undo", "--json"][..]
            } else {
                &["--undo"]
            };
            let id = id_of(&talked);
            let printed = match json {
                true => format!("{{\"id\":\"{id}\",\"question\":\"and now?\"}}\n"),
                false => "and now?\n".to_owned(),
            };
            sandbox.q(args).run().exit(0).stdout(printed).stderr(note);
            sandbox.expect_texts("current.json", &["what went wrong?", "a"]);
            assert_eq!(
                sandbox.current()["messages"][0]["attachments"],
                json!([error_png()])
            );
            sandbox.expect_bytes(&sandbox.only_archived(), before);
        }
    }
}

#[test]
fn a_list_shows_names_and_never_data() {
    let sandbox = Sandbox::new();
    let shown = |question: &str, attachments: &[Value]| {
        sandbox.write_current(&with_attachments(stored(&[question, "a"]), 0, attachments));
        let listed = sandbox
            .q(&["--list", "--json"])
            .run()
            .success()
            .stdout_json();
        let question = listed[0]["question"].as_str().expect("text").to_owned();
        let line = format!("{ID}\t{UPDATED}\t2\topenai/{STORED_MODEL}\t{question}\n");
        sandbox.q(&["--list"]).run().success().stdout(line);
        question
    };
    assert_eq!(shown("what is it?", &[error_png()]), "what is it?");
    assert_eq!(shown("", &[error_png()]), "[error.png]");
    assert_eq!(
        shown(" \n", &[error_png(), png("a\tb\n.png", 8)]),
        "[error.png, a b .png]"
    );
    assert_eq!(shown("", &[]), "");
    sandbox.write_current(&talked());
    for words in ["iVBORw0KGgo", "image/png", "error.png"] {
        sandbox
            .q(&["--list", words])
            .run()
            .exit(0)
            .stdout_is_empty()
            .stderr_contains("no message");
    }
    sandbox
        .q(&["--list", "wrong"])
        .run()
        .success()
        .stdout_contains("what went wrong?")
        .stdout_lacks("iVBOR");
}

#[test]
fn the_last_answer_and_a_copy_are_as_without_attachments() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&talked());
    sandbox
        .q(&["--last"])
        .run()
        .success()
        .stdout("b\n")
        .stderr_is_empty();
    sandbox.q(&["--copy", "work"]).run().success();
    assert_eq!(
        sandbox.session("work.json")["messages"],
        sandbox.current()["messages"]
    );
    sandbox
        .q(&["--last", "-s", "work"])
        .run()
        .success()
        .stdout("b\n")
        .stderr_is_empty();
}
