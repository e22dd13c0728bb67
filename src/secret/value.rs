//! A value that must never be shown, and where such values are found: in headers, in user info and in URLs (pure).

use std::fmt::{self, Formatter};

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use base64::{Engine, alphabet};
use percent_encoding::percent_decode_str;

/// What is shown in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// How many URLs a text may have, and at how many places the user info of one may end.
const MAX_URLS: usize = 100;
const MAX_ENDS: usize = 8;

/// Base64 with its padding or without.
const PADDED_OR_NOT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// The two alphabets of base64, because servers take user info in either, as people have encoded it.
const ALPHABETS: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&alphabet::STANDARD, PADDED_OR_NOT),
    GeneralPurpose::new(&alphabet::URL_SAFE, PADDED_OR_NOT),
];

/// A key, a password or a header's value: it can be sent, but not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// Returns a header's value and the parts of it that a server may repeat alone: the key of `Bearer KEY` or `token=KEY`, and
    /// the secrets of the user info that `Basic` has in base64.
    pub fn of_header(&self) -> Vec<Secret> {
        let last = self.0.split_whitespace().next_back().unwrap_or_default();
        let mut secrets = vec![self.clone(), Secret::new(last)];
        let is_end = |c: char| c.is_whitespace() || [';', ','].contains(&c);
        for word in self.0.split(is_end) {
            if let Some((_, value)) = word.split_once('=') {
                secrets.push(Secret::new(value.trim_matches('"')));
            }
        }
        for base64 in ALPHABETS {
            let decoded = base64.decode(last).unwrap_or_default();
            let user_info = str::from_utf8(&decoded).unwrap_or_default();
            if user_info.contains(':') {
                secrets.extend(of_user_info(user_info));
            }
        }
        secrets
    }

    /// Returns the parts of a setting's value that must not be shown: all of it or, in an address, its password and its query.
    pub fn parts_to_hide(&self) -> Vec<Secret> {
        match self.0.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => {}
            _ => return vec![self.clone()],
        }
        let (_, query) = self.0.split_once('?').unwrap_or_default();
        let mut secrets = of_urls(&self.0, |_| true);
        secrets.push(Secret::new(query));
        secrets
    }

    /// Returns the value itself, only for the request.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

/// Returns the secrets of user info, which is `user:password` as in a URL: its password, or the user where there is none, because
/// that is a token then; and the user info as the header has it.
pub fn of_user_info(user_info: &str) -> Vec<Secret> {
    let decoded = percent_decode_str(user_info).decode_utf8_lossy();
    let mut secrets = vec![Secret::new(in_header(user_info))];
    for form in [user_info, &decoded] {
        let (user, password) = form.split_once(':').unwrap_or((form, ""));
        let secret = if password.is_empty() { user } else { password };
        secrets.push(Secret::new(secret));
    }
    secrets
}

/// Returns user info as the header for it has it.
pub fn in_header(user_info: &str) -> String {
    BASE64_STANDARD.encode(&*percent_decode_str(user_info).decode_utf8_lossy())
}

/// Returns the values in the query of a URL whose names are secret.
pub fn of_query(query: &str, is_secret: impl Fn(&str) -> bool) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for field in query.split(['&', ';']) {
        let (name, value) = field.split_once('=').unwrap_or(("", field));
        if !value.is_empty() && is_secret(name) {
            secrets.push(Secret::new(value));
        }
    }
    secrets
}

/// Returns the secrets of all URLs in a text: their user info, and the values in their queries whose names are secret.
pub fn of_urls(text: &str, is_secret: impl Fn(&str) -> bool) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for (at, mark) in text.match_indices("://").take(MAX_URLS) {
        let rest = &text[at + mark.len()..];
        let url = rest.split(char::is_whitespace).next().unwrap_or_default();
        let before_fragment = url.split('#').next().unwrap_or_default();
        let (_, query) = before_fragment.split_once('?').unwrap_or_default();
        secrets.extend(of_query(query, &is_secret));
        let authority = authority_of(url);
        if let Some((user_info, _)) = authority.rsplit_once('@') {
            secrets.extend(of_user_info(user_info));
        }
        // A password may contain `/`, `?`, `#` and `@`, and so may what follows the host. So the user info may end at each.
        if authority.contains('@') || is_cut_user_info(authority) {
            for (end, _) in url.match_indices('@').take(MAX_ENDS) {
                let user_info = &url[..end];
                if user_info.contains(':') {
                    secrets.extend(of_user_info(user_info));
                }
            }
        }
    }
    secrets
}

/// Returns a URL that has lost its scheme, without its user info. That ends at the last `@` of the authority (RFC 3986, 3.2), or
/// of all if a password has a character at which the authority would end.
pub fn without_user_info(url: &str) -> &str {
    let authority = authority_of(url);
    let searched = if is_cut_user_info(authority) {
        url
    } else {
        authority
    };
    let end = searched.rfind('@').map_or(0, |at| at + 1);
    &url[end..]
}

