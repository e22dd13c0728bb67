//! Texts with places to fill, and text broken into lines.

/// Fills the places of a template: each `@NAME@` becomes the text of its name, without white space at its end.
pub(super) fn fill(template: &str, places: &[(&str, &str)]) -> String {
    places.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value.trim_end()))
}

/// Breaks a text at blanks into lines: at most `first` characters in the first line, `rest` in the others.
/// A word longer than a line gets a line of its own; blanks in a row stay as they are within a line.
pub(super) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for (index, word) in text.split(' ').enumerate() {
        let most = if lines.is_empty() { first } else { rest };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > most {
            lines.push(std::mem::take(&mut line));
        } else if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_wherever_they_stand() {
        assert_eq!(fill("a @X@ \"$@\" @Y@@X@", &[("X", "1"), ("Y", "2\n")]), "a 1 \"$@\" 21");
    }

    #[test]
    fn lines_are_broken_at_blanks() {
        for (text, first, rest, lines) in [
            ("one two three", 80, 80, &["one two three"][..]),
            ("one two three", 7, 7, &["one two", "three"]),
            ("one two three", 6, 80, &["one", "two three"]),
            ("one two three", 80, 1, &["one two three"]),
            ("longer than", 3, 3, &["longer", "than"]),
            ("key   the text of it", 11, 6, &["key   the", "text", "of it"]),
            ("äöü äöü", 7, 7, &["äöü äöü"]),
            ("", 7, 7, &[""]),
        ] {
            assert_eq!(wrap(text, first, rest), lines, "{text:?} {first} {rest}");
        }
    }
}
