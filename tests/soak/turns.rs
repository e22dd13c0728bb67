//! Many runs at once in the same state folders: every acknowledged exchange is found once, where it was asked.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{Command, Does, Target, With};
use crate::kills;
use crate::ledger::{Ledger, Turn};
use crate::model::Link;
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::scene::Scene;
use crate::soak::Soak;
use crate::world::{HOMES, World};

const MODE: &str = "turns";

/// How many runs there are at once.
const ABREAST: u64 = 4;

/// What runs at the same time, beside questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// A reader looks at the current conversation.
    Questions,
    Clears,
    Undos,
    All,
    /// Some runs are killed.
    Kills,
    /// Two runs at a time, after which the state must be that of one after the other.
    Pairs,
}

const MIXES: [Mix; 6] = [Mix::Questions, Mix::Clears, Mix::Undos, Mix::All, Mix::Kills, Mix::Pairs];

/// So many turns in one world.
pub fn batch(soak: &Soak, seed: u64, turns: u64) -> io::Result<()> {
    let part = Part { mode: MODE, seed };
    let mix = MIXES[(seed % MIXES.len() as u64) as usize];
    if mix == Mix::Pairs {
        return Scene::steps(soak, part, turns.div_ceil(2), |scene, random| kills::pair(random, scene, false));
    }
    let mut random = Random::new(seed);
    let world = soak.world(None)?;
    let batch = Batch { soak, part, world, mix, label: format!("{mix:?}"), ledger: Mutex::default() };
    batch.run_abreast(&mut random, turns)?;
    if mix == Mix::Kills {
        batch.clean_up()?;
    }
    batch.check();
    Ok(())
}

struct Batch<'a> {
    soak: &'a Soak,
    part: Part,
    world: World,
    mix: Mix,
    label: String,
    ledger: Mutex<Ledger>,
}

