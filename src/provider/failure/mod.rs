//! Errors from servers: what is in them, and what they mean (pure).

mod effort_levels;
mod judging;
mod limit;
mod prompt_length;
mod reading;
mod rejected;
mod rejected_tool;
mod words;

pub use effort_levels::levels_in;
pub use judging::{
    ErrorClass, MAX_WAIT, TRANSIENT_STATUSES, is_about_client, judge, says_no_images,
};
pub use reading::{ReplyError, ServerError, check, read_redacted, title};
pub(super) use reading::{ReplyResult, check_field};
