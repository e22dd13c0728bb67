//! How many bytes of the results of tools are kept, and how a longer text is shortened (pure).

use crate::text::size::in_bytes;

/// The most bytes of one result that the model gets, and of all results of a question, each with the mark for a part left out.
pub const MAX_RESULT: usize = 50_000;
const MAX_RESULTS: usize = 400_000;

/// The most bytes of the mark for a part left out.
const MAX_MARK: usize = 40;

/// How many bytes of the room for results only marks may take, and results that are as short: a model must not take a result that
/// was left out for one that is empty.
const FOR_MARKS: usize = 10_000;

/// The bytes that the results of a question may take.
pub struct ResultRoom {
    /// At most for each.
    each: usize,
    /// Still left for all.
    left: usize,
}

impl ResultRoom {
    pub fn new(each: usize, all: usize) -> ResultRoom {
        ResultRoom { each, left: all }
    }

    /// Returns the room for what the model gets.
    pub fn of_model() -> ResultRoom {
        ResultRoom::new(MAX_RESULT, MAX_RESULTS)
    }

    /// Returns what there is room for of the next result.
    pub fn take(&mut self, result: &str) -> String {
        let unreserved = self.left.saturating_sub(FOR_MARKS);
        let limit = unreserved.max(MAX_MARK).min(self.left).min(self.each);
        let taken = shortened(result, limit);
        self.left -= taken.len();
        taken
    }
}

/// Returns what the model gets of the results of a question; `None` if it gets all of each.
pub fn cut_to_fit(results: &[&str]) -> Option<Vec<String>> {
    let sizes = Vec::from_iter(results.iter().map(|result| result.len()));
    // Results that are cut already, perhaps in another order, stay as they are.
    if sizes.iter().all(|size| *size <= MAX_RESULT) && sizes.iter().sum::<usize>() <= MAX_RESULTS {
        return None;
    }
    let mut room = ResultRoom::of_model();
    Some(results.iter().map(|result| room.take(result)).collect())
}

/// Returns at most this many bytes of a text; a mark says how much is missing, and is left out where it does not fit either.
pub fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    match limit.checked_sub(MAX_MARK) {
        Some(limit) => cut(text, limit),
        None => String::new(),
    }
}

/// Returns this many bytes of a longer text, three quarters from its beginning and one from its end, with a line between them
/// that says how much is missing.
fn cut(text: &str, limit: usize) -> String {
    let mut head = limit - limit / 4;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - limit / 4;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let missing = in_bytes(tail - head);
    format!("{}\n[{missing} left out]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_is_cut_in_its_middle() {
        for (text, limit, expected) in [
            ("123456789", 8, "123456\n[1 byte left out]\n89"),
            ("ääääää", 8, "äää\n[4 bytes left out]\nä"),
            ("ääääää", 7, "äää\n[6 bytes left out]\n"),
            ("12", 0, "\n[2 bytes left out]\n"),
        ] {
            assert_eq!(cut(text, limit), expected, "{text} to {limit}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_beginning_and_end_and_stays_within_its_limit(text in "[a-c\näüß€😀]{0,60}", limit in 0usize..100) {
            if text.len() > limit {
                let short = cut(&text, limit);
                let (head, rest) = short.rsplit_once("\n[").expect("a mark");
                let (missing, tail) = rest.split_once(" left out]\n").expect("a mark");
                let (missing, _) = missing.split_once(" byte").expect("a size");
                let missing: usize = missing.parse().expect("a number");
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= limit);
                // A character has at most four bytes, so at most three are lost at either end.
                prop_assert!(head.len() + tail.len() + 6 >= limit);
                prop_assert_eq!(head.len() + missing + tail.len(), text.len());
            }
        }
    }

    #[test]
    fn a_shortened_text_has_no_more_bytes_than_its_limit_with_its_mark() {
        for size in [0, 1, MAX_MARK, MAX_MARK + 1, 100, MAX_RESULT, 9_999_999] {
            let text = "x".repeat(size);
            for limit in [0, 1, MAX_MARK - 1, MAX_MARK, MAX_MARK + 1, 99, MAX_RESULT] {
                let short = shortened(&text, limit);
                assert!(short.len() <= limit, "{size} to {limit}: {short}");
                assert_eq!(short == text, size <= limit, "{size} to {limit}: {short}");
                let is_marked = short.contains(" left out]\n");
                let needs_mark = size > limit && limit >= MAX_MARK;
                assert_eq!(is_marked, needs_mark, "{size} to {limit}: {short}");
            }
        }
    }

    #[test]
    fn results_that_are_cut_have_room_for_their_marks() {
        let longest = "x".repeat(MAX_RESULT * 2);
        // The sizes, how many of the results are cut, and how many of these have no mark because there is no room.
        for (sizes, cut, unmarked) in [
            (vec![MAX_RESULT; 8], 0, 0),
            (vec![MAX_RESULT + 1], 1, 0),
            (vec![MAX_RESULT; 9], 2, 0),
            ([vec![1], vec![MAX_RESULT; 8]].concat(), 1, 0),
            ([vec![MAX_RESULT; 8], vec![MAX_MARK; 200]].concat(), 1, 0),
            (vec![MAX_RESULT * 2; 250], 250, 0),
            (
                [vec![MAX_RESULT; 9], vec![MAX_MARK + 1; 1_000]].concat(),
                1_002,
                526,
            ),
        ] {
            let results = Vec::from_iter(sizes.iter().map(|size| &longest[..*size]));
            let taken = cut_to_fit(&results);
            assert_eq!(taken.is_some(), cut > 0, "{cut}");
            let Some(taken) = taken else { continue };
            let (mut found, mut found_unmarked) = (0, 0);
            for (result, taken) in results.iter().zip(&taken) {
                assert!(taken.len() <= MAX_RESULT);
                let is_cut = taken.len() < result.len();
                found += usize::from(is_cut);
                found_unmarked += usize::from(is_cut && !taken.contains(" left out]\n"));
            }
            let all: usize = taken.iter().map(String::len).sum();
            assert!(all <= MAX_RESULTS, "{all}");
            assert_eq!((found, found_unmarked), (cut, unmarked), "{all}");
            // What is cut is not cut again.
            let taken = Vec::from_iter(taken.iter().map(String::as_str));
            assert_eq!(cut_to_fit(&taken), None);
        }
    }
}
