//! Looks for words in JSON strings before these are decoded, in upper and lower case alike (pure).

use std::cmp::Reverse;

use memchr::memmem::Finder;
use memchr::{memchr_iter, memchr2_iter, memchr3_iter};

/// Characters of ASCII that words have often, the most frequent first.
const FREQUENT: &str = " .etaoinshrdlcumwfgypbvk-jxqz";

/// The same for the letters of Cyrillic.
const FREQUENT_CYRILLIC: &str = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё";

/// Begins an escape by number.
const ESCAPE: &str = "\\u";

/// The only character whose lower case is two characters.
const DOTTED_I: &str = "\u{130}";

/// The sign for Kelvin, the only character beyond ASCII whose lower case is in ASCII.
const KELVIN: &str = "\u{212A}";

/// The most parts of a word that are looked for: many texts have the short parts of a long word.
const MAX_PARTS: usize = 8;

/// No character from here on has a lower case.
const END_OF_CASES: char = '\u{20000}';

/// A word to search for.
pub struct Word {
    lower: String,
    /// The longest of its parts, the longest first.
    parts: Vec<WordPart>,
    /// What a text may have instead of the parts: escapes by number, and characters whose lower case the word has.
    strange: Vec<Finder<'static>>,
}

/// A part of a word that JSON writes in one way only, but for escapes by number. It is not empty.
struct WordPart {
    text: String,
    /// How long it is up to the end of the character that is looked for first.
    until_anchor: usize,
    /// The last bytes of the forms of this character: at most three in any script.
    last_bytes: Vec<u8>,
}

impl Word {
    /// Returns a word in lower case.
    pub fn new(lower: String) -> Word {
        let parts = lower.split(|character: char| {
            let is_escaped = character.is_ascii_control() || matches!(character, '"' | '\\' | '/');
            is_escaped || character.is_whitespace()
        });
        let mut parts = Vec::from_iter(parts);
        parts.sort_by_key(|part| Reverse(part.len()));
        let parts = parts.into_iter().take(MAX_PARTS);
        let parts = parts.filter_map(WordPart::new).collect();
        let mut strange = vec![ESCAPE];
        for character in [DOTTED_I, KELVIN] {
            if lower.contains(|letter| character.to_lowercase().contains(letter)) {
                strange.push(character);
            }
        }
        Word {
            parts,
            strange: strange.into_iter().map(Finder::new).collect(),
            lower,
        }
    }

    /// Returns the word in lower case.
    pub fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns where a text in lower case has it first. A blank in it stands for any whitespace, because a newline is shown as one.
    pub fn place_in(&self, lower: &str) -> Option<usize> {
        let mut parts = self.lower.split_whitespace();
        let first = parts.next()?;
        let finder = Finder::new(first);
        let mut from = 0;
        while let Some(found) = finder.find(&lower.as_bytes()[from..]) {
            let place = from + found;
            if goes_on(&lower[place + first.len()..], parts.clone()) {
                return Some(place);
            }
            from = place + 1;
        }
        None
    }

    /// Whether the text of a JSON string may have the word. If not, its lower case does not have it.
    pub fn may_be_in(&self, json: &str) -> bool {
        let has = |strange: &Finder| strange.find(json.as_bytes()).is_some();
        self.parts.iter().all(|part| part.is_in(json)) || self.strange.iter().any(has)
    }
}

impl WordPart {
    fn new(lower: &str) -> Option<WordPart> {
        let text: String = lower.chars().map(folded).collect();
        let characters = text.char_indices();
        let (at, anchor) = characters.max_by_key(|(_, character)| rarity(*character))?;
        Some(WordPart {
            until_anchor: at + anchor.len_utf8(),
            last_bytes: last_bytes(anchor),
            text,
        })
    }

    fn is_in(&self, json: &str) -> bool {
        let bytes = json.as_bytes();
        match *self.last_bytes {
            [one] => self.is_at_any(json, memchr_iter(one, bytes)),
            [one, two] => self.is_at_any(json, memchr2_iter(one, two, bytes)),
            [one, two, three] => self.is_at_any(json, memchr3_iter(one, two, three, bytes)),
            _ => true,
        }
    }

    fn is_at_any(&self, json: &str, mut places: impl Iterator<Item = usize>) -> bool {
        places.any(|place| self.is_at(json, place + 1))
    }

