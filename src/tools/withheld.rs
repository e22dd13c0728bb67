//! Finds the variable that a program asks for and did not get (pure).

/// A shorter name is a word that means something else too often.
const MIN_NAME: usize = 3;

/// Returns the variable that the last lines of a program name, as a whole word; the last line first. `withheld` has the names of the
/// variables that are set and that it did not get.
pub fn variable_asked_for<'n>(lines: &str, withheld: &'n [String]) -> Option<&'n str> {
    lines.lines().rev().find_map(|line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.find_map(|word| named(word, withheld))
    })
}

/// Returns the variable with this name. Names in small letters are words of any language.
fn named<'n>(word: &str, withheld: &'n [String]) -> Option<&'n str> {
    let is_small = word.contains(|c: char| c.is_ascii_lowercase());
    if word.len() < MIN_NAME || is_small {
        return None;
    }
    let mut names = withheld.iter();
    names.find(|name| *name == word).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_variable_that_is_asked_for_is_found_as_a_whole_word_in_the_last_line_that_has_one() {
        let withheld = ["MAIL_TOKEN", "SHOP_KEY", "NO", "home"].map(str::to_owned);
        let table = r#"
            Please set MAIL_TOKEN environment variable | MAIL_TOKEN
            KeyError: 'MAIL_TOKEN' | MAIL_TOKEN
            $MAIL_TOKEN is missing | MAIL_TOKEN
            --token or MAIL_TOKEN=... | MAIL_TOKEN
            throw new Error("SHOP_KEY is required")␊Node.js v22.1.0 | SHOP_KEY
            SHOP_KEY␊MAIL_TOKEN | MAIL_TOKEN
            MAIL_TOKEN_FILE | -
            MY_MAIL_TOKEN | -
            mail_token | -
            NO such home | -
            OTHER_TOKEN is not set | -
            - | -
        "#;
        for [lines, expected] in rows(table) {
            let found = variable_asked_for(&lines.replace('␊', "\n"), &withheld);
            assert_eq!(found.unwrap_or_default(), expected, "{lines}");
        }
    }
}
