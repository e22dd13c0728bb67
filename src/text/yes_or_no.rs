//! Reads what a user types after a question with the answers yes and no (pure).

/// Whether a line says yes, in upper or lower case. An empty one does not.
pub fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_and_yes_agree() {
        for (line, expected) in [
            ("y", true),
            ("Y", true),
            ("yes\n", true),
            ("Yes", true),
            (" YES \r\n", true),
            ("", false),
            ("\n", false),
            ("n", false),
            ("yy", false),
            ("yes please", false),
            ("always", false),
        ] {
            assert_eq!(is_yes(line), expected, "{line:?}");
        }
    }
}