impl Batch<'_> {
    fn run_abreast(&self, random: &mut Random, turns: u64) -> io::Result<()> {
        let left = AtomicU64::new(turns);
        let over = AtomicBool::new(false);
        let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..ABREAST)
                .map(|_| {
                    let mut random = random.fork();
                    scope.spawn(move || -> io::Result<()> {
                        while !self.soak.is_over() && take() {
                            let command = self.choose(&mut random);
                            let pause = if random.percent(30) { random.below(15) } else { 0 };
                            let kills = self.mix == Mix::Kills && random.percent(25);
                            self.turn(command, pause, kills.then(|| random.within(Duration::from_millis(25))))?;
                        }
                        Ok(())
                    })
                })
                .collect();
            if self.mix == Mix::Questions {
                scope.spawn(|| self.watch(&over));
            }
            let ended = workers.into_iter().map(|worker| worker.join().expect("a worker that does not panic"));
            let ended = ended.collect::<io::Result<Vec<()>>>();
            over.store(true, Ordering::Relaxed);
            ended.map(|_| ())
        })
    }

    /// A command for the mix. Named conversations and the shared file are there to stay.
    fn choose(&self, random: &mut Random) -> Command {
        let home = usize::from(random.percent(30));
        let mut targets = vec![Target::Linked(Link::Current), Target::Linked(Link::Slot)];
        let ids = self.ids(home);
        if !ids.is_empty() {
            targets.push(Target::Id(ids[random.below(ids.len() as u64) as usize].clone()));
        }
        let changes: &[Does] = match self.mix {
            Mix::Questions => &[Does::Copy],
            Mix::Clears => &[Does::Copy, Does::Clear],
            Mix::Undos => &[Does::Copy, Does::Undo, Does::Again],
            _ => &[Does::Copy, Does::Clear, Does::Undo, Does::Again],
        };
        let asks = random.percent(75);
        if asks {
            targets.extend([Target::Named, Target::File, Target::Number(1 + random.below(3), String::new())]);
        }
        let does = |does: &Does| if asks { matches!(does, Does::Ask | Does::Follow) } else { changes.contains(does) };
        let all = targets.iter().flat_map(|target| Command::all(home, target));
        let all: Vec<Command> = all.filter(|command| does(&command.does)).collect();
        let mut command = all[random.below(all.len() as u64) as usize].clone();
        command.json = true;
        if asks {
            command.with = random.pick(&[With::Nothing, With::Nothing, With::Nothing, With::Tool, With::Image]);
        }
        command
    }

    /// The unnamed conversations.
    fn ids(&self, home: usize) -> Vec<String> {
        let entries = fs::read_dir(self.world.sessions(home)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ids = names.filter(|name| name.starts_with("session_") && !name.contains('~'));
        ids.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
    }

    /// Runs a command, perhaps not to its end, and enters it into the ledger. `pause` is in milliseconds.
    fn turn(&self, command: Command, pause: u64, killed_after: Option<Duration>) -> io::Result<()> {
        let question = Question { pause, ..Question::small(self.soak.next_id()) };
        let began = Instant::now();
        let mut run = self.soak.start(&self.world, &command, &question)?;
        if let Some(delay) = killed_after {
            thread::sleep(delay);
            run.kill();
        }
        let outcome = run.finish()?;
        self.soak.report.done(MODE, &command.to_string());
        self.soak.report.said(MODE, &command.to_string(), outcome.status, &outcome.stderr);
        let request = self.soak.server.request(question.id);
        let complete = outcome.killed()
            || (outcome.refused() && request.is_none())
            || self.soak.check_outcome(self.part, &command, &question, &outcome, &self.world);
        let request = request.unwrap_or_default();
        if let Some(foreign) = request.foreign {
            self.soak.report.found(self.part, Kind::Torn, &command.to_string(), &foreign, self.world.path());
        }
        let json = outcome.json();
        let undone = json["question"].as_str().and_then(Question::parse).map(|question| question.id);
        let turn = Turn {
            id: question.id,
            began,
            ended: Instant::now(),
            acknowledged: complete && outcome.succeeded() && !outcome.not_saved() && json["cleared"] != 0,
            on_its_own: outcome.saved_on_its_own(),
            killed: outcome.killed(),
            said: json["id"].as_str().filter(|_| command.asks()).map(str::to_owned),
            history: request.history,
            undone,
            command,
        };
        if turn.acknowledged && turn.command.asks() && turn.said.is_none() {
            self.soak.report.found(self.part, Kind::Other, &self.label, &format!("no id in {json}"), self.world.path());
        }
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).turns.push(turn);
        Ok(())
    }

    /// Reads the current conversation again and again: once it is there it is never missing, and always whole.
    fn watch(&self, over: &AtomicBool) {
        let path = self.world.sessions(0).join("current.json");
        let mut seen = false;
        while !over.load(Ordering::Relaxed) {
            let wrong = match fs::read(&path) {
                Ok(bytes) => {
                    seen = true;
                    let read = serde_json::from_slice::<serde_json::Value>(&bytes);
                    read.err().map(|error| (Kind::Torn, error.to_string()))
                }
                Err(error) if seen => Some((Kind::Lost, error.to_string())),
                Err(_) => None,
            };
            if let Some((kind, what)) = wrong {
                let what = format!("current.json: {what}");
                self.soak.report.found(self.part, kind, &self.label, &what, self.world.path());
                return;
            }
            thread::sleep(Duration::from_micros(300));
        }
    }

    /// Runs that nobody disturbs: in each state folder those that write where the links lead to, and the shared file.
    fn clean_up(&self) -> io::Result<()> {
        let targets = [Target::Linked(Link::Current), Target::Linked(Link::Slot), Target::File];
        for (home, target) in (0..HOMES).flat_map(|home| targets.iter().map(move |target| (home, target))) {
            self.turn(Command { json: true, ..Command::new(home, target.clone(), Does::Follow) }, 0, None)?;
        }
        Ok(())
    }

    /// Compares the files with the ledger.
    fn check(&self) {
        let snapshot = self.world.snapshot();
        let mut wrong = snapshot.wrong();
        // A run that was killed may have cleared half of a conversation.
        let lone = snapshot.lone(self.mix != Mix::Kills);
        wrong.extend(lone.into_iter().map(|what| (Kind::LeftOver, what)));
        wrong.extend(self.ledger.lock().unwrap_or_else(PoisonError::into_inner).check(&snapshot));
        self.soak.report.check(self.part, &self.label, wrong, self.world.path());
    }
}
