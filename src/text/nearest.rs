//! Guesses what the user meant by a name that does not exist (pure).

use super::one_line::on_one_line;

/// The beginning of a name, of at least this many letters, counts as a single error.
const MIN_BEGINNING: usize = 3;

/// Returns the name with the fewest differences from what was given, if these are few: one in a short name, and a quarter of the
/// letters in a long one.
pub fn nearest<T: AsRef<str>>(given: &str, names: impl IntoIterator<Item = T>) -> Option<T> {
    with_fewest_errors(given, names, true)
}

/// Returns the name that was misspelt: like `nearest`, but the beginning of a name is another name.
pub fn misspelt<T: AsRef<str>>(given: &str, names: impl IntoIterator<Item = T>) -> Option<T> {
    with_fewest_errors(given, names, false)
}

fn with_fewest_errors<T: AsRef<str>>(
    given: &str,
    names: impl IntoIterator<Item = T>,
    may_be_beginning: bool,
) -> Option<T> {
    let given = given.to_lowercase();
    let letters = given.chars().count();
    let mut best = None;
    let mut fewest = usize::MAX;
    for name in names {
        let other = name.as_ref().to_lowercase();
        let mut errors = strsim::osa_distance(&given, &other);
        if may_be_beginning && letters >= MIN_BEGINNING && other.starts_with(&given) {
            errors = errors.min(1);
        }
        let longest = letters.max(other.chars().count());
        let allowed = if longest < MIN_BEGINNING {
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

/// Asks whether the most similar name was meant. Advice begins with this; it is empty if no name is similar.
pub fn did_you_mean<T: AsRef<str>>(given: &str, names: impl IntoIterator<Item = T>) -> String {
    match nearest(given, names) {
        Some(name) => format!("did you mean {}? ", on_one_line(name.as_ref())),
        None => String::new(),
    }
}

/// Says what there is in place of a name that does not exist: the one that may have been meant, and all of them, after words
/// such as “there are”.
pub fn choices<T: AsRef<str>>(given: &str, names: &[T], there_are: &str) -> String {
    let meant = did_you_mean(given, names);
    let names = Vec::from_iter(names.iter().map(T::as_ref)).join(", ");
    format!("{meant}{there_are} {names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let names = "openai openrouter mistral gemini xai gpt-6-luna review";
        for (meant, all_given) in [
            (Some("openai"), "openia opnai open penai"),
            (Some("openrouter"), "openr"),
            (Some("mistral"), "mistrall"),
            (Some("gemini"), "gemni Gemini remini"),
            (Some("xai"), "xia"),
            (Some("review"), "reveiw rev REVIEW"),
            (Some("gpt-6-luna"), "gpt-7-luna gpt-6"),
            (None, "nope patch groq r in x router germani"),
        ] {
            for given in all_given.split(' ') {
                assert_eq!(nearest(given, names.split(' ')), meant, "{given}");
                let found = did_you_mean(given, names.split(' ')).is_empty();
                assert_eq!(found, meant.is_none(), "{given}");
            }
        }
        assert_eq!(nearest("", names.split(' ')), None);
        assert_eq!(nearest("\u{fffd}", ["c"]), None);
    }
    #[test]
    fn a_name_is_misspelt_by_a_letter_and_not_by_being_shorter() {
        for (given, meant) in [
            ("timout", Some("timeout")),
            ("Timeout", Some("timeout")),
            ("time", None),
            ("modle", Some("model")),
            ("mod", None),
            ("nope", None),
        ] {
            assert_eq!(misspelt(given, ["timeout", "model"]), meant, "{given}");
        }
        assert_eq!(nearest("time", ["timeout"]), Some("timeout"));
    }

    #[test]
    fn the_choices_begin_with_the_one_that_was_meant() {
        for (given, expected) in [
            ("modle", "did you mean model? there are timeout, model"),
            ("nope", "there are timeout, model"),
        ] {
            assert_eq!(choices(given, &["timeout", "model"], "there are"), expected);
        }
    }
}
