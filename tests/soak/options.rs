//! The soak's own command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const USAGE: &str = "\
usage: cargo bench --bench soak -- [--kills N] [--turns N] [--signals N] [--faults N]
                                   [--seed N] [--minutes M] [--jobs J]

Does what the first four name, so often. --minutes repeats all of it until so much time has passed. --jobs is how
much is done at once (2). --seed repeats what a finding names: the first batch of each mode begins with it.";

pub struct Options {
    pub kills: u64,
    pub turns: u64,
    pub signals: u64,
    pub faults: u64,
    pub seed: u64,
    pub length: Option<Duration>,
    pub jobs: u64,
}

impl Options {
    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        [self.kills, self.turns, self.signals, self.faults] == [0; 4]
    }

    /// Reads the arguments; `None` if there is one too many, or one that cannot be read.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let (mut counts, mut seed, mut minutes, mut jobs) =
            ([0; 4], now.as_secs() * 1_000_000, None, 2);
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
                "--seed" => seed = value,
                "--minutes" => minutes = Some(value),
                "--jobs" => jobs = value.max(1),
                _ => return None,
            }
        }
        let [kills, turns, signals, faults] = counts;
        let length = minutes.map(|minutes| Duration::from_secs(minutes * 60));
        Some(Options {
            kills,
            turns,
            signals,
            faults,
            seed,
            length,
            jobs,
        })
    }
}
