//! Reads whole numbers as people write them: digits without a sign, which Rust's own parsing would take (pure).

use std::str::FromStr;

/// Whether a text has only ASCII digits, and at least one.
pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the number that a text of digits means; `None` for any other text, such as `+5`, or a number too high for its type.
pub fn whole_number<N: FromStr>(text: &str) -> Option<N> {
    if is_digits(text) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_has_digits_and_nothing_else() {
        for (text, number) in [
            ("0", Some(0)),
            ("5", Some(5)),
            ("007", Some(7)),
            ("255", Some(255_u8)),
            ("256", None),
            ("", None),
            ("+5", None),
            ("-5", None),
            ("-0", None),
            (" 5", None),
            ("5.0", None),
            ("0x5", None),
            ("٥", None),
        ] {
            assert_eq!(whole_number(text), number, "{text}");
        }
    }
}
