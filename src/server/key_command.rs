//! Fetches a key: from a variable, or from the first line that a command prints, such as a password manager.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::child_output::{ChildOutput, NeededOutput, OutputLimits};
use crate::error::Error;
use crate::output::{LateNote, Notes};
use crate::programs::{ProgramFault, find_program};
use crate::secret::Secret;
use crate::settings::{Environment, Key, Provider, check_key, expand_home};
use crate::text::size::in_units;

/// How a shell says that SIGINT has ended a command.
const ENDED_BY_INTERRUPT: i32 = 128 + libc::SIGINT;

/// How long q may take to end after Ctrl-C.
const CTRL_C_GRACE: Duration = Duration::from_millis(500);

/// The most bytes that a command may print: the key, and what else a password manager has of the account.
const MAX_PRINTED: usize = 1_000_000;

/// A person may have to find a password.
const LIMITS: OutputLimits = OutputLimits {
    needed: NeededOutput::FirstLine,
    bytes: MAX_PRINTED,
    time: None,
};

/// Fetches the key of a provider; `None` if its server needs none, or must not get it.
pub fn fetch_for(
    provider: &Provider,
    environment: &Environment,
    notes: &Notes,
) -> Result<Option<Secret>, Error> {
    if provider.withholds_key() {
        return Ok(None);
    }
    fetch(&provider.key, &provider.name, environment, notes)
}

/// Fetches the key of a provider or a tool server; `None` if it needs none. A command runs without a shell, and its standard
/// error passes through.
pub fn fetch(
    key: &Key,
    whose: &str,
    environment: &Environment,
    notes: &Notes,
) -> Result<Option<Secret>, Error> {
    let Key::Command(command) = key else {
        return key.read(whose, environment);
    };
    // It may ask for a password on the same terminal.
    notes.spinner().stop();
    let wrong = |what: String| Error::settings(format!("{whose}: key_cmd: {what}"));
    let program = &command[0];
    let name = expand_home(program, environment).map_err(&wrong)?;
    let is_path = name.contains('/');
    let file = match find_program(&name, environment.get_os("PATH")) {
        Ok(file) => file,
        // It may be below the current directory.
        Err(ProgramFault::Missing) if is_path && !name.starts_with('/') => name.into(),
        Err(fault) => {
            let error = wrong(fault.reason(program));
            let advice = match fault.advice() {
                Some(advice) => advice,
                None if is_path => "correct its path in key_cmd".to_owned(),
                None => "install it, or write its absolute path".to_owned(),
            };
            return Err(error.advise(advice));
        }
    };
    let mut started = Command::new(file);
    started.args(&command[1..]);
    started.stdin(Stdio::null());
    let waiting = format!("waiting for {program}, which prints the key for {whose}");
    let late = LateNote::start(notes, waiting);
    let output = ChildOutput::of(started, &LIMITS);
    drop(late);
    let output = output.map_err(|error| wrong(format!("cannot run {program}: {error}")))?;
    // Ctrl-C ends q as well, a moment later.
    if was_interrupted(&output) {
        thread::sleep(CTRL_C_GRACE);
    }
    read_key(&output, program, whose).map(Some)
}

/// Whether Ctrl-C has ended a command.
fn was_interrupted(output: &ChildOutput) -> bool {
    let ChildOutput::Ended(_, status) = output else {
        return false;
    };
    status.signal() == Some(libc::SIGINT) || status.code() == Some(ENDED_BY_INTERRUPT)
}

