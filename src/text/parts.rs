//! Divides a long text, so that what is made of it needs no memory for all of it at once (pure).

/// The most bytes of a part.
const PART: usize = 64 << 10;

/// Returns the parts of a text, in order. None is empty, and none ends within a character.
pub fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let mut end = text.len().min(PART);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (part, rest) = text.split_at(end);
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_are_short_and_lose_nothing() {
        for text in [
            "",
            "a",
            &"x".repeat(3 * PART),
            &"a€".repeat(PART),
            &"€".repeat(PART),
        ] {
            let found = Vec::from_iter(parts(text));
            assert_eq!(found.concat(), text);
            let lengths = Vec::from_iter(found.iter().map(|part| part.len()));
            let is_right = lengths.iter().all(|length| (1..=PART).contains(length));
            assert!(
                is_right && found.len() <= text.len() / (PART - 4) + 1,
                "{lengths:?}"
            );
        }
    }
}
