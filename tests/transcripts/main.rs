//! Plays the transcripts below this folder through the real q. `README.md` beside this file explains their lines.

#![allow(
    unsafe_code,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::match_bool,
    clippy::needless_for_each,
    clippy::semicolon_if_nothing_returned,
    clippy::shadow_unrelated,
    clippy::single_match_else
)]

mod checks;
mod compare;
mod format;
#[path = "../harness/mod.rs"]
mod harness;
mod replies;
mod servers;
mod stage;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{env, fs, panic};

use libtest_mimic::{Arguments, Failed, Trial};

use compare::Differences;
use format::{Case, File};
use harness::toolserver;
use stage::{Stage, Variant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");

/// The variable that makes the runner write what came in place of what was expected.
const BLESS: &str = "BLESS";

/// The variable that names another q, through which the same transcripts are played.
const OLD: &str = "Q_OLD";

fn main() {
    // q starts this program again as its tool server.
    toolserver::serve_if_asked();
    let mut arguments = Arguments::from_args();
    // .cargo/config.toml says how many run at once.
    let usual = env::var("RUST_TEST_THREADS").ok();
    let usual = usual.and_then(|count| count.parse().ok());
    arguments.test_threads = arguments.test_threads.or(usual);
    let trials = match env::var_os(OLD) {
        Some(path) => comparisons(&PathBuf::from(path)),
        None => trials(),
    };
    libtest_mimic::run(&arguments, trials).exit();
}

/// One trial for each way in which a case is played; in blessing, one for each case.
fn trials() -> Vec<Trial> {
    let is_blessing = env::var_os(BLESS).is_some();
    let blessed = Arc::new(Mutex::new(()));
    let mut trials = Vec::new();
    for case in all_cases() {
        let case = Arc::new(case);
        let variants = Variant::all(&case);
        if is_blessing {
            let blessed = Arc::clone(&blessed);
            let name = case.full_name();
            trials.push(Trial::test(name, move || {
                let came = quietly(|| bless(&case, &variants))?;
                let _one_at_a_time = blessed.lock().expect("no panic");
                format::replace(&case, &came);
                Ok(())
            }));
            continue;
        }
        for variant in variants {
            let case = Arc::clone(&case);
            let name = case.full_name() + &variant.suffix();
            trials.push(Trial::test(name, move || {
                quietly(|| Stage::new(&case, &variant, None).play(&case))
            }));
        }
    }
    trials
}

/// One trial for each case: the old program does what today's does.
fn comparisons(old: &Path) -> Vec<Trial> {
    let expected = Arc::new(Differences::read());
    let old = fs::canonicalize(old).expect("the other program");
    let mut trials = Vec::new();
    for case in all_cases() {
        for variant in Variant::all(&case) {
            let (case, expected, old) = (case.clone(), Arc::clone(&expected), old.clone());
            let name = case.full_name() + &variant.suffix();
            trials.push(Trial::test(name.clone(), move || {
                if expected.names(&name) {
                    return Ok(());
                }
                let records = quietly(|| {
                    let before = Stage::new(&case, &variant, Some(&old)).record(&case)?;
                    let now = Stage::new(&case, &variant, None).record(&case)?;
                    Ok((before, now))
                })?;
                compare::same(&records.0, &records.1).map_err(Failed::from)
            }));
        }
    }
    trials
}

/// What came of a case, in every way in which it is played. Where two ways differ, the line has a wildcard.
fn bless(case: &Case, variants: &[Variant]) -> Result<Case, String> {
    let mut came = Stage::new(case, &variants[0], None).bless(case)?;
    for variant in &variants[1..] {
        let other = Stage::new(case, variant, None).bless(&came)?;
        came = came.merged(other);
    }
    Ok(came)
}

/// The result of an action, in which an assertion that fails is an error.
fn quietly<T>(action: impl FnOnce() -> Result<T, String>) -> Result<T, Failed> {
    let result = panic::catch_unwind(panic::AssertUnwindSafe(action));
    match result {
        Ok(result) => result.map_err(Failed::from),
        Err(_) => Err("it panicked, see above".into()),
    }
}

/// The cases of every file. No two have one name.
fn all_cases() -> Vec<Case> {
    let mut paths = Vec::new();
    collect(Path::new(FOLDER), &mut paths);
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.strip_prefix(FOLDER).expect("a path below the folder");
        let name = name.with_extension("").display().to_string();
        cases.extend(File::read(&path, &name).cases);
    }
    let names: HashSet<String> = cases.iter().map(Case::full_name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    cases
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the transcripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
}
