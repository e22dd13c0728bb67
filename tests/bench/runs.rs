//! Runs programs in turn, and takes the medians of what they need.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::table;

/// What is measured: a name, and how to start it.
pub type Contestant<'a> = (&'a str, Box<dyn Fn() -> Command + 'a>);

pub fn contestant<'a>(name: &'a str, command: impl Fn() -> Command + 'a) -> Contestant<'a> {
    (name, Box::new(command))
}

/// One run: how long it took, by the clock and of the processor, and the most memory that it had at once (KiB).
#[derive(Clone, Copy)]
pub struct Run {
    pub time: Duration,
    /// Of the processor, in seconds.
    pub processor: f64,
    pub memory: i64,
}

/// What the runs of one contestant came to: seconds, and bytes.
#[derive(Clone, Copy)]
pub struct Median {
    pub seconds: f64,
    pub processor: f64,
    pub memory: f64,
}

/// The median of each contestant.
pub struct Results(Vec<(String, Median)>);

impl Results {
    pub fn of(&self, name: &str) -> Median {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.expect(name).1
    }

    /// Prints a line of the table: how many times as long one of them takes as `other`. `label` is what the line calls that one.
    pub fn times(&self, what: &str, name: &str, label: &str, other: &str, goal: &str) {
        let (q, other) = (self.of(name).seconds, self.of(other).seconds);
        table::times(what, q, label, other, goal);
    }

    /// Prints a line that says how much more one of them takes than `other`, in time and in memory.
    pub fn more(&self, what: &str, name: &str, label: &str, other: &str, goal: &str) {
        let (q, other) = (self.of(name), self.of(other));
        let bytes = q.memory - other.memory;
        table::more(what, q.seconds, label, other.seconds, bytes, goal);
    }
}

/// Runs all in turn, `runs` times.
pub fn compare(contestants: &[Contestant], runs: usize) -> Results {
    let mut all: Vec<Vec<Run>> = vec![Vec::new(); contestants.len()];
    for round in 0..=runs {
        for ((name, command), results) in contestants.iter().zip(&mut all) {
            let run = measure(command(), name);
            // The first round warms up.
            if round > 0 {
                results.push(run);
            }
        }
    }
    let mut results = Vec::new();
    for ((name, _), runs) in contestants.iter().zip(&all) {
        let median = Median {
            seconds: middle(runs.iter().map(|run| run.time.as_secs_f64()).collect()),
            processor: middle(runs.iter().map(|run| run.processor).collect()),
            memory: middle(runs.iter().map(|run| run.memory as f64 * 1024.0).collect()),
        };
        results.push(((*name).to_owned(), median));
    }
    Results(results)
}

pub fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub fn measure(mut command: Command, name: &str) -> Run {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let (success, processor, memory) = wait(&child);
    let time = began.elapsed();
    assert!(success, "{name} failed");
    // The standard library does not know that it has been waited for.
    let _ = child.try_wait();
    Run {
        time,
        processor,
        memory,
    }
}

/// Waits for a child; returns whether it succeeded, its time of the processor, and the most memory that it had.
fn wait(child: &Child) -> (bool, f64, i64) {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, for which zeroes are a value; both pointers are to locals; the child is ours and
    // nobody else waits for it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss,
    )
}
