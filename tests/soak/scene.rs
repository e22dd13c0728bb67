//! A world whose whole state is known: after each step it must be one that the model allows.

use std::io;
use std::ops::Range;

use crate::command::{self, Does, Row};
use crate::model::{Model, Place};
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::snapshot::Created;
use crate::soak::Soak;
use crate::world::World;

/// With more conversations than that, a scene is left for a new one.
const CROWDED: usize = 50;

pub struct Scene {
    pub world: World,
    pub model: Model,
    created: Created,
}

impl Scene {
    pub fn new(soak: &Soak, random: &mut Random) -> io::Result<Scene> {
        let world = soak.world(random.pick(&[None, None, Some("never"), Some("0")]))?;
        let model = Model::new(world.keeps_nothing());
        Ok(Scene { world, model, created: Created::default() })
    }

    pub fn is_crowded(&self) -> bool {
        self.model.conversations.len() > CROWDED
    }

    /// The state after a run that may have been killed: the files must be whole, and hold what is allowed. Returns
    /// whether they do.
    pub fn settle(&mut self, soak: &Soak, part: Part, label: &str, allowed: &[Model]) -> bool {
        let snapshot = self.world.snapshot();
        let found = snapshot.model_after_kill(self.world.keeps_nothing());
        let torn = snapshot.torn.iter().cloned().chain(snapshot.damaged()).next().map(|what| (Kind::Torn, what));
        if let Some((kind, what)) = torn.or_else(|| found.differs(allowed)) {
            soak.report.found(part, kind, label, &what, self.world.path());
            return false;
        }
        self.model = found;
        true
    }

    /// The state before, less the conversations of a state folder that are gone by now: clearing all of them may have
    /// stopped halfway.
    pub fn partly_cleared(&self, home: usize) -> Model {
        let mut found = self.world.snapshot().model_after_kill(self.world.keeps_nothing()).conversations;
        let mut model = self.model.clone();
        // Two may be the same, and only one of them gone.
        let mut is_there = |one: &(Place, Vec<u64>)| {
            found.iter().position(|other| other == one).map(|at| found.swap_remove(at)).is_some()
        };
        model.conversations.retain(|one| one.0.home() != Some(home) || is_there(one));
        model
    }

    /// Runs commands undisturbed in these state folders, after one about `place` that was killed. They must clean up: those
    /// about the shared file beside that file, all others in the state folder. Returns whether they did.
    pub fn clean_up(
        &mut self,
        soak: &Soak,
        part: Part,
        random: &mut Random,
        label: &str,
        homes: Range<usize>,
        place: Place,
    ) -> io::Result<bool> {
        let mut names = Vec::new();
        for about_file in [true, false] {
            if about_file && place != Place::File {
                continue;
            }
            for home in homes.clone() {
                let row = command::choose(random, &self.model, home, |row| {
                    ((row.place)(home) == Place::File) == about_file && row.does != Does::ClearAll
                });
                if !self.undisturbed(soak, part, label, home, row)? {
                    return Ok(false);
                }
                names.push(row.name);
            }
        }
        Ok(self.is_clean(soak, part, label, &names.join(" and ")))
    }

    /// Runs a command undisturbed; the state must be what it makes of it. Returns whether it is.
    pub fn undisturbed(&mut self, soak: &Soak, part: Part, label: &str, home: usize, row: &Row) -> io::Result<bool> {
        let question = Question::small(soak.next_id());
        let outcome = soak.start(&self.world, home, row, &question)?.finish()?;
        soak.report.done(part.mode, &format!("{} (undisturbed)", row.name));
        if !soak.check_outcome(part, row, &question, &outcome, &self.world) {
            return Ok(false);
        }
        self.model = row.after(&self.model, home, question.id);
        let found = self.world.snapshot().model_after_kill(self.world.keeps_nothing());
        if let Some((kind, what)) = found.differs(std::slice::from_ref(&self.model)) {
            soak.report.found(part, kind, label, &format!("after {}: {what}", row.name), self.world.path());
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether nothing is left over, no file is damaged, and no conversation is there twice.
    fn is_clean(&mut self, soak: &Soak, part: Part, label: &str, after: &str) -> bool {
        let snapshot = self.world.snapshot();
        let mut wrong = snapshot.wrong();
        let each_file = snapshot.model(self.world.keeps_nothing());
        if let Some((kind, what)) = each_file.differs(std::slice::from_ref(&self.model)).filter(|_| wrong.is_empty()) {
            wrong.push((kind, what));
        }
        // A shared file that another state folder began may have been created at the same moment as one that was here. Without
        // a lock, nobody remembers the moments that were given.
        let from_elsewhere = [label, after].iter().any(|label| label.contains("FILE") || label.contains("ENOLCK"));
        if let Some(what) = self.created.check(&snapshot, from_elsewhere).filter(|_| wrong.is_empty()) {
            wrong.push((Kind::Other, what));
        }
        wrong.iter_mut().for_each(|(_, what)| *what = format!("after {after}: {what}"));
        soak.report.check(part, label, wrong, self.world.path())
    }
}
