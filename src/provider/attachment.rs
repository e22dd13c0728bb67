//! Writes images and PDFs as the dialects send them (pure).

use serde_json::{Value, json};

use crate::message::{Attachment, ToolRun};

/// The ending of the file names of PDFs.
const PDF: &str = ".pdf";

/// Returns an attachment as a URL, such as `data:image/png;base64,…`.
pub fn url(attachment: &Attachment) -> String {
    format!("data:{};base64,{}", attachment.media, attachment.data)
}

/// Returns the content of a message: the attachments, then the text. Anthropic rejects a blank text. Not every server accepts
/// parts, so text alone stays text.
pub fn content(attachments: impl Iterator<Item = Value>, text: &str) -> Value {
    let mut parts = Vec::from_iter(attachments);
    if parts.is_empty() {
        return text.into();
    }
    if !text.trim().is_empty() {
        parts.push(json!({"type": "text", "text": text}));
    }
    Value::Array(parts)
}

/// Returns the result of a call: text, or parts where it has images.
pub fn result(run: &ToolRun, kind_of_text: &str, part_of: fn(&Attachment) -> Value) -> Value {
    let text = run.result.as_str();
    if run.images.is_empty() {
        return text.into();
    }
    let mut parts = vec![json!({"type": kind_of_text, "text": text})];
    parts.extend(run.images.iter().map(part_of));
    parts.into()
}

/// Returns the name of a PDF without its directories, which stay private. OpenAI recognizes the type of a file by its name,
/// so this name ends in `.pdf` even if the file's own does not.
pub fn file_name(pdf: &Attachment) -> String {
    let name = base_name(pdf);
    if name.to_ascii_lowercase().ends_with(PDF) {
        name.to_owned()
    } else {
        format!("{name}{PDF}")
    }
}

/// Returns the name of a PDF as a title for Anthropic, without the characters that it rejects. Empty if no others are left.
pub fn title(pdf: &Attachment) -> String {
    let accepted = base_name(pdf).replace(|character| !is_accepted(character), " ");
    let words = Vec::from_iter(accepted.split_whitespace());
    words.join(" ")
}

fn is_accepted(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-()[]".contains(character)
}

fn base_name(pdf: &Attachment) -> &str {
    pdf.name.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::message::{Message, Role};

    fn attachment(name: &str, media: &str, data: &str) -> Attachment {
        Attachment {
            name: name.into(),
            media: media.into(),
            data: data.to_owned().into(),
            ..Attachment::default()
        }
    }

    pub(in crate::provider) fn image() -> Attachment {
        attachment("/home/me/error.png", "image/png", "aW1n")
    }

    pub(in crate::provider) fn pdf() -> Attachment {
        attachment("docs/plan 2.pdf", "application/pdf", "cGRm")
    }

    /// A question with these attachments.
    pub(in crate::provider) fn question(attachments: Vec<Attachment>, text: &str) -> Message {
        Message::with_attachments(Role::User, attachments, text)
    }

    #[test]
    fn names_of_attachments_are_sent_without_directories_as_each_api_accepts_them() {
        for (name, file_name, title) in [
            ("plan.pdf", "plan.pdf", "plan pdf"),
            ("/home/me/plan.PDF", "plan.PDF", "plan PDF"),
            ("../a/plan", "plan.pdf", "plan"),
            (
                "plan_v2 (final) [x]-y.pdf",
                "plan_v2 (final) [x]-y.pdf",
                "plan v2 (final) [x]-y pdf",
            ),
            ("a/größe.pdf", "größe.pdf", "gr e pdf"),
            ("-", "-.pdf", "-"),
            ("計画", "計画.pdf", ""),
        ] {
            let pdf = attachment(name, "application/pdf", "cGRm");
            assert_eq!(
                (&*super::file_name(&pdf), &*super::title(&pdf)),
                (file_name, title),
                "{name}"
            );
        }
    }
}
