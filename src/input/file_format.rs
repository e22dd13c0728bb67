//! Reads what a file of `-a` is by its bytes: an image, a PDF, text in UTF-8 or UTF-16, or a notebook (pure).

use std::borrow::Cow;
use std::ops::Range;
use std::str::Utf8Chunk;

use serde::Deserialize;

use crate::message::or_default;
use crate::text::media::{PDF, before_pdf, media_type};

/// The beginning of a text in UTF-8, or in UTF-16 of either byte order.
const UTF_8: &[u8] = b"\xEF\xBB\xBF";
const UTF_16_LITTLE: &[u8] = b"\xFF\xFE";
const UTF_16_BIG: &[u8] = b"\xFE\xFF";

/// No text in UTF-8 has this byte.
const NOT_UTF_8: u8 = 0xFF;

/// How many bytes show whether a text is in UTF-16.
const LOOKED_AT: usize = 4096;

/// The fewest units that show it where most are not ASCII.
const FEW_UNITS: usize = 8;

/// The most bytes of a text in which one place shows its encoding.
const SHORT: usize = 200;

/// The beginning of a text in UTF-32 of either byte order, which q does not read. One begins as UTF-16 does.
const UTF_32_LITTLE: &[u8] = b"\xFF\xFE\0\0";
const UTF_32_BIG: &[u8] = b"\0\0\xFE\xFF";

/// Returns the media type of an image or a PDF, and its bytes without what is before them.
pub fn media_of(bytes: &[u8]) -> Option<(&'static str, &[u8])> {
    if let Some(media) = media_type(bytes) {
        return Some((media, bytes));
    }
    let start = before_pdf(bytes)?;
    Some((PDF, &bytes[start..]))
}

/// Whether a text begins with the mark of UTF-16.
pub fn is_utf_16(bytes: &[u8]) -> bool {
    let has_mark = bytes.starts_with(UTF_16_LITTLE) || bytes.starts_with(UTF_16_BIG);
    has_mark && !bytes.starts_with(UTF_32_LITTLE)
}

/// Whether a text begins with the mark of UTF-32.
pub fn is_utf_32(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF_32_LITTLE) || bytes.starts_with(UTF_32_BIG)
}

/// Returns the encoding in which a text is read.
pub fn encoding_of(bytes: &[u8]) -> &'static str {
    if is_utf_16(bytes) { "UTF-16" } else { "UTF-8" }
}

/// The encoding of what seems to be text in UTF-16 without a byte order mark, by its name for `iconv`. No unit is zero, and most
/// characters are printable ASCII, or all are usual ones.
pub fn utf_16_without_mark(bytes: &[u8]) -> Option<&'static str> {
    let pairs = bytes[..bytes.len().min(LOOKED_AT)].as_chunks::<2>().0;
    if pairs.contains(&[0, 0]) {
        return None;
    }
    let is_ascii = |unit: &u16| u8::try_from(*unit).is_ok_and(is_ascii_text);
    let little = Vec::from_iter(pairs.iter().map(|unit| u16::from_le_bytes(*unit)));
    let big = Vec::from_iter(little.iter().map(|unit| unit.swap_bytes()));
    for (encoding, units) in [("UTF-16LE", little), ("UTF-16BE", big)] {
        let ascii = units.iter().filter(|unit| is_ascii(unit)).count();
        let is_mostly_ascii = ascii * 4 > units.len() * 3;
        if is_mostly_ascii || ascii > 0 && is_usual_text(&units) && !is_separated_by_zeros(bytes) {
            return Some(encoding);
        }
    }
    None
}

fn is_ascii_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// Whether these units are enough to judge, and all are characters that are usual in a text: of the alphabets, the ideographs and
/// syllables of East Asia, or punctuation and symbols. Only the last unit may be half a character.
fn is_usual_text(units: &[u16]) -> bool {
    let last = units.len().saturating_sub(1);
    let whole = match units.last() {
        Some(0xD800..0xDC00) => &units[..last],
        _ => units,
    };
    let is_usual = |character: char| match character {
        '\0'..='\x7F' => is_ascii_text(character as u8),
        '\u{a0}'..='\u{e7f}' | '\u{1e00}'..='\u{27bf}' => true,
        '\u{3000}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' => true,
        '\u{ac00}'..='\u{d7a3}' | '\u{ff01}'..='\u{ffee}' => true,
        '\u{1f000}'..='\u{1faff}' => true,
        _ => false,
    };
    let mut characters = char::decode_utf16(whole.iter().copied());
    whole.len() >= FEW_UNITS && characters.all(|character| character.is_ok_and(is_usual))
}

