//! Makes system calls on the state fail, or kills q in their place: the answer comes anyway, and what was
//! acknowledged stays.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::command::{Command, Does, Target, With};
use crate::model::{Act, Model};
use crate::question::Question;
use crate::random::Random;
use crate::report::{Kind, Part};
use crate::run::{Outcome, Run};
use crate::scene::Scene;
use crate::soak::Soak;
use crate::strace::{self, Call};

const MODE: &str = "faults";

/// What may go wrong with a system call: how its name begins, and the errors.
const ERRORS: &str = "\
    open EIO EACCES EROFS EMFILE ENOSPC EINTR EOPNOTSUPP
    read EIO EINTR
    pread EIO EINTR
    write ENOSPC EIO EDQUOT EINTR
    pwrite ENOSPC EIO EDQUOT EINTR
    fsync EIO ENOSPC
    fdatasync EIO ENOSPC
    rename EIO EACCES EROFS ENOSPC
    link EPERM EMLINK EIO ENOSPC
    symlink EPERM EIO ENOSPC
    unlink EIO EACCES EROFS EPERM
    mkdir ENOSPC EROFS EACCES EIO
    flock ENOLCK EINTR EIO
    fcntl EIO ENOLCK
    ftruncate EIO EPERM";

/// For calls that ask for something or change it.
const OTHER_ERRORS: &str = "EIO EACCES EPERM";

/// What fails at every call: nothing, links, links to names, or locks.
const ALWAYS: &[Option<&str>] = &[
    None,
    Some("?link,?linkat:error=EPERM"),
    Some("?symlink,?symlinkat:error=EPERM"),
    Some("?flock:error=ENOLCK"),
];

/// Calls of earlier runs, by command and by what always fails.
type Known = HashMap<(String, Option<&'static str>), Vec<Call>>;

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
        let once = self
            .once
            .as_ref()
            .map(|(call, what)| format!("{}:{what}:when={}", call.name, call.number));
        always.into_iter().chain(once).collect()
    }
}

impl Faults {
    /// `None` where there is no strace, or where it may not trace.
    pub fn new() -> Option<Faults> {
        Some(Faults {
            strace: strace::find()?,
            known: Mutex::default(),
        })
    }

    /// Injects `rounds` faults, one after another.
    pub fn batch(&self, soak: &Soak, seed: u64, rounds: u64) -> io::Result<()> {
        Scene::steps(soak, Part { mode: MODE, seed }, rounds, |scene, random| {
            self.round(random, scene)
        })
    }

    fn round(&self, random: &mut Random, scene: &mut Scene) -> io::Result<bool> {
        let asks = random.percent(50);
        // strace would make the calls of a tool fail, too.
        // A number counts what can be read of the list.
        let mut command = scene.choose(random, 0, None, |command| {
            (command.asks() || !asks) && !matches!(command.target, Target::Number(..))
        })?;
        if matches!(command.with, With::Tool | With::Call) {
            command.with = With::Nothing;
        }
        let fault = self.choose(random, &command);
        let injections = fault.injections();
        let (question, place) = (scene.question(), command.place(&scene.model));
        let log = scene.world.path().join("strace.log");
        let wrapper = strace::wrapper(&self.strace, &log, &injections);
        let outcome = Run::start(scene.world.run(&wrapper, &command, &question))?.finish()?;
        let trace = strace::read(
            &String::from_utf8_lossy(&fs_err::read(&log)?),
            &scene.world.state_paths(),
        );
        let hit = hit(&fault, &trace.calls);
        self.learn(&command, fault.always, trace.calls);
        let label = label(&command, &fault);
        // Where standard output or the connection failed, the rules for failing state do not apply.
        let elsewhere = trace.missed || (fault.once.is_some() && hit.is_none());
        let done = if elsewhere {
            "(missed the state)"
        } else {
            &label
        };
        scene.soak.report.done(MODE, done);
        let report = &scene.soak.report;
        report.said(MODE, &label, outcome.status, &outcome.stderr);
        let cannot_read = hit
            .as_ref()
            .is_some_and(|call| call.name.starts_with("read") || call.name.starts_with("open"));
        let details = format!(
            "{injections:?} {}\n{}",
            hit.map_or(String::new(), |call| call.line),
            outcome.summary()
        );
        if elsewhere && command.asks() {
            return Ok(false);
        }
        let asked = !command.asks() || scene.soak.server.request(question.id).is_some();
        if let Some(what) = complaint(&command, &question, &outcome, asked) {
            scene.soak.report.found(
                scene.part,
                Kind::Other,
                &label,
                &format!("{what}\n{details}"),
                scene.world.path(),
            );
            return Ok(false);
        }
        let before = scene.model.clone();
        let act = Act::new(&command, question.id, &outcome);
        let is_settled = scene.settle(&label, &details, |found| {
            let mut states = allowed(&before, &act, found);
            if cannot_read && command.asks() && outcome.succeeded() {
                // A conversation that is left is removed only if it can be read.
                states.push(begun(&before, &command, question.id));
            }
            states
        });
        if !is_settled {
            return Ok(false);
        }
        scene.clean_up(random, &label, &[(0, place)])
    }

