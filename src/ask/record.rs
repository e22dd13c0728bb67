//! The record of one exchange while its answer comes: committed exactly once, complete or as far as it was shown, by the
//! thread that ends it.

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

/// How long, once a signal has come, to wait for the write that had begun before it to return.
const WRITE_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(50);

/// How often that write is interrupted: it may begin to wait just after the first time.
const INTERRUPT_POLL: Duration = Duration::from_millis(2);

/// How long, once a signal has come, a save may go on that had begun before it.
const SAVE_PATIENCE_ON_SIGNAL: Duration = Duration::from_secs(2);

/// What is kept of a call whose result had not come when q ended.
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
    /// What the model said and called before it.
    steps: Vec<Step>,
    /// The last of its calls is running.
    runs: bool,
    /// The model that answers, where it is not the one that was chosen.
    model: Option<String>,
    /// The thread that writes a part of the answer to standard output; how much of it has left is not known yet.
    showing: Option<Interrupter>,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Growing,
    Saving,
    Saved,
}

impl State {
    /// What the model said before calls of which none has run is all that there is of its answer.
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

    /// Whether the exchange is to be saved.
    pub(super) fn saves(&self) -> bool {
        self.committer.is_some()
    }

    /// Another model answers than the one that was chosen.
    pub(super) fn asks(&self, model: &str) {
        self.state().model = Some(model.to_owned());
    }

    /// A piece of the answer has come, perhaps the last.
    pub(super) fn push(&self, piece: &str, last: bool) {
        self.growing().answer.push(piece, last);
    }

    /// The model has called tools: what it said so far, which is returned, is a step on the way to its answer.
    pub(super) fn begin_step(&self) -> String {
        let mut state = self.growing();
        let text = std::mem::take(&mut state.answer).text().to_owned();
        state.steps.push(Step { text: text.clone(), ..Step::default() });
        text
    }

    /// One of the calls of the last step is about to run. What it does may be done whatever happens then.
    pub(super) fn runs(&self, call: &Call) {
        let mut state = self.growing();
        if let Some(step) = state.steps.last_mut() {
            step.calls.push(Ran { call: call.clone(), result: NO_RESULT.to_owned(), is_error: true });
        }
        state.runs = true;
    }

    /// One of the calls of the last step has come to its end.
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

    /// A part of the answer is about to be shown by this thread, or has been shown. The user may have seen more of it in
    /// between than [`Record::shown`] has said.
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

    /// Saves the answer as it is: complete, or, if `breaks_off`, as far as it was shown; if it broke off before anything was
    /// shown, as far as it came. An answer of which nothing has come is not saved, unless a tool has been called.
    /// `finish` is the provider's word for how it ended, where that was no normal end.
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
        if self.signalled.load(Ordering::Relaxed) {
            wait_for_the_end();
        }
        committed
    }

    /// A signal has come, and ends q when this returns: saves what was shown, if anything was, unless a save is under way,
    /// which is then waited for.
    pub(super) fn save_interrupted(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        // A write may wait for ever for somebody who reads; what it has written until then is shown.
        let began = Instant::now();
        let mut state = self.state();
        while let Some(shower) = state.showing.filter(|_| began.elapsed() < WRITE_PATIENCE_ON_SIGNAL) {
            shower.interrupt();
            state = self.changed.wait_timeout(state, INTERRUPT_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stage != Stage::Growing {
            let _ =
                self.changed.wait_timeout_while(state, SAVE_PATIENCE_ON_SIGNAL, |state| state.stage == Stage::Saving);
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
            // By a thread of its own: a standard error that nobody reads must not keep q from ending.
            let _ = unix::start_thread(move || {
                notes.note(&note);
                let _ = said.send(());
            });
            let _ = hearing.recv_timeout(LOCK_PATIENCE_ON_SIGNAL);
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
        self.state().stage = Stage::Saved;
        self.changed.notify_all();
        committed
    }

    /// The state while the answer grows. Once a signal has taken it in hand, nothing more is shown or saved.
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
