//! A soak: hammers the release binary with kills, with runs at once, with signals and with failing system calls, and checks
//! that nothing acknowledged is ever lost, torn, doubled or left over.
//!
//! `cargo bench --bench soak -- --kills 10000 --turns 10000 --signals 2000 --faults 3000`

mod command;
mod faults;
#[allow(dead_code, reason = "the tests of cli need all of it")]
#[path = "../harness/mod.rs"]
mod harness;
mod image;
mod kills;
mod layers;
mod model;
mod options;
mod processes;
mod question;
mod random;
mod report;
mod role;
mod run;
mod scene;
mod server;
mod signals;
mod sink;
mod snapshot;
mod soak;
mod strace;
mod toolserver;
mod turns;
mod world;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use faults::Faults;
use harness::pseudo_terminal;
use layers::Under;
use options::Options;
use report::{Kind, Part};
use soak::Soak;

/// How many rounds are in one batch, which has a seed and at least one world of its own.
const BATCH: u64 = 50;

fn main() -> ExitCode {
    if toolserver::run() {
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{}", options::USAGE);
        return ExitCode::from(2);
    };
    // A plain `cargo bench` comes here too.
    if options.is_idle() {
        eprintln!("{}", options::USAGE);
        return ExitCode::SUCCESS;
    }
    match soak(&options) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether anything was found.
fn soak(options: &Options) -> io::Result<bool> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let findings = target.with_file_name("soak").join(options.seed.to_string());
    if findings.exists() {
        std::fs::remove_dir_all(&findings)?;
    }
    let deadline = options.length.map(|length| Instant::now() + length);
    let work = tempfile::Builder::new().prefix("soak").tempdir_in(target)?;
    let soak = Soak::new(work, findings, deadline)?;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&soak.stop))?;
    }
    eprintln!("soak: --seed {}", options.seed);
    let [
        kill_count,
        turn_count,
        signal_count,
        fault_count,
        process_count,
        layer_count,
        version_count,
    ] = options.counts;
    let faults = Faults::new();
    if faults.is_none() && fault_count > 0 {
        eprintln!("soak: there is no strace, or it may not trace: faults are skipped");
    }
    let layer = Under::library(target);
    if layer.is_none() && layer_count > 0 {
        eprintln!("soak: there is no compiler for C: layers are skipped");
    }
    let old = std::env::var_os("Q_OLD").map(|program| Under::Program(program.into()));
    if old.is_none() && version_count > 0 {
        eprintln!("soak: Q_OLD names no older q: versions are skipped");
    }
    let confines = process_count > 0 && processes::can_confine(&soak)?;
    if !confines && process_count > 0 {
        eprintln!("soak: this kernel cannot confine programs: confined commands are skipped");
    }
    let mut seed = options.seed;
    loop {
        drive(&soak, options, seed, kill_count, &kills::batch)?;
        drive(&soak, options, seed, turn_count, &turns::batch)?;
        drive(&soak, options, seed, signal_count, &signals::batch)?;
        if let Some(faults) = &faults {
            let batch = |soak: &Soak, seed, rounds| faults.batch(soak, seed, rounds);
            drive(&soak, options, seed, fault_count, &batch)?;
        }
        let batch = |soak: &Soak, seed, rounds| processes::batch(soak, seed, rounds, confines);
        drive(&soak, options, seed, process_count, &batch)?;
        for (under, rounds) in [(&layer, layer_count), (&old, version_count)] {
            if let Some(under) = under {
                let batch = |soak: &Soak, seed, rounds| under.batch(soak, seed, rounds);
                drive(&soak, options, seed, rounds, &batch)?;
            }
        }
        if deadline.is_none() || soak.is_over() {
            break;
        }
        seed += 1_000_000;
    }
    let left = toolserver::left(target, None);
    if !left.is_empty() {
        let (mode, seed) = ("all", options.seed);
        let part = Part { mode, seed };
        let what = format!("these processes are left: {left:?}");
        soak.report
            .found(part, Kind::LeftOver, "tools", &what, target);
    }
    Ok(soak.report.print())
}

type Batch<'a> = &'a (dyn Fn(&Soak, u64, u64) -> io::Result<()> + Sync);

/// So many rounds of a mode, in batches. Several batches run at once.
fn drive(soak: &Soak, options: &Options, seed: u64, rounds: u64, batch: Batch) -> io::Result<()> {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let rounds = rounds.saturating_sub(number * BATCH).min(BATCH);
                if rounds == 0 || soak.is_over() {
                    return Ok(());
                }
                batch(soak, seed + number, rounds)?;
            }
        };
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker that does not panic"))
    })
}
