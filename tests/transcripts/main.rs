//! Plays the transcripts below this directory through the real q. `README.md` next to this file explains their lines.

mod checks;
mod format;
#[allow(dead_code, reason = "the tests of cli need all of it")]
#[path = "../harness/mod.rs"]
mod harness;
mod keys;
mod matching;
mod replies;
mod servers;
mod stage;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{env, fs, panic};

use libtest_mimic::{Arguments, Failed, Trial};

use format::Case;
use harness::toolserver;
use matching::{Differences, diff};
use stage::{Stage, Variant};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transcripts");

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

/// One trial for each way in which a case is played; in blessing, one for each case that stands in a file as it is.
fn trials() -> Vec<Trial> {
    if env::var_os(BLESS).is_some() {
        let blessing = Arc::new(Mutex::new(()));
        let trial = |case: Case| {
            let blessing = Arc::clone(&blessing);
            Trial::test(case.full_name.clone(), move || {
                let came = quietly(|| bless(&case))?;
                let _one_at_a_time = blessing.lock().expect("no panic");
                format::replace(&case, &came);
                Ok(())
            })
        };
        let cases = all_cases().into_iter().filter(|case| !case.is_row);
        return cases.map(trial).collect();
    }
    let mut trials = each_way(|case, variant, _| {
        let play = || Stage::new(case, variant, None).play(case, false);
        quietly(play).map(drop)
    });
    let checks: [(&str, fn()); 3] = [
        ("cases of @each and @rows", format::check_expansion),
        ("what fits what is expected", matching::check_matching),
        ("the silence of pause", replies::check_pause),
    ];
    for (name, check) in checks {
        let check = move || {
            quietly(|| {
                check();
                Ok(())
            })
        };
        trials.push(Trial::test(format!("the runner: {name}"), check));
    }
    trials
}

/// The old program does in each case what today's does.
fn comparisons(old: &Path) -> Vec<Trial> {
    let expected = Differences::read();
    let old = fs::canonicalize(old).expect("the other program");
    each_way(move |case, variant, name| {
        if expected.names(name) {
            return Ok(());
        }
        let record = |program| Ok(Stage::new(case, variant, program).record(case));
        let (before, now) = (quietly(|| record(Some(&old)))?, quietly(|| record(None))?);
        if before == now {
            return Ok(());
        }
        // What is expected is what the other program did.
        Err(diff(&before, &now).into())
    })
}

/// One trial for each way in which a case is played.
fn each_way(
    action: impl Fn(&Case, &Variant, &str) -> Result<(), Failed> + Send + Sync + 'static,
) -> Vec<Trial> {
    let action = Arc::new(action);
    let mut trials = Vec::new();
    for case in all_cases() {
        for variant in Variant::all(&case) {
            let (case, action) = (case.clone(), Arc::clone(&action));
            let name = case.full_name.clone() + &variant.suffix();
            let test = {
                let name = name.clone();
                move || action(&case, &variant, &name)
            };
            trials.push(Trial::test(name, test));
        }
    }
    trials
}

/// What came of a case, in every way in which it is played. Where two ways differ, the line has a wildcard.
fn bless(case: &Case) -> Result<Case, String> {
    let mut came = case.clone();
    for (index, variant) in Variant::all(case).iter().enumerate() {
        let other = Stage::new(case, variant, None).play(&came, true)?;
        came = if index == 0 {
            other
        } else {
            came.merged(other)
        };
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
    collect(Path::new(DIRECTORY), &mut paths);
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path
            .strip_prefix(DIRECTORY)
            .expect("a path below the directory");
        let name = name.with_extension("").display().to_string();
        cases.extend(format::read(&path, &name));
    }
    let names: HashSet<&str> = cases.iter().map(|case| &*case.full_name).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    cases
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the transcripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
}
