//! Parses the command line with the table of options, or says what is wrong with it.

use std::ffi::{OsStr, OsString};

use lexopt::Arg;

use super::arguments::{Arguments, Mode};
use super::table::{Effect, FLAGS, Flag, Setter, Value};
use crate::error::Error;
use crate::nearest::nearest;
use crate::one_line::quoted;

/// The most bytes of a corrected command line in an error.
const MAX_COMMAND: usize = 300;

/// What other programs call an option of q.
const HABITS: &[(&str, &str)] = &[
    ("c", "-f"),
    ("continue", "-f"),
    ("resume", "-f"),
    ("file", "-a"),
    ("no-input", "-n"),
];

/// Values that are names, and no name looks like an option of q.
const NAMES: &[&str] = &["NAME", "ID", "LEVEL"];

/// Reads the arguments after the program's name: options, then words.
///
/// # Errors
/// `Usage`: an option that does not exist, lacks a value or takes none, comes after the first word, or that the chosen
/// action cannot use; two actions at once; an action with words.
pub(crate) fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Arguments, Error> {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let mut arguments = Arguments::default();
    let mut parser = lexopt::Parser::from_args(&typed);
    let mut used: Vec<&'static Flag> = Vec::new();
    loop {
        // Not within `-abc`, so that the next argument is a complete one.
        if let Some(rest) = parser.try_raw_args() {
            match rest.peek() {
                None => break,
                Some(next) if next == "--" => {
                    arguments.words = rest.skip(1).collect();
                    break;
                }
                Some(next) if !looks_like_option(next) => {
                    arguments.words = rest.collect();
                    arguments.words_follow_attach =
                        used.last().is_some_and(|flag| flag.long == Some("attach"));
                    refuse_late_options(&typed, &arguments)?;
                    break;
                }
                Some(_) => {}
            }
        }
        let Some(argument) = parser.next().map_err(malformed)? else {
            break;
        };
        let flag = find(&argument).ok_or_else(|| unknown(&argument))?;
        apply(flag, &mut arguments, &mut parser, &used)?;
        used.push(flag);
    }
    check(&arguments, &used)?;
    Ok(arguments)
}

/// Whether `--json` was typed, even if the command line has errors.
pub(crate) fn asks_for_json(typed: impl IntoIterator<Item = OsString>) -> bool {
    let mut parser = lexopt::Parser::from_args(typed);
    while let Ok(Some(argument)) = parser.next() {
        let is_long = matches!(argument, Arg::Long(_));
        match find(&argument) {
            // The question begins.
            None if matches!(argument, Arg::Value(_)) => return false,
            Some(flag) if flag.long == Some("json") => return true,
            Some(flag) if flag.value().is_some() => drop(parser.value()),
            // It may have a value after an equals sign, by mistake.
            _ if is_long => drop(parser.optional_value()),
            _ => {}
        }
    }
    false
}

fn find(argument: &Arg) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| match argument {
        Arg::Short(short) => flag.short == Some(*short),
        Arg::Long(long) => flag.long == Some(long),
        Arg::Value(_) => false,
    })
}

