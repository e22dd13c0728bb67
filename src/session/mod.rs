//! Conversations: their files, whether they can be continued, and how an exchange is saved.

pub mod asked_schema;
mod checked_entry;
pub mod conversation;
pub mod directory;
mod disk;
pub mod edit;
pub mod entry;
pub mod format;
pub mod lock;
pub mod name;
pub mod rules;
pub mod save;
pub mod store;
mod sweep;
pub mod timestamp;
pub mod title;

pub use conversation::{Conversation, Exchange};
pub use disk::{read, read_if_it_may_have};
pub use entry::{Entry, StoredEntry};
