//! Errors from servers: what is in them, and what they mean.

mod judging;
mod reading;

pub(crate) use judging::{Meaning, PASSING_STATUSES, judge};
pub(crate) use reading::{ServerError, error_in, read, read_redacted, title};
pub(super) use reading::{error_in_event, from_value, is_something};
