//! Signals while the answer streams: what was shown is saved, and perhaps more of what has come.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{Command, Does, Target, With};
use crate::model::Link;
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::{GUARD, Outcome, Run};
use crate::sink::{Form, Pace, Sink};
use crate::snapshot::{Snapshot, Stored};
use crate::soak::Soak;
use crate::world::World;

const MODE: &str = "signals";

/// Within how long a tool is called.
const CALLED: Duration = Duration::from_secs(1);

/// An answer of this many words is several times what a pipe holds.
const MOST_WORDS: u64 = 24_000;

const SIGNALS: [(i32, &str); 3] = [
    (libc::SIGINT, "SIGINT"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
];

/// Sends `rounds` signals, one after another.
pub fn batch(soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
    let part = Part { mode: MODE, seed };
    let mut random = Random::new(seed);
    let world = soak.world(None)?;
    let mut before = 0;
    for _ in 0..rounds {
        if soak.is_over() {
            break;
        }
        before = round(soak, part, &mut random, &world, before)?;
    }
    Ok(())
}

/// Asks, interrupts and compares. Returns how many exchanges there are.
fn round(
    soak: &Soak,
    part: Part,
    random: &mut Random,
    world: &World,
    before: usize,
) -> io::Result<usize> {
    let form = random.pick(&[Form::Pipe, Form::Terminal]);
    let pace = random.pick(&[Pace::Fast, Pace::Slow, Pace::Stalled]);
    let (signal, name) = random.pick(&SIGNALS);
    let words = random.pick(&[1, 5, 40, 400, 2_000]);
    let pieces = 1 + random.below((MOST_WORDS / words).min(60));
    let question = Question {
        id: soak.next_id(),
        pieces,
        words,
        pause: random.below(3),
    };
    // Another q holds the lock meanwhile.
    let lock = if random.percent(10) {
        File::open(world.state(0).join("lock")).ok()
    } else {
        None
    };
    if let Some(lock) = &lock {
        lock.lock()?;
    }
    let does = random.pick(&[Does::Ask, Does::Follow]);
    let held = if lock.is_some() { ", lock held" } else { "" };
    let label = format!("{does:?}, {pace:?} {form:?}{held}");
    let (sink, stdout) = Sink::new(form, pace)?;
    // Into a pipe nothing of an answer with calls is shown before its end.
    let calls = form == Form::Terminal && random.percent(30);
    let with = match does {
        _ if calls => random.pick(&[With::Tool, With::Call]),
        Does::Ask if random.percent(20) => With::Role,
        _ => random.pick(&[With::Nothing, With::Search]),
    };
    let command = Command {
        with,
        ..Command::new(0, Target::Linked(Link::Current), does)
    };
    let mut run = Run::start_to(world.run(&[], &command, &question), stdout)?;
    if calls && random.percent(30) {
        soak.server.wait_for_call(question.id, CALLED);
    } else {
        soak.server.wait_for_request(question.id, &mut run);
    }
    thread::sleep(random.within(Duration::from_millis(40)));
    let sent = Instant::now();
    run.signal(signal);
    // If it was not sent because the run has ended, this is at once too; a stalled reader holds nothing up.
    while !run.ended() && sent.elapsed() < GUARD {
        thread::sleep(Duration::from_micros(500));
    }
    soak.report.ended(MODE, sent.elapsed());
    run.kill();
    let outcome = run.finish()?;
    drop(lock);
    let shown = sink.finish();
    soak.report.done(MODE, &label);
    let snapshot = world.snapshot();
    let mut wrong = wrong(&question, signal, &outcome, &shown, &snapshot);
    let (torn, left_over) = (snapshot.torn.iter(), snapshot.left_over.iter());
    wrong.extend(torn.map(|what| (Kind::Torn, what.clone())));
    wrong.extend(left_over.map(|what| (Kind::LeftOver, what.clone())));
    let after = snapshot.files.iter().map(|file| file.exchanges.len()).sum();
    if after < before {
        wrong.push((Kind::Lost, format!("{before} exchanges are now {after}")));
    }
    wrong
        .iter_mut()
        .for_each(|(_, what)| *what = format!("{name}, {question}, {}: {what}", outcome.summary()));
    soak.report.check(part, &label, wrong, world.path());
    Ok(after)
}

fn wrong(
    question: &Question,
    signal: i32,
    outcome: &Outcome,
    shown: &[u8],
    snapshot: &Snapshot,
) -> Vec<(Kind, String)> {
    let mut wrong = Vec::new();
    let ended_by = outcome.status.signal();
    if ended_by != Some(signal) && !outcome.succeeded() {
        wrong.push((Kind::Other, "it did not end by the signal".to_owned()));
    }
    let all = snapshot.files.iter().flat_map(|file| &file.exchanges);
    let saved: Vec<&Stored> = all.filter(|saved| saved.id == question.id).collect();
    match saved[..] {
        [] if shown.is_empty() => {}
        [] => wrong.push((
            Kind::Lost,
            format!("{} bytes were shown, and nothing is saved", shown.len()),
        )),
        [saved] => wrong.extend(difference(question, shown, saved)),
        _ => wrong.push((
            Kind::Misplaced,
            format!("it is saved {} times", saved.len()),
        )),
    }
    wrong
}

/// How what is saved differs from what was shown, if it does. More may have come than was shown.
fn difference(question: &Question, shown: &[u8], saved: &Stored) -> Option<(Kind, String)> {
    let whole = question.answer();
    if !saved.interrupted && saved.answer != whole {
        return Some((
            Kind::Torn,
            "it is cut, and not marked as interrupted".to_owned(),
        ));
    }
    let text = saved.answer.as_bytes();
    if text.starts_with(shown) {
        return None;
    }
    let Some(rest) = shown.strip_prefix(text) else {
        return Some((Kind::Torn, "what was shown is not what is saved".to_owned()));
    };
    // The first half of a letter can be shown, but not saved.
    let half = rest.len() < 4 && std::str::from_utf8(rest).is_err();
    let ends_the_line = saved.answer == whole && rest == b"\n";
    let fine = ends_the_line || half;
    (!fine).then(|| {
        (
            Kind::Lost,
            format!(
                "{} bytes were shown that are not saved ({} are)",
                rest.len(),
                text.len()
            ),
        )
    })
}
