//! The rules about commands that a model may call: what it may write into them, and which of them may run unasked (pure).
//!
//! `settings` reads a command from its section, and `tools` runs it. What both must agree on is here, and opens no file:
//!
//! - `argv`: which elements of `run` may have placeholders, and how the arguments of a call become the arguments of the program.
//!   There is no shell, and an argument never becomes an option unless the section says so (`dashes`).
//! - `runners`: whether a command runs code that the model may write. Such a command runs without a question only if it is
//!   confined. The names in `programs` decide: most of them whatever else the command has, and those of programs that run
//!   others because of an option or a word only where the model may write that, or what follows it.

pub mod argv;
pub mod runners;
