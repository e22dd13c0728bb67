//! Values that must never be shown, and their removal from text that a server sends (pure).

use std::cmp::Reverse;
use std::fmt::{self, Formatter};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;

/// Values of fewer bytes may be ordinary words, so they are not removed from a server's text.
const MIN_REDACTED: usize = 8;

/// Stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// A key, a password or a header's value: it can be sent, but not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// A header's value and its last word, because a server may repeat the key of “Bearer KEY” alone.
    pub fn with_last_word(&self) -> [Secret; 2] {
        let last = self.0.rsplit(' ').next().unwrap_or_default();
        [self.clone(), Secret::new(last)]
    }

    /// The parts of a setting's value that must not be shown: all of it or, in an address, the password and the query.
    pub fn parts_to_hide(&self) -> Vec<Secret> {
        let address = match self.0.split_once("://") {
            Some((scheme, address)) if is_scheme(scheme) => address,
            _ => return vec![self.clone()],
        };
        let (place, query) = address.split_once('?').unwrap_or((address, ""));
        let (login, _) = place.rsplit_once('@').unwrap_or_default();
        // A login without a colon is a token.
        let (_, password) = login.split_once(':').unwrap_or(("", login));
        vec![Secret::new(password), Secret::new(query)]
    }

    /// The value itself, only for the request.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

/// The secrets of a login, which is `user:password` as in a URL. A server may repeat the password as the URL has it or
/// decoded, or the login as the header has it.
pub fn of_login(login: &str) -> Vec<Secret> {
    let decoded = percent_decode_str(login).decode_utf8_lossy();
    let mut secrets = Vec::new();
    for form in [login, &decoded] {
        if let Some((_, password)) = form.split_once(':') {
            secrets.push(Secret::new(password));
        }
    }
    secrets.push(Secret::new(in_header(login)));
    secrets
}

/// A login as the header for it has it.
pub fn in_header(login: &str) -> String {
    BASE64_STANDARD.encode(&*percent_decode_str(login).decode_utf8_lossy())
}

/// The secrets of all logins with a password in the URLs of a text.
pub fn of_urls(text: &str) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for rest in text.split("://").skip(1) {
        let url = rest.split(char::is_whitespace).next().unwrap_or_default();
        // A password may contain `@`, and so may a path, so the login may end at any of them.
        for (end, _) in url.match_indices('@') {
            let login = &url[..end];
            if login.contains(':') {
                secrets.extend(of_login(login));
            }
        }
    }
    secrets
}

fn is_scheme(text: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "+.-".contains(char);
    text.chars().all(is_allowed)
}

/// The text without the secrets that are long enough to be recognized. The text may have been cut within a secret: the
/// beginning of a secret at its end is removed, too.
pub fn redact<'a>(text: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
    let mut forms = Vec::new();
    for Secret(secret) in secrets {
        forms.push(secret.clone());
        // A tool may repeat it within JSON.
        if secret.contains(['"', '\\']) || secret.contains(char::is_control) {
            let quoted = serde_json::Value::from(secret.as_str()).to_string();
            forms.push(quoted[1..quoted.len() - 1].to_owned());
        }
    }
    // The longest first, because one secret may be the beginning of another.
    forms.sort_by_key(|secret| Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in &forms {
        if secret.len() >= MIN_REDACTED && text.contains(secret) {
            text = text.replace(secret, REDACTED);
        }
        for length in (MIN_REDACTED..secret.len()).rev() {
            let Some(beginning) = secret.get(..length) else {
                continue;
            };
            if let Some(before) = text.strip_suffix(beginning) {
                text = format!("{before}{REDACTED}");
                break;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Secret::new("sk-12345678")), "[redacted]");
    }

    #[test]
    fn long_secrets_are_taken_out_of_text_and_short_ones_are_not() {
        let secrets = [Secret::new("sk-12345678"), Secret::new("a")];
        let found = redact("a bad key: sk-12345678!", &secrets);
        assert_eq!(found, "a bad key: [redacted]!");
    }

    #[test]
    fn what_a_cut_leaves_of_a_secret_is_taken_out_too() {
        let secrets = [
            Secret::new("sk-12345678-more"),
            Secret::new("höchst-geheim"),
        ];
        for (text, shown) in [
            ("a bad key: sk-12345678-mor", "a bad key: [redacted]"),
            ("a bad key: sk-12345", "a bad key: [redacted]"),
            ("a bad key: sk-123", "a bad key: sk-123"),
            ("höchst-g", "[redacted]"),
        ] {
            assert_eq!(redact(text, &secrets), shown, "{text}");
        }
    }

    #[test]
    fn all_of_a_value_is_hidden_unless_it_is_an_address() {
        for (value, parts) in [
            ("sk-12345678", &["sk-12345678"][..]),
            ("", &[""]),
            ("x y://z", &["x y://z"]),
            ("https://api.example.com/v1", &["", ""]),
            ("postgres://me:pa/s@s@h:1/db", &["pa/s@s", ""]),
            ("redis://token@h", &["token", ""]),
            ("https://h/?key=1&a=://b", &["", "key=1&a=://b"]),
        ] {
            let hidden = Secret::new(value).parts_to_hide();
            let hidden: Vec<String> = hidden.iter().map(|part| part.0.clone()).collect();
            assert_eq!(hidden, parts, "{value}");
        }
    }

    #[test]
    fn the_passwords_of_all_urls_in_a_text_are_found() {
        for (text, passwords) in [
            ("", &[][..]),
            ("me:hunter22@h", &[]),
            ("https://h:1/a b@c", &[]),
            ("https://me@h", &[]),
            ("http://me:hunter22@h:1/", &["hunter22"]),
            ("http://me:p%40ss@h", &["p%40ss", "p@ss"]),
            ("pg://me:pa/s@s@h", &["pa/s", "pa/s@s"]),
            ("https://me:a@h/@b", &["a", "a@h/"]),
            ("a=http://me:one@h b=http://me:two@h", &["one", "two"]),
            ("http://me:one@h,http://me:two@h", &["one", "two"]),
        ] {
            let secrets = of_urls(text);
            for password in passwords {
                let is_right = secrets.iter().any(|secret| secret.0 == *password);
                assert!(is_right, "{password} in {text}");
            }
            assert_eq!(secrets.is_empty(), passwords.is_empty(), "{text}");
        }
        let as_header = Secret::new("bWU6cEBzcw==");
        assert!(of_urls("http://me:p%40ss@h").contains(&as_header));
    }

    #[test]
    fn nothing_is_left_of_a_secret_that_begins_with_another() {
        let secrets = [Secret::new("sk-12345678"), Secret::new("sk-12345678-more")];
        assert_eq!(redact("sk-12345678-more", &secrets), "[redacted]");
    }
}
