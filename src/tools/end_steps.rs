//! How a process and its group are ended: a table of steps for each kind of process (pure).

use std::time::Duration;

use crate::unix::Signal;

/// How long a group may take to end after each step.
pub const GRACE_PERIOD: Duration = Duration::from_millis(300);

/// How long a server may take after the end of its input if a call may have changed something.
pub const GRACE_PERIOD_AFTER_CHANGES: Duration = Duration::from_secs(2);

/// A step that ends a process, or makes it end.
#[derive(Debug, Clone, Copy)]
pub enum EndStep {
    CloseInput,
    /// To its whole group.
    Send(Signal),
}

/// How a process is ended: each step, and how long its group may take to end before the next one.
pub type EndSteps = &'static [(EndStep, Duration)];

/// Ends a server.
pub const SERVER: EndSteps = &[
    (EndStep::CloseInput, GRACE_PERIOD),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends a server of which a call may have changed something.
pub const SERVER_AFTER_CHANGES: EndSteps = &[
    (EndStep::CloseInput, GRACE_PERIOD_AFTER_CHANGES),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends a command. It may have to end first what it has begun elsewhere, as `psql` cancels its query.
pub const COMMAND: EndSteps = &[
    (EndStep::Send(Signal::INT), GRACE_PERIOD),
    (EndStep::Send(Signal::TERM), GRACE_PERIOD),
    (EndStep::Send(Signal::KILL), GRACE_PERIOD),
];

/// Ends what a process has left running that has ended by itself.
pub const LEFTOVERS: EndSteps = &[(EndStep::Send(Signal::KILL), GRACE_PERIOD)];

/// Returns the signal that asks a process to end for which there is no time, because the run ends.
pub fn first_signal(steps: EndSteps) -> Signal {
    let mut signals = steps.iter().filter_map(|(step, _)| match step {
        EndStep::Send(signal) => Some(*signal),
        EndStep::CloseInput => None,
    });
    signals.next().unwrap_or(Signal::TERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_time_a_process_gets_the_first_signal_of_its_steps() {
        for (steps, signal) in [
            (SERVER, Signal::TERM),
            (SERVER_AFTER_CHANGES, Signal::TERM),
            (COMMAND, Signal::INT),
            (LEFTOVERS, Signal::KILL),
            (&[(EndStep::CloseInput, GRACE_PERIOD)], Signal::TERM),
            (&[], Signal::TERM),
        ] {
            assert_eq!(first_signal(steps), signal, "{steps:?}");
        }
    }

    #[test]
    fn whatever_a_process_ignores_its_last_step_ends_it() {
        for steps in [SERVER, SERVER_AFTER_CHANGES, COMMAND, LEFTOVERS] {
            let last = steps.last().map(|(step, _)| *step);
            assert!(
                matches!(last, Some(EndStep::Send(Signal::KILL))),
                "{steps:?}"
            );
        }
    }
}
