//! The digests of texts (pure).

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a text in hexadecimal digits, which is a name for its file.
pub fn sha256_hex(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text) {
        digits.push_str(&format!("{byte:02x}"));
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard() {
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex("abc"), digest);
    }
}
