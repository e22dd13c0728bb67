//! The soak's own command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const USAGE: &str = "\
usage: cargo bench --bench soak -- [--kills N] [--turns N] [--signals N] [--faults N] [--processes N]
                                   [--layers N] [--versions N] [--seed N] [--minutes M] [--jobs J]

Does what the first seven name, so often. --versions runs the q that Q_OLD names beside this one. --minutes repeats all of it until so much time has passed. --jobs is how
much is done at once (2). --seed repeats what a finding names: the first batch of each mode begins with it.";

pub struct Options {
    /// How many kills, turns, signals, faults, processes, layers and versions.
    pub counts: [u64; 7],
    pub seed: u64,
    pub length: Option<Duration>,
    pub jobs: u64,
}

impl Options {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.counts == [0; 7]
    }

    /// Reads the arguments; `None` if there is one too many, or one that cannot be read.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let (mut counts, mut seed, mut minutes, mut jobs) =
            ([0; 7], now.as_secs() * 1_000_000, None, 2);
        while let Some(argument) = arguments.next() {
            // Cargo's own, for every benchmark.
            if argument == "--bench" {
                continue;
            }
            let value: u64 = arguments.next()?.parse().ok()?;
            match argument.as_str() {
                "--kills" => counts[0] = value,
                "--turns" => counts[1] = value,
                "--signals" => counts[2] = value,
                "--faults" => counts[3] = value,
                "--processes" => counts[4] = value,
                "--layers" => counts[5] = value,
                "--versions" => counts[6] = value,
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
