//! The kinds of `--generate`: documents, and the names that completions offer (pure).

/// What `--generate` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    Document(Document),
    /// Names that completions offer. No document mentions these kinds, because they are for these scripts.
    Names(NameList),
}

impl Default for Generated {
    fn default() -> Generated {
        Generated::Document(Document::ManPage)
    }
}

impl Generated {
    /// Returns the kind with this name.
    pub fn find(name: &str) -> Option<Generated> {
        if let Some(document) = Document::find(name) {
            return Some(Generated::Document(document));
        }
        let mut lists = NameList::ALL.into_iter();
        let list = lists.find(|list| list.name() == name)?;
        Some(Generated::Names(list))
    }
}

/// The names of one kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameList {
    /// Conversations that the user has named.
    Conversations,
    /// All conversations and their backups.
    EveryConversation,
    Providers,
    Roles,
    Tools,
}

impl NameList {
    const ALL: [NameList; 5] = [
        NameList::Conversations,
        NameList::EveryConversation,
        NameList::Providers,
        NameList::Roles,
        NameList::Tools,
    ];

    pub fn name(self) -> &'static str {
        match self {
            NameList::Conversations => "conversations",
            NameList::EveryConversation => "every-conversation",
            NameList::Providers => "providers",
            NameList::Roles => "roles",
            NameList::Tools => "tools",
        }
    }
}

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
    fn find(name: &str) -> Option<Document> {
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
