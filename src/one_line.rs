//! Foreign text on one line.

/// The words of a text, separated by single spaces.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
