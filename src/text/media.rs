//! Recognizes images and PDFs by their first bytes (pure).

/// The first bytes of images and PDFs, and their media types. A WebP has its mark only at the eighth byte.
const MEDIA: &[(&[u8], &str)] = &[
    (b"\xFF\xD8\xFF", "image/jpeg"),
    (b"\x89PNG\r\n\x1A\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (PDF_MARK, PDF),
];

/// The media type of a PDF.
pub const PDF: &str = "application/pdf";

const PDF_MARK: &[u8] = b"%PDF-";

/// How far behind the first byte a PDF may begin, as its readers have it (PDF 1.7, Adobe's implementation note 13).
const MAX_BEFORE_PDF: usize = 1_024;

/// Returns the media type of an image or a PDF that every API takes.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    for (beginning, media) in MEDIA {
        if bytes.starts_with(beginning) {
            return Some(media);
        }
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    None
}

/// Counts the bytes of something else before a PDF; `None` if it is none. A text that mentions the mark is a text.
pub fn before_pdf(bytes: &[u8]) -> Option<usize> {
    let beginning = &bytes[..bytes.len().min(MAX_BEFORE_PDF + PDF_MARK.len())];
    let mut windows = beginning.windows(PDF_MARK.len());
    let start = windows.position(|window| window == PDF_MARK)?;
    let before = &bytes[..start];
    let mark = before.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(before);
    let end = &bytes[bytes.len().saturating_sub(MAX_BEFORE_PDF)..];
    let is_whole = || memchr::memmem::find(end, b"%%EOF").is_some();
    let is_text = || !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    let is_pdf = mark.trim_ascii().is_empty() || is_whole() || !is_text();
    is_pdf.then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_pdfs_are_recognized_by_their_first_bytes() {
        for (bytes, media) in [
            (&b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xFF\xD8\xFF\xE0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF87a\x01\0", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"RIFF\x24\0\0\0WAVEfmt ", None),
            (b"What is WEBP?", None),
            (b" %PDF-1.7", None),
        ] {
            assert_eq!(media_type(bytes), media, "{bytes:?}");
        }
    }

    #[test]
    fn a_pdf_is_recognized_after_a_limited_number_of_other_bytes() {
        let far = [&[b' '; MAX_BEFORE_PDF][..], b"%PDF-1.7"].concat();
        let too_far = [&[b' '; MAX_BEFORE_PDF + 1][..], b"%PDF-1.7"].concat();
        for (bytes, before) in [
            (&b"%PDF-1.7"[..], Some(0)),
            (b"\xEF\xBB\xBF%PDF-1.7", Some(3)),
            (b"\r\n\t%PDF-1.7", Some(3)),
            (&far, Some(MAX_BEFORE_PDF)),
            (&too_far, None),
            (b"HTTP/1.1 200 OK\n\n%PDF-1.7\n%%EOF\n", Some(17)),
            (b"HTTP/1.1 200 OK\n\n%PDF-1.7\n\xC4\xE5\xF2", Some(17)),
            (b"HTTP/1.1 200 OK\n\n%PDF-1.7\n\0", Some(17)),
            (b"a PDF begins with %PDF-1.7", None),
            (b"", None),
        ] {
            assert_eq!(before_pdf(bytes), before, "{bytes:?}");
        }
    }
}
