//! Several commands at once in the same state directories: what is there afterwards is what they make one after another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Command, Does, Target};
use crate::model::{self, Act, Link};
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::{Outcome, Run};
use crate::scene::Scene;
use crate::soak::Soak;
use crate::world::HOMES;

const MODE: &str = "turns";

/// The most commands at once.
const ABREAST: u64 = 4;

/// Makes this many turns, a few at once.
pub fn batch(soak: &Soak, seed: u64, turns: u64) -> io::Result<()> {
    let mut left = turns;
    Scene::steps(soak, Part { mode: MODE, seed }, turns, |scene, random| {
        let count = (2 + random.below(ABREAST - 1)).min(left);
        left -= count;
        Ok(count == 0 || at_once(random, scene, count, |_, _, _| {})?)
    })
}

/// Runs this many commands at once. `disturb` may kill some of them.
pub fn at_once(
    random: &mut Random,
    scene: &mut Scene,
    count: u64,
    disturb: impl FnOnce(&mut Random, &Scene, &mut [Started]),
) -> io::Result<bool> {
    let commands = choose(random, scene, count)?;
    let label = commands.iter().map(Command::to_string);
    let label = label.collect::<Vec<_>>().join(", and ");
    let watched = watched(scene, &commands);
    let over = AtomicBool::new(false);
    let (outcomes, wrong) = thread::scope(|scope| {
        let watcher = watched
            .as_ref()
            .map(|path| scope.spawn(|| watch(path, &over)));
        let outcomes = run(random, scene, &commands, disturb);
        over.store(true, Ordering::Relaxed);
        (
            outcomes,
            watcher.and_then(|watcher| watcher.join().expect("a watcher that does not panic")),
        )
    });
    let outcomes = outcomes?;
    let report = &scene.soak.report;
    for command in &commands {
        report.done(scene.part.mode, &format!("{command} (not alone)"));
    }
    let both = commands.iter().zip(&outcomes);
    let acts = both.map(|(command, (id, outcome))| Act::new(command, *id, outcome));
    let acts: Vec<Act> = acts.collect();
    let details = acts.iter();
    let details = details.map(Act::to_string).collect::<Vec<_>>().join("\n  ");
    let before = scene.model.clone();
    let well = scene.check(&label, wrong.into_iter().collect())
        && acts.iter().all(|act| scene.check_outcome(act, true))
        && scene.settle(&label, &details, |found| {
            model::in_any_order(&before, &acts, found)
        });
    let killed = acts.iter().filter(|act| act.outcome.killed());
    let killed: Vec<_> = killed
        .map(|act| (act.command.home, act.command.place(&before)))
        .collect();
    Ok(well && scene.clean_up(random, &label, &killed)?)
}

/// Commands; most of them are about the same conversation.
fn choose(random: &mut Random, scene: &Scene, count: u64) -> io::Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    for _ in 0..count {
        let first = commands.first();
        let about_file = first.is_some_and(|first| first.target == Target::File);
        let home = match first {
            Some(first) if !about_file => first.home,
            _ => random.below(HOMES as u64) as usize,
        };
        let place = first.and_then(|first| first.place(&scene.model));
        let same = first.is_some() && random.percent(70);
        // Numbers move, and those of backups are given again.
        let plain = |command: &Command| {
            let moves = matches!(command.target, Target::Number(..) | Target::Earlier(..));
            !moves
                && command.does != Does::ClearAll
                && commands.iter().all(|other| !reuse_id(command, other))
        };
        let fits =
            |command: &Command| plain(command) && (!same || command.place(&scene.model) == place);
        commands.push(scene.choose(random, home, first, fits)?);
    }
    Ok(commands)
}

/// Whether the backup of a file may get an id that is cleared at the same time.
fn reuse_id(one: &Command, other: &Command) -> bool {
    let keeps = |command: &Command| {
        command.target == Target::File && matches!(command.does, Does::Again | Does::Undo)
    };
    let clears = |command: &Command| command.does == Does::Clear;
    (keeps(one) && clears(other)) || (clears(one) && keeps(other))
}

/// A run, and the number of its exchange.
pub struct Started<'a> {
    pub command: &'a Command,
    pub id: u64,
    pub run: Run,
}

fn run(
    random: &mut Random,
    scene: &Scene,
    commands: &[Command],
    disturb: impl FnOnce(&mut Random, &Scene, &mut [Started]),
) -> io::Result<Vec<(u64, Outcome)>> {
    let server = &scene.soak.server;
    let mut started = Vec::new();
    for command in commands {
        let question = scene.question();
        // Either it has read the conversation before the next one starts, or all read it at about the same time.
        let holds = command.asks() && random.percent(60);
        if holds {
            server.hold(question.id);
        } else {
            thread::sleep(random.within(Duration::from_millis(3)));
        }
        let mut run = scene.soak.start(&scene.world, command, &question)?;
        if holds {
            server.wait_for_request(question.id, &mut run);
        }
        started.push(Started {
            command,
            id: question.id,
            run,
        });
    }
    started
        .iter()
        .for_each(|started| server.release(started.id));
    disturb(random, scene, &mut started);
    started
        .into_iter()
        .map(|started| Ok((started.id, started.run.finish()?)))
        .collect()
}

/// The current conversation of the first state directory, where it should be there all the time.
fn watched(scene: &Scene, commands: &[Command]) -> Option<PathBuf> {
    let place = Command::new(0, Target::Linked(Link::Current), Does::Follow).place(&scene.model);
    let is_there = place
        .as_ref()
        .is_some_and(|place| scene.model.get(place).is_some());
    let is_cleared = commands
        .iter()
        .any(|command| command.does == Does::Clear && command.home == 0);
    let stays = is_there && !is_cleared && !scene.model.keeps_nothing;
    stays.then(|| scene.world.sessions(0).join("current.json"))
}

/// Reads a conversation again and again: it must be there, and whole.
fn watch(path: &Path, over: &AtomicBool) -> Option<(Kind, String)> {
    while !over.load(Ordering::Relaxed) {
        let wrong = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes)
                .err()
                .map(|error| (Kind::Torn, error.to_string())),
            Err(error) => Some((Kind::Lost, error.to_string())),
        };
        if let Some((kind, what)) = wrong {
            return Some((kind, format!("current.json: {what}")));
        }
        thread::sleep(Duration::from_micros(300));
    }
    None
}
