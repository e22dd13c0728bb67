//! `-a`: text files in the question, images and PDFs beside it, and what cannot be attached.

use serde_json::json;

use crate::fixtures::{PIXEL, PNG, attachment, numbered, prompt, shown, stored, with_attachments};
use crate::pty::WIDE;
use crate::sandbox::Sandbox;

#[test]
fn a_dry_run_shortens_base64_for_eyes_alone() {
    let sandbox = Sandbox::new().openai_at("http://127.0.0.1:1/v1");
    sandbox.write_home("error.png", PNG);
    let q = || sandbox.q(&["--dry-run", "-a", "error.png", "why?"]);
    q().run().success().stdout_contains(PIXEL);
    let shown = q().shown_on(WIDE).text();
    let beginning = &PIXEL[..32];
    let is_right =
        shown.contains(&format!("{beginning}… (96 bytes of base64)")) && !shown.contains(PIXEL);
    assert!(is_right, "{shown}");
}

#[test]
fn the_commands_with_files_of_the_documents_work() {
    let (server, sandbox) = numbered();
    sandbox.write_home("error.png", PNG);
    sandbox.write_home("main.rs", "fn main() {}\n");
    let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PIXEL}")}});
    let screenshot = "wl-paste -t image/png | q -a - \"what does this say?\"";
    for (command, file, first) in [
        ("q -a error.png -a main.rs \"what went wrong?\"", "", &image),
        // A follow-up has the screenshot too.
        ("q -f \"how do I fix it?\"", "", &image),
        (screenshot, "cat error.png", &image),
    ] {
        let mut script = shown(command).to_owned();
        if let Some((_, q)) = command.split_once(" | ") {
            script = format!("{file} | {q}");
        }
        sandbox.shell(&script).run().success();
        let sent = server.last_request().json();
        let last = sent["messages"].as_array().and_then(|all| all.last());
        let content = &last.expect("a message")["content"];
        let found = (&content[0], content.as_array().map(Vec::len));
        assert_eq!(found, (first, Some(2)));
    }
}

#[test]
fn what_a_command_prints_is_a_file_in_a_shell_that_knows_how() {
    let (server, sandbox) = numbered();
    let command = shown("q -a <(git diff main) -a notes.txt \"does it do what the notes say?\"");
    sandbox.write_home("notes.txt", "notes\n");
    sandbox.write_home("run.sh", command.replace("git diff main", "echo changed"));
    sandbox.shell("bash run.sh").run().success();
    let sent = prompt(&server.request());
    let is_right = sent.starts_with("<file name=\"/dev/fd/")
        && sent.contains("\nchanged\n</file>\n\n<file name=\"notes");
    assert!(is_right, "{sent}");
}

#[test]
fn a_history_shows_no_controls_of_names_on_a_terminal() {
    let attached = [attachment(
        "big\u{1b}[31m.pdf\n[x]",
        "application/pdf",
        "AAAA",
    )];
    let sandbox = Sandbox::new();
    let conversation = with_attachments(stored(&["what is it?", "a"]), 0, &attached);
    sandbox.write_current(&conversation);
    let shown = sandbox.q(&["--history"]).shown_on(100).screen();
    let expected = "[attached: big^[[31m.pdf [x], application/pdf]";
    assert_eq!(shown[1], expected);
}
