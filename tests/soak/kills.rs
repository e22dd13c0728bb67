//! SIGKILL at any moment of any command: what was acknowledged stays, and the next run cleans up.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{self, Does, Row};
use crate::model::{Model, Place};
use crate::question::Question;
use crate::random::Random;
use crate::report::Part;
use crate::run::{Outcome, Run};
use crate::scene::Scene;
use crate::soak::Soak;
use crate::world::{HOMES, World};

const MODE: &str = "kills";

/// Most runs take less time than this.
const LONGEST: Duration = Duration::from_millis(20);

/// Saving takes less time than this.
const SAVING: Duration = Duration::from_millis(6);

/// When to kill.
enum Aim {
    /// So long after the start.
    At(Duration),
    /// So long after the server has sent the end of the answer.
    AfterAnswer(Duration),
    /// So long after the state folder has changed so often.
    AfterChange(u64, Duration),
}

impl Aim {
    fn new(random: &mut Random, row: &Row) -> Aim {
        match random.below(3) {
            0 => Aim::At(random.within(LONGEST)),
            1 if row.asks() => Aim::AfterAnswer(random.within(SAVING)),
            _ => Aim::AfterChange(1 + random.below(4), random.within(Duration::from_micros(300))),
        }
    }

    /// Waits for the moment, at most until the run has ended.
    fn wait(&self, soak: &Soak, world: &World, home: usize, id: u64, run: &mut Run) {
        match self {
            Aim::At(delay) => thread::sleep(delay.saturating_sub(run.began.elapsed())),
            Aim::AfterAnswer(delay) => {
                soak.server.wait_for_answer(id, LONGEST * 10);
                thread::sleep(*delay);
            }
            Aim::AfterChange(changes, delay) => {
                let mut seen = world.listing(home);
                for _ in 0..*changes {
                    let began = Instant::now();
                    while world.listing(home) == seen && began.elapsed() < LONGEST * 5 && !run.ended() {}
                    seen = world.listing(home);
                }
                thread::sleep(*delay);
            }
        }
    }
}

/// So many kills, one after another.
pub fn batch(soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
    let part = Part { mode: MODE, seed };
    let mut random = Random::new(seed);
    let mut scene = Scene::new(soak, &mut random)?;
    for _ in 0..rounds {
        if soak.is_over() {
            break;
        }
        let good = match random.below(100) {
            0..15 => two_state_folders(soak, part, &mut random, &mut scene)?,
            15..35 => overtaken(soak, part, &mut random, &mut scene)?,
            _ => single(soak, part, &mut random, &mut scene)?,
        };
        if !good || scene.is_crowded() {
            scene = Scene::new(soak, &mut random)?;
        }
    }
    Ok(())
}

