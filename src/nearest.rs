//! What the user may have meant by a name that does not exist (pure).

/// From this many letters on, a part of a name counts as a single error.
const MIN_PART: usize = 3;

/// The name that takes the fewest typing errors to become what was typed, if these are at most a third of the letters.
pub(crate) fn nearest<T: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = T>) -> Option<T> {
    let typed = typed.to_lowercase();
    let count = |name: &str| name.chars().count();
    let rated = names.into_iter().map(|name| {
        let other = name.as_ref().to_lowercase();
        let is_part = count(&typed) >= MIN_PART && other.contains(&typed);
        let errors = strsim::osa_distance(&typed, &other).min(if is_part { 1 } else { usize::MAX });
        (errors, count(&typed).max(count(&other)), name)
    });
    let near = rated.filter(|(errors, letters, _)| *errors <= letters / 3);
    near.min_by_key(|(errors, ..)| *errors)
        .map(|(.., name)| name)
}

/// A question for the most similar name, to begin a line of advice with; empty if none is similar.
pub(crate) fn did_you_mean<T: AsRef<str>>(
    typed: &str,
    names: impl IntoIterator<Item = T>,
) -> String {
    nearest(typed, names).map_or_else(String::new, |name| {
        format!("did you mean {}? ", name.as_ref())
    })
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
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
            assert_eq!(
                did_you_mean(typed, names).is_empty(),
                meant.is_none(),
                "{typed}"
            );
        }
        assert_eq!(nearest("wrok", [""; 0]), None);
        assert_eq!(nearest("\u{fffd}", ["c"]), None);
    }
}
