//! Signals and kills while tools leave processes and files behind: q ends and removes them all, and ends nothing that it did not
//! start.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;

use crate::command::{Command, Does, Target, With};
use crate::harness::toolserver::is_there;
use crate::model::Link;
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::{Outcome, Run};
use crate::snapshot::Stored;
use crate::soak::Soak;
use crate::toolserver::{CONFINED, IDLER, LINGERS, left};
use crate::world::World;

const MODE: &str = "processes";

/// Where a script's own process writes its number.
const FOREIGN: &str = "foreign";

/// Starts a process of its own and becomes q, whose child that process is then.
const SCRIPT: &str = r#"setsid sh -c 'echo $$ >"$HOME/foreign"; exec "$0" "$1"' "$0" "$1" >/dev/null 2>&1 & shift; exec "$@""#;

/// The servers start, and the calls run, within this time.
const LONGEST: Duration = Duration::from_millis(150);

const ENDS: [(Option<i32>, &str); 5] = [
    (None, "its end"),
    (Some(libc::SIGINT), "SIGINT"),
    (Some(libc::SIGTERM), "SIGTERM"),
    (Some(libc::SIGHUP), "SIGHUP"),
    (Some(libc::SIGKILL), "SIGKILL"),
];

/// After this time q sweeps again.
const A_DAY_AND_MORE: Duration = Duration::from_secs(25 * 60 * 60);

/// Whether this kernel can confine programs.
pub fn can_confine(soak: &Soak) -> io::Result<bool> {
    let world = soak.world(None)?;
    let mut list = world.q(&[], 0);
    list.args(["--list-tools", "-t", CONFINED]);
    let outcome = Run::start(list)?.finish()?;
    let cannot = outcome.stderr.contains("cannot be confined");
    if !cannot && !outcome.succeeded() {
        return Err(io::Error::other(outcome.summary()));
    }
    Ok(!cannot)
}

/// Makes `rounds` runs, one after another; half of them with a confined command, if `confines`.
pub fn batch(soak: &Soak, seed: u64, rounds: u64, confines: bool) -> io::Result<()> {
    let part = Part { mode: MODE, seed };
    let mut random = Random::new(seed);
    let world = soak.world(None)?;
    let mut left = (0..rounds).take_while(|_| !soak.is_over());
    left.try_for_each(|_| {
        let with = if confines && random.percent(50) {
            With::ConfinedCall
        } else {
            random.pick(&[With::Tool, With::Call])
        };
        round(soak, part, &mut random, &world, with)
    })
}

fn round(
    soak: &Soak,
    part: Part,
    random: &mut Random,
    world: &World,
    with: With,
) -> io::Result<()> {
    let (signal, name) = random.pick(&ENDS);
    let is_killed = signal == Some(libc::SIGKILL);
    let command = Command {
        with,
        ..Command::new(0, Target::Linked(Link::Current), Does::Ask)
    };
    let label = format!("{command}, {name}");
    let home = world.home(0);
    let _ = fs::remove_file(home.join(FOREIGN));
    let question = Question::small(soak.next_id());
    let program = std::env::current_exe()?.display().to_string();
    let script = ["sh", "-c", SCRIPT, &program, IDLER].map(str::to_owned);
    let mut asking = world.run(&script, &command, &question);
    // Nobody could end what the tools of a killed q leave behind.
    if !is_killed {
        asking.env(LINGERS, "1");
    }
    let mut run = Run::start(asking)?;
    let foreign = loop {
        let number = fs::read_to_string(home.join(FOREIGN)).unwrap_or_default();
        if let Ok(number) = number.trim().parse::<i32>() {
            break number;
        }
        if run.began.elapsed() > LONGEST * 100 {
            return Err(io::Error::other("the script has not started its process"));
        }
        thread::sleep(Duration::from_millis(1));
    };
    if let Some(signal) = signal {
        if random.percent(60) {
            soak.server.wait_for_call(question.id, LONGEST * 10);
        }
        thread::sleep(random.within(LONGEST));
        run.signal(signal);
    }
    let sent = Instant::now();
    let outcome = run.finish()?;
    if signal.is_some() {
        soak.report.ended(MODE, sent.elapsed());
    }
    soak.report.done(MODE, &label);
    let mut wrong = Vec::new();
    let left = left(world.path(), Some(foreign));
    if !left.is_empty() {
        wrong.push((
            Kind::LeftOver,
            format!("these processes are left: {left:?}"),
        ));
    }
    if is_killed {
        sweep(soak, world)?;
    }
    let temporary = temporary(world);
    if !temporary.is_empty() {
        wrong.push((
            Kind::LeftOver,
            format!("these temporary directories are left: {temporary:?}"),
        ));
    }
    wrong.extend(wrong_in_files(&question, &outcome, signal, world));
    if is_there(foreign) {
        // SAFETY: it is there, and the soak's own.
        unsafe { libc::kill(foreign, libc::SIGKILL) };
    } else {
        wrong.push((
            Kind::Other,
            "a process that q did not start was ended".to_owned(),
        ));
    }
    if outcome.hung || signal.is_none() && !outcome.succeeded() {
        wrong.push((Kind::Other, outcome.summary()));
    }
    soak.report.check(part, &label, wrong, world.path());
    Ok(())
}

/// The temporary directories of confined commands that are there.
fn temporary(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.temporary(0)).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Lets q look for what a killed one has left, as it does once a day when it saves an exchange.
fn sweep(soak: &Soak, world: &World) -> io::Result<()> {
    let marker = world.state(0).join("swept");
    if let Ok(marker) = fs::File::options().append(true).open(marker) {
        marker.set_modified(SystemTime::now() - A_DAY_AND_MORE)?;
    }
    let command = Command::new(0, Target::Linked(Link::Current), Does::Ask);
    let question = Question::small(soak.next_id());
    let outcome = soak.start(world, &command, &question)?.finish()?;
    if !outcome.succeeded() {
        return Err(io::Error::other(outcome.summary()));
    }
    Ok(())
}

/// What is wrong with the files of conversations: an exchange is there once if q says that all is well, and else at most once.
fn wrong_in_files(
    question: &Question,
    outcome: &Outcome,
    signal: Option<i32>,
    world: &World,
) -> Vec<(Kind, String)> {
    let snapshot = world.snapshot();
    let mut wrong: Vec<(Kind, String)> = Vec::new();
    wrong.extend(snapshot.torn.iter().map(|what| (Kind::Torn, what.clone())));
    let left_over = snapshot.left_over.iter();
    wrong.extend(left_over.map(|what| (Kind::LeftOver, what.clone())));
    let all = snapshot.files.iter().flat_map(|file| &file.exchanges);
    let saved: Vec<&Stored> = all.filter(|saved| saved.id == question.id).collect();
    let is_acknowledged = outcome.succeeded() && !outcome.not_saved();
    // It is shown before it is saved, and a kill may come between.
    let is_shown = !outcome.stdout.is_empty() && !outcome.killed();
    let what = match saved[..] {
        [] if is_acknowledged || is_shown => Some((Kind::Lost, "it is not saved")),
        [saved] if saved.interrupted && signal.is_none() => {
            Some((Kind::Torn, "it is interrupted without a signal"))
        }
        [_] if outcome.not_saved() => {
            Some((Kind::Other, "it is saved, though q says that it is not"))
        }
        [_, _, ..] => Some((Kind::Misplaced, "it is saved more than once")),
        _ => None,
    };
    wrong.extend(what.map(|(kind, what)| (kind, format!("{what}: {}", outcome.summary()))));
    wrong
}
