//! Images and PDFs as the dialects send them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::message::{Attachment, Message};

/// The ending of the file names of PDFs.
const PDF: &str = ".pdf";

/// An image or a PDF that can be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attached<'a> {
    attachment: &'a Attachment,
    /// Base64.
    pub(super) data: &'a str,
}

/// The attachments of a message.
pub(super) fn of(message: &Message) -> impl Iterator<Item = Attached<'_>> {
    message.attachments.iter().map(|attachment| Attached { attachment, data: &attachment.data })
}

impl<'a> Attached<'a> {
    pub(super) fn is_image(self) -> bool {
        self.attachment.is_image()
    }

    pub(super) fn media(self) -> &'a str {
        &self.attachment.media
    }

    pub(super) fn url(self) -> DataUrl<'a> {
        DataUrl(self)
    }

    /// The name of a PDF without its folders, which stay private. OpenAI recognizes the type of a file by its name,
    /// so this name ends in `.pdf` even if the file's own does not.
    pub(super) fn file_name(self) -> Cow<'a, str> {
        let name = self.base_name();
        let has_ending = name.to_ascii_lowercase().ends_with(PDF);
        if has_ending { name.into() } else { format!("{name}{PDF}").into() }
    }

    /// The name of a PDF as a title for Anthropic, which refuses some characters; `None` if no others are left.
    pub(super) fn title(self) -> Option<String> {
        let is_taken = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '(' | ')' | '[' | ']');
        let words = self.base_name().split(|char| !is_taken(char)).filter(|word| !word.is_empty());
        Some(words.collect::<Vec<_>>().join(" ")).filter(|title| !title.is_empty())
    }

    fn base_name(self) -> &'a str {
        let name = &self.attachment.name;
        name.rsplit_once('/').map_or(name, |(_, name)| name)
    }
}

/// `data:image/png;base64,…`
#[derive(Debug)]
pub(super) struct DataUrl<'a>(Attached<'a>);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The data may have megabytes, so it goes straight into the body.
        let DataUrl(attached) = self;
        serializer.collect_str(&format_args!("data:{};base64,{}", attached.media(), attached.data))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::Role;

    fn attachment(name: &str, media: &str, data: &str) -> Attachment {
        Attachment { name: name.into(), media: media.into(), data: data.into(), ..Attachment::default() }
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
    fn names_lose_their_folders_and_are_written_as_the_apis_want_them() {
        for (name, file_name, title) in [
            ("plan.pdf", "plan.pdf", Some("plan pdf")),
            ("/home/me/plan.PDF", "plan.PDF", Some("plan PDF")),
            ("../a/plan", "plan.pdf", Some("plan")),
            ("plan_v2 (final) [x]-y.pdf", "plan_v2 (final) [x]-y.pdf", Some("plan v2 (final) [x]-y pdf")),
            ("a/größe.pdf", "größe.pdf", Some("gr e pdf")),
            ("-", "-.pdf", Some("-")),
            ("計画", "計画.pdf", None),
        ] {
            let message = question(vec![attachment(name, "application/pdf", "cGRm")], "why");
            let attached = of(&message).next().expect("an attachment");
            assert_eq!((&*attached.file_name(), attached.title().as_deref()), (file_name, title), "{name}");
        }
    }
}
