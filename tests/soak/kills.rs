//! SIGKILL at any moment of any command: what was acknowledged stays, and the next run cleans up.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{Command, Does, Target};
use crate::model::{Act, Link, Place};
use crate::random::Random;
use crate::report::Part;
use crate::run::{Outcome, Run};
use crate::scene::{Scene, both};
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
    fn new(random: &mut Random, command: &Command) -> Aim {
        match random.below(3) {
            0 => Aim::At(random.within(LONGEST)),
            1 if command.asks() => Aim::AfterAnswer(random.within(SAVING)),
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
    Scene::steps(soak, Part { mode: MODE, seed }, rounds, |scene, random| match random.below(100) {
        0..15 => overtaken(random, scene),
        15..40 => pair(random, scene, true),
        40..50 => adopting(random, scene),
        _ => {
            let home = home(random);
            // Questions are asked more often, so that there is something to undo and to clear.
            let asks = random.percent(50);
            let command = scene.choose(random, home, None, |command| command.asks() || !asks)?;
            single(random, scene, &command.to_string(), &command)
        }
    })
}

/// One command, killed.
fn single(random: &mut Random, scene: &mut Scene, label: &str, command: &Command) -> io::Result<bool> {
    let (question, place) = (scene.question(), command.place(&scene.model));
    let mut run = scene.soak.start(&scene.world, command, &question)?;
    Aim::new(random, command).wait(scene.soak, &scene.world, command.home, question.id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    scene.soak.report.done(MODE, label);
    let read = scene.model.clone();
    let act = Act { command, id: question.id, outcome: &outcome };
    Ok(scene.settle_run(label, &read, &act) && scene.clean_up(random, label, &[(command.home, place)])?)
}

/// A follow-up, or a question asked again, whose conversation another command changes before its answer comes, killed while
/// it saves.
fn overtaken(random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let home = home(random);
    let late = scene.choose(random, home, None, |command| command.asks())?;
    let (question, place) = (scene.question(), late.place(&scene.model));
    if late.does == Does::Ask || place.is_none() {
        return scene.undisturbed(&late.to_string(), &late);
    }
    scene.soak.server.hold(question.id);
    let mut run = scene.soak.start(&scene.world, &late, &question)?;
    let read = scene.model.clone();
    let asked = scene.soak.server.wait_for_request(question.id, &mut run);
    let same = random.percent(80);
    let by = scene.choose(random, home, Some(&late), |command| !same || command.place(&scene.model) == place)?;
    let label = format!("{late}, overtaken by {by}");
    let well = !asked || scene.undisturbed(&label, &by)?;
    scene.soak.server.release(question.id);
    if !well {
        return Ok(false);
    }
    Aim::AfterAnswer(random.within(SAVING)).wait(scene.soak, &scene.world, home, question.id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    scene.soak.report.done(MODE, &label);
    let act = Act { command: &late, id: question.id, outcome: &outcome };
    Ok(scene.settle_run(&label, &read, &act) && scene.clean_up(random, &label, &[(home, place)])?)
}

/// A command about a `current.json` that is a file, killed.
fn adopting(random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let (home, question) = (home(random), scene.question());
    let id = scene.world.plant(home, &question)?;
    scene.model.add(Place::In(home, id.clone()), vec![question.id]);
    scene.model.links.insert((home, Link::Current), id);
    let current = Target::Linked(Link::Current);
    let command = scene.choose(random, home, None, |command| command.target == current)?;
    let label = format!("{command}, of a file");
    let follow = Command::new(home, current, Does::Follow);
    Ok(single(random, scene, &label, &command)? && scene.undisturbed(&label, &follow)?)
}

/// Two commands at once, about the same conversation or others. Both may be killed.
pub fn pair(random: &mut Random, scene: &mut Scene, kills: bool) -> io::Result<bool> {
    let home = home(random);
    // Numbers move, and those of earlier states are given again.
    let plain = |command: &Command| {
        command.does != Does::ClearAll && !matches!(command.target, Target::Number(..) | Target::Earlier(..))
    };
    let one = scene.choose(random, home, None, plain)?;
    let (same, elsewhere) = (random.percent(70), one.target == Target::File && random.percent(50));
    let other = scene.choose(random, if elsewhere { HOMES - 1 - home } else { home }, Some(&one), |command| {
        plain(command) && (!same || command.place(&scene.model) == one.place(&scene.model))
    })?;
    let (commands, label) = ([&one, &other], format!("{one}, and {other}"));
    let questions = [scene.question(), scene.question()];
    let mut runs = Vec::new();
    for (command, question) in commands.iter().zip(&questions) {
        let holds = command.asks() && random.percent(60);
        if holds {
            scene.soak.server.hold(question.id);
        } else {
            thread::sleep(random.within(Duration::from_millis(3)));
        }
        let mut run = scene.soak.start(&scene.world, command, question)?;
        if holds {
            scene.soak.server.wait_for_request(question.id, &mut run);
        }
        runs.push(run);
    }
    questions.iter().for_each(|question| scene.soak.server.release(question.id));
    if kills {
        let victim = random.below(2) as usize;
        let aim = Aim::new(random, commands[victim]);
        aim.wait(scene.soak, &scene.world, commands[victim].home, questions[victim].id, &mut runs[victim]);
        runs[victim].kill();
        if random.percent(50) {
            runs[1 - victim].kill();
        }
    }
    let outcomes: Vec<Outcome> = runs.into_iter().map(Run::finish).collect::<io::Result<_>>()?;
    scene.soak.report.done(scene.part.mode, &label);
    let acts = [0, 1].map(|at| Act { command: commands[at], id: questions[at].id, outcome: &outcomes[at] });
    let before = scene.model.clone();
    let details = format!("{}\n  {}", acts[0], acts[1]);
    let well = acts.iter().all(|act| scene.check_outcome(act, true));
    let well = well && scene.settle(&label, &details, |found| both(&before, [&acts[0], &acts[1]], found));
    let places = acts.each_ref().map(|act| (act.command.home, act.command.place(&before)));
    Ok(well && (!kills || scene.clean_up(random, &label, &places)?) && scene.is_clean(&label, &label))
}

/// Mostly the first state folder.
fn home(random: &mut Random) -> usize {
    usize::from(random.percent(20))
}
