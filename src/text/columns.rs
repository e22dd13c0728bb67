//! Fits a line into the columns of a terminal (pure).

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::locale::Charset;

/// The columns from one tab stop of a terminal to the next.
const TAB: usize = 8;

/// The most characters that one emoji may consist of.
const MAX_EMOJI: usize = 64;

/// Returns the column of the next tab stop after this column.
pub fn next_tab_stop(column: usize) -> usize {
    column + TAB - column % TAB
}

/// Returns how many columns a terminal gives to a text. It gives each letter its own, also where a font joins several to one sign,
/// such as the lam and the alef of Arabic, for which the crate counts one column.
pub fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut begin = 0;
    for (place, character) in text.char_indices() {
        // Marks and emoji are measured with what is before them.
        let is_letter = character.is_alphabetic() && character.width() != Some(0);
        if is_letter && !character.is_ascii() {
            columns += text[begin..place].width();
            begin = place;
        }
    }
    columns + text[begin..].width()
}

/// Returns as much of a line as fits into these columns, with a mark if something is cut off.
pub fn cut(line: &str, columns: usize, charset: Charset) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mark = match charset {
        Charset::Unicode if columns == 0 => "",
        Charset::Unicode => "…",
        Charset::Ascii => &"..."[..columns.min(3)],
    };
    // The mark takes the last columns.
    let mut used = width(mark);
    let mut fitting = "";
    let mut is_half_flag = false;
    for (start, character) in line.char_indices() {
        let before = end_of(&line[..start]);
        let end = start + character.len_utf8();
        let both = &line[start - before.len()..end];
        // A mark, a skin tone and a member of a family belong to what is before them, and so does the second half of a flag.
        let is_apart = character.width() != Some(0) && width(both) > width(before);
        let ends_flag = is_half_flag && is_flag_letter(character);
        if is_apart && !ends_flag {
            fitting = &line[..start];
        }
        is_half_flag = is_flag_letter(character) && !ends_flag;
        used = (used + width(both)).saturating_sub(width(before));
        if used > columns {
            break;
        }
    }
    format!("{fitting}{mark}")
}

/// Returns the end of a text, as far back as a character that follows may combine with it.
pub fn end_of(text: &str) -> &str {
    match text.char_indices().rev().nth(MAX_EMOJI) {
        Some((at, _)) => &text[at..],
        None => text,
    }
}

/// Whether two characters such as this one are the flag of a country.
fn is_flag_letter(character: char) -> bool {
    matches!(character, '\u{1f1e6}'..='\u{1f1ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_takes_its_columns_and_a_mark_and_the_rest_of_an_emoji_none() {
        let table = "
            abc | 3
            السلام | 6
            لا لآ لأ لإ لٱ | 14
            لَا إِلَّا | 6
            لـا | 3
            ڵا | 2
            ꓸꓼ | 2
            א\u{200d}ל | 2
            ខ្មែរ | 4
            日本 | 4
            한국 | 4
            \u{1112}\u{1161}\u{11ab} | 2
            e\u{301}a\u{308} | 2
            हिन्दी | 5
            น้ำ | 2
            👍🏽 👩\u{200d}👧 ❤\u{fe0f} | 8
            🇩🇪 | 2
            ℹ\u{fe0f}Ⓜ\u{fe0f}🅰\u{fe0f} | 6
            1\u{fe0f}\u{20e3} | 2
            - | 0
        ";
        for [text, expected] in crate::text::table::rows(table) {
            assert_eq!(width(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_line_is_cut_to_a_number_of_columns_by_the_width_of_its_characters() {
        for (line, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a\u{301}bc", 3, "a\u{301}bc"),
            ("❤️❤️", 4, "❤️❤️"),
            ("❤️❤️❤️", 5, "❤️❤️…"),
            // Half an emoji would be another character.
            ("❤️❤️❤️", 4, "❤️…"),
            ("👨‍👩‍👧👨‍👩‍👧", 4, "👨‍👩‍👧👨‍👩‍👧"),
            ("👨‍👩‍👧👨‍👩‍👧", 3, "👨‍👩‍👧…"),
            ("a👨‍👩‍👧👨‍👩‍👧", 4, "a👨‍👩‍👧…"),
            ("a👨‍👩‍👧👨‍👩‍👧", 3, "a…"),
            ("👍🏽👍🏽", 3, "👍🏽…"),
            ("🇩🇪🇫🇷🇮🇹", 5, "🇩🇪🇫🇷…"),
            ("🇩🇪🇫🇷🇮🇹", 4, "🇩🇪…"),
            ("1️⃣2️⃣", 3, "1️⃣…"),
            ("1️⃣2️⃣", 2, "…"),
            ("لالالا", 6, "لالالا"),
            ("لالالا", 5, "لالا…"),
            ("لالالا", 4, "لال…"),
            ("لَالَا", 3, "لَا…"),
            ("", 3, ""),
            ("", 0, ""),
            ("abc", 0, ""),
            ("abc", 1, "…"),
            ("日本", 1, "…"),
            ("\u{301}", 0, "\u{301}"),
        ] {
            let found = cut(line, columns, Charset::Unicode);
            assert_eq!(found, expected, "{line} {columns}");
        }
        for (columns, expected) in [(0, ""), (1, "."), (3, "..."), (5, "ab...")] {
            assert_eq!(cut("abcdef", columns, Charset::Ascii), expected);
        }
        let hearts = cut(&"❤️".repeat(60), 40, Charset::Unicode);
        assert_eq!((hearts.width(), hearts.chars().count()), (39, 39));
    }
}
