//! The record of one exchange while its answer comes. The thread that ends it commits it exactly once, complete or as
//! far as it was shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use super::answer::Answer;
use crate::message::{Call, Message, Ran, Role, Step};
use crate::output::Notes;
use crate::session::commit::{Committed, Committer};
use crate::session::lock::LOCK_PATIENCE;
use crate::session::timestamp::Timestamp;
use crate::session::{Entry, Exchange};
use crate::unix::{self, Interrupter};

/// How long to wait for the lock once a signal has come.
const LOCK_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(200);

/// How long, once a signal has come, to wait for a write that had begun before.
const WRITE_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(50);

/// The pause between two interruptions of that write: it may begin to wait just after the first one.
const INTERRUPT_POLL: Duration = Duration::from_millis(2);

/// How long, once a signal has come, a save that had begun before may still take.
const SAVE_PATIENCE_ON_SIGNAL: Duration = Duration::from_secs(2);

/// How long, once a signal has come, a note may take to be printed.
const NOTE_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(200);

/// Stands for the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// A question, and as much of its answer as has come.
#[derive(Debug)]
pub(super) struct Record {
    question: Message,
    /// `None`: nothing is saved.
    committer: Option<Committer>,
    notes: Notes,
    state: Mutex<State>,
    changed: Condvar,
    signalled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    answer: Answer,
    /// What the model said and called before the answer.
    steps: Vec<Step>,
    /// The last of its calls is running.
    runs: bool,
    /// The model that answers, if it is not the chosen one.
    model: Option<String>,
    /// The thread that is writing a part of the answer to standard output; how much has left is not known yet.
    showing: Option<Interrupter>,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Growing,
    Saving,
    /// What did not go as asked has not been said yet.
    Saved,
    Told,
}

impl State {
    /// If none of the last calls has run, the text before them is the answer.
    fn settle(&mut self) {
        if self.answer.is_empty()
            && let Some(step) = self.steps.pop_if(|step| step.calls.is_empty())
        {
            self.answer.push(&step.text, false);
        }
    }

    fn is_empty(&self) -> bool {
        self.answer.is_empty() && self.steps.is_empty()
    }
}

impl Record {
    pub(super) fn new(question: Message, committer: Option<Committer>, notes: Notes) -> Record {
        Record {
            question,
            committer,
            notes,
            state: Mutex::default(),
            changed: Condvar::new(),
            signalled: AtomicBool::new(false),
        }
    }

    /// Whether the exchange will be saved.
    pub(super) fn saves(&self) -> bool {
        self.committer.is_some()
    }

    /// From now on this model answers, in place of the chosen one.
    pub(super) fn set_model(&self, model: &str) {
        self.state().model = Some(model.to_owned());
    }

    /// A piece of the answer has come, perhaps the last one.
    pub(super) fn push(&self, piece: &str, last: bool) {
        self.growing().answer.push(piece, last);
    }

    /// The model has called tools: the text so far, which is returned, becomes a step on the way to its answer.
    pub(super) fn begin_step(&self) -> String {
        let mut state = self.growing();
        let text = std::mem::take(&mut state.answer).text().to_owned();
        state.steps.push(Step { text: text.clone(), ..Step::default() });
        text
    }

    /// A call of the last step is about to run. From here on, it may have had an effect.
    pub(super) fn runs(&self, call: &Call) {
        let mut state = self.growing();
        if let Some(step) = state.steps.last_mut() {
            step.calls.push(Ran { call: call.clone(), result: NO_RESULT.to_owned(), is_error: true });
        }
        state.runs = true;
    }

    /// A call of the last step has ended.
    pub(super) fn ran(&self, ran: Ran) {
        let mut state = self.growing();
        let was_running = std::mem::take(&mut state.runs);
        if let Some(step) = state.steps.last_mut() {
            if was_running {
                step.calls.pop();
            }
            step.calls.push(ran);
        }
    }

    /// The answer as far as it has come.
    pub(super) fn text(&self) -> String {
        self.state().answer.text().to_owned()
    }

    /// This thread is about to show a part of the answer, or has shown it. In between, the user may have seen more than
    /// [`Record::shown`] has reported.
    pub(super) fn showing(&self, on_its_way: bool) {
        self.growing().showing = on_its_way.then(Interrupter::for_this_thread);
        self.changed.notify_all();
    }

