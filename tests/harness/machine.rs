//! What this machine has, and what is skipped where it lacks that; and libraries that change what q sees of it.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use super::fixtures::repository_file;
use super::sandbox::Sandbox;

/// Whether a program cannot be used here, and the test is skipped. The trial must succeed where it can.
#[track_caller]
pub fn lacks(program: &str, trial: &str) -> bool {
    let tried = Sandbox::new().shell(trial).run();
    let lacks = !tried.status.success();
    if lacks {
        let why = tried.stderr_text();
        skip(&format!("{program} cannot be used here: {why}"));
    }
    lacks
}

/// Whether this kernel cannot hold a confined command, by what q says of one. Then the test is skipped.
#[track_caller]
pub fn cannot_confine() -> bool {
    let sandbox = Sandbox::new();
    sandbox.config("[tools.x]\nconfine = {}\n[tools.x.ls]\nrun = [\"ls\"]\n");
    let listed = sandbox.q(&["--list-tools"]).run();
    let lacks = listed.stderr_text().contains("cannot be confined");
    if lacks {
        skip(&listed.stderr_text());
    }
    lacks
}

/// Says why a test is skipped. With `SKIP_NO_TEST` in the environment that is a failure.
#[track_caller]
pub fn skip(why: &str) {
    let is_allowed = env::var_os("SKIP_NO_TEST").is_none();
    assert!(is_allowed, "it would be skipped: {why}");
    // A test that passes does not show what the macros print; `.ci/run` counts these lines.
    writeln!(io::stderr(), "skipped: {}", why.trim_end()).expect("standard error");
}

/// How many times as fast as others the clock of `fast_clock` runs.
pub const FASTER: u32 = 100;

/// A library to preload, with which the clock of q runs so fast; nothing where there is no compiler for C.
pub fn fast_clock(sandbox: &Sandbox) -> Option<PathBuf> {
    library(sandbox, "clock", "tests/cli/fast_clock.c")
}

/// A library to preload, which puts a layer under q: the variable `LAYER` names what the file system does.
pub fn layer(sandbox: &Sandbox) -> Option<PathBuf> {
    library(sandbox, "layer", "tests/soak/layer.c")
}

fn library(sandbox: &Sandbox, name: &str, source: &str) -> Option<PathBuf> {
    if lacks("a compiler for C", "cc --version") {
        return None;
    }
    sandbox.write_home(&format!("{name}.c"), repository_file(source));
    let compile = format!("cc -shared -fPIC -o {name}.so {name}.c -ldl");
    sandbox.shell(&compile).run().success();
    Some(sandbox.home().join(format!("{name}.so")))
}
