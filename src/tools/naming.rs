//! The names of tools for models: `server__tool`, in characters and a length that every API accepts.

use super::selection::SEPARATOR;

/// The most characters that OpenAI allows.
const LONGEST: usize = 64;

/// How many digits distinguish one shortened name from another.
const DIGITS: usize = 6;

/// The full name: characters that an API may refuse become `_`, and a name that is too long is cut, with a hash of all of it.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    let full = format!("{server}{SEPARATOR}{tool}");
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let plain: String = full.chars().map(|character| if allowed(character) { character } else { '_' }).collect();
    if plain.len() <= LONGEST {
        return plain;
    }
    format!("{}{:06x}", &plain[..LONGEST - DIGITS], hash(&full) & 0xff_ffff)
}

/// The tool's part of a full name.
pub(crate) fn of_tool(full: &str) -> &str {
    full.split_once(SEPARATOR).map_or(full, |(_, tool)| tool)
}

/// FNV-1a, 32 bits: the same in every run and every version.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_api() {
        let long = "x".repeat(80);
        for (server, tool, name) in [
            ("db", "read_query", "db__read_query"),
            ("a-b", "c.d/e f", "a-b__c_d_e_f"),
            ("db", "größe", "db__gr__e"),
            ("db", "", "db__"),
            ("db", &"y".repeat(60), &format!("db__{}", "y".repeat(60))),
        ] {
            assert_eq!(full_name(server, tool), name);
        }
        let (one, other) = (full_name("db", &format!("{long}1")), full_name("db", &format!("{long}2")));
        assert_eq!((one.len(), other.len()), (LONGEST, LONGEST));
        assert_ne!(one, other);
        assert_eq!(of_tool(&one).len(), LONGEST - "db__".len());
        // Conversations remember such names.
        assert_eq!(full_name("db", &long), format!("db__{}d0c051", "x".repeat(54)));
    }
}
