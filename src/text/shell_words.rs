//! Reads and writes the words of a command line for a shell (pure).

/// The characters that need no quotes in a shell, besides letters and digits. A tilde does at the beginning, where it is a home.
const PLAIN: &str = "%+,-./:=@_~";

/// Returns the words of a command line, as a shell parts them: quotes and backslashes keep blanks in a word.
///
/// # Errors
///
/// A quotation mark is not closed.
pub fn shell_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (Some(begin), end) if begin == end => quote = None,
            // A variable and its default are a part of one word, whatever they hold.
            (_, '$') => {
                let word = word.get_or_insert_default();
                word.push('$');
                let rest = characters.as_str();
                if rest.starts_with('{')
                    && let Some(end) = rest.find('}')
                {
                    word.push_str(&rest[..=end]);
                    characters = rest[end + 1..].chars();
                }
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some('"'), '\\') => {
                let word = word.get_or_insert_default();
                let rest = characters.as_str();
                // Before any other character, a backslash means itself.
                if rest.starts_with(['"', '\\', '$', '`']) {
                    word.extend(characters.next());
                } else {
                    word.push('\\');
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("has a quotation mark {quote} that is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// Returns a word of a shell's command, in quotes if it has characters that may mean something to a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || PLAIN.contains(character);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let escaped = word.replace('\'', "'\\''");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn words_are_parted_as_in_a_shell() {
        // A line, its words, and the quotation mark that is not closed.
        let table = r#"
            x | x | -
            a  b␉c | a,b,c | -
            'a b' "c d" e\ f | a b,c d,e f | -
            a'b c'd"e f" | ab cde f | -
            '' "" | , | -
            "\"\\\$\`\d" '\"' | "\$`\d,\" | -
            ${A:-a b} "$A ${B:-"}" $ | ${A:-a b},$A ${B:-"},$ | -
            ${a b | ${a,b | -
            it's | - | '
            "a\" | - | "
        "#;
        for [line, words, open] in rows(table) {
            let expected = match open {
                "" => Ok(words.to_owned()),
                quote => Err(format!("has a quotation mark {quote} that is not closed")),
            };
            let found = shell_words(&line.replace('␉', "\t"));
            assert_eq!(found.map(|words| words.join(",")), expected, "{line}");
        }
    }

    #[test]
    fn a_word_is_in_quotes_if_a_shell_would_change_it() {
        for (word, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("für", "für"),
            ("", "''"),
            ("why?", "'why?'"),
            ("my file", "'my file'"),
            ("what's", "'what'\\''s'"),
            ("~", "'~'"),
            ("~/work", "'~/work'"),
            ("work~1", "work~1"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
