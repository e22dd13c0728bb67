//! Patterns for names, such as `list_*` (pure).

use glob::Pattern;

/// Whether a pattern matches the entire name.
pub fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(name))
}
