//! Makes system calls on the state fail, or kills q in their place: the answer comes all the same, and what was
//! acknowledged stays.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::command::{self, Does, Row};
use crate::model::{Model, Place};
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::{Outcome, Run};
use crate::scene::Scene;
use crate::soak::Soak;
use crate::strace::{self, Call};

const MODE: &str = "faults";

/// What may go wrong with a system call.
const ERRORS: &[(&str, &[&str])] = &[
    ("open", &["EIO", "EACCES", "EROFS", "EMFILE", "ENOSPC", "EINTR"]),
    ("read", &["EIO", "EINTR"]),
    ("pread", &["EIO", "EINTR"]),
    ("write", &["ENOSPC", "EIO", "EDQUOT", "EINTR"]),
    ("pwrite", &["ENOSPC", "EIO", "EDQUOT", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("rename", &["EIO", "EACCES", "EROFS", "ENOSPC"]),
    ("link", &["EPERM", "EMLINK", "EIO", "ENOSPC"]),
    ("unlink", &["EIO", "EACCES", "EROFS", "EPERM"]),
    ("mkdir", &["ENOSPC", "EROFS", "EACCES", "EIO"]),
    ("flock", &["ENOLCK", "EINTR", "EIO"]),
    ("fcntl", &["EIO", "ENOLCK"]),
    ("ftruncate", &["EIO", "EPERM"]),
];

/// For calls that ask for something or change it.
const OTHER_ERRORS: &[&str] = &["EIO", "EACCES", "EPERM"];

/// What fails at every call: nothing, links, or locks.
const ALWAYS: &[Option<&str>] = &[None, Some("?link,?linkat:error=EPERM"), Some(NO_LOCKS)];
const NO_LOCKS: &str = "?flock:error=ENOLCK";

/// Calls of earlier runs, by command and by what always fails.
type Known = HashMap<(&'static str, Option<&'static str>), Vec<Call>>;

pub struct Faults {
    strace: PathBuf,
    known: Mutex<Known>,
}

/// What goes wrong in one run.
struct Fault {
    always: Option<&'static str>,
    /// A call, and what happens to it: an error, or SIGKILL in its place.
    once: Option<(Call, String)>,
}

impl Fault {
    fn injections(&self) -> Vec<String> {
        let always = self.always.map(str::to_owned);
        let once = self.once.as_ref().map(|(call, what)| format!("{}:{what}:when={}", call.name, call.number));
        always.into_iter().chain(once).collect()
    }
}

impl Faults {
    /// `None` where there is no strace, or where it may not trace.
    pub fn new() -> Option<Faults> {
        Some(Faults { strace: strace::find()?, known: Mutex::default() })
    }

    /// So many faults, one after another.
    pub fn batch(&self, soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
        let part = Part { mode: MODE, seed };
        let mut random = Random::new(seed);
        let mut scene = Scene::new(soak, &mut random)?;
        for _ in 0..rounds {
            if soak.is_over() {
                break;
            }
            if !self.round(soak, part, &mut random, &mut scene)? || scene.is_crowded() {
                scene = Scene::new(soak, &mut random)?;
            }
        }
        Ok(())
    }

    fn round(&self, soak: &Soak, part: Part, random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
        let home = 0;
        let asks = random.percent(50);
        // strace would make the calls of a tool server fail, too.
        let row = command::choose(random, &scene.model, home, |row| !row.calls() && (row.asks() || !asks));
        let fault = self.choose(random, row);
        let injections = fault.injections();
        let question = Question::small(soak.next_id());
        let log = scene.world.path().join("strace.log");
        let wrapper = strace::wrapper(&self.strace, &log, &injections);
        let command = scene.world.command(&wrapper, home, row, row.asks().then_some(&question));
        let outcome = Run::start(command)?.finish()?;
        let log = std::fs::read(&log)?;
        let trace = strace::read(&String::from_utf8_lossy(&log), &scene.world.state_paths());
        let hit = hit(&fault, &trace.calls);
        self.learn(row, fault.always, trace.calls);
        let label = label(row, &fault);
        // Where standard output or the connection failed, the rules for failing state do not apply.
        let elsewhere = trace.missed || (fault.once.is_some() && hit.is_none());
        soak.report.done(MODE, if elsewhere { "(missed the state)" } else { row.name });
        let details = format!("{injections:?} {}\n{}", hit.map_or(String::new(), |call| call.line), outcome.summary());
        if elsewhere && row.asks() {
            return Ok(false);
        }
        let asked = !row.asks() || soak.server.request(question.id).is_some();
        if let Some(what) = complaint(row, &question, &outcome, asked) {
            soak.report.found(part, Kind::Other, &label, &format!("{what}\n{details}"), scene.world.path());
            return Ok(false);
        }
        let allowed = allowed(row, scene, home, question.id, &outcome);
        if !scene.settle(soak, part, &label, &allowed) {
            return Ok(false);
        }
        let place = (row.place)(home);
        if fault.always == Some(NO_LOCKS) {
            // Without a lock nothing tells later runs what a killed one was at: only the next about the same conversation
            // sees it.
            let same = command::choose(random, &scene.model, home, |other| {
                (other.place)(home) == place && other.does != Does::ClearAll
            });
            if !scene.undisturbed(soak, part, &label, home, same)? {
                return Ok(false);
            }
        }
        scene.clean_up(soak, part, random, &label, home..home + 1, place)
    }

    /// A fault at one of the calls that such a run was seen to make.
    fn choose(&self, random: &mut Random, row: &Row) -> Fault {
        let always = if random.percent(25) { random.pick(ALWAYS) } else { None };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(calls) = known.get(&(row.name, always)).filter(|calls| !calls.is_empty()) else {
            return Fault { always, once: None };
        };
        // The name is chosen first, because some calls are much more frequent than others.
        let mut names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let name = random.pick(&names);
        let calls: Vec<&Call> = calls.iter().filter(|call| call.name == name).collect();
        let call = random.pick(&calls).clone();
        let what = if always.is_some() || random.percent(30) {
            "signal=KILL".to_owned()
        } else {
            format!("error={}", random.pick(errors(&call.name)))
        };
        Fault { always, once: Some((call, what)) }
    }

    fn learn(&self, row: &Row, always: Option<&'static str>, calls: Vec<Call>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry((row.name, always)).or_default();
        // Other states lead to other calls, so what was seen before is kept.
        for call in calls {
            if !known.iter().any(|other| (&other.name, other.number) == (&call.name, call.number)) {
                known.push(call);
            }
        }
    }
}

fn errors(call: &str) -> &'static [&'static str] {
    let errors = ERRORS.iter().find(|(name, _)| call.starts_with(name));
    errors.map_or(OTHER_ERRORS, |(_, errors)| errors)
}

/// The call that was to fail, if it was one about the state in this run too.
fn hit(fault: &Fault, calls: &[Call]) -> Option<Call> {
    let (wanted, _) = fault.once.as_ref()?;
    calls.iter().find(|call| (&call.name, call.number) == (&wanted.name, wanted.number)).cloned()
}

fn label(row: &Row, fault: &Fault) -> String {
    let always = fault.always.map(|always| format!(", always {}", always.replace('?', ""))).unwrap_or_default();
    let once = fault.once.as_ref().map(|(call, what)| format!(", {}:{what}", call.name)).unwrap_or_default();
    format!("{}{always}{once}", row.name)
}

/// What is wrong with how the run ended and what it printed, if anything is.
fn complaint(row: &Row, question: &Question, outcome: &Outcome, asked: bool) -> Option<String> {
    if outcome.hung {
        return Some("it hung".to_owned());
    }
    if outcome.killed() {
        return None;
    }
    // An action may fail, and a conversation that was named and cannot be read is not asked without its context.
    let needs_conversation = row.does == Does::Again || row.args.contains(&"-s");
    let may_refuse = !row.asks() || (needs_conversation && !asked);
    if !outcome.succeeded() {
        let refuses = may_refuse && matches!(outcome.status.code(), Some(1 | 2)) && !outcome.stderr.is_empty();
        return (!refuses).then(|| "there is no answer".to_owned());
    }
    let answer = format!("{}\n", question.answer());
    (row.asks() && outcome.stdout != answer.as_bytes()).then(|| "the answer is not as it came".to_owned())
}

/// The states that are allowed after such a run.
fn allowed(row: &Row, scene: &Scene, home: usize, id: u64, outcome: &Outcome) -> Vec<Model> {
    let before = scene.model.clone();
    let after = row.after(&before, home, id);
    let place = (row.place)(home);
    if !row.asks() {
        return match row.does {
            _ if outcome.succeeded() => vec![after],
            // Nothing is dropped if the question cannot be printed.
            Does::Undo if !outcome.killed() => vec![before],
            Does::ClearAll => vec![after, scene.partly_cleared(home)],
            _ => vec![before, after],
        };
    }
    if outcome.succeeded() && outcome.stderr.is_empty() {
        return vec![after];
    }
    let mut allowed = vec![after, before.with_alone(home, id)];
    if row.does != Does::Again && matches!(place, Place::Current(_) | Place::Slot(_)) {
        // A follow-up to a conversation that cannot be read starts a new one.
        let mut begun = before.clone();
        begun.begin(place, home, id);
        allowed.push(begun);
    }
    if !outcome.succeeded() || outcome.not_saved() {
        allowed.push(before);
    }
    allowed
}
