//! Replaces the escapes of URLs, JSON and HTML in a text, and remembers where each byte comes from (pure).

use super::digits::whole_number;

/// How often a text may have been escaped.
const MAX_ROUNDS: usize = 3;

/// The most bytes of an escape of HTML, such as `&#x1F600;`.
const MAX_REFERENCE: usize = 10;

/// The most bytes that a byte of a text takes after programs have escaped it [`MAX_ROUNDS`] times: as a reference of HTML, of which
/// URLs escape each byte, and then their own percent signs. Nobody knows of a program that makes more of it.
pub const LONGEST_ESCAPE: usize = MAX_REFERENCE * "%2526".len();

/// The characters that HTML names, of those that every program escapes.
const NAMED: [(&[u8], char); 5] = [
    (b"amp", '&'),
    (b"lt", '<'),
    (b"gt", '>'),
    (b"quot", '"'),
    (b"apos", '\''),
];

/// A text whose escapes are replaced by what they mean.
pub struct Unescaped {
    pub bytes: Vec<u8>,
    /// The place of each byte in the original text. Last is its end, or where the escape begins that is left out.
    pub places: Vec<usize>,
}

/// The escape at the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
enum Escape {
    /// No escape.
    None,
    /// An escape of this many bytes for a byte.
    Byte(u8, usize),
    /// An escape of this many bytes for a character.
    Char(char, usize),
    /// The text ends, perhaps within an escape.
    Cut,
}

/// Returns the text after each round in which escapes are replaced; an escape may be escaped itself. Empty if there is none. At
/// the end of the text, an escape that may have been cut is left out.
pub fn unescaped(text: &[u8]) -> Vec<Unescaped> {
    let mut rounds: Vec<Unescaped> = Vec::new();
    while rounds.len() < MAX_ROUNDS {
        let next = match rounds.last() {
            Some(last) => unescape(&last.bytes, |place| last.places[place]),
            None => unescape(text, |place| place),
        };
        let Some(next) = next else {
            break;
        };
        rounds.push(next);
    }
    rounds
}

/// Replaces the escapes in a text, whose bytes have these places in the original one; `None` if there is no escape.
fn unescape(text: &[u8], place_of: impl Fn(usize) -> usize) -> Option<Unescaped> {
    let first = text.iter().position(|byte| b"%\\&".contains(byte))?;
    let mut bytes = text[..first].to_vec();
    let mut places = Vec::from_iter((0..first).map(&place_of));
    let mut has_escape = false;
    let mut at = first;
    let mut end = text.len();
    while at < text.len() {
        let escape = read_escape(&text[at..]);
        let is_escape = escape != Escape::None;
        let length = match escape {
            Escape::None => {
                bytes.push(text[at]);
                1
            }
            Escape::Byte(byte, length) => {
                bytes.push(byte);
                length
            }
            Escape::Char(char, length) => {
                bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                length
            }
            Escape::Cut => {
                end = at;
                text.len() - at
            }
        };
        has_escape |= is_escape;
        places.resize(bytes.len(), place_of(at));
        at += length;
    }
    places.push(place_of(end));
    has_escape.then_some(Unescaped { bytes, places })
}

/// Reads the escape at the beginning of a text that is not empty.
fn read_escape(text: &[u8]) -> Escape {
    match (text[0], text.get(1)) {
        (b'%' | b'\\' | b'&', None) => Escape::Cut,
        (b'%', _) => hex_escape(text, 1, 2),
        (b'&', _) => reference(text),
        (b'\\', Some(letter)) => match letter {
            b'"' | b'\'' | b'\\' | b'/' => Escape::Byte(*letter, 2),
            b'n' => Escape::Byte(b'\n', 2),
            b'r' => Escape::Byte(b'\r', 2),
            b't' => Escape::Byte(b'\t', 2),
            b'b' => Escape::Byte(8, 2),
            b'f' => Escape::Byte(12, 2),
            b'x' => hex_escape(text, 2, 2),
            b'u' => unicode_escape(text),
            _ => Escape::None,
        },
        _ => Escape::None,
    }
}

