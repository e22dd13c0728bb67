//! The key of a known answer: the hash of what is asked, of which model and where (pure).

use serde_json::{Value, json};

use crate::whole_file;

/// How the answer arrives, which does not change what it says.
const FIELDS_OF_STREAMS: [&str; 2] = ["stream", "stream_options"];

/// The SHA-256, in hexadecimal digits, of a base URL, the name of a dialect, a model and the body of a request.
pub fn of_request(base_url: &str, dialect: &str, model: &str, mut body: Value) -> String {
    if let Some(fields) = body.as_object_mut() {
        for field in FIELDS_OF_STREAMS {
            fields.shift_remove(field);
        }
    }
    whole_file::name_of(&json!([base_url, dialect, model, body]).to_string())
}
