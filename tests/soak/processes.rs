//! Signals and kills while tools leave processes behind: q ends them all, and nothing that it did not start.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::command::{Command, Does, Target, With};
use crate::harness::toolserver::is_there;
use crate::model::Link;
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::Run;
use crate::soak::Soak;
use crate::toolserver::{IDLER, LINGERS, left};
use crate::world::World;

const MODE: &str = "processes";

/// Where a script's own process writes its number.
const FOREIGN: &str = "foreign";

/// Starts a process of its own and becomes q, whose child that process is then.
const SCRIPT: &str = r#"setsid sh -c 'echo $$ >"$HOME/foreign"; exec "$0" "$1"' "$0" "$1" >/dev/null 2>&1 & shift; exec "$@""#;

/// A signal ends q, and all that it has started, within this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The servers start, and the calls run, within this time.
const LONGEST: Duration = Duration::from_millis(150);

const ENDS: [(Option<i32>, &str); 5] = [
    (None, "its end"),
    (Some(libc::SIGINT), "SIGINT"),
    (Some(libc::SIGTERM), "SIGTERM"),
    (Some(libc::SIGHUP), "SIGHUP"),
    (Some(libc::SIGKILL), "SIGKILL"),
];

/// So many runs, one after another.
pub fn batch(soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
    let part = Part { mode: MODE, seed };
    let mut random = Random::new(seed);
    let world = soak.world(None)?;
    let mut left = (0..rounds).take_while(|_| !soak.is_over());
    left.try_for_each(|_| round(soak, part, &mut random, &world))
}

fn round(soak: &Soak, part: Part, random: &mut Random, world: &World) -> io::Result<()> {
    let (signal, name) = random.pick(&ENDS);
    let command = Command {
        with: random.pick(&[With::Tool, With::Call]),
        ..Command::new(0, Target::Linked(Link::Current), Does::Ask)
    };
    let label = format!("{command}, {name}");
    let home = world.home(0);
    let _ = fs::remove_file(home.join(FOREIGN));
    let _ = fs::remove_file(home.join(LINGERS));
    // Nobody could end what the tools of a killed q leave behind.
    if signal != Some(libc::SIGKILL) {
        fs::write(home.join(LINGERS), "")?;
    }
    let question = Question::small(soak.next_id());
    let program = std::env::current_exe()?.display().to_string();
    let script = ["sh", "-c", SCRIPT, &program, IDLER].map(str::to_owned);
    let mut run = Run::start(world.run(&script, &command, &question))?;
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
    let took = sent.elapsed();
    soak.report.done(MODE, &label);
    let mut wrong = Vec::new();
    let left = left(world.path(), Some(foreign));
    if !left.is_empty() {
        wrong.push((
            Kind::LeftOver,
            format!("these processes are left: {left:?}"),
        ));
    }
    if is_there(foreign) {
        // SAFETY: it is there, and the soak's own.
        unsafe { libc::kill(foreign, libc::SIGKILL) };
    } else {
        wrong.push((
            Kind::Other,
            "a process that q did not start was ended".to_owned(),
        ));
    }
    if signal.is_none() && !outcome.succeeded() {
        wrong.push((Kind::Other, outcome.summary()));
    }
    if signal.is_some() && took > AT_ONCE {
        wrong.push((Kind::Other, format!("it took {took:?} to end")));
    }
    soak.report.check(part, &label, wrong, world.path());
    Ok(())
}
