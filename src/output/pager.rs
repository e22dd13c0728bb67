//! Shows a long text on a terminal page by page, with the user's pager.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGQUIT};

use super::stdout;
use super::terminal::Terminal;
use crate::error::Error;
use crate::programs::find_program;

/// The exit statuses of a shell that finds a command but cannot execute it, such as a directory, and that finds none.
const NOT_STARTED: [i32; 2] = [126, 127];

/// Prints a text: on a terminal that can move its cursor with the user's pager, else with less, else as it is. `variable`
/// returns the value of a variable that is set and not empty.
pub fn page<'a>(
    text: &str,
    terminal: &Terminal,
    variable: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), Error> {
    let can_move_cursor = variable("TERM").is_some_and(|kind| kind != "dumb");
    let has_screen = can_move_cursor && io::stdout().is_terminal();
    if has_screen && run_pager(&terminal.encoding.encode(text), variable) {
        return Ok(());
    }
    stdout::print(text, terminal)
}

/// Shows the text with a pager. Returns whether there was one.
fn run_pager<'a>(text: &str, variable: impl Fn(&str) -> Option<&'a str>) -> bool {
    let pager = variable("PAGER");
    let name = if pager.is_some() { "sh" } else { "less" };
    let Ok(program) = find_program(name, env::var_os("PATH").as_deref()) else {
        return false;
    };
    let mut command = Command::new(program);
    if let Some(pager) = pager {
        command.args(["-c", pager]);
    }
    // Ctrl-C is for the pager, which would leave the terminal as it is if q ended before it. A program that is started is
    // not given what is registered here.
    for signal in [SIGINT, SIGQUIT] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    let Ok(mut process) = command.stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut input) = process.stdin.take() {
        // It may end before it has read everything.
        let _ = input.write_all(text.as_bytes());
    }
    let Ok(status) = process.wait() else {
        return false;
    };
    let is_not_started = |code| NOT_STARTED.contains(&code);
    !status.code().is_some_and(is_not_started)
}
