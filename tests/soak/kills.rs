//! SIGKILL at any moment of any command: what was acknowledged stays, and the next run cleans up.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{Command, Does, Target, With};
use crate::model::{Act, Link, Place};
use crate::random::Random;
use crate::report::Part;
use crate::run::Run;
use crate::scene::Scene;
use crate::soak::Soak;
use crate::turns::{self, Started};
use crate::world::World;

const MODE: &str = "kills";

/// Most runs take less time than this.
const LONGEST: Duration = Duration::from_millis(20);

/// Saving takes less time than this.
const SAVING: Duration = Duration::from_millis(6);

/// When to kill.
enum Aim {
    /// This long after the start.
    At(Duration),
    /// This long after the server has sent the end of the answer.
    AfterAnswer(Duration),
    /// This long after the model has called a tool.
    AfterCall(Duration),
    /// This long after that many changes of the state directory.
    AfterChange(u64, Duration),
}

impl Aim {
    fn new(random: &mut Random, command: &Command) -> Aim {
        match random.below(3) {
            0 => Aim::At(random.within(LONGEST)),
            1 if matches!(command.with, With::Tool | With::Call) && random.percent(50) => {
                Aim::AfterCall(random.within(LONGEST))
            }
            1 if command.asks() => Aim::AfterAnswer(random.within(SAVING)),
            _ => {
                let changes = 1 + random.below(4);
                Aim::AfterChange(changes, random.within(Duration::from_micros(300)))
            }
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
            Aim::AfterCall(delay) => {
                soak.server.wait_for_call(id, LONGEST * 10);
                thread::sleep(*delay);
            }
            Aim::AfterChange(changes, delay) => {
                let mut seen = world.listing(home);
                for _ in 0..*changes {
                    let began = Instant::now();
                    while world.listing(home) == seen
                        && began.elapsed() < LONGEST * 5
                        && !run.ended()
                    {}
                    seen = world.listing(home);
                }
                thread::sleep(*delay);
            }
        }
    }
}

/// Makes `rounds` kills, one after another.
pub fn batch(soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
    Scene::steps(
        soak,
        Part { mode: MODE, seed },
        rounds,
        |scene, random| match random.below(100) {
            0..15 => overtaken(random, scene),
            15..40 => pair(random, scene),
            40..50 => adopting(random, scene),
            _ => {
                let home = home(random);
                // Questions are asked more often, so that there is something to undo and to clear.
                let asks = random.percent(50);
                let command =
                    scene.choose(random, home, None, |command| command.asks() || !asks)?;
                single(random, scene, &command.to_string(), &command, None)
            }
        },
    )
}

/// One command, killed. `planted` is the id of a conversation that was a file in the place of the link.
fn single(
    random: &mut Random,
    scene: &mut Scene,
    label: &str,
    command: &Command,
    planted: Option<(Link, &str)>,
) -> io::Result<bool> {
    let (question, place) = (scene.question(), command.place(&scene.model));
    let mut run = scene.soak.start(&scene.world, command, &question)?;
    let (soak, id) = (scene.soak, question.id);
    Aim::new(random, command).wait(soak, &scene.world, command.home, id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    scene.world.release_names(command.home);
    if let Some((link, id)) = planted {
        scene.world.link_again(command.home, link, id)?;
    }
    scene.soak.report.done(MODE, label);
    let read = scene.model.clone();
    let act = Act::new(command, question.id, &outcome);
    Ok(scene.settle_run(label, &read, &act)
        && scene.clean_up(random, label, &[(command.home, place)])?)
}

/// A follow-up, or a question asked again, whose conversation another command changes before its answer comes, killed while
/// it saves.
fn overtaken(random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let home = home(random);
    let late = scene.choose(random, home, None, |command| {
        matches!(command.does, Does::Follow | Does::Again)
    })?;
    let (question, place) = (scene.question(), late.place(&scene.model));
    scene.soak.server.hold(question.id);
    let mut run = scene.soak.start(&scene.world, &late, &question)?;
    let read = scene.model.clone();
    let asked = scene.soak.server.wait_for_request(question.id, &mut run);
    let same = random.percent(80);
    let by = scene.choose(random, home, Some(&late), |command| {
        !same || command.place(&scene.model) == place
    })?;
    let label = format!("{late}, overtaken by {by}");
    let well = !asked || scene.undisturbed(&label, &by)?;
    scene.soak.server.release(question.id);
    if !well {
        return Ok(false);
    }
    let aim = Aim::AfterAnswer(random.within(SAVING));
    aim.wait(scene.soak, &scene.world, home, question.id, &mut run);
    run.kill();
    let outcome = run.finish()?;
    scene.soak.report.done(MODE, &label);
    let act = Act::new(&late, question.id, &outcome);
    let is_settled = scene.settle_run(&label, &read, &act);
    Ok(is_settled && scene.clean_up(random, &label, &[(home, place)])?)
}

/// A command about a conversation that is a file in place of its link, killed. Its id names it once a question has
/// moved it.
fn adopting(random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    let (home, question) = (home(random), scene.question());
    let link = random.pick(&[Link::Current, Link::Slot]);
    let id = scene.world.plant(home, link, &question)?;
    scene
        .model
        .add(Place::In(home, id.clone()), vec![question.id]);
    scene.model.links.insert((home, link), id.clone());
    let current = Target::Linked(link);
    let command = scene.choose(random, home, None, |command| command.target == current)?;
    let label = format!("{command}, of a file");
    let follow = Command::new(home, current, Does::Follow);
    if !single(random, scene, &label, &command, Some((link, &id)))? {
        return Ok(false);
    }
    if !scene.undisturbed(&label, &follow)? {
        return Ok(false);
    }
    let by_id = Command::new(home, Target::Id(id), Does::Follow);
    Ok(!by_id.can_run(&scene.model) || scene.undisturbed(&label, &by_id)?)
}

/// Two commands at once, one or both of them killed.
fn pair(random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
    turns::at_once(random, scene, 2, |random, scene, started| {
        let victim = random.below(2) as usize;
        let Started { command, id, run } = &mut started[victim];
        Aim::new(random, command).wait(scene.soak, &scene.world, command.home, *id, run);
        run.kill();
        if random.percent(50) {
            started[1 - victim].run.kill();
        }
    })
}

/// Mostly the first state directory.
fn home(random: &mut Random) -> usize {
    usize::from(random.percent(20))
}
