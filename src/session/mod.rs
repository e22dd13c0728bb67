//! Conversations: their files, whether they can be continued, and how an exchange is saved.

pub(crate) mod age;
pub(crate) mod commit;
mod conversation;
mod current;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod format;
pub(crate) mod lock;
pub(crate) mod name;
pub(crate) mod rules;
mod sweep;
pub(crate) mod timestamp;

pub(crate) use conversation::{Conversation, Entry, Exchange};