/// Whether bytes are text in UTF-8 but for zeros between its parts, such as the paths of `find -print0`.
fn is_separated_by_zeros(bytes: &[u8]) -> bool {
    let is_text =
        |character: char| !character.is_control() || matches!(character, '\0' | '\t' | '\n' | '\r');
    str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_text))
}

/// What bytes that are not UTF-8 seem to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeemingText {
    /// UTF-8 that ends within a character.
    Cut,
    /// Text of Western Europe with one byte for each character, in the encoding with this name for `iconv`.
    Western(&'static str),
}

/// Returns what bytes that are not UTF-8 seem to be; `None` unless that is rather sure. It is no place to guess: text in the
/// wrong encoding reads worse after `iconv` than with a few characters missing.
pub fn seeming_text(bytes: &[u8]) -> Option<SeemingText> {
    if ends_within_character(bytes) {
        return Some(SeemingText::Cut);
    }
    if let Some(encoding) = western_encoding(bytes) {
        return Some(SeemingText::Western(encoding));
    }
    // A shell or an editor may have ended the last line.
    ends_within_character(bytes.trim_ascii_end()).then_some(SeemingText::Cut)
}

/// Whether bytes are UTF-8 but for the missing end of their last character.
fn ends_within_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The encoding of what seems to be text of Western Europe, by its name for `iconv`: its bytes beyond ASCII stand as the
/// letters and signs that they are there, most of them alone, and none is UTF-8.
fn western_encoding(bytes: &[u8]) -> Option<&'static str> {
    let may_be_utf_8 = |chunk: Utf8Chunk| {
        // More than one byte is the beginning of a character in UTF-8.
        !chunk.valid().is_ascii() || chunk.invalid().len() > 1
    };
    if bytes.utf8_chunks().any(may_be_utf_8) {
        return None;
    }
    let (mut single, mut double, mut sure) = (0, 0, 0);
    for run in runs_beyond_ascii(bytes) {
        match run.len() {
            1 => single += 1,
            2 => double += 1,
            _ => return None,
        }
        if !can_be_western(bytes, &run) {
            return None;
        }
        sure += usize::from(is_surely_western(bytes, &run));
    }
    let needed = if bytes.len() > SHORT { 2 } else { 1 };
    if single <= double || sure < needed {
        return None;
    }
    // ISO-8859-1 has controls there.
    let is_windows = bytes.iter().any(|byte| (0x80..0xA0).contains(byte));
    Some(if is_windows {
        "WINDOWS-1252"
    } else {
        "ISO-8859-1"
    })
}

/// Returns where bytes beyond ASCII are, each time as many as stand together.
fn runs_beyond_ascii(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    let runs = bytes.chunk_by(|byte, next| byte.is_ascii() == next.is_ascii());
    let places = runs.map(move |run| {
        let start = end;
        end += run.len();
        start..end
    });
    places.filter(|place| !bytes[place.start].is_ascii())
}

/// Returns the bytes before and after a place of a text, blanks at its ends.
fn around(bytes: &[u8], place: &Range<usize>) -> [u8; 2] {
    let before = bytes[..place.start].last();
    let after = bytes.get(place.end);
    [before, after].map(|byte| byte.copied().unwrap_or(b' '))
}

/// Whether a run of bytes beyond ASCII can be of text in Windows-1252: each of them can stand there, and it is at a word.
fn can_be_western(bytes: &[u8], run: &Range<usize>) -> bool {
    let can_all_stand = run.clone().all(|index| {
        let [before, after] = around(bytes, &(index..index + 1));
        can_stand(before, bytes[index], after)
    });
    let is_near = |byte: &u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace();
    can_all_stand && around(bytes, run).iter().any(is_near)
}

/// Whether a run of bytes beyond ASCII shows that a text is of Western Europe. A letter by itself says nothing, nor does what may
/// be the rest or the beginning of a character in UTF-8.
fn is_surely_western(bytes: &[u8], run: &Range<usize>) -> bool {
    let (first, last) = (bytes[run.start], bytes[run.end - 1]);
    let is_cut = run.start == 0 && first < 0xC0 || run.end == bytes.len() && last >= 0xC2;
    let is_in_word = around(bytes, run).iter().any(u8::is_ascii_alphabetic);
    !is_cut && (is_in_word || !is_western_letter(first))
}

