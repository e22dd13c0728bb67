//! The characters of a text that count where two spellings of it are compared (pure).

use std::ops::RangeInclusive;

use crate::provider::reasoning::Filter;

/// The typographic marks, such as dashes and quotation marks.
const TYPOGRAPHIC_MARKS: RangeInclusive<char> = '\u{2010}'..='\u{205e}';

/// The most characters of a mark for a source, or of a link.
const MAX_SOURCE: usize = 500;

/// Returns an answer without whitespace and the reasoning before it, which some servers send only in one of the two forms.
pub fn visible(text: &str) -> String {
    let mut answer = String::new();
    let mut filter = Filter::default();
    filter.add(text, &mut answer);
    filter.end(true, &mut answer);
    answer.retain(|char| !char.is_whitespace());
    answer
}

/// Returns an answer as one compares it with another spelling of it: in lower case, without its sources, and without punctuation,
/// unless it has nothing else.
pub fn letters(text: &str) -> String {
    let visible = visible(&without_sources(text));
    let is_mark = |char: char| char.is_ascii_punctuation() || TYPOGRAPHIC_MARKS.contains(&char);
    let letters = visible.replace(is_mark, "");
    if letters.is_empty() {
        visible
    } else {
        letters.to_lowercase()
    }
}

/// Returns a text without the marks for its sources, and without links to pages: a finished text may have these in the place of
/// the marks.
fn without_sources(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['【', '\u{e200}', '[']) {
        let (before, mark) = rest.split_at(at);
        kept.push_str(before);
        let first = mark.chars().next().map_or(0, char::len_utf8);
        let length = source_length(mark).unwrap_or_else(|| {
            kept.push_str(&mark[..first]);
            first
        });
        rest = &mark[length..];
    }
    kept + rest
}

/// Returns how many bytes the mark or the link has with which a text begins.
fn source_length(text: &str) -> Option<usize> {
    let far = text.char_indices().nth(MAX_SOURCE);
    let near = &text[..far.map_or(text.len(), |(at, _)| at)];
    let (begin, end) = match near.chars().next()? {
        '【' => (0, '】'),
        '\u{e200}' => (0, '\u{e201}'),
        _ => (near.find("](http")?, ')'),
    };
    let length = near[begin..].find(end)?;
    Some(begin + length + end.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn spellings_of_one_text_have_the_same_letters() {
        // A text; what is visible of it; its letters.
        let table = r##"
            One, two. | One,two. | onetwo
            “One” – two… | “One”–two… | onetwo
            <think>hm</think>One | One | one
            One【1†a】 two | One【1†a】two | onetwo
            One ([a](https://a.example/b)). | One([a](https://a.example/b)). | one
            One [1] two | One[1]two | one1two
            One【two | One【two | one【two
            ?! | ?! | ?!
            👍 | 👍 | 👍
        "##;
        for [text, seen, compared] in rows(table) {
            assert_eq!(
                (visible(text).as_str(), letters(text).as_str()),
                (seen, compared)
            );
        }
        let far = format!("【{}】", "x".repeat(MAX_SOURCE));
        assert_eq!(letters(&far), far, "a mark that is too long is text");
    }
}
