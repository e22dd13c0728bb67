//! What a terminal shows of attachments. All else is in `tests/transcripts/ask/attach.txt`.

use crate::conversations::{PIXEL, PNG, attachment, stored, with_attachments};
use crate::pty::WIDE;
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
