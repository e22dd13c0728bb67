//! How much q keeps of what a server sends (pure).

/// The most bytes that q keeps of one reply: as many as a conversation's file may have.
pub const MAX_KEPT: usize = 10_000_000;

/// How many bytes of memory a value takes besides its text. Without them, many small values would count for too little.
pub const VALUE: usize = 300;

/// How many bytes have come of what q keeps.
#[derive(Debug, Default, Clone, Copy)]
pub struct Kept(usize);

impl Kept {
    /// Counts more bytes. Returns whether they may be kept, too.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        !self.is_too_much()
    }

    /// Whether more has come than q keeps.
    pub fn is_too_much(self) -> bool {
        self.0 > MAX_KEPT
    }
}
