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

/// How a process is ended, and what it has left running with it.
#[derive(Debug, Clone, Copy)]
pub struct EndSteps {
    /// Each step, and how long there is to end before the next one.
    pub steps: &'static [(EndStep, Duration)],
    /// What has to end for the next step to be left out.
    pub awaited: Awaited,
}

/// A part of what a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The process that leads the group. What is left of the group then is killed.
    Leader,
    /// All that is left of the group, because the server may be in it, below a program that only starts it.
    Group,
}

/// Ends a server.
pub const SERVER: EndSteps = EndSteps {
    steps: &[
        (EndStep::CloseInput, GRACE_PERIOD),
        (EndStep::Send(Signal::TERM), GRACE_PERIOD),
        (EndStep::Send(Signal::KILL), GRACE_PERIOD),
    ],
    awaited: Awaited::Group,
};

/// Ends a server of which a call may have changed something.
pub const SERVER_AFTER_CHANGES: EndSteps = EndSteps {
    steps: &[
        (EndStep::CloseInput, GRACE_PERIOD_AFTER_CHANGES),
        (EndStep::Send(Signal::TERM), GRACE_PERIOD),
        (EndStep::Send(Signal::KILL), GRACE_PERIOD),
    ],
    awaited: Awaited::Group,
};

/// Ends a command. It may have to end first what it has begun elsewhere, as `psql` cancels its query.
pub const COMMAND: EndSteps = EndSteps {
    steps: &[
        (EndStep::Send(Signal::INT), GRACE_PERIOD),
        (EndStep::Send(Signal::TERM), GRACE_PERIOD),
        (EndStep::Send(Signal::KILL), GRACE_PERIOD),
    ],
    awaited: Awaited::Leader,
};

/// Ends what a process has left running that has ended by itself.
pub const LEFTOVERS: EndSteps = EndSteps {
    steps: &[(EndStep::Send(Signal::KILL), GRACE_PERIOD)],
    awaited: Awaited::Group,
};

/// Returns the signal that asks a process to end for which there is no time, because the run ends.
pub fn first_signal(steps: EndSteps) -> Signal {
    let mut signals = steps.steps.iter().filter_map(|(step, _)| match step {
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
        let only = |steps| EndSteps { steps, ..SERVER };
        for (steps, signal) in [
            (SERVER, Signal::TERM),
            (SERVER_AFTER_CHANGES, Signal::TERM),
            (COMMAND, Signal::INT),
            (LEFTOVERS, Signal::KILL),
            (only(&[(EndStep::CloseInput, GRACE_PERIOD)]), Signal::TERM),
            (only(&[]), Signal::TERM),
        ] {
            assert_eq!(first_signal(steps), signal, "{steps:?}");
        }
    }

    #[test]
    fn whatever_a_process_ignores_its_last_step_ends_it() {
        for steps in [SERVER, SERVER_AFTER_CHANGES, COMMAND, LEFTOVERS] {
            let last = steps.steps.last().map(|(step, _)| *step);
            assert!(
                matches!(last, Some(EndStep::Send(Signal::KILL))),
                "{steps:?}"
            );
        }
    }
}
