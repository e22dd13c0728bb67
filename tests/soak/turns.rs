//! Many runs at once in the same state folders: every acknowledged exchange is found once, where it was asked.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::command::{self, Does, ROWS, Row};
use crate::ledger::{Ledger, Turn};
use crate::model::Place;
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::Run;
use crate::snapshot::Created;
use crate::soak::Soak;
use crate::world::{HOMES, World};

const MODE: &str = "turns";

/// How many runs there are at once.
const ABREAST: u64 = 4;

/// How many runs a pair of twins takes.
const TWINS_TURNS: u64 = 4;

/// What runs at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// Questions only, while a reader looks at the current conversation.
    Questions,
    Clears,
    Undos,
    /// Some runs are killed.
    Kills,
    /// The file of the lock is deleted now and then.
    LockRemoved,
    /// Two conversations that begin in the same millisecond.
    Twins,
}

const MIXES: [Mix; 6] = [Mix::Questions, Mix::Clears, Mix::Undos, Mix::Kills, Mix::LockRemoved, Mix::Twins];

/// So many turns in one world.
pub fn batch(soak: &Soak, seed: u64, turns: u64) -> io::Result<()> {
    let mut random = Random::new(seed);
    let part = Part { mode: MODE, seed };
    let mix = MIXES[(seed % MIXES.len() as u64) as usize];
    if mix == Mix::Twins {
        for _ in 0..turns.div_ceil(TWINS_TURNS) {
            if soak.is_over() {
                break;
            }
            let batch = Batch::new(soak, part, mix)?;
            batch.twins(&mut random)?;
            batch.check();
        }
        return Ok(());
    }
    let batch = Batch::new(soak, part, mix)?;
    batch.run_abreast(&mut random, turns)?;
    if mix == Mix::Kills {
        batch.clean_up(&mut random)?;
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
    fn new(soak: &Soak, part: Part, mix: Mix) -> io::Result<Batch<'_>> {
        let world = soak.world(None)?;
        Ok(Batch { soak, part, world, mix, label: format!("{mix:?}"), ledger: Mutex::default() })
    }

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
                            self.turn(&mut random)?;
                        }
                        Ok(())
                    })
                })
                .collect();
            let mut disturbing = random.fork();
            let over = &over;
            scope.spawn(move || match self.mix {
                Mix::Questions => self.watch(over),
                Mix::LockRemoved => self.remove_locks(over, &mut disturbing),
                _ => {}
            });
            let ended = workers.into_iter().map(|worker| worker.join().expect("a worker that does not panic"));
            let ended = ended.collect::<io::Result<Vec<()>>>();
            over.store(true, Ordering::Relaxed);
            ended.map(|_| ())
        })
    }

    /// One command, chosen by chance.
    fn turn(&self, random: &mut Random) -> io::Result<()> {
        let home = usize::from(random.percent(30));
        let deletes = |row: &Row| match self.mix {
            Mix::Clears => row.does == Does::Clear,
            Mix::Undos => matches!(row.does, Does::Undo | Does::Again),
            Mix::Kills => matches!(row.does, Does::Clear | Does::Undo | Does::Again),
            _ => false,
        };
        // Named conversations and the shared file are there to stay.
        let current = |row: &Row| matches!((row.place)(0), Place::Current(_) | Place::Slot(_));
        let deletes_now = random.percent(20);
        let mut rows: Vec<&Row> = ROWS.iter().filter(|row| deletes_now && deletes(row) && current(row)).collect();
        if rows.is_empty() {
            rows = ROWS.iter().filter(|row| matches!(row.does, Does::Ask | Does::Follow)).collect();
        }
        let row = random.pick(&rows);
        let mut question = Question::small(self.soak.next_id());
        if random.percent(30) {
            question.pause = random.below(15);
        }
        let began = Instant::now();
        let mut run = self.soak.start(&self.world, home, row, &question)?;
        if self.mix == Mix::Kills && random.percent(25) {
            thread::sleep(random.within(Duration::from_millis(25)));
            run.kill();
        }
        self.finish(row, home, question, began, run)
    }

    /// Waits for a run, and enters it into the ledger.
    fn finish(&self, row: &'static Row, home: usize, question: Question, began: Instant, run: Run) -> io::Result<()> {
        let outcome = run.finish()?;
        self.soak.report.done(MODE, row.name);
        // Others ask while the question that is undone is printed.
        let nothing_there =
            ["nothing to undo", "no question to ask again", "nothing was undone: the conversation has changed"]
                .iter()
                .any(|words| outcome.stderr.contains(words));
        let complete = outcome.killed()
            || nothing_there
            || self.soak.check_outcome(self.part, row, &question, &outcome, &self.world);
        let request = self.soak.server.request(question.id).unwrap_or_default();
        if let Some(foreign) = request.foreign {
            self.soak.report.found(self.part, Kind::Torn, row.name, &foreign, self.world.path());
        }
        let undone = Question::parse(String::from_utf8_lossy(&outcome.stdout).trim_end());
        let turn = Turn {
            id: question.id,
            row,
            home,
            began,
            ended: Instant::now(),
            acknowledged: complete && outcome.succeeded() && !outcome.not_saved(),
            on_its_own: outcome.saved_on_its_own(),
            killed: outcome.killed(),
            nothing_there: nothing_there || outcome.stderr.contains("there was no conversation"),
            history: request.history,
            undone: undone.filter(|_| row.does == Does::Undo).map(|question| question.id),
        };
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
                    serde_json::from_slice::<serde_json::Value>(&bytes)
                        .err()
                        .map(|error| (Kind::Torn, error.to_string()))
                }
                Err(error) if seen => Some((Kind::Lost, error.to_string())),
                Err(_) => None,
            };
            if let Some((kind, what)) = wrong {
                self.soak.report.found(
                    self.part,
                    kind,
                    &self.label,
                    &format!("current.json: {what}"),
                    self.world.path(),
                );
                return;
            }
            thread::sleep(Duration::from_micros(300));
        }
    }

    fn remove_locks(&self, over: &AtomicBool, random: &mut Random) {
        while !over.load(Ordering::Relaxed) {
            thread::sleep(random.within(Duration::from_millis(20)));
            for home in 0..HOMES {
                // It may not be there yet.
                let _ = fs::remove_file(self.world.state(home).join("lock"));
            }
        }
    }

    /// Two conversations that are asked for at the same moment. The first is cleared before the second is saved, so that
    /// nothing but `created` keeps a late follow-up to the first out of the second.
    fn twins(&self, random: &mut Random) -> io::Result<()> {
        let ask = command::find(Place::Current, Does::Ask);
        let follow = command::find(Place::Current, Does::Follow);
        let clear = command::find(Place::Current, Does::Clear);
        let server = &self.soak.server;
        let held = || {
            let question = Question::small(self.soak.next_id());
            server.hold(question.id);
            question
        };
        let start = |row: &'static Row, question: Question| -> io::Result<_> {
            let began = Instant::now();
            Ok((row, question, began, self.soak.start(&self.world, 0, row, &question)?))
        };
        let finish = |(row, question, began, run): (&'static Row, Question, Instant, Run)| {
            server.release(question.id);
            self.finish(row, 0, question, began, run)
        };
        let undisturbed = |row| finish(start(row, Question::small(self.soak.next_id()))?);
        let follows = random.percent(50);
        if follows {
            // A follow-up whose conversation is cleared is a conversation of its own, as old as the twin's.
            undisturbed(ask)?;
        }
        let (one, other) = (held(), held());
        let mut first = start(if follows { follow } else { ask }, one)?;
        let mut second = start(ask, other)?;
        server.wait_for_request(one.id, &mut first.3);
        server.wait_for_request(other.id, &mut second.3);
        if follows {
            undisturbed(clear)?;
            finish(first)?;
            finish(second)?;
        } else {
            finish(first)?;
            let late = held();
            let mut third = start(follow, late)?;
            server.wait_for_request(late.id, &mut third.3);
            undisturbed(clear)?;
            finish(second)?;
            finish(third)?;
        }
        Ok(())
    }

    /// A run in each state folder that nobody disturbs, and one that writes the shared file.
    fn clean_up(&self, random: &mut Random) -> io::Result<()> {
        for home in 0..HOMES {
            for place in [random.pick(&[Place::Current as fn(usize) -> Place, Place::Named]), |_| Place::File] {
                let row = command::find(place, Does::Follow);
                let question = Question::small(self.soak.next_id());
                let began = Instant::now();
                let run = self.soak.start(&self.world, home, row, &question)?;
                self.finish(row, home, question, began, run)?;
            }
        }
        Ok(())
    }

    /// Compares the files with the ledger.
    fn check(&self) {
        let snapshot = self.world.snapshot();
        let mut wrong = snapshot.wrong();
        wrong.extend(self.ledger.lock().unwrap_or_else(PoisonError::into_inner).check(&snapshot));
        // The last moment of creation is kept in the lock's file.
        if self.mix != Mix::LockRemoved {
            wrong.extend(Created::default().check(&snapshot, false).map(|what| (Kind::Other, what)));
        }
        self.soak.report.check(self.part, &self.label, wrong, self.world.path());
    }
}
