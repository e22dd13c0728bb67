//! Options after the first word of the question: what the user may have meant, as command lines to copy (pure).

use std::ffi::{OsStr, OsString};

use super::argument::{looks_like_option, option_argument};
use super::arguments::{Arguments, Mode};
use super::table::{FLAGS, Flag};
use crate::error::Error;
use crate::text::shell_words::quoted;

/// The most bytes of a corrected command line in an error.
const MAX_COMMAND: usize = 300;

/// Reads a command line. A corrected one is suggested only if it can be read.
type Parse = fn(&[OsString]) -> Result<Arguments, Error>;

/// Refuses an option after the first word, and shows the command line that the user probably meant.
pub fn refuse(args: &[OsString], arguments: &Arguments, parse: Parse) -> Result<(), Error> {
    let words = arguments.words.as_slice();
    let Some(late) = words.iter().find(|word| looks_like_option(word)) else {
        return Ok(());
    };
    let before = &args[..args.len() - words.len()];
    let as_words = [before, &["--".into()], &without_separators(words)].concat();
    let as_words = parse(&as_words).map_or_else(|_| String::new(), |_| command_line(&as_words));
    let late = late.display();
    let message = format!("“{late}” comes after the first word of the question");
    let error = Error::usage(message);
    if !up_to_separator(words).any(looks_like_option) {
        return Err(error.advise(format!(
            "if it is part of the question, quote the question; \
             otherwise put --, which ends the options, before the question{as_words}"
        )));
    }

    let as_options = match late_action(words, arguments.mode) {
        Some(action) => action_alone(before, words, action, parse),
        None => with_action_of_option(before, words, arguments.mode, parse),
    };
    let as_options = as_options.or_else(|| {
        let command = options_before_words(before, words, arguments.mode, parse)?;
        Some(format!("put options before the question{command}"))
    });
    let if_part = "if it is part of the question, quote the question or put -- before it";
    // A command to copy ends the line.
    Err(error.advise(match as_options {
        Some(as_options) => format!("{if_part}; otherwise {as_options}"),
        None => format!("put options before the question; {if_part}{as_words}"),
    }))
}

/// Returns the words before the first `--`: none after it is meant as an option.
fn up_to_separator(words: &[OsString]) -> impl Iterator<Item = &OsStr> {
    let words = words.iter().map(OsString::as_os_str);
    words.take_while(|word| *word != "--")
}

fn without_separators(words: &[OsString]) -> Vec<OsString> {
    let words = words.iter().filter(|word| *word != "--");
    words.cloned().collect()
}

/// Returns the action that one of these words asks for, where no other one is chosen. It never deletes, because the word may be
/// part of a question.
fn late_action(words: &[OsString], mode: Mode) -> Option<&'static Flag> {
    if mode != Mode::Ask {
        return None;
    }
    let mut options = options_in(words).into_iter();
    options.find(|option| option.mode().is_some() && !option.deletes())
}

/// Returns the options that these words are.
fn options_in(words: &[OsString]) -> Vec<&'static Flag> {
    let arguments = up_to_separator(words).filter_map(option_argument);
    arguments.flat_map(|argument| argument.options).collect()
}

/// Returns the advice for an option that only an action has: the action that takes it and the words. `None` if there is none that
/// deletes nothing.
fn with_action_of_option(
    before: &[OsString],
    words: &[OsString],
    mode: Mode,
    parse: Parse,
) -> Option<String> {
    let options = options_in(words);
    let option = options
        .iter()
        .find(|option| mode == Mode::Ask && !option.is_for(mode))?;
    let takes_both =
        |other: Mode| other != Mode::Ask && other.takes_words() && option.is_for(other);
    let action = FLAGS
        .iter()
        .find(|action| !action.deletes() && action.mode().is_some_and(takes_both))?;
    let with_action = [before, &[action.name().into()]].concat();
    let (corrected, question) = options_among(&with_action, words, action.mode()?);
    let corrected = [corrected, question].concat();
    let is_right = parse(&corrected).is_ok();
    let said = format!("add {}, which {} needs", action.name(), option.name());
    is_right.then(|| said + &command_line(&corrected))
}

/// Returns the advice for an action after the first word: the same before the words, or without them if it takes none. `None` if
/// q does not take that either.
fn action_alone(
    before: &[OsString],
    words: &[OsString],
    action: &Flag,
    parse: Parse,
) -> Option<String> {
    let mode = action.mode()?;
    let (options, question) = options_among(before, words, mode);
    let name = action.name();
    let (said, corrected) = if mode.takes_words() {
        let said = format!("put {name} before the words");
        (said, [options, question].concat())
    } else {
        (
            format!("leave out the words, because {name} takes none"),
            options,
        )
    };
    let is_right = parse(&corrected).is_ok_and(|parsed| parsed.mode == mode);
    is_right.then(|| said + &command_line(&corrected))
}

