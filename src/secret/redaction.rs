//! Removes secrets from text, in whatever form a server or a tool may repeat them in it, also if it comes in pieces (pure).
//!
//! There are three steps:
//!
//! 1. **Forms.** `Secrets::add` makes of each secret the forms that are looked for: as it is, with what looks like an escape in it
//!    replaced, with a plus for a blank, and in base64, of which there are three ways in two alphabets.
//! 2. **Places.** `Secrets::places` finds them. `Secrets::find` goes through the text once; a hash of the last four bytes nearly
//!    always tells that no form begins there. Then it goes through what the text is once its escapes are replaced, again and
//!    again, because an escape may be escaped itself. `unescaped` knows for each byte where in the text it came from.
//! 3. **Text.** `redact` replaces the places in a whole text. `Redaction` does so with pieces: it holds back what begins at
//!    `Secrets::open_end`, because more text could make a secret of it.

use std::fmt::{self, Formatter};
use std::ops::Range;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;

use super::value::{REDACTED, Secret};
use crate::text::unescape::{LONGEST_ESCAPE, unescaped};

/// Values of fewer characters may be ordinary words, so they are not removed from a server's text.
const MIN_REDACTED: usize = 8;

/// How many bytes of a form tell whether it may begin at a place, and how many hashes of them there are.
const BEGINNING: usize = 4;
const HASHES: usize = 1 << 16;

/// How much of a text is searched for escapes at once.
const WINDOW: usize = 1 << 16;

/// The most bytes of a secret with escapes.
const MAX_ESCAPED: usize = 1 << 18;

/// Secrets to be removed from text, in every form in which a server may repeat them: in any case, with escapes of URLs,
/// JSON and HTML, or in base64. Those that are too short to be recognized do not count.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Vec<EncodedForm>,
    /// A bit for each hash of a form's beginning. Nearly all of a text needs no other look than at this.
    beginnings: Vec<u64>,
}

/// A form in which a secret may be repeated, in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
struct EncodedForm {
    bytes: Vec<u8>,
    /// Whether, in base64, the characters before and after these may have bits of the secret, too.
    has_bits_before: bool,
    has_bits_after: bool,
}

impl Secrets {
    /// Adds a secret without the whitespace around it, unless it is too short.
    pub fn add(&mut self, secret: &Secret) {
        // A variable or a file with a key often has a newline at its end, which nobody repeats.
        let value = secret.expose().trim();
        self.add_value(value);
        // A URL may have it with escapes.
        let decoded = percent_decode_str(value).decode_utf8_lossy();
        if decoded != value {
            self.add_value(&decoded);
        }
    }

    fn add_value(&mut self, value: &str) {
        if value.chars().count() < MIN_REDACTED {
            return;
        }
        self.add_form(EncodedForm::new(value.as_bytes()));
        // In text whose escapes have been replaced, what looks like one in the secret has been replaced, too.
        for round in unescaped(value.as_bytes()) {
            self.add_form(EncodedForm::new(&round.bytes));
        }
        // In a query, a blank is a plus.
        self.add_form(EncodedForm::new(value.replace(' ', "+").as_bytes()));
        for form in EncodedForm::in_base64(value.as_bytes()) {
            self.add_form(form);
        }
    }

    fn add_form(&mut self, form: EncodedForm) {
        if form.bytes.len() < MIN_REDACTED || self.forms.contains(&form) {
            return;
        }
        self.beginnings.resize(HASHES / 64, 0);
        let mut beginning = 0;
        for byte in &form.bytes[..BEGINNING] {
            beginning = followed_by(beginning, *byte);
        }
        let hash = hash_of(beginning);
        self.beginnings[hash / 64] |= 1 << (hash % 64);
        self.forms.push(form);
    }

    /// Returns how many bytes of a text a secret with escapes may take; 0 if there is none to look for.
    fn reach(&self) -> usize {
        (self.longest() * LONGEST_ESCAPE).min(MAX_ESCAPED)
    }

    fn longest(&self) -> usize {
        let lengths = self.forms.iter().map(|form| form.bytes.len());
        lengths.max().unwrap_or_default()
    }

