//! Foreign text on one line.

/// The words of a text, with one blank between two of them, whatever stood there.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
