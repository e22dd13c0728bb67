//! What is pure and needs nothing but text: how text is read, cut and shown, and the rules about commands that models may call
//! (`argv`, `runners`) and about names of options and settings (`synonyms`, `nearest`).

pub mod age;
pub mod argv;
pub mod columns;
pub mod command_line;
pub mod consent;
pub mod escape;
pub mod fence;
pub mod json;
pub mod locale;
pub mod markdown;
pub mod media;
pub mod nearest;
pub mod not_a_number;
pub mod number;
pub mod one_line;
pub mod parts;
pub mod reasoning_end;
pub mod runners;
pub mod search;
pub mod shell_words;
pub mod short_form;
pub mod size;
pub mod surrogates;
pub mod synonyms;
#[cfg(test)]
pub mod table;
pub mod unescape;
pub mod whole_name;

/// Returns the text, unless it is nothing but whitespace.
pub fn non_blank(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty())
}