/// Returns the command line where those of the words that are options stand before the others. `None` if none of them is one, q
/// does not take that either, or it cannot be shown.
fn options_before_words(
    before: &[OsString],
    words: &[OsString],
    mode: Mode,
    parse: Parse,
) -> Option<String> {
    let (mut options, question) = options_among(before, words, mode);
    if options.len() == before.len() {
        return None;
    }
    if question.iter().any(|word| looks_like_option(word)) {
        options.push("--".into());
    }
    options.extend(question);
    parse(&options).ok()?;
    Some(command_line(&options)).filter(|command| !command.is_empty())
}

/// Returns the options before the words, and after them those among the words that a mode can use, up to `--`; and the other words.
fn options_among(
    before: &[OsString],
    words: &[OsString],
    mode: Mode,
) -> (Vec<OsString>, Vec<OsString>) {
    let mut options = before.to_vec();
    let mut question = Vec::new();
    let (mut rest, protected) = words.split_at(up_to_separator(words).count());
    while let [word, after @ ..] = rest {
        match option_length(mode, word) {
            Some(length) if length <= rest.len() => {
                options.extend_from_slice(&rest[..length]);
                rest = &rest[length..];
            }
            _ => {
                question.push(word.clone());
                rest = after;
            }
        }
    }
    question.extend(without_separators(protected));
    (options, question)
}

/// Returns a command line to copy, after a colon; nothing if it would be long, or not be one line.
fn command_line(arguments: &[OsString]) -> String {
    let mut words = String::new();
    for argument in arguments {
        words.push(' ');
        words.push_str(&quoted(&argument.to_string_lossy()));
    }
    if words.len() > MAX_COMMAND || words.contains(char::is_control) {
        return String::new();
    }
    format!(": q{words}")
}

/// Returns how many arguments an option and its value are together. `None`: this is no option that the mode can use.
fn option_length(mode: Mode, argument: &OsStr) -> Option<usize> {
    let argument = option_argument(argument)?;
    for option in &argument.options {
        let is_chosen = option.mode() == Some(mode) && mode != Mode::Ask;
        if !option.is_for(mode) && !is_chosen {
            return None;
        }
    }
    Some(if argument.takes_next { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::super::table::Setter;
    use super::*;

    fn words(typed: &str) -> Vec<OsString> {
        typed.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_command_line_that_q_refuses_is_not_suggested() {
        let options = [
            "-x",
            "--lines",
            "-s a",
            "-f",
            "-j",
            "--is",
            "--schema a",
            "--list",
            "--last",
            "-t none",
            "--again",
            "--dry-run",
            "--all",
            "--yes",
            "-n",
        ];
        for before in ["", "-x ", "-j ", "--list ", "--is ", "--schema a "] {
            for first in options {
                for second in options {
                    let typed = format!("{before}what is {first} {second}");
                    let Err(error) = parse(&words(&typed)) else {
                        panic!("{typed} has a late option")
                    };
                    let said = error.advice.unwrap_or_default();
                    if let Some((_, suggested)) = said.split_once(": q ") {
                        assert!(parse(&words(suggested)).is_ok(), "{typed}: {suggested}");
                    }
                }
            }
        }
    }

    #[test]
    fn any_option_after_a_word_is_corrected_unless_it_deletes() {
        for flag in FLAGS {
            for spelling in flag.spellings() {
                let mut forms = vec![spelling.to_owned()];
                if let Some(value) = flag.value() {
                    let text = match value.setter {
                        Setter::Kind(_) => "bash",
                        _ => "x",
                    };
                    forms = vec![format!("{spelling} {text}"), format!("{spelling}={text}")];
                }
                for form in forms {
                    let typed = format!("what is {form}");
                    let error = parse(&words(&typed)).expect_err(&typed);
                    let said = error.advice.unwrap_or_default();
                    let corrected = match flag.mode() {
                        Some(mode) if !mode.takes_words() => form.clone(),
                        None if !flag.is_for(Mode::Ask) => format!("--list {form} what is"),
                        _ => format!("{form} what is"),
                    };
                    let is_said = said.ends_with(&format!(": q {corrected}"));
                    assert_eq!(is_said, !flag.deletes(), "{form}: {said}");
                    let corrected = parse(&words(&corrected)).expect(&form);
                    assert_eq!(
                        corrected.mode == Mode::Ask,
                        flag.is_for(Mode::Ask),
                        "{form}"
                    );
                }
            }
        }
    }
}
