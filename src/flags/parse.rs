//! Reads the command line by the table of options, or says what is wrong with it (pure).

use std::ffi::{OsStr, OsString};

use lexopt::Arg;

use super::argument::{find, looks_like_option, spelling_of};
use super::arguments::{Arguments, Mode};
use super::late_options;
use super::synonyms::{self, WordPlace};
use super::table::{Completion, Effect, FLAGS, Flag, Value};
use crate::error::Error;
use crate::text::one_line::{beginning, on_one_line};

/// The most characters of an argument in an error about it.
const MAX_WORD: usize = 40;

/// Reads the arguments after the program's name: options, then words.
pub fn parse(args: &[OsString]) -> Result<Arguments, Error> {
    let mut arguments = Arguments::default();
    let mut parser = lexopt::Parser::from_args(args);
    let mut used: Vec<&Flag> = Vec::new();
    loop {
        // Within `-abc` this gives nothing, because the rest of that argument comes first.
        if let Some(rest) = parser.try_raw_args() {
            let Some(next) = rest.peek() else { break };
            if next == "--" {
                arguments.words_are_marked = true;
                arguments.words = rest.skip(1).collect();
                break;
            }
            if !looks_like_option(next) {
                let last = used.last();
                arguments.words_follow_attach = last.is_some_and(|flag| flag.name() == "--attach");
                arguments.words = rest.collect();
                late_options::refuse(args, &arguments, parse)?;
                break;
            }
        }
        let Some(argument) = parser.next().map_err(of_lexopt)? else {
            break;
        };
        let flag = find(&argument).ok_or_else(|| unknown(&argument))?;
        apply(flag, &mut arguments, &mut parser, &used)?;
        used.push(flag);
    }
    arguments.taken_word = taken_word(args, &arguments, used.last());
    let follows = used.iter().filter(|flag| flag.name() == "--follow");
    arguments.follow_anyway = follows.count() > 1;
    check(&arguments, &used)?;
    Ok(arguments)
}

/// Returns the error for an argument that cannot be read.
fn of_lexopt(unread: lexopt::Error) -> Error {
    let lexopt::Error::UnexpectedValue { option, value } = unread else {
        return Error::usage(unread.to_string());
    };
    let value = beginning(&on_one_line(&value.to_string_lossy()), MAX_WORD);
    let error = Error::usage(format!("{option} takes no value, but there is “{value}”"));
    error.advise(format!(
        "write {option} without a value; run q -h to list the options"
    ))
}

/// Says of which option the last argument is the value, where somebody may have meant it as the question.
fn taken_word(args: &[OsString], arguments: &Arguments, last: Option<&&Flag>) -> Option<String> {
    // A file that is attached is a question.
    let flag = last.filter(|flag| flag.name() != "--attach" && arguments.words.is_empty())?;
    let value = flag.value()?.name;
    let word = args.last().filter(|word| !looks_like_option(word))?;
    let word = beginning(&on_one_line(&word.to_string_lossy()), MAX_WORD);
    Some(format!("“{word}” is the {value} of {}", flag.name()))
}

/// Whether `--json` is among the options, for the error of a command line that cannot be read. An option that q does not know
/// may have a value in the same argument.
pub fn asks_for_json(args: &[OsString]) -> bool {
    let mut parser = lexopt::Parser::from_args(args);
    loop {
        if let Some(rest) = parser.try_raw_args()
            && !rest
                .peek()
                .is_some_and(|next| looks_like_option(next) && next != "--")
        {
            return false;
        }
        let argument = match parser.next() {
            Ok(Some(argument)) => argument,
            Ok(None) => return false,
            // A value that the option before it does not take.
            Err(_) => continue,
        };
        match find(&argument) {
            Some(flag) if flag.name() == "--json" => return true,
            Some(flag) if flag.value().is_some() => drop(parser.value()),
            Some(_) => {}
            None => drop(parser.optional_value()),
        }
    }
}

fn apply(
    flag: &Flag,
    arguments: &mut Arguments,
    parser: &mut lexopt::Parser,
    used: &[&Flag],
) -> Result<(), Error> {
    let name = flag.name();
    if let Some(mode) = flag.mode() {
        for other in used {
            if other.mode().is_some_and(|other| other != mode) {
                let other = other.name();
                let message = format!("{other} and {name} cannot be used together");
                return Err(Error::usage(message).advise("ask for one thing at a time"));
            }
        }
        arguments.mode = mode;
    }
    if let Effect::Switch(_, field) = flag.effect {
        *field(arguments) = true;
    }
    if let Some(value) = flag.value() {
        let Some(text) = value_of(flag, value, parser)? else {
            let lack = lack(flag, value);
            let Some(list) = value.completion.list() else {
                return Err(Error::usage(lack));
            };
            arguments.lacking_value = Some((lack, list));
            return Ok(());
        };
        if let Err(reason) = value.setter.set(arguments, text) {
            return Err(Error::usage(format!("{name}: {reason}")));
        }
    }
    Ok(())
}

