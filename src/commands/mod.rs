//! The rules about commands that a model may call: what it may write into them, and which of them may run unasked (pure).
//!
//! `settings` reads a command from its section, and `tools` runs it. What both must agree on is here, and opens no file:
//!
//! - `argv`: which elements of `run` may have placeholders, and how the arguments of a call become the arguments of the program.
//!   There is no shell, and an argument never becomes an option unless the section says so (`dashes`).
//! - `runners`: whether a command runs code that the model may write. Such a command runs without a question only if it is
//!   confined. No rule guesses where in a command the code is: the names in `programs` decide, of some of them
//!   together with the options that the model may write.

pub mod argv;
pub mod runners;
