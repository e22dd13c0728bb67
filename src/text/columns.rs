//! Fits a line into the columns of a terminal (pure).

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::escape::Charset;

/// The columns from one tab stop of a terminal to the next.
const TAB: usize = 8;

/// Returns the column of the next tab stop after this column.
pub fn next_tab_stop(column: usize) -> usize {
    column + TAB - column % TAB
}

/// Returns as much of a line as fits into these columns, with a mark if something is cut off.
pub fn cut(line: &str, columns: usize, charset: Charset) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mark = match charset {
        Charset::Unicode => "…",
        Charset::Ascii => &"..."[..columns.min(3)],
    };
    let mut fitting = String::new();
    // The mark takes the last columns.
    let mut used = mark.width();
    for character in line.chars() {
        used += character.width().unwrap_or_default();
        if used > columns {
            break;
        }
        fitting.push(character);
    }
    fitting.push_str(mark);
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_a_number_of_columns_by_the_width_of_its_characters() {
        for (line, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a\u{301}bc", 3, "a\u{301}bc"),
            ("", 3, ""),
        ] {
            let found = cut(line, columns, Charset::Unicode);
            assert_eq!(found, expected, "{line} {columns}");
        }
        assert_eq!(cut("abcdef", 5, Charset::Ascii), "ab...");
    }
}
