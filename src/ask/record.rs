//! The record of one exchange while its answer comes: its text, its steps and the model that gives it. The thread that
//! ends the run takes it once, and commits it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::message::{Message, Role, Source, Sources, Step, ToolCall, ToolRun, Usage};
use crate::output::Notes;
use crate::provider::kept::{Kept, MAX_KEPT, VALUE};
use crate::session::lock::LOCK_PATIENCE;
use crate::session::save::{Saved, Saver};
use crate::session::timestamp::Timestamp;
use crate::session::{Entry, Exchange};
use crate::threads::{self, lock};
use crate::tools::Observer;

/// How long to wait for the lock once a signal has come.
const LOCK_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(200);

/// How long, once a signal has come, a save that had begun before may still take.
const SAVE_PATIENCE_ON_SIGNAL: Duration = Duration::from_secs(2);

/// Stands for the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// A question, and as much of its answer as has come.
pub struct Record {
    question: Message,
    notes: Notes,
    stage: Mutex<Stage>,
    saved: Condvar,
    signalled: AtomicBool,
}

/// How far the exchange is on its way to the disk.
#[expect(clippy::large_enum_variant, reason = "a run has one of it")]
enum Stage {
    Growing(PartialAnswer),
    Saving,
    Saved,
}

/// As much of the answer as has come.
#[derive(Default)]
struct PartialAnswer {
    /// `None`: nothing is saved.
    saver: Option<Saver>,
    text: String,
    /// No more text will come.
    is_complete: bool,
    /// What the model said and called before the answer.
    steps: Vec<Step>,
    /// The pages that the answer and these steps name.
    sources: Sources,
    /// The calls that are running.
    running: Vec<ToolRun>,
    /// A call has run, so it may have had an effect. Those that were refused did not.
    has_run: bool,
    /// Counts the text, also that of the steps, and the sources. Once they are too much, none of them is kept.
    kept: Kept,
}

impl PartialAnswer {
    fn add(&mut self, piece: &str, sources: Vec<Source>) {
        if self.kept.is_too_much() {
            return;
        }
        for source in sources {
            let bytes = self.sources.add(source);
            if bytes > 0 {
                self.kept.add(VALUE + bytes);
            }
        }
        if self.kept.add(piece.len()) {
            self.text.push_str(piece);
        } else {
            // A part of the answer is not saved, so its memory is given back.
            self.text = String::new();
            self.sources = Sources::default();
        }
    }

    /// The answer as a message of the conversation; `None` if there is no word of it, and no call has run.
    fn into_entry(mut self) -> Option<Entry> {
        if let Some(step) = self.steps.last_mut() {
            step.calls.append(&mut self.running);
        }
        for run in self.steps.iter_mut().flat_map(|step| &mut step.calls) {
            if let Some(complete) = run.complete.take() {
                run.result = complete;
            }
        }
        // If none of the last calls has run, the text before them is the answer.
        if self.text.is_empty()
            && let Some(step) = self.steps.pop_if(|step| step.calls.is_empty())
        {
            self.text = step.text;
        }
        let has_words =
            !self.text.is_empty() || self.steps.iter().any(|step| !step.text.is_empty());
        if !has_words && !self.has_run {
            return None;
        }
        let answered = Timestamp::now();
        let message = Message::text(Role::Assistant, self.text);
        let mut answer = Entry::new(message, answered);
        if !self.sources.list.is_empty() {
            answer.sources = Some(json!(self.sources.list));
        }
        answer.steps = self.steps;
        Some(answer)
    }
}

impl Record {
    pub fn new(question: Message, saver: Option<Saver>, notes: Notes) -> Record {
        let partial = PartialAnswer {
            saver,
            ..PartialAnswer::default()
        };
        Record {
            question,
            notes,
            stage: Mutex::new(Stage::Growing(partial)),
            saved: Condvar::new(),
            signalled: AtomicBool::new(false),
        }
    }

    /// Notes that another model replaces the chosen one.
    pub fn set_model(&self, model: &str) {
        self.grow(|partial| {
            if let Some(saver) = &mut partial.saver {
                saver.responder.model = Some(model.to_owned());
            }
        });
    }

    /// Adds a piece of the answer. Some servers mark every piece as the last one, so text after it makes the answer
    /// incomplete again. Returns whether the answer is still kept.
    pub fn push(&self, piece: &str, last: bool, sources: Vec<Source>) -> bool {
        self.grow(|partial| {
            partial.add(piece, sources);
            partial.is_complete = last || (partial.is_complete && piece.is_empty());
            !partial.kept.is_too_much()
        })
    }

    /// Makes the text so far a step on the way to the answer, because the model has called tools. Returns that text.
    pub fn begin_step(&self) -> String {
        self.grow(|partial| {
            let text = std::mem::take(&mut partial.text);
            partial.is_complete = false;
            partial.steps.push(Step {
                text: text.clone(),
                ..Step::default()
            });
            text
        })
    }

