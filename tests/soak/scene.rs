//! A world whose whole state is known: after each step it must be one that the model allows.

use std::io;

use crate::command::{Command, Does, Target, With};
use crate::model::{Act, Link, Model, Place};
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::Run;
use crate::soak::Soak;
use crate::world::World;

/// With more conversations than that, a scene is left for a new one.
const CROWDED: usize = 20;

pub struct Scene<'a> {
    pub soak: &'a Soak,
    pub part: Part,
    pub world: World,
    pub model: Model,
}

impl<'a> Scene<'a> {
    pub fn new(soak: &'a Soak, part: Part, random: &mut Random) -> io::Result<Scene<'a>> {
        let world = soak.world(random.pick(&[None, None, Some("never"), Some("0")]))?;
        let model = Model {
            keeps_nothing: world.keeps_nothing(),
            ..Model::default()
        };
        Ok(Scene {
            soak,
            part,
            world,
            model,
        })
    }

    /// Steps one after another; each returns whether all was well. After one that was not, and with very many
    /// conversations, another scene begins.
    pub fn steps(
        soak: &'a Soak,
        part: Part,
        rounds: u64,
        mut step: impl FnMut(&mut Scene<'a>, &mut Random) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut random = Random::new(part.seed);
        let mut scene = Scene::new(soak, part, &mut random)?;
        for _ in 0..rounds {
            if soak.is_over() {
                break;
            }
            if !step(&mut scene, &mut random)? || scene.model.conversations.len() > CROWDED {
                scene = Scene::new(soak, part, &mut random)?;
            }
        }
        Ok(())
    }

    /// A command that passes, and that finds something to do; perhaps about the conversation of another one.
    pub fn choose(
        &self,
        random: &mut Random,
        home: usize,
        other: Option<&Command>,
        passes: impl Fn(&Command) -> bool,
    ) -> io::Result<Command> {
        let mut targets = vec![
            Target::Linked(Link::Current),
            Target::Linked(Link::Slot),
            Target::Named,
            Target::File,
        ];
        let sessions = self.world.sessions(home);
        let (mut ids, mut earlier) = (Vec::new(), Vec::new());
        for (place, _) in &self.model.conversations {
            match place {
                // A file in the place of a link has no id yet.
                Place::In(at, id)
                    if *at == home
                        && id.starts_with("session_")
                        && sessions.join(format!("{id}.json")).exists() =>
                {
                    ids.push(Target::Id(id.clone()))
                }
                Place::Earlier(at, of, number) if *at == home => {
                    earlier.push(Target::Earlier(of.clone(), *number))
                }
                _ => {}
            }
        }
        for some in [ids, earlier].iter().filter(|some| !some.is_empty()) {
            targets.push(some[random.below(some.len() as u64) as usize].clone());
        }
        if random.percent(20) {
            targets.extend(self.number(random, home)?);
        }
        targets.extend(other.map(|other| match &other.target {
            // Its number may be another one by now.
            Target::Number(_, name) => Target::Id(name.clone()),
            target => target.clone(),
        }));
        let all = targets.iter().flat_map(|target| Command::all(home, target));
        let all: Vec<Command> = all
            .filter(|command| command.can_run(&self.model) && passes(command))
            .collect();
        let mut command = all[random.below(all.len() as u64) as usize].clone();
        if matches!(command.does, Does::Ask | Does::Follow) {
            let with = [
                With::Tool,
                With::Call,
                With::Search,
                With::Role,
                With::Image,
            ];
            command.with = if random.percent(50) {
                random.pick(&with)
            } else {
                With::Nothing
            };
        }
        // The current conversation is not followed up by another model.
        if command.with == With::Role
            && command.does == Does::Follow
            && matches!(command.target, Target::Linked(_))
        {
            command.with = With::Nothing;
        }
        Ok(command)
    }

    /// The number of some conversation in the list.
    fn number(&self, random: &mut Random, home: usize) -> io::Result<Option<Target>> {
        let mut list = self.world.q(&[], home);
        list.arg("--list");
        let stdout = Run::start(list)?.finish()?.stdout;
        let stdout = String::from_utf8_lossy(&stdout);
        let names = stdout.lines();
        let names: Vec<&str> = names.filter_map(|line| line.split('\t').next()).collect();
        let number = random.below(names.len() as u64);
        Ok(names
            .get(number as usize)
            .map(|name| Target::Number(number + 1, (*name).to_owned())))
    }

    pub fn question(&self) -> Question {
        Question::small(self.soak.next_id())
    }

    /// Whether nothing is wrong; what is wrong is reported.
    pub fn check(&self, label: &str, wrong: Vec<(Kind, String)>) -> bool {
        let report = &self.soak.report;
        report.check(self.part, label, wrong, self.world.path())
    }

    /// Takes the state as it is, if the files are whole and hold what is allowed. Returns whether they do.
    pub fn settle(
        &mut self,
        label: &str,
        details: &str,
        allowed: impl FnOnce(&Model) -> Vec<Model>,
    ) -> bool {
        let snapshot = self.world.snapshot();
        let model = snapshot.model(self.world.keeps_nothing());
        let found = model.renamed(&self.model);
        let torn = snapshot.torn.iter().cloned();
        let torn = torn.chain(snapshot.damaged()).next();
        let torn = torn.map(|what| (Kind::Torn, what));
        if let Some((kind, what)) = torn.or_else(|| self.differs(&found, allowed(&found))) {
            let text = format!("{what}\n  {details}");
            self.check(label, vec![(kind, text)]);
            return false;
        }
        self.model = model;
        true
    }

    fn differs(&self, found: &Model, allowed: Vec<Model>) -> Option<(Kind, String)> {
        let settled = |model: &Model| model.clone().without_lost_links(&self.model);
        let allowed = allowed
            .iter()
            .map(|model| settled(&model.renamed(&self.model)));
        settled(found).differs(&allowed.collect::<Vec<_>>())
    }

    /// Checks how a run has ended that asked when the state was `read`, and takes the state.
    pub fn settle_run(&mut self, label: &str, read: &Model, act: &Act) -> bool {
        let now = self.model.clone();
        self.check_outcome(act, false)
            && self.settle(label, &act.to_string(), |found| {
                now.effects(read, act, found)
            })
    }

    /// Whether a run has ended as it should. One that was not alone may have found nothing to do.
    pub fn check_outcome(&self, act: &Act, disturbed: bool) -> bool {
        let (command, id, outcome) = (act.command, act.id, act.outcome);
        let label = command.to_string();
        let report = &self.soak.report;
        report.said(self.part.mode, &label, outcome.status, &outcome.stderr);
        let request = self.soak.server.request(id);
        let refused = disturbed && outcome.refused() && request.is_none();
        let answer = format!("{}\n", Question::small(id).answer());
        let wrong = match request.and_then(|request| request.foreign) {
            Some(foreign) => Some((Kind::Torn, foreign)),
            None if outcome.killed() || refused => None,
            None if outcome.hung || !outcome.succeeded() || outcome.not_saved() => {
                Some((Kind::Other, act.to_string()))
            }
            None if command.asks() && outcome.stdout != answer.as_bytes() => Some((
                Kind::Other,
                format!("printed {:?}", String::from_utf8_lossy(&outcome.stdout)),
            )),
            None => None,
        };
        self.check(&label, wrong.into_iter().collect())
    }

    /// Runs a command undisturbed; the state must be what it makes of it. Returns whether it is.
    pub fn undisturbed(&mut self, label: &str, command: &Command) -> io::Result<bool> {
        let question = self.question();
        let outcome = self.soak.start(&self.world, command, &question)?.finish()?;
        self.soak
            .report
            .done(self.part.mode, &format!("{command} (undisturbed)"));
        let read = self.model.clone();
        let act = Act::new(command, question.id, &outcome);
        if !self.settle_run(&format!("{label}, then another"), &read, &act) {
            return Ok(false);
        }
        let snapshot = self.world.snapshot();
        let is_here = |links: &[(usize, Link)]| {
            links.iter().any(|(home, link)| {
                *home == command.home && command.target == Target::Linked(*link)
            })
        };
        let regular = command.does != Does::Copy && is_here(&snapshot.regular);
        let what = format!("after {command} its link is a file");
        let wrong = if regular {
            vec![(Kind::LeftOver, what)]
        } else {
            Vec::new()
        };
        Ok(self.check(label, wrong))
    }

    /// Runs commands that write, after some at these places were killed. They must clean up: those about the shared file
    /// next to that file, all others in their state directory. Returns whether nothing is left over.
    pub fn clean_up(
        &mut self,
        random: &mut Random,
        label: &str,
        after: &[(usize, Option<Place>)],
    ) -> io::Result<bool> {
        let mut names = Vec::new();
        for (home, place) in after {
            for about_file in [true, false] {
                if about_file && *place != Some(Place::File) {
                    continue;
                }
                let command = self.choose(random, *home, None, |command| {
                    let writes = match command.does {
                        Does::Clear | Does::ClearAll => false,
                        Does::Copy => !about_file,
                        _ => true,
                    };
                    writes && (command.target == Target::File) == about_file
                })?;
                if !self.undisturbed(label, &command)? {
                    return Ok(false);
                }
                names.push(command.to_string());
            }
        }
        Ok(self.is_clean(label, &names.join(" and ")))
    }

    /// Whether nothing is damaged or left over.
    pub fn is_clean(&self, label: &str, after: &str) -> bool {
        let snapshot = self.world.snapshot();
        let mut wrong = snapshot.wrong();
        // Where nothing kills a run, it leaves nothing unfinished.
        if self.part.mode == "turns" {
            let unfinished = snapshot.unfinished.into_iter();
            wrong.extend(unfinished.map(|what| (Kind::LeftOver, what)));
        }
        wrong
            .iter_mut()
            .for_each(|(_, what)| *what = format!("after {after}: {what}"));
        self.check(label, wrong)
    }
}