/// Takes the key from the first line of what this program has printed.
fn read_key(output: &ChildOutput, program: &str, whose: &str) -> Result<Secret, Error> {
    let wrong = |what: &str| Error::settings(format!("{whose}: key_cmd: {program} {what}"));
    let (printed, status) = match output {
        ChildOutput::Ended(printed, status) => (printed, status),
        ChildOutput::OverLimit => {
            let what = format!(
                "printed more than {size}, and was ended",
                size = in_units(MAX_PRINTED)
            );
            return Err(wrong(&what));
        }
    };
    if !status.success() {
        let error = wrong(&format!("failed ({status})"));
        return Err(error.advise("run it by hand to see why"));
    }
    let printed = String::from_utf8_lossy(printed);
    let line = printed.lines().next().unwrap_or_default().trim_end();
    if line.is_empty() {
        return Err(wrong("printed no key on its first line"));
    }
    let secret = Secret::new(line);
    check_key(&secret, &format!("what {program} prints for {whose}"))?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;
    use crate::server::credentials::Credentials;
    use crate::settings::Settings;
    use crate::text::table::rows;

    #[test]
    fn the_key_of_a_local_server_goes_only_to_this_machine_or_over_https() {
        // The address, whether the key goes there, and what is said where the server rejects it.
        let table = r##"
            http://127.0.0.1:11434 | true | check the key in OLLAMA_API_KEY
            https://box.example | true | check the key in OLLAMA_API_KEY
            http://box.example | false | the key in OLLAMA_API_KEY goes only to this machine or over https
        "##;
        for [host, goes, advice] in rows(table) {
            let variables = [("OLLAMA_HOST", host), ("OLLAMA_API_KEY", "sesame")];
            let environment = Environment::new(&variables);
            let settings = Settings::defaults(&environment);
            let provider = settings.provider_named("ollama").expect("a provider");
            let key = fetch_for(provider, &environment, &Notes::default());
            let key = key.expect("a key or none");
            assert_eq!(key.is_some().to_string(), goes, "{host}");
            let credentials = Credentials::new(provider, key.as_ref(), &environment);
            let found = credentials.expect(host).advice();
            assert_eq!(found.as_deref(), Some(advice), "{host}");
        }
    }

    #[test]
    fn the_first_line_of_a_command_that_succeeds_is_the_key() {
        // What a command prints, how it ends, and the key or the error.
        let table = r##"
            sesame␊ | 0 | sesame
            sesame | 0 | sesame
            sesame \t␊ | 0 | sesame
            sesame␍␊ | 0 | sesame
            sesame␊login: me␊␊ | 0 | sesame
            - | 0 | p: key_cmd: pass printed no key on its first line
            ␊sesame␊ | 0 | p: key_cmd: pass printed no key on its first line
            two words␊ | 0 | the key in what pass prints for p contains whitespace or another character that is not allowed in a key
            sésame␊ | 0 | the key in what pass prints for p contains whitespace or another character that is not allowed in a key
            sesame␊ | 1 | p: key_cmd: pass failed (exit status: 1)
            sesame␊ | 130 | p: key_cmd: pass failed (exit status: 130)
            sesame␊ | killed | p: key_cmd: pass failed (signal: 9 (SIGKILL))
            sesame␊ | interrupted | p: key_cmd: pass failed (signal: 2 (SIGINT))
            - | too long | p: key_cmd: pass printed more than 1 MB, and was ended
        "##;
        for [printed, end, expected] in rows(table) {
            let text = printed
                .replace('␊', "\n")
                .replace('␍', "\r")
                .replace("\\t", "\t");
            let whole =
                |status| ChildOutput::Ended(text.into_bytes(), ExitStatus::from_raw(status));
            let output = match end {
                "too long" => ChildOutput::OverLimit,
                "killed" => whole(libc::SIGKILL),
                "interrupted" => whole(libc::SIGINT),
                code => whole(code.parse::<i32>().expect(code) << 8),
            };
            let is_interrupted = matches!(end, "130" | "interrupted");
            assert_eq!(was_interrupted(&output), is_interrupted, "{printed} {end}");
            let found = match read_key(&output, "pass", "p") {
                Ok(key) => key.expose().to_owned(),
                Err(error) => error.message,
            };
            assert_eq!(found, expected, "{printed} {end}");
        }
    }
}
