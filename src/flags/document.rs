//! The documents that `--generate` prints, and their names (pure).

/// A document that is made from the tables of options, settings and providers, or is constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    ManPage,
    BashCompletion,
    ZshCompletion,
    FishCompletion,
    Skill,
    BashKeys,
    ZshKeys,
    FishKeys,
}

impl Document {
    const ALL: [Document; 8] = [
        Document::ManPage,
        Document::BashCompletion,
        Document::ZshCompletion,
        Document::FishCompletion,
        Document::Skill,
        Document::BashKeys,
        Document::ZshKeys,
        Document::FishKeys,
    ];

    /// The names of all documents.
    pub const NAMES: [&str; Document::ALL.len()] = {
        let mut names = [""; Document::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Document::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Returns the document with this name.
    pub fn find(name: &str) -> Option<Document> {
        let mut all = Document::ALL.into_iter();
        all.find(|document| document.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Document::ManPage => "man",
            Document::BashCompletion => "bash",
            Document::ZshCompletion => "zsh",
            Document::FishCompletion => "fish",
            Document::Skill => "skill",
            Document::BashKeys => "keys-bash",
            Document::ZshKeys => "keys-zsh",
            Document::FishKeys => "keys-fish",
        }
    }
}