fn apply(
    flag: &'static Flag,
    arguments: &mut Arguments,
    parser: &mut lexopt::Parser,
    used: &[&'static Flag],
) -> Result<(), Error> {
    if let Some(mode) = flag.mode() {
        if let Some(other) = used
            .iter()
            .find(|other| other.mode().is_some_and(|chosen| chosen != mode))
        {
            return Err(Error::usage(format!(
                "{} and {} cannot be used together",
                other.name(),
                flag.name()
            ))
            .advise("ask for one thing at a time"));
        }
        arguments.mode = mode;
    }
    if let Effect::Switch(field) = flag.effect {
        *field(arguments) = true;
    }
    if let Some(Value(name, _, setter)) = flag.value() {
        let flag = flag.name();
        let form = if let Setter::Choice(words, _) = setter {
            words.join("|")
        } else {
            (*name).to_owned()
        };
        let value = parser
            .value()
            .map_err(|_| Error::usage(format!("{flag} needs a value: {flag} {form}")))?;
        if NAMES.contains(name) && is_option(&value) {
            let other = value.display();
            return Err(
                Error::usage(format!("{flag} needs a value, but “{other}” is an option")).advise(
                    format!("the value comes right after {flag}: {flag} {form} {other}"),
                ),
            );
        }
        setter
            .set(arguments, value)
            .map_err(|reason| Error::usage(format!("{flag}: {reason}")))?;
    }
    Ok(())
}

fn check(arguments: &Arguments, used: &[&'static Flag]) -> Result<(), Error> {
    let action = used.iter().find(|flag| flag.mode().is_some());
    let action = action.map_or_else(|| "a question".to_owned(), |flag| flag.name());
    if let Some(word) = arguments
        .words
        .first()
        .filter(|_| !matches!(arguments.mode, Mode::Ask | Mode::List))
    {
        return Err(Error::usage(format!(
            "{action} takes no words, but there is “{}”",
            word.display()
        ))
        .advise(format!("to ask about {action}, put -- before the question")));
    }
    // Users ask for help and version when they are unsure about the rest of the line.
    if matches!(
        arguments.mode,
        Mode::ShortHelp | Mode::LongHelp | Mode::Version
    ) {
        return Ok(());
    }
    match used
        .iter()
        .find(|flag| flag.mode().is_none() && !flag.modes.contains(&arguments.mode))
    {
        Some(flag) => Err(Error::usage(format!("{action} cannot use {}", flag.name()))),
        None if arguments.extract && arguments.schema.is_some() => Err(Error::usage(
            "--extract and --schema cannot be used together",
        )
        .advise("an answer in JSON has no code blocks")),
        None if arguments.all && arguments.session.is_some() => {
            Err(Error::usage("--all and --session cannot be used together")
                .advise("choose one conversation, or all of them"))
        }
        None => Ok(()),
    }
}

fn is_option(argument: &OsStr) -> bool {
    let mut parser = lexopt::Parser::from_args([argument]);
    matches!(parser.next(), Ok(Some(option)) if find(&option).is_some())
}

fn looks_like_option(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-") && argument != "-"
}

fn refuse_late_options(typed: &[OsString], arguments: &Arguments) -> Result<(), Error> {
    let words = &arguments.words;
    let Some(late) = words.iter().find(|word| looks_like_option(word)) else {
        return Ok(());
    };
    let (mut options, mut others) = (Vec::from(&typed[..typed.len() - words.len()]), Vec::new());
    let literal = [&options[..], &["--".into()], words].concat();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match is_option_of(arguments.mode, word) {
            Some(true) if rest.len() > 0 => {
                options.extend([word, rest.next().unwrap_or(word)].map(OsString::clone))
            }
            Some(false) => options.push(word.clone()),
            _ => others.push(word.clone()),
        }
    }
    if others.iter().any(|word| looks_like_option(word)) {
        options.push("--".into());
    }
    let moved = if others.len() < words.len() {
        command([options, others].concat())
    } else {
        String::new()
    };
    Err(Error::usage(format!(
        "“{}” comes after the first word of the question",
        late.display()
    ))
    .advise(format!(
        "put options before the question{moved}\n\
         if it is part of the question, quote the question or put -- before it{}",
        command(literal)
    )))
}

/// A command line to copy, after a colon; nothing if it would be long, or not be one line.
fn command(arguments: Vec<OsString>) -> String {
    let words: String = arguments
        .iter()
        .map(|word| format!(" {}", quoted(&word.to_string_lossy())))
        .collect();
    if words.len() > MAX_COMMAND || words.contains(char::is_control) {
        String::new()
    } else {
        format!(": q{words}")
    }
}

/// Whether the next argument is the value of this one; `None` if this one is no option that the mode can use.
fn is_option_of(mode: Mode, argument: &OsStr) -> Option<bool> {
    let mut parser = lexopt::Parser::from_args([argument]);
    let mut needs_value = None;
    while let Some(option) = parser.next().ok()? {
        let flag = find(&option)?;
        if !flag.modes.contains(&mode) {
            return None;
        }
        needs_value = Some(flag.value().is_some() && parser.optional_value().is_none());
    }
    needs_value
}

fn unknown(argument: &Arg) -> Error {
    let typed = match argument {
        Arg::Short(short) => format!("-{short}"),
        Arg::Long(long) => format!("--{long}"),
        Arg::Value(value) => value.display().to_string(),
    };
    let error = Error::usage(format!("there is no option {typed}"));
    match nearest_option(&typed) {
        Some(name) => error.advise(format!("did you mean {name}? q -h lists the options")),
        None => error.advise("q -h lists the options\nto ask about it, put -- before the question"),
    }
}

fn nearest_option(typed: &str) -> Option<String> {
    let typed = typed.trim_start_matches('-').to_ascii_lowercase();
    let named = FLAGS.iter().filter_map(|flag| Some((flag, flag.long?)));
    // A guess must not delete a conversation, but a single typing error is hardly a guess.
    let named =
        named.filter(|(flag, name)| !flag.deletes() || strsim::osa_distance(&typed, name) <= 1);
    let habit = |name: &str| {
        HABITS
            .iter()
            .find(|(habit, _)| *habit == name)
            .map(|(_, option)| (*option).to_owned())
    };
    let names = named
        .map(|(_, name)| name)
        .chain(HABITS.iter().map(|(habit, _)| *habit));
    // Nor may it do the opposite of what was typed.
    let name = nearest(
        &typed,
        names.filter(|name| name.strip_prefix("no-") != Some(&typed)),
    )?;
    Some(habit(name).unwrap_or_else(|| format!("--{name}")))
}

fn malformed(error: lexopt::Error) -> Error {
    match error {
        lexopt::Error::UnexpectedValue { option, value } => Error::usage(format!(
            "{option} takes no value, but there is “{}”",
            value.display()
        )),
        other => Error::usage(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(typed: &[&str]) -> Arguments {
        parse(typed.iter().map(OsString::from)).unwrap_or_else(|error| panic!("{typed:?}: {error}"))
    }

    fn refused(typed: &[&str]) -> String {
        let parsed = parse(typed.iter().map(OsString::from));
        let error = parsed.expect_err(&format!("{typed:?} must be refused"));
        assert_eq!(error.exit_status(), 2);
        format!("{}; {}", error.message, error.advice.unwrap_or_default())
    }

    #[test]
    fn values_stand_beside_after_an_equals_sign_or_glued() {
        for typed in [
            &["--model", "x"][..],
            &["--model=x"],
            &["-m", "x"],
            &["-mx"],
            &["-fmx"],
        ] {
            assert_eq!(parsed(typed).model.as_deref(), Some("x"), "{typed:?}");
        }
    }

    #[test]
    fn whether_json_is_wanted_is_found_in_any_command_line() {
        for (typed, wanted) in [
            (&["-j"][..], true),
            (&["-fj", "--no-such"], true),
            (&["--colour=red", "--json"], true),
            (&["-m", "-j"], false),
            (&["-m", "x", "-j"], true),
            (&["--model", "--json", "hi"], false),
            (&["hi", "-j"], false),
            (&["--", "-j"], false),
            (&[], false),
        ] {
            assert_eq!(
                asks_for_json(typed.iter().map(OsString::from)),
                wanted,
                "{typed:?}"
            );
        }
    }

    #[test]
    fn an_option_that_deletes_is_named_only_for_a_single_typing_error() {
        for (typed, meant) in [
            ("--claer", "--clear"),
            ("--cler", "--clear"),
            ("--clearr", "--clear"),
            ("--clear-", "--clear"),
            ("--CLEAR", "--clear"),
            ("--ndo", "--undo"),
            ("--udno", "--undo"),
            ("--clean", "--clear"),
            ("--al", "--all"),
            ("--alle", "--all"),
        ] {
            assert!(
                refused(&[typed]).contains(&format!("did you mean {meant}?")),
                "{typed}: {}",
                refused(&[typed])
            );
        }
        for typed in [
            "--search",
            "--cl",
            "--cleanup",
            "--clear-all",
            "--un",
            "--undelete",
            "--redo",
            "--always",
            "--reset",
        ] {
            let said = refused(&[typed]);
            for flag in FLAGS.iter().filter(|flag| flag.deletes()) {
                assert!(
                    !said.contains(&format!("mean {}?", flag.name())),
                    "{typed}: {said}"
                );
            }
        }
    }

    /// What somebody may type: options with and without values, some of them misspelt, and words.
    fn typed() -> impl Strategy<Value = Vec<String>> {
        let options = FLAGS.iter().flat_map(|flag| {
            let short = flag.short.map(|short| format!("-{short}"));
            short
                .into_iter()
                .chain(flag.long.map(|long| format!("--{long}")))
        });
        let option = (
            prop::sample::select(options.collect::<Vec<_>>()),
            "[=a-z0-9]{0,3}",
        );
        let option = option.prop_map(|(option, rest)| format!("{option}{rest}"));
        prop::collection::vec(
            prop_oneof![3 => option, 2 => "[a-z0-9 ]{0,3}", 1 => "-{0,3}[a-zä=]{0,4}"],
            0..6,
        )
    }

    proptest! {
        #[test]
        fn whatever_is_typed_words_come_last_and_a_refusal_says_why(typed in typed()) {
            match parse(typed.iter().map(OsString::from)) {
                Ok(arguments) => {
                    let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
                    prop_assert!(typed.ends_with(&arguments.words), "{:?}", arguments.words);
                }
                Err(error) => prop_assert!(error.exit_status() == 2 && !error.message.is_empty()),
            }
        }
    }
}
