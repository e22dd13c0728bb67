//! An argument as it is typed: which options it stands for, or whether it is a word (pure).

use std::ffi::{OsStr, OsString};

use lexopt::Arg;

use super::table::{FLAGS, Flag};

/// An argument of one option, perhaps with its value, or of several with one letter each.
pub struct OptionArgument {
    pub options: Vec<&'static Flag>,
    /// Whether the next argument is the value of the last one.
    pub takes_next: bool,
}

/// Whether an argument begins as options do.
pub fn looks_like_option(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-") && argument != "-"
}

/// Returns the option that a part of an argument is.
pub fn find(argument: &Arg) -> Option<&'static Flag> {
    let spelling = OsString::from(spelling_of(argument));
    let mut flags = FLAGS.iter();
    flags.find(|flag| flag.is_called(&spelling))
}

/// Returns an option as it is typed alone.
pub fn spelling_of(argument: &Arg) -> String {
    match argument {
        Arg::Short(short) => format!("-{short}"),
        Arg::Long(long) => format!("--{long}"),
        Arg::Value(value) => value.display().to_string(),
    }
}

/// Returns the options that an argument is. `None` if one of them does not exist, or it is a word.
pub fn option_argument(argument: &OsStr) -> Option<OptionArgument> {
    let mut parser = lexopt::Parser::from_args([argument]);
    let mut found = OptionArgument {
        options: Vec::new(),
        takes_next: false,
    };
    while let Some(part) = parser.next().ok()? {
        let option = find(&part)?;
        found.options.push(option);
        found.takes_next = option.value().is_some() && parser.optional_value().is_none();
    }
    (!found.options.is_empty()).then_some(found)
}
