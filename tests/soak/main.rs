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
use options::{Counts, Options};
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
        fs_err::remove_dir_all(&findings)?;
    }
    let deadline = options.length.map(|length| Instant::now() + length);
    let work = tempfile::Builder::new().prefix("soak").tempdir_in(target)?;
    let soak = Soak::new(work, findings, deadline)?;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&soak.stop))?;
    }
    eprintln!("soak: --seed {}", options.seed);
    let Counts {
        kills,
        turns,
        signals,
        faults,
        processes,
        layers,
        versions,
    } = options.counts;
    let tracer = Faults::new();
    if tracer.is_none() && faults > 0 {
        eprintln!("soak: there is no strace, or it may not trace: faults are skipped");
    }
    let layer = Under::library(target);
    if layer.is_none() && layers > 0 {
        eprintln!("soak: there is no compiler for C: layers are skipped");
    }
    let old = std::env::var_os("Q_OLD").map(|program| Under::Program(program.into()));
    if old.is_none() && versions > 0 {
        eprintln!("soak: Q_OLD names no older q: versions are skipped");
    }
    let confines = processes > 0 && processes::can_confine(&soak)?;
    if !confines && processes > 0 {
        eprintln!("soak: this kernel cannot confine programs: confined commands are skipped");
    }
    let mut seed = options.seed;
    loop {
        drive(&soak, options, seed, kills, &kills::batch)?;
        drive(&soak, options, seed, turns, &turns::batch)?;
        drive(&soak, options, seed, signals, &signals::batch)?;
        if let Some(tracer) = &tracer {
            let batch = |soak: &Soak, seed, rounds| tracer.batch(soak, seed, rounds);
            drive(&soak, options, seed, faults, &batch)?;
        }
        let batch = |soak: &Soak, seed, rounds| processes::batch(soak, seed, rounds, confines);
        drive(&soak, options, seed, processes, &batch)?;
        for (under, rounds) in [(&layer, layers), (&old, versions)] {
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

/// Plays `rounds` rounds of a mode, in batches. Several batches run at once.
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
                let seed = seed + number;
                batch(soak, seed, rounds).map_err(|error| {
                    io::Error::new(error.kind(), format!("--seed {seed}: {error}"))
                })?;
            }
        };
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker that does not panic"))
    })
}