    /// Whether it is where the anchor may end.
    fn is_at(&self, json: &str, end_of_anchor: usize) -> bool {
        if self.text.is_ascii() {
            let begin = end_of_anchor.saturating_sub(self.until_anchor);
            let found = json.as_bytes().get(begin..begin + self.text.len());
            return found.is_some_and(|found| found.eq_ignore_ascii_case(self.text.as_bytes()));
        }
        let Some((before, after)) = json.split_at_checked(end_of_anchor) else {
            return false;
        };
        let (until_anchor, rest) = self.text.split_at(self.until_anchor);
        begins_with(before.chars().rev(), until_anchor.chars().rev())
            && begins_with(after.chars(), rest.chars())
    }
}

/// Whether a text goes on with these parts of a word, each after some whitespace.
fn goes_on<'w>(mut text: &str, parts: impl Iterator<Item = &'w str>) -> bool {
    for part in parts {
        let begin = text.trim_start();
        let is_separate = begin.len() < text.len();
        match begin.strip_prefix(part) {
            Some(after) if is_separate => text = after,
            _ => return false,
        }
    }
    true
}

/// Returns how rare a character of a word is.
fn rarity(character: char) -> usize {
    if character.is_ascii() {
        return FREQUENT.find(character).unwrap_or(FREQUENT.len());
    }
    let place = FREQUENT_CYRILLIC
        .chars()
        .position(|letter| letter == character);
    // It takes a while to find all forms of others.
    place.unwrap_or(1)
}

/// Whether a text begins with these characters in lower case.
fn begins_with(
    mut text: impl Iterator<Item = char>,
    mut beginning: impl Iterator<Item = char>,
) -> bool {
    beginning.all(|expected| text.next().map(folded) == Some(expected))
}

/// Returns a character in lower case. The two forms of a small sigma are one, because a capital sigma becomes one or the other.
fn folded(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    match character.to_lowercase().next() {
        Some('ς') => 'σ',
        Some(lower) => lower,
        None => character,
    }
}

