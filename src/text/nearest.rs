//! Guesses what the user meant by a name that does not exist (pure).

/// How many letters a part of a name must have to count as a single error.
const MIN_PART: usize = 3;

/// What ends a part of a name.
const SEPARATORS: [char; 5] = ['-', '_', '/', '.', ':'];

/// The name with the fewest differences from what was typed, if these are few: one in a short name, and a quarter of the
/// letters in a long one.
pub fn nearest<T: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = T>) -> Option<T> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    let mut best = None;
    let mut fewest = usize::MAX;
    for name in names {
        let other = name.as_ref().to_lowercase();
        let mut errors = strsim::osa_distance(&typed, &other);
        if letters >= MIN_PART && begins_part(&typed, &other) {
            errors = errors.min(1);
        }
        let longest = letters.max(other.chars().count());
        let allowed = if longest < MIN_PART {
            0
        } else {
            (longest / 4).max(1)
        };
        if errors <= allowed && errors < fewest {
            fewest = errors;
            best = Some(name);
        }
    }
    best
}

/// Whether this is the beginning of a name, or of a part of it.
fn begins_part(typed: &str, name: &str) -> bool {
    for (at, _) in name.match_indices(typed) {
        if at == 0 || name[..at].ends_with(SEPARATORS) {
            return true;
        }
    }
    false
}

/// Asks whether the most similar name was meant. Advice begins with this; it is empty if no name is similar.
pub fn did_you_mean<T: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = T>) -> String {
    match nearest(typed, names) {
        Some(name) => format!("did you mean {}? ", name.as_ref()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let names = [
            "openai",
            "openrouter",
            "mistral",
            "gemini",
            "xai",
            "gpt-6-luna",
            "review",
            "vendor/oss-120b",
        ];
        for (typed, meant) in [
            ("openia", Some("openai")),
            ("opnai", Some("openai")),
            ("open", Some("openai")),
            ("openr", Some("openrouter")),
            ("mistrall", Some("mistral")),
            ("gemni", Some("gemini")),
            ("Gemini", Some("gemini")),
            ("xia", Some("xai")),
            ("reveiw", Some("review")),
            ("rev", Some("review")),
            ("REVIEW", Some("review")),
            ("gpt-7-luna", Some("gpt-6-luna")),
            ("gpt-6", Some("gpt-6-luna")),
            ("oss-120b", Some("vendor/oss-120b")),
            ("nope", None),
            ("patch", None),
            ("groq", None),
            ("r", None),
            ("in", None),
            ("x", None),
            ("penai", Some("openai")),
            ("router", None),
            ("remini", Some("gemini")),
            ("germani", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
            let found = did_you_mean(typed, names).is_empty();
            assert_eq!(found, meant.is_none(), "{typed}");
        }
        assert_eq!(nearest("wrok", [""; 0]), None);
        assert_eq!(nearest("\u{fffd}", ["c"]), None);
    }
}