    /// A fault at one of the calls that such a run was seen to make.
    fn choose(&self, random: &mut Random, command: &Command) -> Fault {
        let always = if random.percent(25) {
            random.pick(ALWAYS)
        } else {
            None
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(calls) = known
            .get(&(command.to_string(), always))
            .filter(|calls| !calls.is_empty())
        else {
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
            format!("error={}", random.pick(&errors(&call.name)))
        };
        Fault {
            always,
            once: Some((call, what)),
        }
    }

    fn learn(&self, command: &Command, always: Option<&'static str>, calls: Vec<Call>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry((command.to_string(), always)).or_default();
        // Other states lead to other calls, so what was seen before is kept.
        for call in calls {
            if !known
                .iter()
                .any(|other| (&other.name, other.number) == (&call.name, call.number))
            {
                known.push(call);
            }
        }
    }
}

fn errors(call: &str) -> Vec<&'static str> {
    let mut lines = ERRORS
        .lines()
        .filter_map(|line| line.trim().split_once(' '));
    let errors = lines.find(|(name, _)| call.starts_with(name));
    let errors = errors.map_or(OTHER_ERRORS, |(_, errors)| errors);
    errors.split(' ').collect()
}

/// The call that was to fail, if it was one about the state in this run too.
fn hit(fault: &Fault, calls: &[Call]) -> Option<Call> {
    let (wanted, _) = fault.once.as_ref()?;
    let is_wanted = |call: &&Call| (&call.name, call.number) == (&wanted.name, wanted.number);
    calls.iter().find(is_wanted).cloned()
}

fn label(command: &Command, fault: &Fault) -> String {
    let always = fault.always.map(|always| always.replace('?', ""));
    let always = always.map_or(String::new(), |always| format!(", always {always}"));
    let once = fault.once.as_ref();
    let once = once.map_or(String::new(), |(call, what)| {
        format!(", {}:{what}", call.name)
    });
    format!("{command}{always}{once}")
}

/// What is wrong with how the run ended and what it printed, if anything is.
fn complaint(
    command: &Command,
    question: &Question,
    outcome: &Outcome,
    asked: bool,
) -> Option<String> {
    if outcome.hung {
        return Some("it hung".to_owned());
    }
    if outcome.killed() {
        return None;
    }
    // An action may fail, and a conversation that was named and cannot be read is not asked without its context.
    let needs_conversation =
        command.does == Does::Again || !matches!(command.target, Target::Linked(_));
    let may_refuse = !command.asks() || (needs_conversation && !asked);
    if !outcome.succeeded() {
        let refuses = may_refuse
            && matches!(outcome.status.code(), Some(1 | 2))
            && !outcome.stderr.is_empty();
        return (!refuses).then(|| "there is no answer".to_owned());
    }
    let answer = format!("{}\n", question.answer());
    (command.asks() && outcome.stdout != answer.as_bytes())
        .then(|| "the answer is not as it came".to_owned())
}

/// The states that are allowed after such a run.
fn allowed(before: &Model, act: &Act, found: &Model) -> Vec<Model> {
    let (command, id, outcome) = (act.command, act.id, act.outcome);
    let after = before.after(before, command, id).swap_remove(0);
    let halfway = before.halfway(&after, found);
    if outcome.succeeded() && !(command.asks() && outcome.has_trouble()) {
        return vec![after];
    }
    let alone = before.alone(command.home, id);
    if !outcome.succeeded() || outcome.not_saved() {
        let is_alone = command.asks() && outcome.killed();
        return halfway
            .into_iter()
            .chain(is_alone.then_some(alone))
            .collect();
    }
    // A follow-up to a conversation that cannot be read starts a new one, which may not get its link.
    let begun = begun(before, command, id);
    let alone = halfway.iter().map(|state| state.alone(command.home, id));
    let mut allowed: Vec<Model> = alone.chain([after, begun]).collect();
    if command.does == Does::Ask {
        allowed.extend(halfway.into_iter().skip(1));
    }
    allowed
}

/// The state in which a new conversation has begun, and the one that was current is still there.
fn begun(before: &Model, command: &Command, id: u64) -> Model {
    let mut begun = before.clone();
    begun.keeps_nothing = false;
    begun.begin(command, id);
    begun.keeps_nothing = before.keeps_nothing;
    begun
}
