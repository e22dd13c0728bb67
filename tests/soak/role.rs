//! The role that some questions are asked in. Its system prompt and its model stay with a conversation.

/// The name of the role, and of its model.
pub const NAME: &str = "expert";

pub const SYSTEM: &str = "You are an expert.";

/// The section of q's configuration file for it.
pub fn section() -> String {
    format!("[roles.{NAME}]\nsystem = {SYSTEM:?}\nmodel = {NAME:?}\n")
}
