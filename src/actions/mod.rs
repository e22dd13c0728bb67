//! Actions: what q does without asking a question. Only `--clear --all` reads standard input, for a confirmation.

pub mod change;
pub mod list;
pub mod models;
pub mod names;
pub mod show;
pub mod status;
pub mod tools;

use std::ffi::OsStr;

use crate::context::Context;
use crate::error::Error;
use crate::flags::{self, Arguments};
use crate::session::name::ConversationRef;
use crate::session::store::{self, Purpose};

/// Refuses a word after an action that takes none. It may name the conversation that is meant.
pub fn refuse_words(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let mode = arguments.mode;
    let Some(word) = arguments.words.first() else {
        return Ok(());
    };
    if mode.takes_words() {
        return Ok(());
    }
    let meant = match option_of_existing(word, context) {
        Some(option) => format!("did you mean{option}? "),
        None if mode.is_of_conversation() => "name a conversation with -s NAME; ".to_owned(),
        None => String::new(),
    };
    Err(flags::stray_word(mode, word, &meant))
}

/// Returns the option for the conversation that a word names, if there is one.
fn option_of_existing(word: &OsStr, context: &Context) -> Option<String> {
    let which = ConversationRef::find(Some(word), None).ok()?;
    let handle = store::find(context.directory.as_ref()?, &which, Purpose::Look).ok()?;
    let conversation = handle.open().ok()?;
    conversation.map(|_| which.option())
}