/// Returns the authority of a URL that has lost its scheme: user info, host and port.
fn authority_of(url: &str) -> &str {
    url.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether this, which ends where an authority would, is only a part of user info: what follows its colon is no port.
fn is_cut_user_info(authority: &str) -> bool {
    let Some((_, port)) = authority.rsplit_once(':') else {
        return false;
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_ipv6 = authority.starts_with('[');
    !is_port && !is_ipv6 && !authority.contains('@')
}

/// Returns the secrets of the address of a proxy, which needs no scheme.
pub fn of_proxy(address: &str) -> Vec<Secret> {
    of_urls(&format!("://{address}"), |_| true)
}

/// Whether text is the scheme of a URL (RFC 3986, 3.1).
fn is_scheme(text: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "+.-".contains(char);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_output_of_a_secret_is_redacted() {
        assert_eq!(format!("{:?}", Secret::new("sk-12345678")), "[redacted]");
    }

    /// The values of secrets, sorted, without those that are empty.
    fn values(secrets: Vec<Secret>) -> Vec<String> {
        let mut values = Vec::from_iter(secrets.into_iter().map(|secret| secret.0));
        values.retain(|value| !value.is_empty());
        values.sort();
        values.dedup();
        values
    }

    #[test]
    fn a_secret_value_is_hidden_as_a_whole_and_of_a_url_only_its_credentials() {
        for (value, parts) in [
            ("sk-12345678", &["sk-12345678"][..]),
            ("", &[]),
            ("x y://z", &["x y://z"]),
            ("://token@h", &["://token@h"]),
            ("1a://token@h", &["1a://token@h"]),
            ("https://api.example.com/v1", &[]),
            ("postgres://me:pass@h:1/db", &["bWU6cGFzcw==", "pass"]),
            ("redis://token@h", &["dG9rZW4=", "token"]),
            ("https://h/?key=1&a=://b", &["1", "://b", "key=1&a=://b"]),
        ] {
            let hidden = values(Secret::new(value).parts_to_hide());
            assert_eq!(hidden, parts, "{value}");
        }
    }

    #[test]
    fn a_key_is_found_in_the_value_of_a_header() {
        for (value, parts) in [
            ("Bearer k", &["Bearer k", "k"][..]),
            (
                "Token a=b, token=\"k\"",
                &["Token a=b, token=\"k\"", "b", "k", "token=\"k\""],
            ),
            (
                "Basic bWU6cEBzcw==",
                &["Basic bWU6cEBzcw==", "bWU6cEBzcw==", "p@ss", "="],
            ),
            ("one two three", &["one two three", "three"]),
            ("Bearer k \n", &["Bearer k \n", "k"]),
            ("Bearer\tk", &["Bearer\tk", "k"]),
            ("a=b;\tc=k ", &["a=b;\tc=k ", "b", "c=k", "k"]),
            (
                "Basic bWU6cEBzcw",
                &["Basic bWU6cEBzcw", "bWU6cEBzcw", "bWU6cEBzcw==", "p@ss"],
            ),
            // me:p?~s and me:p>~??, in which the alphabets differ.
            (
                "Basic bWU6cD9-cw",
                &["Basic bWU6cD9-cw", "bWU6cD9-cw", "bWU6cD9+cw==", "p?~s"],
            ),
            (
                "Basic bWU6cD5-Pz8=",
                &[
                    "Basic bWU6cD5-Pz8=",
                    "bWU6cD5-Pz8=",
                    "bWU6cD5+Pz8=",
                    "p>~??",
                ],
            ),
            // A user without a password is a token.
            ("Basic azo= ", &["Basic azo= ", "azo=", "k"]),
        ] {
            let mut parts = Vec::from_iter(parts.iter().map(ToString::to_string));
            parts.sort();
            assert_eq!(values(Secret::new(value).of_header()), parts, "{value}");
        }
    }

    #[test]
    fn the_credentials_of_all_urls_in_a_text_are_found() {
        for (text, credentials) in [
            ("", ""),
            ("me:hunter22@h", ""),
            ("https://h:1/a b@c", ""),
            ("https://h:8080/simple/@scope/x", ""),
            ("https://h/@scope/x", ""),
            ("https://token@h", "token"),
            ("https://token:@h/x", "token"),
            ("https://:token@h", "token"),
            ("https://h?token=one&sig=two&page=3#a=b", "one two"),
            ("https://h/x?token=o%2Ene", "o%2Ene"),
            ("https://h/x?to=http://a&token=one", "http://a one"),
            ("http://me:hunter22@h:1/", "hunter22"),
            ("http://me:p%40ss@h", "p%40ss p@ss"),
            ("pg://me:pa/s@s@h", "pa/s pa/s@s"),
            ("pg://me:pa?s@h", "pa?s"),
            ("pg://me:pa#s@h/x", "pa#s"),
            ("http://[::1]/@scope/x", ""),
            ("http://[::1]:8080/@scope/x", ""),
            ("https://me:a@h/@b", "a a@h/"),
            ("a=http://me:one@h b=http://two@h", "one two"),
            ("http://me:one@h,http://me:two@h", "one two"),
        ] {
            let found = values(of_urls(text, |name| name != "page"));
            for credential in credentials.split(' ').filter(|one| !one.is_empty()) {
                let is_found = found.iter().any(|secret| secret == credential);
                assert!(is_found, "{credential} in {text}: {found:?}");
            }
            let is_right = found.is_empty() == credentials.is_empty();
            assert!(
                is_right && !found.contains(&"3".to_owned()),
                "{text}: {found:?}"
            );
        }
        let as_header = Secret::new("bWU6cEBzcw==");
        assert!(of_urls("http://me:p%40ss@h", |_| true).contains(&as_header));
    }
    #[test]
    fn the_values_of_a_query_are_found_by_their_names() {
        for (query, expected) in [
            ("key=a&b=c", "a"),
            ("b=c&key=a&key=d", "a d"),
            ("b=c;key=a", "a"),
            ("key=a=b", "a=b"),
            ("key=", ""),
            ("b=c", ""),
            // Without a name it is all there is.
            ("token", "token"),
            ("", ""),
        ] {
            let is_secret = |name: &str| matches!(name, "key" | "");
            let found = of_query(query, is_secret);
            let found: Vec<&str> = found.iter().map(Secret::expose).collect();
            assert_eq!(found.join(" "), expected, "{query}");
        }
    }
}