    /// The user has been shown this many bytes of the answer. Once a signal has come, no more is shown.
    pub(super) fn shown(&self, bytes: usize) {
        let mut state = self.growing();
        state.answer.show(bytes);
        if self.signalled.load(Ordering::Relaxed) {
            state.showing = None;
            drop(state);
            self.changed.notify_all();
            wait_for_the_end();
        }
    }

    /// Saves the answer: complete, or, if `breaks_off`, as far as it was shown; if it broke off before anything was
    /// shown, as far as it came. If nothing has come, nothing is saved, unless a tool has been called.
    /// `finish` is the provider's word for how it ended, unless that was a normal end.
    pub(super) fn save(&self, breaks_off: bool, finish: Option<&str>) -> Committed {
        let mut state = self.growing();
        state.settle();
        if state.is_empty() {
            return Committed::default();
        }
        let text = if breaks_off { state.answer.shown_text() } else { state.answer.text() }.to_owned();
        let committed = self.commit(state, text, breaks_off, finish);
        if let Some(note) = &committed.note {
            self.notes.note(note);
        }
        self.enter(Stage::Told);
        if self.signalled.load(Ordering::Relaxed) {
            wait_for_the_end();
        }
        committed
    }

    /// A signal has come, and ends q when this returns. Saves what was shown, if anything, or waits for a save that is
    /// under way.
    pub(super) fn save_interrupted(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        // A write may wait for its reader for ever; what it has written by then counts as shown.
        let began = Instant::now();
        let mut state = self.state();
        while let Some(shower) = state.showing.filter(|_| began.elapsed() < WRITE_PATIENCE_ON_SIGNAL) {
            shower.interrupt();
            state = self.changed.wait_timeout(state, INTERRUPT_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stage != Stage::Growing {
            state = self.wait_while(state, Stage::Saving, SAVE_PATIENCE_ON_SIGNAL);
            drop(self.wait_while(state, Stage::Saved, NOTE_PATIENCE_ON_SIGNAL));
            return;
        }
        state.settle();
        if state.is_empty() {
            return;
        }
        let (text, breaks_off) = (state.answer.shown_text().to_owned(), state.answer.breaks_off());
        let committed = self.commit(state, text, breaks_off, None);
        if let Some(note) = committed.note {
            let (said, hearing) = mpsc::channel();
            let notes = self.notes.clone();
            // On its own thread: a standard error that nobody reads must not keep q from ending.
            let _ = unix::start_thread(move || {
                notes.note(&note);
                let _ = said.send(());
            });
            let _ = hearing.recv_timeout(NOTE_PATIENCE_ON_SIGNAL);
        }
    }

    fn commit(&self, mut state: MutexGuard<State>, text: String, interrupted: bool, finish: Option<&str>) -> Committed {
        let Some(committer) = &self.committer else { return Committed::default() };
        state.stage = Stage::Saving;
        let model = state.model.take();
        let steps = std::mem::take(&mut state.steps);
        drop(state);
        let question = Entry::new(self.question.clone(), committer.asked);
        let answered = Timestamp::new(OffsetDateTime::now_utc());
        let mut answer = Entry::new(Message::text(Role::Assistant, text), answered);
        answer.interrupted = interrupted;
        answer.finish = finish.map(str::to_owned);
        answer.steps = steps;
        let committed = committer.commit(&Exchange::new(question, answer), model.as_deref(), &|waited| {
            let signalled = self.signalled.load(Ordering::Relaxed);
            waited >= if signalled { LOCK_PATIENCE_ON_SIGNAL } else { LOCK_PATIENCE }
        });
        self.enter(Stage::Saved);
        committed
    }

    fn enter(&self, stage: Stage) {
        self.state().stage = stage;
        self.changed.notify_all();
    }

    fn wait_while<'a>(&self, state: MutexGuard<'a, State>, stage: Stage, patience: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, patience, |state| state.stage == stage);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The state while the answer grows. Once a signal has taken it, nothing more is shown or saved.
    fn growing(&self) -> MutexGuard<'_, State> {
        let state = self.state();
        if state.stage != Stage::Growing {
            drop(state);
            wait_for_the_end();
        }
        state
    }

    /// A thread that panicked has left nothing half done here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A signal's thread is about to end q.
fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}
