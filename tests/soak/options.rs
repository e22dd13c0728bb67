//! The soak's own command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const USAGE: &str = "\
usage: cargo bench --bench soak -- [--kills N] [--turns N] [--signals N] [--faults N] [--processes N]
                                   [--layers N] [--versions N] [--seed N] [--minutes M] [--jobs J]

Does what the first seven name, N times, with the q that Q_NEW names, or the one that is built with the soak.
--versions runs the q that Q_OLD names, too. --minutes repeats all of it for M minutes.
--jobs is how much is done at once (2). --seed repeats what a finding names: the first batch of each mode
begins with it.";

pub struct Options {
    pub counts: Counts,
    pub seed: u64,
    pub length: Option<Duration>,
    pub jobs: u64,
}

/// How often each mode does what it is named for.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Counts {
    pub kills: u64,
    pub turns: u64,
    pub signals: u64,
    pub faults: u64,
    pub processes: u64,
    pub layers: u64,
    pub versions: u64,
}

impl Options {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.counts == Counts::default()
    }

    /// Reads the arguments; `None` if there is one too many, or one that cannot be read.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut counts = Counts::default();
        let (mut seed, mut minutes, mut jobs) = (now.as_secs() * 1_000_000, None, 2);
        while let Some(argument) = arguments.next() {
            // Cargo's own, for every benchmark.
            if argument == "--bench" {
                continue;
            }
            let value: u64 = arguments.next()?.parse().ok()?;
            match argument.as_str() {
                "--kills" => counts.kills = value,
                "--turns" => counts.turns = value,
                "--signals" => counts.signals = value,
                "--faults" => counts.faults = value,
                "--processes" => counts.processes = value,
                "--layers" => counts.layers = value,
                "--versions" => counts.versions = value,
                "--seed" => seed = value,
                "--minutes" => minutes = Some(value),
                "--jobs" => jobs = value.max(1),
                _ => return None,
            }
        }
        let length = minutes.map(|minutes| Duration::from_secs(minutes * 60));
        Some(Options {
            counts,
            seed,
            length,
            jobs,
        })
    }
}
