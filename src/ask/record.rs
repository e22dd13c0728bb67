//! The record of one exchange while its answer comes: saved once, whole or as far as it was shown, by whoever ends it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use time::OffsetDateTime;

use crate::output::Notes;
use crate::session::Exchange;
use crate::session::commit::{Committed, Committer};
use crate::session::folder::LOCK_PATIENCE;
use crate::session::timestamp::Timestamp;

/// How long to wait for the lock once a signal has come.
const LOCK_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(200);

/// How long, once a signal has come, a write may take that had begun before it; a pipe that nobody reads takes for ever.
const WRITE_PATIENCE_ON_SIGNAL: Duration = Duration::from_millis(50);

/// How long, once a signal has come, a save may go on that had begun before it.
const SAVE_PATIENCE_ON_SIGNAL: Duration = Duration::from_secs(2);

/// A question, and as much of its answer as has come.
#[derive(Debug)]
pub(crate) struct Record {
    committer: Committer,
    provider: String,
    model: String,
    question: String,
    asked: Timestamp,
    notes: Notes,
    state: Mutex<State>,
    changed: Condvar,
    signalled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    answer: String,
    /// How many bytes of it the user was shown.
    shown: usize,
    /// More is on its way to standard output.
    showing: bool,
    /// No more will come.
    whole: bool,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Growing,
    Saving,
    Saved,
}

impl Record {
    pub(crate) fn new(
        committer: Committer,
        provider: &str,
        model: &str,
        question: String,
        asked: Timestamp,
        notes: Notes,
    ) -> Record {
        Record {
            committer,
            provider: provider.to_owned(),
            model: model.to_owned(),
            question,
            asked,
            notes,
            state: Mutex::default(),
            changed: Condvar::new(),
            signalled: AtomicBool::new(false),
        }
    }

    /// A piece of the answer has come. Returns where it begins.
    pub(crate) fn add(&self, piece: &str) -> usize {
        let mut state = self.growing();
        let begin = state.answer.len();
        state.answer.push_str(piece);
        begin
    }

    /// No more of the answer will come, though the stream may have more to say.
    pub(crate) fn whole(&self) {
        self.growing().whole = true;
    }

    /// The answer is about to be shown as far as it has come, or has been shown. The user may have seen more of it in
    /// between than [`Record::shown`] has told.
    pub(crate) fn showing(&self, on_its_way: bool) {
        self.growing().showing = on_its_way;
        self.changed.notify_all();
    }

    /// The user has been shown this many bytes of the answer.
    pub(crate) fn shown(&self, bytes: usize) {
        self.growing().shown = bytes;
    }

    /// Saves the answer as whole.
    pub(crate) fn save_whole(&self) -> Committed {
        self.save(false, |state| std::mem::take(&mut state.answer))
    }

    /// Saves what was shown; or, if it broke off before anything was, what had come.
    pub(crate) fn save_shown(&self) -> Committed {
        self.save(true, |state| state.answer_shown())
    }

    fn save(&self, interrupted: bool, answer: impl FnOnce(&mut State) -> String) -> Committed {
        let committed = self.commit(self.growing(), interrupted, answer);
        if let Some(note) = &committed.note {
            self.notes.note(note);
        }
        if self.signalled.load(Ordering::Relaxed) {
            wait_for_the_end();
        }
        committed
    }

    /// A signal has come, and ends q when this returns: saves what was shown, if anything was, unless a save is on its
    /// way, which is then waited for.
    pub(crate) fn save_interrupted(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        // A write that is not blocked is over at once, and what it has shown is known then.
        let state = self.changed.wait_timeout_while(self.state(), WRITE_PATIENCE_ON_SIGNAL, |state| state.showing);
        let state = state.unwrap_or_else(PoisonError::into_inner).0;
        if state.stage != Stage::Growing {
            let _ =
                self.changed.wait_timeout_while(state, SAVE_PATIENCE_ON_SIGNAL, |state| state.stage == Stage::Saving);
            return;
        }
        if state.answer.is_empty() {
            return;
        }
        let interrupted = !state.whole || state.answer_shown().len() < state.answer.len();
        let committed = self.commit(state, interrupted, |state| state.answer_shown());
        if let Some(note) = committed.note {
            let (said, hearing) = mpsc::channel();
            let notes = self.notes.clone();
            // By a thread of its own: a standard error that nobody reads must not keep q from ending.
            let _ = std::thread::Builder::new().spawn(move || {
                notes.note(&note);
                said.send(())
            });
            let _ = hearing.recv_timeout(LOCK_PATIENCE_ON_SIGNAL);
        }
    }

    fn commit(
        &self,
        mut state: MutexGuard<State>,
        interrupted: bool,
        answer: impl FnOnce(&mut State) -> String,
    ) -> Committed {
        state.stage = Stage::Saving;
        let answer = answer(&mut state);
        drop(state);
        let exchange = Exchange {
            provider: self.provider.clone(),
            model: self.model.clone(),
            question: self.question.clone(),
            asked: self.asked,
            answer,
            answered: Timestamp::new(OffsetDateTime::now_utc()),
            interrupted,
        };
        let committed = self.committer.commit(&exchange, &|waited| {
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

impl State {
    fn answer_shown(&self) -> String {
        let shown = (0..=self.shown).rev().find(|at| self.answer.is_char_boundary(*at)).unwrap_or(0);
        if shown == 0 { self.answer.clone() } else { self.answer[..shown].to_owned() }
    }
}

/// A signal's thread is about to end q.
fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}