    /// Returns where the end of a text may begin a secret that more text completes; the length of the text if it cannot.
    fn open_end(&self, text: &[u8]) -> usize {
        if self.forms.is_empty() {
            return text.len();
        }
        let start = text.len().saturating_sub(self.reach());
        let tail = &text[start..];
        let mut open = self.open_end_without_escapes(tail);
        let rounds = unescaped(tail);
        for round in &rounds {
            let place = round.places[self.open_end_without_escapes(&round.bytes)];
            open = open.min(place);
        }
        if let Some(last) = rounds.last() {
            // No escape is cut, nor is one that has been escaped itself.
            let count = last.places.partition_point(|place| *place <= open);
            open = last.places[..count].last().copied().unwrap_or_default();
        }
        start + open
    }

    fn open_end_without_escapes(&self, text: &[u8]) -> usize {
        let start = text.len().saturating_sub(self.longest());
        let tail = text[start..].to_ascii_lowercase();
        for at in 0..tail.len() {
            let rest = &tail[at..];
            let may_begin = self.forms.iter().filter(|form| form.is_continued(rest));
            let places = may_begin.map(|form| form.with_bits_around(text, start + at..text.len()));
            if let Some(open) = places.map(|place| place.start).min() {
                return open;
            }
        }
        text.len()
    }

    /// Returns the places of secrets in a text, in order. They may overlap. If the text may have been cut, the beginning of a
    /// secret at its end is one, too.
    fn places(&self, text: &[u8], may_be_cut: bool) -> Vec<Range<usize>> {
        if self.forms.is_empty() {
            return Vec::new();
        }
        let mut places = self.find(text, may_be_cut);
        // Escapes are looked for in one part of the text after another, because their places take much memory. A secret that
        // does not end in one part is whole in the next.
        let overlap = self.reach();
        let mut start = 0;
        while start < text.len() {
            let end = text.len().min(start + overlap + WINDOW);
            let is_end = end == text.len();
            let is_cut = is_end && may_be_cut;
            for round in unescaped(&text[start..end]) {
                for found in self.find(&round.bytes, is_cut) {
                    let mut place =
                        start + round.places[found.start]..start + round.places[found.end];
                    if is_cut && found.end == round.bytes.len() {
                        // An escape that has been cut belongs to it.
                        place.end = end;
                    }
                    places.push(place);
                }
            }
            start = if is_end { end } else { end - overlap };
        }
        places.sort_by_key(|place| place.start);
        places
    }

    /// Returns the places of secrets in a text without escapes. If it may have been cut, the beginning of a secret at its end is
    /// one, too.
    fn find(&self, text: &[u8], may_be_cut: bool) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let mut beginning = 0;
        for (at, byte) in text.iter().enumerate() {
            beginning = followed_by(beginning, *byte);
            let hash = hash_of(beginning);
            if self.beginnings[hash / 64] & (1 << (hash % 64)) == 0 {
                continue;
            }
            let start = (at + 1).saturating_sub(BEGINNING);
            for form in &self.forms {
                let Some(place) = form.place_in(text, start, may_be_cut) else {
                    continue;
                };
                match places.last_mut() {
                    Some(last) if last.end >= place.start => last.end = last.end.max(place.end),
                    _ => places.push(place),
                }
            }
        }
        places
    }
}

/// Returns the last four bytes of a text, in lower case, after one more.
fn followed_by(bytes: u32, next: u8) -> u32 {
    bytes << 8 | u32::from(next.to_ascii_lowercase())
}

/// Returns a hash of four bytes (Knuth's multiplicative one).
fn hash_of(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x9E37_79B1) >> 16) as usize
}

impl<'a> Extend<&'a Secret> for Secrets {
    fn extend<I: IntoIterator<Item = &'a Secret>>(&mut self, secrets: I) {
        for secret in secrets {
            self.add(secret);
        }
    }
}

impl<'a> FromIterator<&'a Secret> for Secrets {
    fn from_iter<I: IntoIterator<Item = &'a Secret>>(secrets: I) -> Secrets {
        let mut collected = Secrets::default();
        collected.extend(secrets);
        collected
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

impl EncodedForm {
    fn new(bytes: &[u8]) -> EncodedForm {
        EncodedForm {
            bytes: bytes.to_ascii_lowercase(),
            ..EncodedForm::default()
        }
    }

