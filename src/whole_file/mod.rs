//! Files that are read whole and replaced whole, and the directories that they are in.

mod directories;
mod errors;
mod places;
mod reading;
mod replacing;

pub use directories::{PRIVATE, SHARED, make_directory, names_in};
pub use errors::OrCannot;
pub use places::{broken_link, directory_of, identity_of, is_missing, nearest_place};
pub use reading::{Links, MAX_FILE, ReadFailure, has, read, read_beginning, read_own};
pub use replacing::{TEMPORARY, Temporary, rename_new, replace};