/// Whether a byte beyond ASCII can stand between these two in text in Windows-1252. What is rare in Western Europe, and common in
/// other encodings, cannot.
fn can_stand(before: u8, byte: u8, after: u8) -> bool {
    let is_within_word = is_western_letter(before) && is_western_letter(after);
    match byte {
        // ‚ and „ begin a quotation.
        0x82 | 0x84 => !is_western_letter(before),
        // ” and ™ end something.
        0x94 | 0x99 => !before.is_ascii_whitespace() && !is_western_letter(after),
        // An apostrophe.
        0x92 => true,
        0x80 | 0x85 | 0x91 | 0x93 | 0x95..=0x97 => !is_within_word,
        0x80..0xA0 => false,
        // Icelandic has these letters, where Turkish has others.
        0xD0 | 0xDD | 0xDE | 0xF0 | 0xFD | 0xFE => false,
        // No capital follows a small letter.
        0xC0..0xDF if byte != 0xD7 => !before.is_ascii_lowercase() && before < 0xDF,
        0xDF.. if byte != 0xF7 => true,
        _ => !is_within_word,
    }
}

/// Whether a byte is a letter in Windows-1252, of those that both it and ISO-8859-1 have.
fn is_western_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0xC0 && !matches!(byte, 0xD7 | 0xF7)
}

/// Returns a text without its byte order mark, in UTF-8. What is not UTF-16 after a mark of it stays no UTF-8, so that a note
/// says so.
pub fn without_mark(bytes: Vec<u8>) -> Vec<u8> {
    if let Some(text) = bytes.strip_prefix(UTF_8) {
        return text.to_vec();
    }
    let (units, to_unit): (_, fn([u8; 2]) -> u16) = if bytes.starts_with(UTF_32_LITTLE) {
        return bytes;
    } else if let Some(units) = bytes.strip_prefix(UTF_16_LITTLE) {
        (units, u16::from_le_bytes)
    } else if let Some(units) = bytes.strip_prefix(UTF_16_BIG) {
        (units, u16::from_be_bytes)
    } else {
        return bytes;
    };
    let (units, half) = units.as_chunks::<2>();
    let mut text = Vec::new();
    for character in char::decode_utf16(units.iter().copied().map(to_unit)) {
        match character {
            Ok(character) => text.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            Err(_) => text.push(NOT_UTF_8),
        }
    }
    if !half.is_empty() {
        text.push(NOT_UTF_8);
    }
    text
}

/// A notebook (nbformat 4).
#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow)]
    cells: Vec<Cell<'a>>,
    /// Tells it from other files with cells.
    #[serde(rename = "nbformat")]
    _nbformat: u64,
}

#[derive(Deserialize)]
struct Cell<'a> {
    #[serde(borrow)]
    cell_type: Cow<'a, str>,
    source: CellSource,
    #[serde(default, deserialize_with = "or_default")]
    outputs: Vec<CellOutput>,
}

/// The text of a cell: one string, or a list of its lines with their ends.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum CellSource {
    #[default]
    None,
    Whole(String),
    Lines(Vec<String>),
}

/// The output of a cell, as far as it is text.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CellOutput {
    #[serde(deserialize_with = "or_default")]
    text: CellSource,
    #[serde(deserialize_with = "or_default")]
    data: CellData,
    #[serde(deserialize_with = "or_default")]
    ename: String,
    #[serde(deserialize_with = "or_default")]
    evalue: String,
    /// With escape sequences for a terminal.
    #[serde(deserialize_with = "or_default")]
    traceback: Vec<String>,
}

/// A value in several forms.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CellData {
    #[serde(rename = "text/plain", deserialize_with = "or_default")]
    plain: CellSource,
}

impl CellSource {
    fn text(self) -> String {
        match self {
            CellSource::None => String::new(),
            CellSource::Whole(text) => text,
            CellSource::Lines(lines) => lines.concat(),
        }
    }
}