    /// Returns what base64, in both of its alphabets, has of a value for certain, whatever is before and after it. Three bytes
    /// are four characters, so there are three ways.
    fn in_base64(value: &[u8]) -> Vec<EncodedForm> {
        let mut forms = Vec::new();
        for before in 0..3 {
            let bytes = [&[0; 3][..before], value].concat();
            // The first characters have bits of what is before the value.
            let first = if before == 0 { 0 } else { before + 1 };
            let last = bytes.len() * 8 / 6;
            for alphabet in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
                let encoded = alphabet.encode(&bytes);
                forms.push(EncodedForm {
                    has_bits_before: before > 0,
                    has_bits_after: encoded.len() > last,
                    ..EncodedForm::new(&encoded.as_bytes()[first..last])
                });
            }
        }
        forms
    }

    /// Whether a text in lower case is the beginning of this form, and more text may belong to it.
    fn is_continued(&self, text: &[u8]) -> bool {
        let is_open = text.len() < self.bytes.len() || self.has_bits_after;
        is_open && self.bytes.starts_with(text)
    }

    /// Returns the place of this form in a text, if it begins at `start`. A text that may have been cut may end before the form
    /// does.
    fn place_in(&self, text: &[u8], start: usize, may_be_cut: bool) -> Option<Range<usize>> {
        let end = text.len().min(start + self.bytes.len());
        let there = &text[start..end];
        let is_whole = there.len() == self.bytes.len();
        let is_enough = is_whole || (may_be_cut && there.len() >= MIN_REDACTED);
        if !is_enough || !there.eq_ignore_ascii_case(&self.bytes[..there.len()]) {
            return None;
        }
        Some(self.with_bits_around(text, start..end))
    }

    /// Returns the place with the characters before and after it that have bits of the secret, and with the padding.
    fn with_bits_around(&self, text: &[u8], place: Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = place;
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        if self.has_bits_before && start > 0 && is_digit(&text[start - 1]) {
            start -= 1;
        }
        if self.has_bits_after && text.get(end).is_some_and(is_digit) {
            end += 1;
            while text.get(end) == Some(&b'=') {
                end += 1;
            }
        }
        start..end
    }
}

/// Returns the text without the secrets. The text may have been cut within one: the beginning of a secret at its end is removed,
/// too.
pub fn redact(text: &str, secrets: &Secrets) -> String {
    without_places(text, 0..text.len(), &secrets.places(text.as_bytes(), true))
}

/// Returns the name of something without the secrets that are in it as a whole. One without a digit stays: it may be a word that
/// is a password elsewhere, such as the name of a database.
pub fn redact_name(name: &str, secrets: &Secrets) -> String {
    let mut places = secrets.places(name.as_bytes(), false);
    places.retain(|place| {
        let mut bytes = name.as_bytes()[place.clone()].iter();
        bytes.any(u8::is_ascii_digit)
    });
    without_places(name, 0..name.len(), &places)
}

/// Returns a part of a text without these places, which are in order, but may overlap, and may begin or end within a character.
fn without_places(text: &str, part: Range<usize>, places: &[Range<usize>]) -> String {
    let mut redacted = String::new();
    let mut shown = part.start;
    for place in places {
        let start = char_before(text, place.start);
        if start >= part.end {
            break;
        }
        if start >= shown {
            redacted.push_str(&text[shown..start]);
            redacted.push_str(REDACTED);
        }
        shown = shown.max(char_after(text, place.end));
    }
    redacted + text.get(shown..part.end).unwrap_or_default()
}

/// Returns the next place before or at this one where a character begins.
fn char_before(text: &str, mut place: usize) -> usize {
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    place
}

/// Returns the next place after or at this one where a character ends.
fn char_after(text: &str, mut place: usize) -> usize {
    while !text.is_char_boundary(place) {
        place += 1;
    }
    place
}

/// A filter that removes secrets from text that comes in pieces. What may be the beginning of a secret is held back until more
/// has come.
pub struct Redaction<'a> {
    secrets: &'a Secrets,
    held: String,
    /// How many bytes of what is held belong to a secret that has been replaced already.
    hidden: usize,
}

