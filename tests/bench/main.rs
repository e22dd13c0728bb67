//! How fast q is compared with others, side by side in one run. Prints medians and ratios as the table of README.md in this directory,
//! and judges nothing.
//!
//! `cargo bench --bench speed`, or with names of its parts after `--`: `cargo bench --bench speed -- short long`. State is on
//! /dev/shm where that is there, so that the cost of fsync on a disk can be seen. The static archive takes part where `.ci/run`
//! has built it, and an older q where `Q_OLD` names one.

#[path = "../harness/authority.rs"]
mod authority;
mod bench;
mod distance;
#[path = "../harness/http.rs"]
mod http;
mod instructions;
mod parts;
mod programs;
#[path = "../harness/pseudo_terminal.rs"]
mod pseudo_terminal;
mod runs;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use bench::Bench;
use parts::PARTS;
use parts::long::LONG;
use parts::short::SHORT;
use programs::bare_client;
use server::Server;

/// The static archive, where `.ci/run` builds it.
const STATIC: &str = "target/oldest/x86_64-unknown-linux-musl/release/q";

fn main() {
    // A server is a process of its own: a child is charged with the memory of the one that it was forked from.
    if server::serve_if_asked() {
        return;
    }
    build_without_tests();
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let memory = Path::new("/dev/shm");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let fast = if memory.is_dir() { memory } else { target };
    let state = tempfile::tempdir_in(fast).expect("a directory");
    let disk = tempfile::tempdir_in(target).expect("a directory");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(STATIC);
    let (short, long) = (Server::start(SHORT, None), Server::start(LONG, None));
    let bench = Bench {
        short: short.address.clone(),
        long: long.address.clone(),
        state: state.path().to_owned(),
        disk: disk.path().to_owned(),
        client: bare_client(),
        archive: Some(archive).filter(|archive| archive.is_file()),
        old: std::env::var_os("Q_OLD").map(PathBuf::from),
    };
    println!("| | q | compared with | ratio | goal |\n|---|---|---|---|---|");
    for (name, measure) in PARTS {
        if parts.is_empty() || parts.iter().any(|part| part == name) {
            measure(&bench);
        }
    }
}

/// Builds q again as it is installed. Beside the bench it has the features that libraries of the tests ask for, such as the
/// tables of Unicode that proptest wants: half a megabyte of the program, and more of its memory.
fn build_without_tests() {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "q is built");
}