/// Returns the value of an option: the rest of its argument, else the next one; `None` if there is none.
fn value_of(
    flag: &Flag,
    value: &Value,
    parser: &mut lexopt::Parser,
) -> Result<Option<OsString>, Error> {
    if let Some(text) = parser.optional_value() {
        return Ok(Some(text));
    }
    let Ok(text) = parser.value() else {
        return Ok(None);
    };
    if FLAGS.iter().any(|option| option.is_called(&text))
        && let Some(advice) = advice_on_option(flag, value, &text.display().to_string())
    {
        return Err(Error::usage(lack(flag, value)).advise(advice));
    }
    Ok(Some(text))
}

fn lack(flag: &Flag, value: &Value) -> String {
    let name = flag.name();
    format!("{name} needs a value: {name} {}", value.name)
}

/// Returns what to do about an option that stands in the place of a value; `None` if it can be the value.
fn advice_on_option(flag: &Flag, value: &Value, option: &str) -> Option<String> {
    let name = flag.name();
    let wanted = value.name;
    if value.may_begin_with_hyphen {
        // A system prompt may be any text, and a file may have any name.
        let is_doubtful = !value.setter.takes_any_text();
        return is_doubtful.then(|| {
            format!("write {name}={option} to make it the value, because {option} is an option")
        });
    }
    if let Completion::Words(words) = value.completion {
        let words = words.join(", ");
        return Some(format!(
            "write one of {words} as the {wanted}, because {option} is an option"
        ));
    }
    Some(format!(
        "put the {wanted} before {option}, which is an option"
    ))
}

/// Refuses options and words that do not go together.
fn check(arguments: &Arguments, used: &[&Flag]) -> Result<(), Error> {
    let mode = arguments.mode;
    if let Some(word) = arguments.words.first()
        && !mode.takes_words()
        && !mode.is_of_conversation()
    {
        return Err(stray_word(mode, word, ""));
    }
    // Users ask for help and version when they are unsure about the rest of the line.
    if matches!(mode, Mode::ShortHelp | Mode::LongHelp | Mode::Version) {
        return Ok(());
    }
    for flag in used {
        if flag.mode().is_none() && !flag.is_for(mode) {
            let action = name_of(mode);
            let name = flag.name();
            let mut error = Error::usage(format!("{action} does not accept {name}"));
            // To ask whether there is such a model.
            if mode == Mode::Models && name == "--model" {
                error = error.advise("leave it out: --models lists all models of the provider");
            }
            return Err(error);
        }
    }
    refuse_forms(used)?;
    if arguments.all && arguments.session.is_some() {
        let error = Error::usage("--all and --session cannot be used together");
        return Err(error.advise("choose one conversation, or all of them"));
    }
    Ok(())
}

/// Refuses options that ask for different forms of the answer.
fn refuse_forms(used: &[&Flag]) -> Result<(), Error> {
    let is_used = |name: &str| used.iter().any(|flag| flag.name() == name);
    let no_code = "an answer in JSON has no code blocks";
    let prints_nothing = "the answer of --is is its exit status";
    let json_already = "--lines prints JSON already, a line for each item";
    for (one, other, reason) in [
        ("--extract", "--schema", no_code),
        ("--is", "--extract", prints_nothing),
        ("--is", "--schema", prints_nothing),
        ("--is", "--lines", prints_nothing),
        ("--is", "--dry-run", "a dry run has no answer"),
        ("--lines", "--extract", no_code),
        ("--lines", "--json", json_already),
    ] {
        if is_used(one) && is_used(other) {
            let message = format!("{one} and {other} cannot be used together: {reason}");
            return Err(Error::usage(message));
        }
    }
    Ok(())
}

/// Returns the error for a word after an action that takes none. `meant` begins the advice.
pub fn stray_word(mode: Mode, word: &OsStr, meant: &str) -> Error {
    let action = name_of(mode);
    let word = word.display();
    let error = Error::usage(format!("{action} takes no words, but there is “{word}”"));
    error.advise(format!(
        "{meant}to ask about {action}, put -- before the question"
    ))
}

/// Returns what errors call a mode: the option that chooses it.
fn name_of(mode: Mode) -> &'static str {
    let mut flags = FLAGS.iter();
    let chooses = flags.find(|flag| flag.mode() == Some(mode));
    chooses.map_or("a question", Flag::name)
}

fn unknown(argument: &Arg) -> Error {
    let spelling = spelling_of(argument);
    let error = Error::usage(format!("unknown option {spelling}"));
    let bare = spelling.trim_start_matches('-');
    if let Some(advice) = synonyms::instead_of_option(bare) {
        return error.advise(format!("{advice}; run q -h to list the options"));
    }
    match nearest_option(bare).or_else(|| in_other_case(argument)) {
        Some(name) => error.advise(format!("did you mean {name}? run q -h to list the options")),
        None => error
            .advise("run q -h to list the options; to ask about it, put -- before the question"),
    }
}