/// One command, killed.
fn single(soak: &Soak, part: Part, random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let home = home(random);
    // Questions are asked more often, so that there is something to undo and to clear.
    let asks = random.percent(50);
    let row = command::choose(random, &scene.model, home, |row| row.asks() || !asks);
    let question = Question::small(soak.next_id());
    let mut run = soak.start(&scene.world, home, row, &question)?;
    Aim::new(random, row).wait(soak, &scene.world, home, question.id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    soak.report.done(MODE, row.name);
    if !outcome.killed() && !soak.check_outcome(part, row, &question, &outcome, &scene.world) {
        return Ok(false);
    }
    let (before, after) = (scene.model.clone(), row.after(&scene.model, home, question.id));
    let allowed = if outcome.killed() && row.does == Does::ClearAll {
        vec![after, scene.partly_cleared(home)]
    } else if outcome.killed() {
        vec![after, before]
    } else if outcome.saved_on_its_own() {
        vec![before.with_alone(home, question.id)]
    } else if outcome.not_saved() {
        vec![before]
    } else {
        vec![after]
    };
    if !scene.settle(soak, part, row.name, &allowed) {
        return Ok(false);
    }
    scene.clean_up(soak, part, random, row.name, home..home + 1, (row.place)(home))
}

/// A follow-up, or a question asked again, whose conversation is displaced, undone, asked again or cleared before its answer
/// comes, killed while it saves.
fn overtaken(soak: &Soak, part: Part, random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let home = home(random);
    let place: fn(usize) -> Place = random.pick(&[Place::Current as fn(usize) -> Place, Place::Slot]);
    let follow = command::find(place, random.pick(&[Does::Follow, Does::Again]));
    let by = command::find(place, random.pick(&[Does::Ask, Does::Undo, Does::Clear, Does::Again]));
    let label = format!("{}, overtaken by {}", follow.name, by.name);
    if scene.model.get(place(home)).is_none() {
        let begin = command::find(place, Does::Ask);
        return scene.undisturbed(soak, part, &label, home, begin);
    }
    let question = Question::small(soak.next_id());
    soak.server.hold(question.id);
    let mut run = soak.start(&scene.world, home, follow, &question)?;
    if !soak.server.wait_for_request(question.id, &mut run) {
        soak.server.release(question.id);
        soak.check_outcome(part, follow, &question, &run.finish()?, &scene.world);
        return Ok(false);
    }
    let asked = Question::small(soak.next_id());
    let outcome = soak.start(&scene.world, home, by, &asked)?.finish()?;
    if !soak.check_outcome(part, by, &asked, &outcome, &scene.world) {
        soak.server.release(question.id);
        return Ok(false);
    }
    soak.server.release(question.id);
    Aim::AfterAnswer(random.within(SAVING)).wait(soak, &scene.world, home, question.id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    soak.report.done(MODE, &label);
    if !outcome.killed() && !soak.check_outcome(part, follow, &question, &outcome, &scene.world) {
        return Ok(false);
    }
    let was = scene.model.get(place(home)).cloned().unwrap_or_default();
    let without = by.after(&scene.model, home, asked.id);
    let own = (Place::Archived(home), was.clone());
    // One that was cleared is not archived, though another with the same exchanges may be.
    let archived = without.conversations.iter().position(|one| by.does != Does::Clear && *one == own);
    let mut with = without.clone();
    match archived {
        // It is saved in its own conversation, which is archived by now.
        Some(at) => {
            let before = match follow.does {
                Does::Again => &was[..was.len() - 1],
                _ => &with.conversations.remove(at).1[..],
            };
            let exchanges = [before, &[question.id]].concat();
            with.add(Place::Archived(home), exchanges);
        }
        _ => with = without.with_alone(home, question.id),
    }
    let allowed = if outcome.killed() { vec![with, without] } else { vec![with] };
    if !scene.settle(soak, part, &label, &allowed) {
        return Ok(false);
    }
    scene.clean_up(soak, part, random, &label, home..home + 1, place(home))
}

/// The shared file, written from two state folders at the same time; both may be killed.
fn two_state_folders(soak: &Soak, part: Part, random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let row = command::find(|_| Place::File, Does::Follow);
    let label = format!("{} from two state folders", row.name);
    let questions: Vec<Question> = (0..HOMES).map(|_| Question::small(soak.next_id())).collect();
    let mut runs = Vec::new();
    for (home, question) in questions.iter().enumerate() {
        soak.server.hold(question.id);
        runs.push(soak.start(&scene.world, home, row, question)?);
    }
    for (question, run) in questions.iter().zip(&mut runs) {
        soak.server.wait_for_request(question.id, run);
    }
    for question in &questions {
        soak.server.release(question.id);
    }
    let victims = random.below(3);
    if victims > 0 {
        let aim = Aim::new(random, row);
        aim.wait(soak, &scene.world, 0, questions[0].id, &mut runs[0]);
        runs.iter_mut().take(victims as usize).for_each(Run::kill);
    }
    let outcomes: Vec<Outcome> = runs.into_iter().map(Run::finish).collect::<io::Result<_>>()?;
    soak.report.done(MODE, &label);
    let (mut base, mut saved, mut perhaps) = (scene.model.clone(), Vec::new(), Vec::new());
    for (home, (question, outcome)) in questions.iter().zip(&outcomes).enumerate() {
        if outcome.killed() {
            perhaps.push(question.id);
        } else if !soak.check_outcome(part, row, question, outcome, &scene.world) {
            return Ok(false);
        } else if outcome.saved_on_its_own() {
            base = base.with_alone(home, question.id);
        } else if !outcome.not_saved() {
            saved.push(question.id);
        }
    }
    let orders = orders(&saved, &perhaps);
    let extended = |order: &Vec<u64>| {
        let mut model = base.clone();
        order.iter().for_each(|id| model.extend(Place::File, 0, *id));
        model
    };
    let allowed: Vec<Model> = orders.iter().map(extended).collect();
    if !scene.settle(soak, part, &label, &allowed) {
        return Ok(false);
    }
    scene.clean_up(soak, part, random, &label, 0..HOMES, Place::File)
}

/// Mostly the first state folder.
fn home(random: &mut Random) -> usize {
    usize::from(random.percent(20))
}

/// The orders in which two exchanges may have been saved, if some of them may not have been.
fn orders(saved: &[u64], perhaps: &[u64]) -> Vec<Vec<u64>> {
    let all: Vec<u64> = saved.iter().chain(perhaps).copied().collect();
    let mut orders = vec![Vec::new()];
    for id in &all {
        orders.push(vec![*id]);
    }
    if let [one, other] = all[..] {
        orders.push(vec![one, other]);
        orders.push(vec![other, one]);
    }
    orders.retain(|order| saved.iter().all(|id| order.contains(id)));
    orders
}
