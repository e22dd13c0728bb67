//! Builds the prompt from the question, the window of the conversation that goes with it, and the system prompt (pure).

use time::Date;

use crate::message::{Message, Role};
use crate::settings::History;
use crate::shape::Shape;
use crate::text::fence;

/// The built-in system prompt: the form of the answer.
pub fn system(extract: bool) -> String {
    let form = if extract {
        "Only code is taken from the answer: put all of it into one fenced code block."
    } else {
        "Answer in plain text for a terminal, briefly and directly, without Markdown; put code and commands into \
         fenced code blocks only where they are asked for."
    };
    format!("You answer questions from a Unix command line. {form}")
}

/// What the built-in system prompt says of the user's system and of the date.
pub fn surroundings(operating_system: &str, shell: Option<&str>, today: Date) -> String {
    let shell = match shell.and_then(|path| path.rsplit('/').next()) {
        Some(name) if !name.is_empty() => format!(", shell {name}"),
        _ => String::new(),
    };
    format!(" The user's operating system is {operating_system}{shell}. Today is {today} (UTC).")
}

/// The messages to send: the window, oldest first, and the question.
pub fn messages(window: &[Message], question: &Message, form: History) -> Vec<Message> {
    if form == History::Prompt && !window.is_empty() {
        return vec![flattened(window, question)];
    }
    let mut messages = window.to_vec();
    messages.push(question.clone());
    messages
}

/// The question with an instruction to answer in JSON of this shape, for an API that cannot enforce it.
pub fn with_shape(question: &Message, shape: &Shape) -> Message {
    let schema = &shape.schema;
    let order = format!("Answer with nothing but JSON that fits this JSON Schema:\n{schema}");
    let text = fence::join([&*question.text, &order]);
    Message::with_attachments(Role::User, question.attachments.clone(), text)
}

/// The window and the question as one message, with all their attachments.
fn flattened(window: &[Message], question: &Message) -> Message {
    let mut attachments = Vec::new();
    let mut prompt = String::from("Previous conversation:\n");
    for message in window {
        attachments.extend_from_slice(&message.attachments);
        prompt.push_str(match message.role {
            Role::User => "Human: ",
            Role::Assistant => "Assistant: ",
        });
        prompt.push_str(&message.text);
        prompt.push_str("\n\n");
    }
    attachments.extend_from_slice(&question.attachments);
    prompt.push_str("Human: ");
    prompt.push_str(&question.text);
    Message::with_attachments(Role::User, attachments, prompt)
}