/// Returns the text of the cells of a notebook, each after a line `# %%` as in a script; `None` if the text is no notebook.
/// Images and tables that it has printed may have megabytes, and say nothing to a model as text.
pub fn notebook_text(text: &str) -> Option<String> {
    let notebook: Notebook = serde_json::from_str(text).ok()?;
    let mut script = String::new();
    for cell in notebook.cells {
        match &*cell.cell_type {
            "code" => script.push_str("# %%\n"),
            kind => script.push_str(&format!("# %% [{kind}]\n")),
        }
        push_lines(&mut script, &cell.source.text());
        for output in cell.outputs {
            let mut printed = output.text.text() + &output.data.plain.text();
            if !output.traceback.is_empty() {
                printed = without_styles(&output.traceback.join("\n"));
            } else if !output.ename.is_empty() {
                printed = format!("{}: {}", output.ename, output.evalue);
            }
            if !printed.is_empty() {
                script.push_str("# %% [output]\n");
                push_lines(&mut script, &printed);
            }
        }
    }
    Some(script)
}

/// Returns a text without the sequences that colour it on a terminal.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\x1B[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_parameter = |character: char| character.is_ascii_digit() || character == ';';
        let rest = part.trim_start_matches(is_parameter);
        plain.push_str(rest.strip_prefix('m').unwrap_or(rest));
    }
    plain
}

