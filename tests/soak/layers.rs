//! File systems that lie or lack something, and another version of q in the same directory: what was acknowledged is in a file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::thread;
use std::time::Duration;

use crate::command::{Command, Does, Target, With};
use crate::model::Link;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::Run;
use crate::scene::Scene;
use crate::soak::Soak;

/// What the file system does: see `layer.c`.
const LAYERS: &str = "rename, symlink, flock, symlink flock, rename symlink flock, noreplace, noreplace flock, \
    noreplace hardlink, rename noreplace hardlink symlink";

/// How many rounds one directory lasts.
const ROUNDS: u64 = 10;

/// A layer between q and the file system, or another program in place of some runs of q.
pub enum Under {
    Library(PathBuf),
    Program(PathBuf),
}

impl Under {
    /// Builds the layer. `None` without a compiler for C.
    pub fn library(directory: &Path) -> Option<Under> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/soak/layer.c");
        let library = directory.join("layer.so");
        let mut compiler = Program::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        compiler.arg(&library).arg(source).arg("-ldl");
        let built = compiler.stdout(Stdio::null()).status();
        if !built.is_ok_and(|status| status.success()) {
            return None;
        }
        Some(Under::Library(library))
    }

    fn mode(&self) -> &'static str {
        match self {
            Under::Library(_) => "layers",
            Under::Program(_) => "versions",
        }
    }

    /// Makes this many runs, up to four at once.
    pub fn batch(&self, soak: &Soak, seed: u64, runs: u64) -> io::Result<()> {
        let mut random = Random::new(seed);
        let mut left = runs;
        while left > 0 && !soak.is_over() {
            let rounds = left.min(ROUNDS);
            left -= rounds;
            self.directory(soak, seed, rounds, &mut random)?;
        }
        Ok(())
    }

    /// Rounds in a directory that was empty. Nothing is deleted in it, so every acknowledged exchange must still be in a file.
    fn directory(
        &self,
        soak: &Soak,
        seed: u64,
        rounds: u64,
        random: &mut Random,
    ) -> io::Result<()> {
        let part = Part {
            mode: self.mode(),
            seed,
        };
        let mut scene = Scene::new(soak, part, random)?;
        scene.world = soak.world(None)?;
        let layer = random.pick(&LAYERS.split(", ").collect::<Vec<_>>());
        // The exchanges that were acknowledged, and what asked them.
        let mut acknowledged: BTreeMap<u64, String> = BTreeMap::new();
        for _ in 0..rounds {
            let mut runs = Vec::new();
            for _ in 0..=random.below(4) {
                let question = scene.question();
                let command = command(random);
                let mut run = scene.world.run(&[], &command, &question);
                match self {
                    Under::Library(library) => {
                        run.env("LD_PRELOAD", library).env("LAYER", layer);
                    }
                    Under::Program(program) => {
                        if random.percent(50) {
                            run = scene.world.run_other(program, &command, &question);
                        }
                    }
                }
                runs.push((question.id, format!("{command}"), Run::start(run)?));
            }
            if random.percent(20) {
                thread::sleep(random.within(Duration::from_millis(20)));
                runs[0].2.kill();
            }
            for (id, label, run) in runs {
                let outcome = run.finish()?;
                soak.report.done(part.mode, &label);
                soak.report
                    .said(part.mode, &label, outcome.status, &outcome.stderr);
                let asked = soak.server.request(id).is_some();
                if asked && outcome.succeeded() && !outcome.not_saved() {
                    acknowledged.insert(id, label);
                }
            }
        }
        let snapshot = scene.world.snapshot();
        let mut wrong = Vec::new();
        for torn in &snapshot.torn {
            wrong.push((Kind::Torn, torn.clone()));
        }
        for (id, label) in acknowledged {
            let mut exchanges = snapshot.files.iter().flat_map(|file| &file.exchanges);
            if !exchanges.any(|exchange| exchange.id == id) {
                wrong.push((Kind::Lost, format!("exchange {id} of {label}, {layer}")));
            }
        }
        soak.report.check(part, layer, wrong, scene.world.path());
        Ok(())
    }
}

/// A command that deletes nothing.
fn command(random: &mut Random) -> Command {
    let target = match random.below(4) {
        0 => Target::Linked(Link::Current),
        1 => Target::Linked(Link::Slot),
        2 => Target::Named,
        _ => Target::File,
    };
    let mut does = random.pick(&[
        Does::Ask,
        Does::Follow,
        Does::Follow,
        Does::Again,
        Does::Undo,
    ]);
    if does == Does::Ask && !matches!(target, Target::Linked(_)) {
        does = Does::Follow;
    }
    let home = 0;
    let mut command = Command::new(home, target, does);
    if command.asks() {
        command.with = random.pick(&[With::Nothing, With::Tool, With::Call]);
    }
    command
}