impl Redaction<'_> {
    pub fn new(secrets: &Secrets) -> Redaction<'_> {
        Redaction {
            secrets,
            held: String::new(),
            hidden: 0,
        }
    }

    /// Takes a piece, and returns what can be shown now.
    pub fn feed(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let open = self.secrets.open_end(self.held.as_bytes());
        self.show(char_before(&self.held, open), false)
    }

    /// Returns the rest. The text may have been cut within a secret.
    pub fn finish(&mut self) -> String {
        self.show(self.held.len(), true)
    }

    /// Returns the text up to this place, which is no longer held then.
    fn show(&mut self, end: usize, may_be_cut: bool) -> String {
        let places = self.secrets.places(self.held.as_bytes(), may_be_cut);
        let shown = without_places(&self.held, self.hidden..end, &places);
        // A secret that is whole may end where another one has begun.
        let mut hidden = self.hidden;
        for place in places {
            if place.start < end {
                hidden = hidden.max(char_after(&self.held, place.end));
            }
        }
        self.hidden = hidden.saturating_sub(end);
        self.held.drain(..end);
        shown
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
    use serde_json::Value;

    use super::*;

    /// The text without these secrets.
    fn without(secrets: &[&str], text: &str) -> String {
        let secrets = Vec::from_iter(secrets.iter().map(|secret| Secret::new(*secret)));
        redact(text, &Secrets::from_iter(&secrets))
    }

    /// A text with an escape for each of its bytes.
    fn escaped(text: &str, escape: impl Fn(u8) -> String) -> String {
        text.bytes().map(escape).collect()
    }

    #[test]
    fn the_debug_output_of_a_list_of_secrets_is_redacted() {
        let secrets = Secrets::from_iter(&[Secret::new("sk-12345678")]);
        assert_eq!(format!("{secrets:?}"), "[redacted]");
    }

    #[test]
    fn long_secrets_are_removed_from_text_and_short_ones_are_not() {
        for (text, shown) in [
            ("a bad key: sk-12345678!", "a bad key: [redacted]!"),
            ("sk-12345678 SK-12345678", "[redacted] [redacted]"),
            ("sk-12345678sk-12345678", "[redacted]"),
            ("sk-12345678-more", "[redacted]"),
            ("sk-12345679", "sk-12345679"),
            ("a b", "a b"),
            ("", ""),
        ] {
            let secrets = ["sk-12345678", "sk-12345678-more", "a", "seven77"];
            assert_eq!(without(&secrets, text), shown, "{text}");
        }
        assert_eq!(
            without(&["sieben7", "höchstes"], "höchstes sieben7"),
            "[redacted] sieben7"
        );
        assert_eq!(without(&[], "text"), "text");
    }

    #[test]
    fn the_end_of_a_text_is_held_back_where_more_may_make_it_a_secret() {
        let secrets = Secrets::from_iter(&[Secret::new("sk-12345678"), Secret::new("pass word 9")]);
        for (certain, open) in [
            ("", ""),
            ("a word", ""),
            ("a word ", ""),
            ("the key: ", "Sk-1234"),
            ("the key", "s"),
            ("sk-1234 ", ""),
            ("sk-9", ""),
            ("it is ", "pass "),
            ("it is ", "pass Wo"),
            ("it is ", "pass+w"),
            ("the", "%73k"),
            ("50", "%"),
            ("50", "%25%"),
            ("a=1", "&"),
            ("an ", "%2573%25"),
            ("key ", "c2stMTI"),
            ("é", "s"),
        ] {
            for before in ["", &"x".repeat(5000)] {
                let text = format!("{before}{certain}{open}");
                let mut redaction = Redaction::new(&secrets);
                let shown = redaction.feed(&text);
                assert_eq!(shown.strip_prefix(before), Some(certain), "{certain}{open}");
                assert_eq!(redaction.finish(), open, "{certain}{open}");
            }
        }
        assert_eq!(Redaction::new(&Secrets::default()).feed("50%"), "50%");
    }

    #[test]
    fn a_secret_that_ends_within_a_character_is_removed_with_that_character_alone() {
        for (secret, text, shown) in [
            (
                "abcdefgh%C3",
                "bad: abcdefghé and the rest",
                "bad: [redacted] and the rest",
            ),
            (
                "%A9abcdefgh",
                "bad: éabcdefgh and the rest",
                "bad: [redacted] and the rest",
            ),
            (
                "%A9abcdefgh",
                "éabcdefghé%A9abcdefgh é",
                "[redacted]é[redacted] é",
            ),
        ] {
            assert_eq!(without(&[secret], text), shown, "{secret}");
            let secrets = Secrets::from_iter(&[Secret::new(secret)]);
            let mut redaction = Redaction::new(&secrets);
            let pieces = text.chars().map(|char| redaction.feed(&char.to_string()));
            let streamed = pieces.collect::<String>() + &redaction.finish();
            assert_eq!(streamed, shown, "{secret}");
        }
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_of_a_cut_text_is_removed() {
        let secrets = ["sk-12345678-more", "höchst-geheim"];
        for (text, shown) in [
            ("a bad key: sk-12345678-mor", "a bad key: [redacted]"),
            ("a bad key: sk-12345", "a bad key: [redacted]"),
            ("a bad key: sk-123", "a bad key: sk-123"),
            ("höchst-g", "[redacted]"),
            ("key=sk%2D12345%", "key=[redacted]"),
            ("key=sk\\u002d12345\\u0", "key=[redacted]"),
            ("sk-12345 is wrong", "sk-12345 is wrong"),
        ] {
            assert_eq!(without(&secrets, text), shown, "{text}");
        }
    }

    #[test]
    fn whitespace_around_a_secret_is_no_part_of_it() {
        for space in ["", " ", "\n", "\r\n", "\t", "\u{a0}"] {
            for secret in [format!("sk-12345678{space}"), format!("{space}sk-12345678")] {
                let shown = without(&[&secret], "a bad key: sk-12345678, says the server");
                assert_eq!(
                    shown, "a bad key: [redacted], says the server",
                    "{secret:?}"
                );
            }
        }
        assert_eq!(without(&["       k\n"], "       k\n"), "       k\n");
    }

    const SECRETS: [&str; 5] = [
        "sk-12345678",
        "k/e+y=&<\"'\\%7e-Zz",
        "100%sure&amp;\\n+5",
        "pässwörter 1",
        "pass word long",
    ];

    /// The forms in which a server may repeat a secret, with their names.
    fn forms_of(secret: &str) -> Vec<(&'static str, String)> {
        let quoted = Value::from(secret).to_string();
        let twice = Value::from(quoted.as_str()).to_string();
        let html = secret
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;");
        let with_user = BASE64_STANDARD.encode(format!("login:{secret}"));
        let percent = escaped(secret, |byte| format!("%{byte:02X}"));
        vec![
            ("as it is", secret.to_owned()),
            ("in capitals", secret.to_ascii_uppercase()),
            ("percent", percent.clone()),
            ("small digits", percent.to_lowercase()),
            ("percent twice", percent.replace('%', "%25")),
            ("JSON", quoted[1..quoted.len() - 1].to_owned()),
            ("JSON in JSON", twice[3..twice.len() - 3].to_owned()),
            ("slashes", secret.replace('\\', "\\\\").replace('/', "\\/")),
            ("HTML", html.replace('\'', "&#39;")),
            (
                "HTML of JSON",
                quoted[1..quoted.len() - 1].replace('"', "&quot;"),
            ),
            ("base64", BASE64_STANDARD.encode(secret)),
            ("without padding", BASE64_STANDARD_NO_PAD.encode(secret)),
            ("for URLs", BASE64_URL_SAFE_NO_PAD.encode(secret)),
            ("with a user", with_user.clone()),
            ("of JSON", with_user.replace('/', "\\/")),
        ]
    }

    #[test]
    fn a_secret_is_found_in_every_form_in_which_a_server_may_repeat_it() {
        for secret in SECRETS {
            for (form, text) in forms_of(secret) {
                let found = without(&[secret], &format!("before {text} after"));
                assert!(
                    found.starts_with("before ") && found.ends_with("[redacted] after"),
                    "{form}: {found}"
                );
                let is_cut = form == "with a user" || form == "of JSON";
                assert!(
                    is_cut || found == "before [redacted] after",
                    "{form}: {found}"
                );
            }
        }
        let characters = escaped("sk-12345678", |byte| format!("\\u{byte:04x}&#{byte};"));
        assert_eq!(
            without(
                &["ss kk--1122334455667788".replace(' ', "").as_str()],
                &characters
            ),
            "[redacted]"
        );
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_in_a_long_text() {
        for before in (WINDOW - 30..WINDOW + 700).step_by(7) {
            let text = format!(
                "{}sk%2d12345678 and so on%21{}",
                "é".repeat(before / 2),
                "x".repeat(WINDOW)
            );
            let found = without(&["sk-12345678"], &text);
            assert!(found.contains("é[redacted] and so on%21x"), "{before}");
        }
    }

    #[test]
    fn a_secret_with_the_longest_escapes_is_found_in_text_in_pieces() {
        let secret = "sk-1234567890abcdefghijklmnopqr";
        let references = escaped(secret, |byte| format!("&#x{byte:06x};"));
        let text = escaped(&references, |byte| format!("%25{byte:02X}"));
        assert_eq!(text.len(), secret.len() * LONGEST_ESCAPE);
        let secrets = Secrets::from_iter(&[Secret::new(secret)]);
        for size in [1, 7] {
            let mut redaction = Redaction::new(&secrets);
            let mut shown = String::new();
            for piece in text.as_bytes().chunks(size) {
                shown += &redaction.feed(str::from_utf8(piece).expect("text"));
            }
            assert_eq!(shown + &redaction.finish(), "[redacted]", "{size}");
        }
    }

    /// A text that comes in pieces, which end after these parts of it, without secrets.
    fn streamed(secrets: &Secrets, text: &str, ends: &[f64]) -> String {
        let mut ends = Vec::from_iter(ends.iter().map(|part| (text.len() as f64 * part) as usize));
        ends.sort_unstable();
        let mut redaction = Redaction::new(secrets);
        let mut shown = String::new();
        let mut start = 0;
        for end in ends {
            let end = char_before(text, end);
            shown += &redaction.feed(&text[start..end]);
            start = end;
        }
        shown + &redaction.feed(&text[start..]) + &redaction.finish()
    }

    /// Text that has no secret, but what may begin one.
    const HARMLESS: &str = r"([a-z0-9é .+=&;%\\]|%[0-9a-f]{0,2}|sk-1|pass |&amp|\\u00){0,40}";

    proptest! {
        #[test]
        fn text_without_a_secret_stays_unchanged(text in any::<String>()) {
            prop_assert_eq!(without(&["\u{7f}sk-12345678"], &text), text);
        }

        #[test]
        fn text_in_pieces_without_a_secret_stays_unchanged(
            text in HARMLESS,
            ends in prop::collection::vec(0.0..1.0, 0..20),
        ) {
            let secrets = Secrets::from_iter(&SECRETS.map(Secret::new));
            prop_assert_eq!(streamed(&secrets, &text, &ends), text);
        }

        #[test]
        fn no_form_of_a_secret_is_shown_wherever_the_text_is_split(
            before in HARMLESS,
            after in HARMLESS,
            padding in prop::sample::select(vec![0, 5_000, WINDOW]),
            secret in prop::sample::select(SECRETS.to_vec()),
            form in any::<prop::sample::Index>(),
            ends in prop::collection::vec(0.0..1.0, 0..20),
            at in 0.0..1.0,
            twice in any::<bool>(),
        ) {
            let secrets = Secrets::from_iter(&SECRETS.map(Secret::new));
            let forms = forms_of(secret);
            let (name, hidden) = form.get(&forms);
            let before = "x".repeat(padding) + &before;
            let repeated = hidden.repeat(1 + usize::from(twice));
            let text = format!("{before} {repeated} {after}");
            // One of the ends is in the secret, whatever the others are.
            let inside = (before.len() + 1) as f64 + hidden.len() as f64 * at;
            let ends = [&ends[..], &[inside / text.len() as f64]].concat();
            let shown = streamed(&secrets, &text, &ends);
            let rest = shown.strip_prefix(&format!("{before} "));
            let rest = rest.and_then(|rest| rest.strip_suffix(&format!(" {after}")));
            prop_assert!(rest.is_some(), "{name} of {secret}: {shown}");
            // Each part that has eight characters of the secret.
            let characters = Vec::from_iter(hidden.chars());
            let size = (characters.len() * MIN_REDACTED).div_ceil(secret.chars().count());
            // A user is shown.
            let user = if hidden.starts_with("bG9naW46") { 8 } else { 0 };
            for part in characters[user..].windows(size.max(MIN_REDACTED)) {
                let part = String::from_iter(part);
                prop_assert!(!shown.contains(&part), "{part} of {name} of {secret}: {shown}");
            }
        }
    }
}
