//! The programs that are measured next to q, and how programs are started.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pseudo_terminal;

pub const Q: &str = env!("CARGO_BIN_EXE_q");

/// A question as curl asks it.
pub const BODY: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"question"}]}"#;

/// A program whose output nobody reads.
pub fn quiet(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    command
}

pub fn with<A: AsRef<OsStr>>(
    mut command: Command,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    command.args(arguments);
    command
}

/// A command that trusts the authorities in this file.
pub fn with_authority(mut command: Command, file: &Path) -> Command {
    command.env("SSL_CERT_FILE", file);
    command
}

pub fn curl(server: &str) -> Command {
    posting(server, BODY)
}

/// curl that posts these data, or `@-` for what it reads.
pub fn posting(server: &str, data: &str) -> Command {
    let command = with(
        quiet("curl"),
        ["-sN", "-H", "content-type: application/json"],
    );
    let url = format!("{server}/v1/chat/completions");
    with(command, ["-d", data, &url])
}

/// Compiles the bare client, statically linked; `None` where that cannot be done.
pub fn bare_client() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/client.rs");
    let compiled = Command::new("rustc")
        .args("--edition 2024 -O -C target-feature=+crt-static -C panic=abort -o".split(' '))
        .arg(&path)
        .arg(source)
        .output();
    match compiled {
        Ok(output) if output.status.success() => Some(path),
        // Its line is missing.
        _ => None,
    }
}

/// A pseudo-terminal on which everything is read at once.
pub fn drained_terminal() -> OwnedFd {
    let (mut own, program) = pseudo_terminal::open(80).expect("a pseudo-terminal");
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while own.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    program
}
