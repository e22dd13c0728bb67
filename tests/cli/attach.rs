//! What a terminal shows of attachments. All else is in `tests/transcripts/input/attach.txt`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::conversations::{PIXEL, PNG, attachment, stored, with_attachments};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;

#[test]
fn a_dry_run_shortens_base64_only_on_a_terminal() {
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
fn a_history_on_a_terminal_escapes_control_characters_in_names_of_files() {
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

#[test]
fn the_spinner_says_that_files_are_searched_for() {
    let sandbox = Sandbox::new().openai_at("http://127.0.0.1:1/v1");
    fs::create_dir(sandbox.home().join(".git")).expect("a directory");
    sandbox.write_home("a.rs", "x");
    // The search waits for git, which is as slow as a large disk.
    sandbox.write_home("git", "#!/bin/sh\nsleep 1\nexit 1\n");
    let git = sandbox.home().join("git");
    fs::set_permissions(git, PermissionsExt::from_mode(0o755)).expect("a file");
    let path = format!("{}:/usr/bin:/bin", sandbox.home().display());
    let sandbox = sandbox.env("PATH", path);
    let terminal = Terminal::new(WIDE);
    let q = sandbox.q(&["--dry-run", "-a", "*.rs", "why?"]);
    let running = q.on(&terminal).spawn();
    terminal.wait_for("searching for the files of *.rs, ", 0);
    running.wait().exit(0);
    let screen = terminal.screen();
    let is_erased = !screen.iter().any(|line| line.contains("searching"));
    assert!(is_erased && screen[0].contains("a.rs"), "{screen:?}");
}
