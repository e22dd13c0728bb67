//! Values that must never be shown, and their removal from text that a server sends (pure).

mod redaction;
mod value;

pub use redaction::{Redaction, Secrets, redact, redact_name};
pub use value::{Secret, in_header, of_proxy, of_query, of_urls, of_user_info, without_user_info};
