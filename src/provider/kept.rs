//! How much q keeps of what a server sends (pure).

/// The most bytes that q keeps of one reply: as many as a conversation's file may have.
pub const MAX_KEPT: usize = 10_000_000;

/// What a value of its own takes in memory beside its text, so that many small ones count for what they are.
pub const VALUE: usize = 300;

/// Counts what is kept.
#[derive(Debug, Default, Clone, Copy)]
pub struct Kept(usize);

impl Kept {
    /// Counts so many bytes more. Returns whether they may be kept, too.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        !self.is_too_much()
    }

    /// Whether there was more than q keeps.
    pub fn is_too_much(self) -> bool {
        self.0 > MAX_KEPT
    }
}
