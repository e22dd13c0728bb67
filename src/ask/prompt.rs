//! The prompt: the question, the window of the conversation that goes with it, and the system prompt.

use time::Date;

use crate::message::{Message, Role};
use crate::settings::History;

/// The built-in system prompt: what the answer is for, and where it is read.
pub(super) fn system(operating_system: &str, shell: Option<&str>, today: Date) -> String {
    let shell = shell
        .and_then(|path| path.rsplit('/').next())
        .filter(|name| !name.is_empty())
        .map_or_else(String::new, |name| format!(", shell {name}"));
    format!(
        "You answer questions from a Unix command line. Answer in plain text for a terminal, briefly and directly, \
         without Markdown; put code and commands into fenced code blocks only where they are asked for. The user's \
         operating system is {operating_system}{shell}. Today is {today} (UTC)."
    )
}

/// The messages to send: the window, oldest first, and the question.
pub(super) fn messages(window: &[Message], question: &str, form: History) -> Vec<Message> {
    match form {
        History::Prompt => vec![Message::text(Role::User, flattened(window, question))],
        History::Messages => native(window, question),
    }
}

fn flattened(window: &[Message], question: &str) -> String {
    if window.is_empty() {
        return question.to_owned();
    }
    let mut prompt = String::from("Previous conversation:\n");
    for message in window {
        prompt.push_str(match message.role {
            Role::User => "Human: ",
            Role::Assistant => "Assistant: ",
        });
        prompt.push_str(&message.to_text());
        prompt.push_str("\n\n");
    }
    prompt.push_str("Human: ");
    prompt.push_str(question);
    prompt
}

/// Roles alternate and begin with the user, as the stricter APIs demand: messages of one role in a row, as a file written by
/// hand may have them, become one. The window does not begin with an answer.
fn native(window: &[Message], question: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for message in window.iter().cloned().chain([Message::text(Role::User, question)]) {
        match messages.last_mut().filter(|last| last.role == message.role) {
            Some(last) => *last = Message::text(last.role, format!("{}\n\n{}", last.to_text(), message.to_text())),
            None => messages.push(message),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[(Role, &str)]) -> Vec<Message> {
        messages.iter().map(|(role, text)| Message::text(*role, *text)).collect()
    }

    #[test]
    fn the_flattened_form_is_exact() {
        let window = said(&[(Role::User, "one"), (Role::Assistant, "two\n"), (Role::User, "three")]);
        let sent = messages(&window, "four", History::Prompt);
        let prompt = "Previous conversation:\nHuman: one\n\nAssistant: two\n\n\nHuman: three\n\nHuman: four";
        assert_eq!(sent, [Message::text(Role::User, prompt)]);
        assert_eq!(messages(&[], "four", History::Prompt), [Message::text(Role::User, "four")]);
    }

    #[test]
    fn native_messages_alternate() {
        let window = said(&[
            (Role::User, "one"),
            (Role::User, "uno"),
            (Role::Assistant, "two"),
            (Role::Assistant, "dos"),
            (Role::User, "three"),
        ]);
        let sent = messages(&window, "four", History::Messages);
        let expected = [(Role::User, "one\n\nuno"), (Role::Assistant, "two\n\ndos"), (Role::User, "three\n\nfour")];
        assert_eq!(sent, said(&expected));
    }

    #[test]
    fn the_system_prompt_names_system_shell_and_date() {
        let today = Date::from_calendar_date(2026, time::Month::November, 21).expect("a date");
        let prompt = system("linux", Some("/usr/bin/zsh"), today);
        assert!(prompt.contains("linux, shell zsh.") && prompt.contains("2026-11-21"), "{prompt}");
        assert!(system("linux", None, today).contains("is linux. Today"));
    }
}
