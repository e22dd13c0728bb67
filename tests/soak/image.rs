//! The image that some questions go with: whole in every file and in every request, or not there at all.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The name of its file.
pub const NAME: &str = "image.png";

/// Enough bytes that a write of the file is more than one page of memory.
const BYTES: usize = 30_000;

/// A file that begins as a PNG does.
pub fn bytes() -> Vec<u8> {
    let rest = (0..BYTES).map(|at| (at * at % 251) as u8);
    b"\x89PNG\r\n\x1A\n".iter().copied().chain(rest).collect()
}

/// Whether an attachment in a conversation's file is this image.
pub fn is_kept_whole(attachment: &Value) -> bool {
    let is_named = attachment["name"]
        .as_str()
        .is_some_and(|name| name.ends_with(NAME));
    is_named && attachment["type"] == "image/png" && attachment["data"] == STANDARD.encode(bytes())
}

/// Whether a part of a request is this image.
pub fn is_sent_whole(part: &Value) -> bool {
    let source =
        json!({"type": "base64", "media_type": "image/png", "data": STANDARD.encode(bytes())});
    *part == json!({"type": "image", "source": source})
}