    /// Adds calls of the last step that have ended. No other call is running then.
    pub fn calls_finished(&self, runs: &[ToolRun]) {
        self.grow(|partial| {
            partial.running.clear();
            if let Some(step) = partial.steps.last_mut() {
                step.calls.extend_from_slice(runs);
            }
        });
    }

    /// The text of the answer so far.
    pub fn text(&self) -> String {
        self.grow(|partial| partial.text.clone())
    }

    /// Whether nothing but white space has come of the answer.
    pub fn is_blank(&self) -> bool {
        self.grow(|partial| partial.text.trim().is_empty() && !partial.kept.is_too_much())
    }

    /// The sources so far.
    pub fn sources(&self) -> Vec<Source> {
        self.grow(|partial| partial.sources.list.to_vec())
    }

    /// Saves what has come, as interrupted if it `breaks_off`. Without text nothing is saved, unless a call has run.
    /// `finish` is the provider's finish reason, unless the answer ended as usual.
    pub fn save(&self, breaks_off: bool, finish: Option<&str>, usage: Option<Usage>) -> Saved {
        if self.is_signalled() {
            wait_for_the_end();
        }
        let Some(partial) = self.take() else {
            wait_for_the_end()
        };
        let saved = self.commit(partial, breaks_off, finish, usage);
        if let Some(note) = &saved.note {
            self.notes.note(note);
        }
        *lock(&self.stage) = Stage::Saved;
        if self.is_signalled() {
            self.saved.notify_all();
            wait_for_the_end();
        }
        saved
    }

    /// From now on, only the thread of a signal saves the record. Others wait for the end when they change it.
    pub fn close(&self) {
        self.signalled.store(true, Ordering::Relaxed);
    }

    /// Saves what has come, or waits for a save that is under way. A signal ends q when this returns. `end_line` ends the
    /// line of the answer before a note.
    pub fn save_interrupted(&self, end_line: impl FnOnce() + Send + 'static) {
        let Some(partial) = self.take() else {
            let is_saving = |stage: &mut Stage| matches!(stage, Stage::Saving);
            let stage = lock(&self.stage);
            let patience = SAVE_PATIENCE_ON_SIGNAL;
            drop(self.saved.wait_timeout_while(stage, patience, is_saving));
            return;
        };
        let breaks_off = !partial.is_complete;
        if let Some(note) = self.commit(partial, breaks_off, None, None).note {
            let notes = self.notes.clone();
            threads::run_briefly(move || {
                end_line();
                notes.note(&note);
            });
        }
    }

    fn commit(
        &self,
        mut partial: PartialAnswer,
        breaks_off: bool,
        finish: Option<&str>,
        usage: Option<Usage>,
    ) -> Saved {
        let Some(saver) = partial.saver.take() else {
            return Saved::default();
        };
        if partial.kept.is_too_much() {
            let reason = format!("the answer has more than {MAX_KEPT} bytes");
            return Saved::unsaved(&reason);
        }
        let Some(mut answer) = partial.into_entry() else {
            return Saved::default();
        };
        answer.interrupted = breaks_off;
        answer.finish = finish.map(str::to_owned);
        answer.provider = Some(saver.responder.provider.clone());
        answer.model.clone_from(&saver.responder.model);
        answer.usage = usage.map(|usage| json!(usage));
        let question = Entry::new(self.question.clone(), saver.responder.at);
        let exchange = Exchange {
            entries: vec![question, answer],
        };
        let gives_up = |waited| waited >= self.lock_patience();
        saver.save(&exchange, &gives_up)
    }

    /// How long to wait for the lock. A signal shortens it, even while q waits.
    fn lock_patience(&self) -> Duration {
        if self.is_signalled() {
            LOCK_PATIENCE_ON_SIGNAL
        } else {
            LOCK_PATIENCE
        }
    }

    /// Takes what has come, to save it. `None`: another thread has taken it.
    fn take(&self) -> Option<PartialAnswer> {
        let mut stage = lock(&self.stage);
        let Stage::Growing(partial) = &mut *stage else {
            return None;
        };
        let partial = std::mem::take(partial);
        *stage = Stage::Saving;
        Some(partial)
    }

    /// Changes or reads what has come. After a signal this does not return.
    fn grow<T>(&self, change: impl FnOnce(&mut PartialAnswer) -> T) -> T {
        if !self.is_signalled()
            && let Stage::Growing(partial) = &mut *lock(&self.stage)
        {
            return change(partial);
        }
        wait_for_the_end();
    }

    fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
    }
}

impl Observer for Record {
    fn started(&self, calls: &[&ToolCall]) {
        self.grow(|partial| {
            partial.has_run |= !calls.is_empty();
            for call in calls {
                partial.running.push(ToolRun::new(call, NO_RESULT, true));
            }
        });
    }

    fn ended(&self, run: ToolRun) {
        self.grow(|partial| {
            let mut running = partial.running.iter_mut();
            if let Some(place) = running.find(|other| other.id == run.id) {
                *place = run;
            }
        });
    }
}

/// A signal's thread is about to end q.
fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}
