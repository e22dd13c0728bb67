//! Texts with places to fill, and text broken into lines (pure).

/// Fills the places of a template: each `@NAME@` becomes the text of its name, without whitespace at its end.
pub fn fill(template: &str, places: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in places {
        let mark = format!("@{name}@");
        text = text.replace(&mark, value.trim_end());
    }
    text
}

/// Breaks a text at blanks into lines of at most `width` characters. A word that is longer gets a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_a_template_are_filled_wherever_they_are() {
        let found = fill("a @X@ \"$@\" @Y@@X@", &[("X", "1"), ("Y", "2\n")]);
        assert_eq!(found, "a 1 \"$@\" 21");
    }

    #[test]
    fn lines_of_the_manual_are_broken_at_spaces() {
        for (text, width, lines) in [
            ("one two three", 80, &["one two three"][..]),
            ("one two three", 7, &["one two", "three"]),
            ("longer than", 3, &["longer", "than"]),
            ("äöü äöü", 7, &["äöü äöü"]),
            ("", 7, &[""]),
        ] {
            assert_eq!(wrap(text, width), lines, "{text:?} {width}");
        }
    }
}
