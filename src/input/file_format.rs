//! Reads what a file of `-a` is by its bytes: an image, a PDF, text in UTF-8 or UTF-16, or a notebook (pure).

use std::borrow::Cow;

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

/// The encoding of what seems to be text in UTF-16 without a byte order mark, by its name for `iconv`: most of its characters
/// are printable ASCII, and none is zero.
pub fn utf_16_without_mark(bytes: &[u8]) -> Option<&'static str> {
    let units = bytes[..bytes.len().min(LOOKED_AT)].as_chunks::<2>().0;
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    for (encoding, low) in [("UTF-16LE", 0), ("UTF-16BE", 1)] {
        let ascii = units
            .iter()
            .filter(|unit| unit[1 - low] == 0 && is_text(&unit[low]));
        if ascii.count() * 4 > units.len() * 3 && !units.contains(&[0, 0]) {
            return Some(encoding);
        }
    }
    None
}

/// The encoding of what seems to be text of Western Europe with one byte for each character, by its name for `iconv`: fewer of
/// its letters are beyond ASCII than in it, and none is UTF-8.
pub fn western_encoding(bytes: &[u8]) -> Option<&'static str> {
    let mut encoding = "ISO-8859-1";
    let (mut in_ascii, mut beyond) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_ascii() {
            return None;
        }
        in_ascii += chunk
            .valid()
            .bytes()
            .filter(u8::is_ascii_alphabetic)
            .count();
        beyond += chunk.invalid().len();
        for byte in chunk.invalid() {
            match byte {
                // Windows has no character here.
                0x81 | 0x8D | 0x8F | 0x90 | 0x9D => return None,
                0x80..0xA0 => encoding = "WINDOWS-1252",
                _ => {}
            }
        }
    }
    (1..=in_ascii).contains(&beyond).then_some(encoding)
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
    }

    #[test]
    fn text_of_western_europe_is_recognized_if_most_of_its_letters_are_ascii() {
        for (bytes, encoding) in [
            (&b"gr\xFC\xDFe"[..], Some("ISO-8859-1")),
            (b"na\xEFve \xE9t\xE9", Some("ISO-8859-1")),
            (b"10 \x80, it\x92s", Some("WINDOWS-1252")),
            // Nothing is wrong with it, or a part is UTF-8.
            (b"abc", None),
            ("grün".as_bytes(), None),
            (b"gr\xC3\xBCn gr\xFCn", None),
            (b"", None),
            // Windows has no such character.
            (b"abc\x81", None),
            // Russian in KOI8-R, Chinese in GBK.
            (b"\xF0\xD2\xC9\xD7\xC5\xD4 ok", None),
            (b"\xC4\xE3\xBA\xC3", None),
        ] {
            assert_eq!(western_encoding(bytes), encoding, "{bytes:?}");
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
