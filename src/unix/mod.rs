//! System calls that the standard library does not have, for processes, terminals and files; all unsafe code is here.

mod child_process;
mod files;
mod own_process;
mod terminal;

pub use rustix::process::Signal;

pub use child_process::{
    StartPermit, end_with_this_thread, has_ended, in_own_session, is_child, is_group_running,
    reap_group, signal_group,
};
pub use files::{can_read, keep_alive, rename_new, stdin_has_bytes, touch, wait_for_input};
pub use own_process::{
    close_on_exec, effective_user, give_memory_back, is_ignored, reset_signals, unmask_owner,
    unset_if_empty, utc_offset, was_stdout_closed,
};
pub use terminal::{
    StopRequests, TerminalSize, controls_this_process, discard_input, is_in_background,
    is_in_foreground, terminal_path, terminal_size,
};

// What only tests need.
#[cfg(test)]
pub use child_process::is_group_left;
#[cfg(test)]
pub use files::kept_alive;

#[cfg(test)]
pub mod tests {
    use std::io::{self, Write};

    /// Says why a test is skipped. With `SKIP_NO_TEST` in the environment that is a failure.
    #[track_caller]
    pub fn skip(why: &str) {
        let is_allowed = std::env::var_os("SKIP_NO_TEST").is_none();
        assert!(is_allowed, "it would be skipped: {why}");
        // A test that passes does not show what the macros print; `.ci/run` counts these lines.
        writeln!(io::stderr(), "skipped: {why}").expect("standard error");
    }
}
