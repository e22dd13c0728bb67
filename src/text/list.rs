//! Splits lists that people type with commas between their items (pure).

/// Returns the items of a list without whitespace around them. A comma may follow the last one, but none is empty: what should
/// have been there, such as the value of a variable, would be missed without a word.
pub fn items(text: &str) -> Result<Vec<&str>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut items = Vec::new();
    for item in text.strip_suffix(',').unwrap_or(text).split(',') {
        let item = item.trim();
        if item.is_empty() {
            return Err("there is nothing before a comma".to_owned());
        }
        items.push(item);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_end_with_a_comma_and_has_no_empty_item() {
        for (text, expected) in [
            ("a", Some(&["a"][..])),
            (" a b ,\tc\n", Some(&["a b", "c"])),
            ("a,b,", Some(&["a", "b"])),
            ("a, ", Some(&["a"])),
            ("a,,b", None),
            ("a, ,b", None),
            ("a,,", None),
            (",a", None),
            (",", None),
            (" ", None),
            ("", None),
        ] {
            assert_eq!(items(text).ok().as_deref(), expected, "{text:?}");
        }
    }
}