/// Returns the last bytes of all characters that are this one in lower case, each once.
fn last_bytes(lower: char) -> Vec<u8> {
    let mut forms = vec![lower, lower.to_ascii_uppercase()];
    if !lower.is_ascii() {
        forms.extend(('\u{80}'..END_OF_CASES).filter(|form| folded(*form) == lower));
    }
    let last_byte = |form: &char| form.encode_utf8(&mut [0; 4]).bytes().last();
    let mut bytes: Vec<u8> = forms.iter().filter_map(last_byte).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every character in its place: what is assumed here holds for the Unicode of the standard library.
    #[test]
    fn characters_have_the_lower_cases_that_the_search_assumes() {
        for character in '\0'..=char::MAX {
            let lower = character.to_lowercase().to_string();
            let is_one = lower.chars().count() == 1;
            assert_eq!(is_one, DOTTED_I != character.to_string(), "{character:?}");
            let is_own = lower == character.to_string();
            assert!(is_own || character < END_OF_CASES, "{character:?}");
            let is_beyond = lower.is_ascii() && !character.is_ascii();
            assert_eq!(is_beyond, character.to_string() == KELVIN, "{character:?}");
        }
    }

    fn is_in(json: &str, word: &str) -> (bool, bool) {
        let text: String = serde_json::from_str(json).expect(json);
        let word = Word::new(word.to_lowercase());
        (
            word.may_be_in(json),
            word.place_in(&text.to_lowercase()).is_some(),
        )
    }

    #[test]
    fn a_blank_of_a_word_is_any_whitespace() {
        for (text, word, place) in [
            ("one two", "one two", Some(0)),
            ("a one\r\n\r\n  two", "one  two", Some(2)),
            ("one\u{3000}two three", "one two\tthree", Some(0)),
            ("onetwo", "one two", None),
            ("one two", "onetwo", None),
            ("one, two", "one two", None),
            ("one one two", "one two", Some(4)),
            ("aaa b", "aa b", Some(1)),
            ("éé\nb", "é b", Some(2)),
            ("one", "one two", None),
        ] {
            let found = Word::new(word.to_owned()).place_in(text);
            assert_eq!(found, place, "{text:?}, {word:?}");
        }
    }

    #[test]
    fn a_word_is_found_in_any_case_and_behind_any_escape() {
        for (json, word) in [
            (r#""a Needle""#, "needle"),
            (r#""NEEDLE""#, "needle"),
            (r#""ääneedleää""#, "needle"),
            (r#""\u006eeedle""#, "needle"),
            (r#""\u00e9t\u00E9""#, "été"),
            (r#""ÉTÉ""#, "été"),
            (r#""a/b""#, "a/b"),
            (r#""a\/b""#, "a/b"),
            (r#""a\\b \"c\"""#, "\\b \"c\""),
            (r#""one\ntwo""#, "one\ntwo"),
            (r#""\u007f""#, "\u{7f}"),
            ("\"\u{7f}\"", "\u{7f}"),
            ("\"300 \u{212A}\"", "300 k"),
            ("\"\u{212A}\"", "k"),
            ("\"\u{130}stanbul\"", "i\u{307}stanbul"),
            ("\"\u{130}\"", "\u{307}"),
            ("\"ΟΔΟΣ\"", "οδος"),
            ("\"ΟΔΟΣΑ\"", "οδοσα"),
            ("\"\u{2126}\"", "ω"),
            ("\"\u{1E9E}\"", "ß"),
            (r#""ПРИВЕТ, мир""#, "привет"),
            (r#""日本語""#, "本"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""😀""#, "😀"),
            (r#""THE\nconnection \u0072eset""#, "the connection reset"),
            (r#""Für\n日本語 Ж""#, "für 日本語 ж"),
            (r#""a b c d e f g h i j\nk""#, "a b c d e f g h i j k"),
        ] {
            assert_eq!(is_in(json, word), (true, true), "{json} {word}");
        }
    }

    #[test]
    fn most_texts_without_the_word_are_not_decoded() {
        for (json, word) in [
            (r#""a needl""#, "needle"),
            (r#""d""#, "needle"),
            (r#""""#, "a"),
            (r#""a\"b""#, "c"),
            (r#""été""#, "ete"),
            (r#""ete""#, "été"),
            (r#""привет""#, "мир"),
            (r#""превет""#, "привет"),
            (r#""привод""#, "привет"),
            (r#""日本語""#, "中"),
            (r#""a connection was closed""#, "reset the connection"),
            (r#""connection, reset""#, "the connection reset"),
            (r#""c:\\home""#, "c:\\temp\\home"),
        ] {
            assert_eq!(is_in(json, word), (false, false), "{json} {word}");
        }
    }

    /// A text that is as JSON may write it: each character as itself or escaped in one of the possible ways.
    fn written(text: &[(char, u8)]) -> String {
        let mut json = "\"".to_owned();
        for (character, way) in text {
            let plain = serde_json::to_string(&character.to_string()).expect("JSON");
            match way {
                0 => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        json += &format!("\\u{unit:04x}");
                    }
                }
                1 if *character == '/' => json += "\\/",
                _ => json += &plain[1..plain.len() - 1],
            }
        }
        json + "\""
    }

    const LETTERS: &str = "[a-cA-CkKiI\u{212A}\u{130}\u{307}σςΣéÉßẞωΩ\u{2126}ǆǅǄ日/\"\\\\n\n\t 1u]";

    proptest! {
        #[test]
        fn a_text_that_has_the_word_is_never_missed(
            text in prop::collection::vec((LETTERS, 0_u8..20), 0..12),
            word in prop::string::string_regex(&format!("{LETTERS}{{1,3}}")).expect("a pattern"),
        ) {
            let mut characters = Vec::new();
            for (letter, way) in &text {
                characters.extend(letter.chars().map(|letter| (letter, *way)));
            }
            let (may_have, has) = is_in(&written(&characters), &word);
            prop_assert!(may_have || !has);
        }

        #[test]
        fn a_word_taken_from_any_text_is_never_missed(text in ".{0,20}", from in 0_usize..20, count in 1_usize..4) {
            let characters: Vec<(char, u8)> = text.chars().map(|character| (character, 9)).collect();
            let word: String = text.chars().skip(from).take(count).collect();
            let (may_have, has) = is_in(&written(&characters), &word.to_uppercase());
            prop_assert!(may_have || !has);
            let (may_have, has) = is_in(&written(&characters), &word);
            prop_assert!(may_have || !has);
        }
    }
}
