//! Conversations: their files, whether they can be continued, and how an exchange is saved.

pub mod age;
pub mod commit;
mod conversation;
mod current;
pub mod files;
pub mod folder;
pub mod format;
pub mod lock;
pub mod name;
pub mod rules;
mod sweep;
pub mod timestamp;

pub use conversation::{Conversation, Entry, Exchange};
