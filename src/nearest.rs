//! What the user may have meant by a name that does not exist (pure).

/// A name less similar than this (Jaro-Winkler, 0 to 1) is not suggested.
const MIN_LIKENESS: f64 = 0.75;

/// The name that is most similar to the one that was typed, if one is similar.
pub(crate) fn nearest<T: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = T>) -> Option<T> {
    let likeness = |name: &str| strsim::jaro_winkler(&typed.to_lowercase(), &name.to_lowercase());
    let rated = names.into_iter().map(|name| (likeness(name.as_ref()), name));
    let similar = rated.filter(|(likeness, _)| *likeness >= MIN_LIKENESS);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// A question for the most similar name, to begin a line of advice with; empty if none is similar.
pub(crate) fn did_you_mean<T: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = T>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!("did you mean {}? ", name.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        for (typed, meant) in [
            ("reveiw", Some("review")),
            ("revi", Some("review")),
            ("REVIEW", Some("review")),
            ("patch", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, ["rust", "review"]), meant, "{typed}");
            assert_eq!(did_you_mean(typed, ["rust", "review"]).is_empty(), meant.is_none(), "{typed}");
        }
    }
}
