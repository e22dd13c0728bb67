//! How much q keeps of what a server sends (pure).

use crate::text::json;

/// The most bytes that q keeps of one reply: as many as a conversation's file may have.
pub const MAX_KEPT: usize = 10_000_000;

/// How many bytes of memory a call or a source takes besides its texts. Without them, many small ones would count for too
/// little.
pub const ITEM: usize = 300;

/// Estimates how many bytes of memory JSON takes as a tree of values.
pub fn weight(json: &str) -> usize {
    json.len() + json::weight(json)
}

/// Returns the same for JSON that is a tree only while a request is written. It comes in many small pieces, of which there must
/// be room for all that a model thinks.
pub fn weight_of_text(json: &str) -> usize {
    json.len() + json::weight(json) / 10
}

/// The bytes that are used up of those that may be kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ByteBudget(usize);

impl ByteBudget {
    /// Counts more bytes. Returns whether there is room for them, too.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        !self.is_exhausted()
    }

    /// Whether more has arrived than may be kept.
    pub fn is_exhausted(self) -> bool {
        self.0 > MAX_KEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_exhausted_by_the_first_byte_that_may_not_be_kept() {
        let mut budget = ByteBudget::default();
        assert!(budget.spend(MAX_KEPT));
        assert!(!budget.spend(1));
    }
}
