//! Tests of the harness itself: what the other tests stand on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{self, AssertUnwindSafe};

use crate::sandbox::Sandbox;
use crate::screen::screen;
use crate::server::Server;
use crate::snapshot::snapshot;
use crate::times::{HOUR, age};

#[test]
fn a_program_gets_only_the_environment_of_the_sandbox() {
    let sandbox = Sandbox::new();
    let environment = sandbox.shell("/usr/bin/env -u PWD -u PATH -u _ -u SHLVL | sort");
    let expected = format!(
        "HOME={0}/home\nXDG_CONFIG_HOME={0}/config\nXDG_STATE_HOME={0}/state\n",
        sandbox.root().display()
    );
    environment.run().success().stdout(expected);
}

#[test]
fn a_snapshot_lists_files_that_were_added_removed_or_changed() {
    let sandbox = Sandbox::new();
    for name in ["changed", "removed", "same"] {
        sandbox.write_home(name, name);
    }
    let before = snapshot(sandbox.home());
    before.expect_unchanged();
    let script = "echo >changed; rm removed; mkdir directory; echo >directory/added";
    sandbox.shell(script).run().success();
    let expected = [
        "+ directory/",
        "+ directory/added",
        "- removed",
        "~ changed",
    ];
    assert_eq!(before.changes(), expected);
    let before = snapshot(sandbox.home());
    // The same bytes, written again.
    age(&sandbox.home().join("same"), HOUR);
    assert_eq!(before.changes(), ["~ same"]);
    panic::catch_unwind(AssertUnwindSafe(|| before.expect_unchanged())).expect_err("a change");
}

#[test]
fn a_screen_shows_what_a_terminal_would_show() {
    // What is written on a screen of six columns, and its lines.
    for (written, lines) in [
        ("", &[""][..]),
        ("ab\r\ncd", &["ab", "cd"]),
        // The cursor goes back, and only what is written over is gone.
        ("abc\rx", &["xbc"]),
        ("abc\rxy\rz", &["zyc"]),
        // A line that is full goes on in the next one with the next character, and not before.
        ("abcdef", &["abcdef"]),
        ("abcdef\r\n", &["abcdef", ""]),
        ("abcdef\rx", &["xbcdef"]),
        ("abcdefg", &["abcdef", "g"]),
        ("abcdefg\rx", &["abcdef", "x"]),
        // Erased is what is right of the cursor.
        ("abc\r\u{1b}[K", &[""]),
        ("abc\rx\u{1b}[K", &["x"]),
        ("abc\u{1b}[K", &["abc"]),
        ("abcdefgh\r\u{1b}[Kx", &["abcdef", "x"]),
        // A wide character takes two columns, and is not cut at the end of a line.
        ("日本語", &["日本語"]),
        ("a日本語", &["a日本", "語"]),
        ("abcde日", &["abcde", "日"]),
        // Of one that is written over by half, the other half is blank.
        ("日本\rx", &["x 本"]),
        ("x日\rab", &["ab "]),
        ("abc\r日", &["日c"]),
        ("a日b\r日", &["日 b"]),
        ("日本\ra\u{1b}[K", &["a"]),
        // What is drawn over a character takes no column, nor does what is joined to one.
        ("e\u{301}x", &["e\u{301}x"]),
        ("abcdee\u{301}", &["abcdee\u{301}"]),
        ("👩\u{200d}💻abcd", &["👩\u{200d}💻abcd"]),
        ("🇩🇪🇫🇷ab", &["🇩🇪🇫🇷ab"]),
        ("👍\u{1f3fd}abcd", &["👍\u{1f3fd}abcd"]),
        // A tab leads to the next stop, and not beyond the last column.
        ("a\tb", &["a\t", "b"]),
        // Styles take no room.
        ("\u{1b}[1;31mabc\u{1b}[0mdef", &["abcdef"]),
        ("\u{1b}[mabc\r\u{1b}[2mx\u{1b}[0m\u{1b}[K", &["x"]),
    ] {
        assert_eq!(screen(written.as_bytes(), 6), lines, "{written:?}");
    }
    // Twelve characters fit behind the first stop.
    assert_eq!(screen(b"ab\tcdefghijklmno", 20), ["ab\tcdefghijklmn", "o"]);
}

#[test]
fn a_screen_fails_by_what_q_may_not_write() {
    for written in [
        "a\nb",
        "a\u{7}",
        "a\u{8}b",
        "\u{1b}[2J",
        "\u{1b}[1A",
        "\u{1b}[1;1H",
        "\u{1b}]0;title\u{7}",
        "\u{9b}2J",
    ] {
        let shown = panic::catch_unwind(|| screen(written.as_bytes(), 6));
        assert!(shown.is_err(), "{written:?}: {shown:?}");
    }
}

#[test]
fn a_handler_that_panics_fails_the_test() {
    let server = Server::start(|_, _| panic!("expected by this test"));
    let mut client = TcpStream::connect(server.address()).unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        .unwrap();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    panic::catch_unwind(AssertUnwindSafe(|| drop(server))).expect_err("no panic");
}