/// Returns the option that has the same letter in the other case.
fn in_other_case(argument: &Arg) -> Option<String> {
    let Arg::Short(letter) = argument else {
        return None;
    };
    let other = if letter.is_ascii_uppercase() {
        letter.to_ascii_lowercase()
    } else {
        letter.to_ascii_uppercase()
    };
    find(&Arg::Short(other)).map(|_| format!("-{other}"))
}

/// Returns the option that was probably meant.
fn nearest_option(spelling: &str) -> Option<String> {
    let spelling = spelling.to_ascii_lowercase();
    let mut names = Vec::new();
    for flag in FLAGS {
        let name = flag.name().trim_start_matches('-');
        // A guess must not delete a conversation, but a single typing error is hardly a guess.
        if !flag.deletes() || strsim::osa_distance(&spelling, name) <= 1 {
            names.push(name);
        }
    }
    let meant = synonyms::meant(WordPlace::CommandLine, &spelling, &names)?;
    if names.contains(&&*meant) {
        return Some(format!("--{meant}"));
    }
    let is_exact = synonyms::habit(WordPlace::CommandLine, &spelling).is_some();
    let mut flags = FLAGS.iter();
    let deletes = flags.any(|flag| flag.deletes() && meant.contains(flag.name()));
    (is_exact || !deletes).then_some(meant)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned(typed: &[&str]) -> Vec<OsString> {
        typed.iter().map(OsString::from).collect()
    }

    fn parsed(typed: &[&str]) -> Arguments {
        parse(&owned(typed)).unwrap_or_else(|error| panic!("{typed:?}: {error}"))
    }

    fn refused(typed: &[&str]) -> String {
        let parsed = parse(&owned(typed));
        let error = parsed.expect_err(&format!("{typed:?} must be refused"));
        assert_eq!(error.exit_status(), 2);
        format!("{}; {}", error.message, error.advice.unwrap_or_default())
    }

    #[test]
    fn the_value_of_an_option_follows_a_space_an_equals_sign_or_its_letter() {
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
    fn the_option_for_json_is_recognized_even_in_an_invalid_command_line() {
        for (typed, wanted) in [
            ("-m x -j --no-such", true),
            ("--no-such -j", true),
            ("--no-such=x -fj", true),
            ("--follow=x --json", true),
            ("--json", true),
            ("-fxj", true),
            ("-- -j", false),
            // A value, a word, or what q does not know.
            ("-mjamba --no-such x", false),
            ("-m -j --no-such", false),
            ("--model=-j --no-such", false),
            ("-fmj --no-such", false),
            ("-r j -a j.txt --no-such", false),
            ("-Zj", false),
            ("--no-such=-j", false),
            ("what does tar -xjf do", false),
            ("--list a -j", false),
            ("- -j", false),
        ] {
            let typed = Vec::from_iter(typed.split(' '));
            assert_eq!(asks_for_json(&owned(&typed)), wanted, "{typed:?}");
        }
    }

    #[test]
    fn an_option_that_deletes_is_suggested_only_for_a_single_typing_error() {
        for (typed, meant) in [
            ("--claer", "--clear"),
            ("--cler", "--clear"),
            ("--clearr", "--clear"),
            ("--clear-", "--clear"),
            ("--CLEAR", "--clear"),
            ("--ndo", "--undo"),
            ("--udno", "--undo"),
            ("--clean", "--clear"),
            ("--delete", "--clear"),
            ("--al", "--all"),
            ("--alle", "--all"),
        ] {
            let is_right = refused(&[typed]).contains(&format!("did you mean {meant}?"));
            assert!(is_right, "{typed}: {}", refused(&[typed]));
        }
        let words = "--search --cl --cle --cleanup --clear-all --un --undelete --deleted --deletes --redo --always --reset \
                     --renam --renamed --clear-cache --clear-caches --purge --rm";
        for typed in words.split(' ') {
            let said = refused(&[typed]);
            for flag in FLAGS.iter().filter(|flag| flag.deletes()) {
                let is_right = !said.contains(&format!("mean {}?", flag.name()));
                assert!(is_right, "{typed}: {said}");
            }
        }
    }

    /// What somebody may type: options with and without values, some of them misspelt, and words.
    fn typed() -> impl Strategy<Value = Vec<String>> {
        let options = FLAGS.iter().flat_map(Flag::spellings);
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
        fn any_arguments_are_parsed_with_words_last_or_refused_with_a_reason(typed in typed()) {
            let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
            match parse(&typed) {
                Ok(arguments) => {
                    prop_assert_eq!(asks_for_json(&typed), arguments.json);
                    prop_assert!(typed.ends_with(&arguments.words), "{:?}", arguments.words);
                }
                Err(error) => prop_assert!(error.exit_status() == 2 && !error.message.is_empty()),
            }
        }
    }
}
