//! The words that directives begin with, and what each is for.

use std::fmt;
use std::str::FromStr;

/// What a directive is for.
#[derive(Clone, Copy, PartialEq)]
pub enum Key {
    Sets(Set),
    Checks(Check),
    Shows(Shown),
}

/// Sets the stage for what is below it, or says how the case is played.
#[derive(Clone, Copy, PartialEq)]
pub enum Set {
    And,
    Answer,
    Asks,
    Call,
    Config,
    Confines,
    Dialect,
    Env,
    Error,
    File,
    Finish,
    List,
    Models,
    Modes,
    Over,
    Page,
    Provider,
    Proxy,
    Reply,
    Site,
    Splits,
    Stdin,
    Table,
    Talked,
    Tools,
    Words,
}

/// Looks at what came of the command above it.
#[derive(Clone, Copy, PartialEq)]
pub enum Check {
    Current,
    Got,
    Heard,
    Lacks,
    Offered,
    Prompt,
    Ran,
    Requests,
    Saved,
    Sent,
    Texts,
    Unchanged,
    Unsaved,
    Unsent,
}

/// Has a block that is what came, which can be written for a person to review.
#[derive(Clone, Copy, PartialEq)]
pub enum Shown {
    Asked,
    Calls,
    Files,
    Request,
    Screen,
    Told,
}

const WORDS: &[(&str, Key)] = &[
    ("and", Key::Sets(Set::And)),
    ("answer", Key::Sets(Set::Answer)),
    ("asks", Key::Sets(Set::Asks)),
    ("call", Key::Sets(Set::Call)),
    ("config", Key::Sets(Set::Config)),
    ("confines", Key::Sets(Set::Confines)),
    ("dialect", Key::Sets(Set::Dialect)),
    ("env", Key::Sets(Set::Env)),
    ("error", Key::Sets(Set::Error)),
    ("file", Key::Sets(Set::File)),
    ("finish", Key::Sets(Set::Finish)),
    ("list", Key::Sets(Set::List)),
    ("models", Key::Sets(Set::Models)),
    ("modes", Key::Sets(Set::Modes)),
    ("over", Key::Sets(Set::Over)),
    ("page", Key::Sets(Set::Page)),
    ("provider", Key::Sets(Set::Provider)),
    ("proxy", Key::Sets(Set::Proxy)),
    ("reply", Key::Sets(Set::Reply)),
    ("site", Key::Sets(Set::Site)),
    ("splits", Key::Sets(Set::Splits)),
    ("stdin", Key::Sets(Set::Stdin)),
    ("table", Key::Sets(Set::Table)),
    ("talked", Key::Sets(Set::Talked)),
    ("tools", Key::Sets(Set::Tools)),
    ("words", Key::Sets(Set::Words)),
    ("current", Key::Checks(Check::Current)),
    ("got", Key::Checks(Check::Got)),
    ("heard", Key::Checks(Check::Heard)),
    ("lacks", Key::Checks(Check::Lacks)),
    ("offered", Key::Checks(Check::Offered)),
    ("prompt", Key::Checks(Check::Prompt)),
    ("ran", Key::Checks(Check::Ran)),
    ("requests", Key::Checks(Check::Requests)),
    ("saved", Key::Checks(Check::Saved)),
    ("sent", Key::Checks(Check::Sent)),
    ("texts", Key::Checks(Check::Texts)),
    ("unchanged", Key::Checks(Check::Unchanged)),
    ("unsaved", Key::Checks(Check::Unsaved)),
    ("unsent", Key::Checks(Check::Unsent)),
    ("asked", Key::Shows(Shown::Asked)),
    ("calls", Key::Shows(Shown::Calls)),
    ("files", Key::Shows(Shown::Files)),
    ("request", Key::Shows(Shown::Request)),
    ("screen", Key::Shows(Shown::Screen)),
    ("told", Key::Shows(Shown::Told)),
];

impl FromStr for Key {
    type Err = String;

    fn from_str(word: &str) -> Result<Key, String> {
        let found = WORDS.iter().find(|(known, _)| *known == word);
        let (_, key) = found.ok_or_else(|| format!("@{word} is no directive"))?;
        Ok(*key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = WORDS.iter().find(|(_, key)| key == self);
        formatter.write_str(found.expect("a word for each directive").0)
    }
}
