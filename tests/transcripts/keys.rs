//! The words that directives begin with, and what each is for.

use std::fmt;
use std::str::FromStr;

/// What a directive is for.
#[derive(Clone, Copy, PartialEq)]
pub enum Key {
    Setup(Setup),
    Expectation(Expectation),
    Block(Block),
}

/// Sets the stage for what is below it, or says how the case is played.
#[derive(Clone, Copy, PartialEq)]
pub enum Setup {
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
pub enum Expectation {
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
pub enum Block {
    Asked,
    Calls,
    Files,
    Request,
    Screen,
    Told,
}

const WORDS: &[(&str, Key)] = &[
    ("and", Key::Setup(Setup::And)),
    ("answer", Key::Setup(Setup::Answer)),
    ("asks", Key::Setup(Setup::Asks)),
    ("call", Key::Setup(Setup::Call)),
    ("config", Key::Setup(Setup::Config)),
    ("confines", Key::Setup(Setup::Confines)),
    ("dialect", Key::Setup(Setup::Dialect)),
    ("env", Key::Setup(Setup::Env)),
    ("error", Key::Setup(Setup::Error)),
    ("file", Key::Setup(Setup::File)),
    ("finish", Key::Setup(Setup::Finish)),
    ("list", Key::Setup(Setup::List)),
    ("models", Key::Setup(Setup::Models)),
    ("modes", Key::Setup(Setup::Modes)),
    ("over", Key::Setup(Setup::Over)),
    ("page", Key::Setup(Setup::Page)),
    ("provider", Key::Setup(Setup::Provider)),
    ("proxy", Key::Setup(Setup::Proxy)),
    ("reply", Key::Setup(Setup::Reply)),
    ("site", Key::Setup(Setup::Site)),
    ("splits", Key::Setup(Setup::Splits)),
    ("stdin", Key::Setup(Setup::Stdin)),
    ("table", Key::Setup(Setup::Table)),
    ("talked", Key::Setup(Setup::Talked)),
    ("tools", Key::Setup(Setup::Tools)),
    ("words", Key::Setup(Setup::Words)),
    ("current", Key::Expectation(Expectation::Current)),
    ("got", Key::Expectation(Expectation::Got)),
    ("heard", Key::Expectation(Expectation::Heard)),
    ("lacks", Key::Expectation(Expectation::Lacks)),
    ("offered", Key::Expectation(Expectation::Offered)),
    ("prompt", Key::Expectation(Expectation::Prompt)),
    ("ran", Key::Expectation(Expectation::Ran)),
    ("requests", Key::Expectation(Expectation::Requests)),
    ("saved", Key::Expectation(Expectation::Saved)),
    ("sent", Key::Expectation(Expectation::Sent)),
    ("texts", Key::Expectation(Expectation::Texts)),
    ("unchanged", Key::Expectation(Expectation::Unchanged)),
    ("unsaved", Key::Expectation(Expectation::Unsaved)),
    ("unsent", Key::Expectation(Expectation::Unsent)),
    ("asked", Key::Block(Block::Asked)),
    ("calls", Key::Block(Block::Calls)),
    ("files", Key::Block(Block::Files)),
    ("request", Key::Block(Block::Request)),
    ("screen", Key::Block(Block::Screen)),
    ("told", Key::Block(Block::Told)),
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
