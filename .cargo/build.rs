//! Makes the program smaller, and tells it its commit: in a release build, from a clone whose sources are those of the commit.

use std::process::Command;

/// What the program is made of.
const SOURCES: [&str; 4] = ["src", ".cargo/build.rs", "Cargo.toml", "Cargo.lock"];

fn main() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // Other builds would only be made again after each commit.
    let is_release = variable("PROFILE") == "release";
    // The index of the tables for unwinding is 1% of the program, which ends at a panic without unwinding.
    if is_release && variable("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
    // A packager's own repository may be around the unpacked sources.
    let is_clone = std::path::Path::new(".git").exists();
    if !is_release || !is_clone {
        return;
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={}", log.trim());
    }
    let mut changes = vec!["status", "--porcelain", "--"];
    changes.extend(SOURCES);
    let is_clean = git(&changes).is_some_and(|changes| changes.is_empty());
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_default();
    if let Some(short) = commit.get(..12)
        && is_clean
    {
        println!("cargo::rustc-env=Q_COMMIT={short}");
    }
}

/// What cargo says about this build.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// What git prints; without git, and where it fails, nothing is known.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()
}