fn push_lines(script: &mut String, text: &str) {
    script.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        script.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_decides_the_encoding_of_a_text() {
        for (bytes, text) in [
            (&b"\xEF\xBB\xBFa"[..], "a"),
            (b"\xFF\xFEa\0\xE9\0", "aé"),
            (b"\xFE\xFF\0a\0\xE9", "aé"),
            (b"\xFF\xFE\x3D\xD8\x00\xDE", "😀"),
            (b"\xFF\xFE", ""),
            ("a\u{FEFF}".as_bytes(), "a\u{FEFF}"),
            (b"", ""),
        ] {
            assert_eq!(without_mark(bytes.to_vec()), text.as_bytes(), "{bytes:?}");
        }
        for (bytes, text) in [
            (&b"\xFF\xFE\x3D\xD8a\0"[..], &b"\xFFa"[..]),
            (b"\xFF\xFEa\0b", b"a\xFF"),
        ] {
            assert_eq!(without_mark(bytes.to_vec()), text, "{bytes:?}");
        }
        let utf_32 = b"\xFF\xFE\0\0a\0\0\0".to_vec();
        assert_eq!(without_mark(utf_32.clone()), utf_32);
    }

    #[test]
    fn text_in_utf_16_is_recognized_without_a_mark() {
        for (bytes, encoding) in [
            (&b"a\0b\0\n\0"[..], Some("UTF-16LE")),
            (b"\0a\0b\0\n", Some("UTF-16BE")),
            (b"a\0b\0c\0d\0\xE9\x20", Some("UTF-16LE")),
            (b"a\0b\0c\0\xE9\x20", None),
            (b"a\0b\0c\0d\0\0\0", None),
            (b"\x01\0\x02\0", None),
            (b"ab", None),
            (b"", None),
        ] {
            assert_eq!(utf_16_without_mark(bytes), encoding, "{bytes:?}");
        }
        for text in [
            "名称,数量,价格\n苹果,10,3.50\n".repeat(20).as_str(),
            "名称,数量,价格\n苹果,10,3.50\n".repeat(500).as_str(),
            "12:00 Сервер запущен: порт 80\r\n12:01 Ошибка — нет «файла» №5\r\n",
            "标题 Title 中文",
            "見出し、テスト 1\n",
            "안녕하세요 여러분, 반갑습니다\n",
            "Καλημέρα, κόσμε\n",
            "שלום עולם 123",
            "مرحبا بالعالم 123",
            "สวัสดี ชาวโลก",
            "Größe und Übermaß: 5 €\n",
            "Tiếng Việt có dấu\n",
            "日本語のテスト 🎉 です\n",
            &"🎉 ".repeat(3_000),
        ] {
            let units = || text.encode_utf16();
            let little = Vec::from_iter(units().flat_map(u16::to_le_bytes));
            let big = Vec::from_iter(units().flat_map(u16::to_be_bytes));
            assert_eq!(utf_16_without_mark(&little), Some("UTF-16LE"), "{text}");
            assert_eq!(utf_16_without_mark(&big), Some("UTF-16BE"), "{text}");
        }
    }

    #[test]
    fn binary_data_is_not_called_text_in_utf_16() {
        let samples = (0..200_i16).flat_map(|time| (time * 37 % 251 - 125).to_le_bytes());
        let samples = Vec::from_iter(samples);
        for (name, bytes) in [
            ("ELF", &b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\0\x01\0\0\0"[..]),
            ("PNG", b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0"),
            ("zip", b"PK\x03\x04\x14\0\x08\0\x08\0\x21\x84\x5A\x59\x12\x34\x56\x78"),
            ("SQLite", b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20\0\0\0\x05"),
            ("WAVE", b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x44\xAC\0\0"),
            ("samples", &samples),
            ("Java class", b"\xCA\xFE\xBA\xBE\0\0\0\x34\0\x1D\x0A\0\x06\0\x0F"),
            ("MP4", b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41"),
            ("gzip", b"\x1F\x8B\x08\0\x12\x34\x56\x67\0\x03\x4B\x4C\x4A\xE6\x02\0\x4E\x81\x88\x47\x04\0\0\0"),
            ("bzip2", b"BZh91AY&SY\xD8\x72\x01\x2F\0\0\x01\x57\x80\0\x10\x40"),
            ("xz", b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46\x02\0\x21\x01\x16\0\0\0"),
            ("zstd", b"\x28\xB5\x2F\xFD\x04\x58\x41\0\0\x61\x62\x63\x0A\xDE\xAD\xBE\xEF"),
            ("TIFF", b"II*\0\x08\0\0\0\x0E\0\xFE\0\x04\0\x01\0\0\0"),
            ("icon", b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0\x68\x04\0\0"),
            ("WebAssembly", b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0"),
            ("tar", &[&b"name.txt"[..], &[0; 92], b"0000644\0" as &[u8]].concat()),
            ("names with zeros between", b"one\0two\0ten\0six\0one\0two\0ten\0six\0"),
            ("names in UTF-8", "один\0dva\0три\0\0".repeat(4).trim_end_matches('\0').as_bytes()),
            ("few bytes", b"\x54\x0D\x2C\0\x54\x0D"),
        ] {
            assert_eq!(utf_16_without_mark(bytes), None, "{name}");
        }
    }

    #[test]
    fn text_that_is_not_utf_8_is_called_western_or_cut_only_if_that_is_rather_sure() {
        const LATIN_1: Option<SeemingText> = Some(SeemingText::Western("ISO-8859-1"));
        const WINDOWS: Option<SeemingText> = Some(SeemingText::Western("WINDOWS-1252"));
        const CUT: Option<SeemingText> = Some(SeemingText::Cut);
        let long = b"words ".repeat(50);
        let with_one = [&long[..], b"caf\xE9 ", &long].concat();
        let with_two = [&with_one[..], b"cr\xE8me\n"].concat();
        for (bytes, expected) in [
            (&b"sch\xF6ne Gr\xFC\xDFe f\xFCr \xC4rzte"[..], LATIN_1),
            (
                b"Un compte cr\xE9\xE9 a \xE9t\xE9 ferm\xE9 \xE0 midi.\n",
                LATIN_1,
            ),
            (b"\xBFQu\xE9 a\xF1o? \xA1Ma\xF1ana!\n", LATIN_1),
            (b"S\xE3o Paulo, cora\xE7\xE3o, n\xE3o\n", LATIN_1),
            (b"na\xEFve \xE9t\xE9", LATIN_1),
            (b"caf\xE9\n", LATIN_1),
            (b"20 \xB0C, \xA7 5, 3\xD74\n", LATIN_1),
            (b"10 \x80, it\x92s", WINDOWS),
            (
                b"\x93Sch\xF6n\x94, \x84gut\x93 \x96 und so weiter\x85\n",
                WINDOWS,
            ),
            (&with_two, LATIN_1),
            // One place is not enough.
            (&with_one, None),
            // Nothing is wrong with it, or a part is UTF-8.
            (b"abc", None),
            ("grün".as_bytes(), None),
            (b"gr\xC3\xBCn gr\xFCn", None),
            (b"", None),
            // Cut, or with the rest of something cut.
            (b"caf\xC3", CUT),
            (b"caf\xE9", CUT),
            (b"caf\xC3\n", CUT),
            (b"a\xE2\x80", CUT),
            (b"a\xE2\x80\r\n", CUT),
            (b"\xC3\xA9t\xC3", CUT),
            (b"a\xF0\x9F\x98", CUT),
            (b"a\xE2\x80\nb", None),
            (b"caf\xC3\nand more", None),
            (b"\xA9 and more", None),
            (b"\x80\x93 and more", None),
            (b"caf\xE9 \xF0\x9F au lait", None),
            // Windows has no such character, or it stands wrong: Mac OS Roman, DOS.
            (b"abc\x81", None),
            (b"Caf\x8E", None),
            (b"Caf\x8E\n", None),
            (b"It\xD5s \xD2fine\xD3\n", None),
            (b"Gro\xA7e Espa\x96a\n", None),
            (b"caf\x82 cr\x82e\n", None),
            (b"sch\x94ne \x94ffnung\n", None),
            // Japanese in Shift-JIS, Russian in KOI8-R and Windows-1251, Chinese in GBK, Polish, Turkish.
            (b"// \x93\xFA\x96\x7B\x8C\xEA comment", None),
            (b"\xF0\xD2\xC9\xD7\xC5\xD4 ok", None),
            (
                b"a long comment in ASCII, \xCF\xF0\xE8\xE2\xE5\xF2 and more\n",
                None,
            ),
            (b"a long comment in ASCII, \xCE\xC1 and more\n", None),
            (b"speed: 5 \xEC, 7 \xEA\n", None),
            (b"\xC4\xE3\xBA\xC3", None),
            (
                b"a long comment in ASCII, \xC4\xE3\xBA\xC3 and more\n",
                None,
            ),
            (b"price: 10\xD4\xAA each\n", None),
            (b"Za\xBF\xF3\xB3\xE6 g\xEA\xB6l\xB1\n", None),
            (b"da\xF0 k\xFDz\n", None),
            (b"=\xE9=", None),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(seeming_text(bytes), expected, "{shown}");
        }
    }

    #[test]
    fn a_null_field_in_the_output_of_a_notebook_counts_as_missing() {
        let output = |fields: &str| {
            format!(
                r#"{{"cells":[{{"cell_type":"code","source":"1","outputs":[{{"text":["2"],{fields}}}]}}],"nbformat":4}}"#
            )
        };
        let expected = Some("# %%\n1\n# %% [output]\n2\n".to_owned());
        for fields in [
            r#""data":null"#,
            r#""data":{"text/plain":null}"#,
            r#""ename":null,"evalue":null"#,
            r#""traceback":null"#,
        ] {
            assert_eq!(notebook_text(&output(fields)), expected, "{fields}");
        }
        let without =
            r#"{"cells":[{"cell_type":"code","source":"1","outputs":null}],"nbformat":4}"#;
        assert_eq!(notebook_text(without).as_deref(), Some("# %%\n1\n"));
    }

    #[test]
    fn a_notebook_is_attached_as_the_text_of_its_cells() {
        let notebook = r##"{"cells":[
            {"cell_type":"markdown","metadata":{},"source":["# Title\n","text"]},
            {"cell_type":"code","execution_count":1,"metadata":{},"source":"print(1)\n1/0","outputs":[
                {"output_type":"stream","name":"stdout","text":["1\n"]},
                {"output_type":"display_data","data":{"image/png":"iVBORw0KGgo="},"metadata":{}},
                {"output_type":"execute_result","data":{"text/plain":["42"]},"metadata":{}},
                {"output_type":"error","ename":"KeyError","evalue":"'a'","traceback":["\u001b[0;31mKeyError\u001b[0m","line 3"]},
                {"output_type":"error","ename":"ZeroDivisionError","evalue":"division by zero","traceback":[]}]},
            {"cell_type":"code","metadata":{},"source":[],"outputs":[]}],
            "metadata":{},"nbformat":4,"nbformat_minor":5}"##;
        let expected = "# %% [markdown]\n# Title\ntext\n# %%\nprint(1)\n1/0\n# %% [output]\n1\n# %% [output]\n\
                        42\n# %% [output]\nKeyError\nline 3\n# %% [output]\nZeroDivisionError: division by zero\n# %%\n";
        assert_eq!(notebook_text(notebook).as_deref(), Some(expected));
        for other in [
            "",
            "{}",
            r#"{"cells":[]}"#,
            r#"{"cells":[{"source":1}],"nbformat":4}"#,
        ] {
            assert_eq!(notebook_text(other), None, "{other}");
        }
    }
}
