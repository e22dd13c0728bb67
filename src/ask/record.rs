//! The record of one exchange while its answer comes. It has what has come of the answer, and saves it once: when the run
//! ends, or when a signal ends q.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::answer::Answer;
use crate::context::Context;
use crate::interrupt::{Interrupts, ShutdownPhase};
use crate::message::echo::Echo;
use crate::message::{Message, Sources, ToolCall, ToolRun, cut_results};
use crate::output::Notes;
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{Piece, Reply};
use crate::session::asked_schema::add_schema;
use crate::session::lock::LOCK_TIMEOUT;
use crate::session::save::{SaveOutcome, Saver};
use crate::session::{Entry, Exchange};
use crate::text::reasoning_end::Extent;
use crate::text::size::in_units;
use crate::threads::{self, lock};
use crate::tools::Observer;

/// How long to wait for the lock in all, if a signal has come.
const LOCK_TIMEOUT_ON_SIGNAL: Duration = Duration::from_millis(200);

/// How long a signal waits for each stage of a save that is under way, and how often it looks whether that has ended. A slow
/// disk may need seconds, and one that hangs must not keep q.
const SAVE_TIMEOUT_ON_SIGNAL: Duration = Duration::from_secs(3);
const SAVE_POLL: Duration = Duration::from_millis(1);

/// A question, and as much of its answer as has come.
pub struct Record {
    pub question: Message,
    /// The schema that the answer must fit; the file keeps it for `--again`.
    schema: Option<Value>,
    notes: Notes,
    interrupts: Arc<Interrupts>,
    state: Mutex<RecordState>,
    /// How far a save that is under way has come.
    stage: Mutex<SaveStage>,
}

/// The stages of a save.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SaveStage {
    /// The save has not had to wait for the lock.
    Beginning,
    WaitingForLock,
    /// The save has given up the lock.
    Unlocked,
}

/// An answer, and what is still to be done about it.
#[derive(Default)]
pub struct RecordState {
    pub answer: Answer,
    /// `None`: nothing is saved, or it has been.
    saver: Option<Saver>,
    /// A note about how the answer was saved, until it is printed.
    note: Option<String>,
    /// Whether no more text will come.
    is_complete: bool,
    /// See [`Piece::incomplete_reason`].
    incomplete_reason: Option<String>,
}

impl RecordState {
    /// Returns how much of the latest reply is there. Where it was cut, the end of its code is missing.
    fn extent(&self) -> Extent {
        if self.is_complete && self.incomplete_reason.is_none() {
            Extent::Whole
        } else {
            Extent::Beginning
        }
    }
}

