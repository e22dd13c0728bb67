//! Why a tool server cannot continue, or a call has no answer, in words for the user.

use std::fmt::{self, Write};
use std::time::Duration;

/// Why a server cannot continue, or why a call has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What happened, without the server's name; the model may learn this and nothing else.
    pub(crate) what: String,
    /// Where the server is.
    pub(crate) address: Option<String>,
    /// The first and the last lines that it wrote to standard error.
    pub(crate) lines: Vec<String>,
    pub(crate) advice: Option<String>,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The server cannot continue.
    Server(Failure),
    /// The server may answer the next call.
    Call(Failure),
    /// The server has forgotten the session, so it has not run the call.
    Session(Failure),
}

impl Failure {
    /// The tools were not listed in time.
    pub(crate) fn too_slow(name: &str, patience: Option<Duration>) -> Failure {
        let advice = format!("a longer start may help, such as start = \"2m\" in [tools.{name}]");
        let what = format!("did not list its tools within {}", seconds(patience));
        Failure { advice: Some(advice), ..what.into() }
    }

    /// A call to a server that did not start.
    pub(crate) fn not_started() -> Failure {
        "did not start".to_owned().into()
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Failure {
        Failure { what, address: None, lines: Vec::new(), advice: None }
    }
}

/// Without the advice.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        if let Some(address) = &self.address {
            write!(formatter, " ({address})")?;
        }
        formatter.write_str(&quoted(&self.lines))
    }
}

/// What the model learns about a call without an answer.
pub(crate) fn no_answer(patience: Option<Duration>) -> String {
    format!("no answer within {}", seconds(patience))
}

fn seconds(time: Option<Duration>) -> String {
    format!("{} s", time.unwrap_or_default().as_secs_f64())
}

/// Lines after a reason: a single line continues it, several go below it.
fn quoted(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(": {line}"),
        lines => lines.iter().fold(":".to_owned(), |mut text, line| {
            let _ = write!(text, "\n{line}");
            text
        }),
    }
}