/// Returns the number that hexadecimal digits from here on mean. The error says whether the text ends before them.
fn hex(text: &[u8], from: usize, digits: usize) -> Result<u32, Escape> {
    let end = text.len().min(from + digits);
    let mut number = 0;
    for byte in &text[from.min(end)..end] {
        let digit = char::from(*byte).to_digit(16).ok_or(Escape::None)?;
        number = number * 16 + digit;
    }
    if end < from + digits {
        return Err(Escape::Cut);
    }
    Ok(number)
}

/// Returns an escape for a byte: digits behind a prefix.
fn hex_escape(text: &[u8], prefix: usize, digits: usize) -> Escape {
    match hex(text, prefix, digits) {
        Ok(number) => Escape::Byte(number as u8, prefix + digits),
        Err(escape) => escape,
    }
}

/// Reads `\u00e9`, or two of them for a character that UTF-16 has in two halves.
fn unicode_escape(text: &[u8]) -> Escape {
    let first = match hex(text, 2, 4) {
        Ok(first) => first,
        Err(escape) => return escape,
    };
    if let Some(char) = char::from_u32(first) {
        return Escape::Char(char, 6);
    }
    if text.len() > 6 && !b"\\u".starts_with(&text[6..text.len().min(8)]) {
        return Escape::None;
    }
    let second = match hex(text, 8, 4) {
        Ok(second) => second,
        Err(escape) => return escape,
    };
    let halves = [first as u16, second as u16];
    match char::decode_utf16(halves).next() {
        Some(Ok(char)) => Escape::Char(char, 12),
        _ => Escape::None,
    }
}

/// Reads `&amp;`, `&#38;` or `&#x26;`.
fn reference(text: &[u8]) -> Escape {
    let beginning = &text[1..text.len().min(MAX_REFERENCE)];
    let Some(length) = beginning.iter().position(|byte| *byte == b';') else {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let may_go_on = text.len() < MAX_REFERENCE && beginning.iter().all(is_name);
        return if may_go_on { Escape::Cut } else { Escape::None };
    };
    let name = &beginning[..length];
    let number = str::from_utf8(name).ok().and_then(|name| {
        let number = name.strip_prefix('#')?;
        match number.strip_prefix(['x', 'X']) {
            Some(digits) if digits.starts_with('+') => None,
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => whole_number(number),
        }
    });
    let mut named = NAMED.iter().filter(|(known, _)| *known == name);
    let char = match number {
        Some(number) => char::from_u32(number),
        None => named.next().map(|(_, char)| *char),
    };
    char.map_or(Escape::None, |char| Escape::Char(char, length + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn escapes_of_urls_json_and_html_are_replaced() {
        let table = r##"
            a%2fb%2Fc | a/b/c
            %C3%a9 | é
            100% of | -
            50%25 | 50%
            a\/b\"c\\d\u002De\x2df | a/b"c\d-e-f
            \u00e9 \ud83d\ude00 | é 😀
            \ud83d \ud83dx \q | -
            &amp;&lt;&gt;&quot;&apos; | &<>"'
            &#38;&#x26;&#X26; | &&&
            &nbsp; & x; &#xzz; &#1114112; &#+38; &#x+26; | -
            a%2 | a
            ab%25\u00 | ab%
            x&qu | x
            x\ | x
            🙂%41 | 🙂A
        "##;
        for [text, plain] in rows(table) {
            let rounds = unescaped(text.as_bytes());
            let found = rounds
                .first()
                .map_or("", |round| str::from_utf8(&round.bytes).expect("text"));
            assert_eq!(found, plain, "{text}");
        }
    }

    #[test]
    fn nested_escapes_are_replaced_and_each_byte_keeps_its_original_place() {
        let rounds = unescaped(b"a%255cu0062c");
        let texts = Vec::from_iter(rounds.iter().map(|round| &*round.bytes));
        assert_eq!(texts, [&b"a%5cu0062c"[..], b"a\\u0062c", b"abc"]);
        assert_eq!(rounds[2].places, [0, 1, 11, 12]);
        assert!(unescaped(b"").is_empty() && unescaped(b"plain").is_empty());
    }
}