/// How an answer ended that is saved. `finish` is the provider's finish reason, unless that is the usual one.
#[derive(Clone, Copy)]
pub enum AnswerEnd<'a> {
    /// The model has stopped, though perhaps at a limit.
    Complete { finish: Option<&'a str> },
    /// More would have come, so it is saved as interrupted.
    BrokenOff { finish: Option<&'a str> },
}

impl<'a> AnswerEnd<'a> {
    fn new(is_complete: bool, finish: Option<&'a str>) -> AnswerEnd<'a> {
        if is_complete {
            AnswerEnd::Complete { finish }
        } else {
            AnswerEnd::BrokenOff { finish }
        }
    }

    /// Returns the end of an answer with this last reply.
    pub fn of_reply(reply: &'a Reply) -> AnswerEnd<'a> {
        AnswerEnd::new(reply.end.is_complete(), reply.end.incomplete_reason())
    }
}

impl Record {
    /// Makes a record without an answer. `saver` is `None` if nothing is saved.
    pub fn new(
        question: Message,
        schema: Option<Value>,
        saver: Option<Saver>,
        context: &Context,
    ) -> Record {
        let state = RecordState {
            saver,
            ..RecordState::default()
        };
        Record {
            question,
            schema,
            notes: context.notes.clone(),
            interrupts: Arc::clone(&context.interrupts),
            state: Mutex::new(state),
            stage: Mutex::new(SaveStage::Beginning),
        }
    }

    /// Returns the answer as far as it has come. Once a signal has saved it, its thread keeps the lock until q ends.
    pub fn lock(&self) -> MutexGuard<'_, RecordState> {
        lock(&self.state)
    }

    /// Begins another reply, of this model.
    pub fn begin_reply(&self, model: &str) {
        let state = &mut *self.lock();
        if let Some(saver) = &mut state.saver {
            saver.responder.model = Some(model.to_owned());
        }
        state.answer.begin_reply();
    }

    /// Adds the usage and searches of a reply. Removes reasoning at the start of its text that only has an end tag, and returns
    /// that reasoning.
    pub fn end_reply(&self, reply: &Reply) -> Option<String> {
        let state = &mut *self.lock();
        let extent = state.extent();
        state.answer.end_reply(reply, extent)
    }

    /// Adds a piece of the answer. Some servers mark every piece as the last one, so text after it makes the answer
    /// incomplete again. Takes its sources. Returns whether the answer is still kept.
    pub fn push(&self, piece: &mut Piece) -> bool {
        let text = &piece.text;
        // Until now there was nothing to save, so a signal needed no handler.
        if !text.is_empty() {
            self.interrupts.install();
        }
        let state = &mut *self.lock();
        state.is_complete = piece.is_last || (state.is_complete && text.is_empty());
        state.incomplete_reason.clone_from(&piece.incomplete_reason);
        state.answer.push(piece)
    }

    /// Makes a cached answer all of the answer. Returns whether it is kept.
    pub fn set_cached(&self, text: &str, sources: Sources) -> bool {
        // Until now there was nothing to save, so a signal needed no handler.
        self.interrupts.install();
        let state = &mut *self.lock();
        state.is_complete = true;
        state.answer.set_cached(text, sources)
    }

    /// Makes the text so far a step on the way to the answer, because the model has called tools. `echo` is its turn as the
    /// API wants it back.
    pub fn begin_step(&self, echo: Echo) {
        // A signal must also end the programs that are about to run.
        self.interrupts.install();
        let mut state = self.lock();
        state.is_complete = false;
        state.incomplete_reason = None;
        state.answer.begin_step(echo);
    }

    /// Adds calls of the last step that have ended. No other call is running then.
    pub fn calls_finished(&self, runs: Vec<ToolRun>) {
        self.lock().answer.calls_finished(runs);
    }

    /// Leaves out the images of tools, which not every model reads; their results name them. Returns whether there were any.
    pub fn leave_out_images(&self) -> bool {
        self.lock().answer.leave_out_images()
    }

    /// Hands the answer, which has been saved, to `read` without the lock: a signal has nothing to save, and must not wait.
    pub fn read_saved<T>(&self, read: impl FnOnce(&Answer) -> T) -> T {
        let answer = std::mem::take(&mut self.lock().answer);
        let made = read(&answer);
        self.lock().answer = answer;
        made
    }

    /// Saves what has come. Without text nothing is saved, unless a call has run.
    pub fn save(&self, end: AnswerEnd) -> SaveOutcome {
        let mut state = self.lock();
        let saved = self.commit(&mut state, end);
        state.note.clone_from(&saved.note);
        drop(state);
        // If a signal has come meanwhile, its thread writes the note, and ends q.
        self.interrupts.wait_if_ending();
        let note = self.lock().note.take();
        if let Some(note) = note {
            self.notes.note(&note);
        }
        saved
    }

    /// Lets a signal save what has come from now on. `end_line` ends the line of the answer before a note.
    pub fn save_on_signal(self: &Arc<Self>, end_line: impl FnOnce() + Send + 'static) {
        let record = Arc::clone(self);
        let save = move || record.save_interrupted(end_line);
        self.interrupts.on_signal(ShutdownPhase::Save, save);
    }

    fn save_interrupted(&self, end_line: impl FnOnce() + Send + 'static) {
        let mut began = Instant::now();
        let mut stage = SaveStage::Beginning;
        let mut state = loop {
            if let Ok(state) = self.state.try_lock() {
                break state;
            }
            // The run is saving already, and the disk may hang.
            let reached = *lock(&self.stage);
            if reached != stage {
                stage = reached;
                began = Instant::now();
            }
            if began.elapsed() > SAVE_TIMEOUT_ON_SIGNAL {
                return;
            }
            std::thread::sleep(SAVE_POLL);
        };
        let reason = state.incomplete_reason.take();
        let end = AnswerEnd::new(state.is_complete, reason.as_deref());
        let saved = self.commit(&mut state, end);
        let note = saved.note.or(state.note.take());
        // The run must not go on.
        std::mem::forget(state);
        if let Some(note) = note {
            let notes = self.notes.clone();
            threads::run_and_wait_briefly(move || {
                end_line();
                notes.note(&note);
            });
        }
    }

    fn commit(&self, state: &mut RecordState, end: AnswerEnd) -> SaveOutcome {
        let Some(saver) = state.saver.take() else {
            return SaveOutcome::default();
        };
        // A signal may have come before the end of the reply.
        let extent = state.extent();
        let answer = &mut state.answer;
        answer.take_unopened_reasoning(extent);
        if answer.is_too_long() {
            let reason = format!("the answer has more than {size}", size = in_units(MAX_KEPT));
            return SaveOutcome::unsaved(&reason);
        }
        let Some(mut entry) = answer.take_entry() else {
            return SaveOutcome::default();
        };
        let (AnswerEnd::Complete { finish } | AnswerEnd::BrokenOff { finish }) = end;
        entry.interrupted = matches!(end, AnswerEnd::BrokenOff { .. });
        entry.finish = finish.map(str::to_owned);
        entry.provider = Some(saver.responder.provider.clone());
        entry.model.clone_from(&saver.responder.model);
        let mut question = Entry::new(self.question.clone(), saver.responder.at);
        if let Some(schema) = &self.schema {
            add_schema(&mut question, schema);
        }
        let mut exchange = Exchange::new(&question, &entry);
        if exchange.is_err() && cut_results(&mut entry.steps) {
            exchange = Exchange::new(&question, &entry);
        }
        answer.take_back(entry);
        let exchange = match exchange {
            Ok(exchange) => exchange,
            Err(error) => return SaveOutcome::unsaved(&error),
        };
        saver.save(&exchange, &|waited| self.gives_up_lock(waited))
    }

    /// Whether a save that has waited so long for the lock goes on without it. A signal shortens the wait, even while q waits.
    fn gives_up_lock(&self, waited: Duration) -> bool {
        let is_over = waited >= LOCK_TIMEOUT
            || (waited >= LOCK_TIMEOUT_ON_SIGNAL && self.interrupts.has_signal());
        *lock(&self.stage) = if is_over {
            SaveStage::Unlocked
        } else {
            SaveStage::WaitingForLock
        };
        is_over
    }
}

impl Observer for Record {
    fn started(&self, calls: &[&ToolCall]) {
        self.lock().answer.calls_started(calls);
    }

    fn ended(&self, run: ToolRun) {
        self.lock().answer.call_ended(run);
    }
}
