//! How text is read, cut and shown, by functions that are pure and need nothing but text.

pub mod age;
pub mod byte_order_mark;
pub mod columns;
pub mod command_line;
pub mod digest;
pub mod digits;
pub mod escape;
pub mod fence;
pub mod json;
pub mod list;
pub mod locale;
pub mod markdown;
pub mod media;
pub mod nearest;
pub mod not_a_number;
pub mod number;
pub mod one_line;
pub mod parts;
pub mod reasoning_end;
pub mod search;
pub mod shell_words;
pub mod short_form;
pub mod size;
pub mod surrogates;
#[cfg(test)]
pub mod table;
pub mod unescape;
pub mod whole_name;
pub mod yes_or_no;

/// Returns the text, unless it is nothing but whitespace.
pub fn non_blank(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty())
}
