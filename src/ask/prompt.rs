//! The prompt: the question, the window of the conversation that goes with it, and the system prompt.

use std::borrow::Cow;

use time::Date;

use crate::message::{Role, Said};
use crate::provider::request::Turn;
use crate::settings::History;

/// The built-in system prompt: what the answer is for, and where it is read.
pub(crate) fn system(operating_system: &str, shell: Option<&str>, today: Date) -> String {
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
pub(crate) fn turns<'a>(window: &'a [Said], question: &'a str, form: History) -> Vec<Turn<'a>> {
    match form {
        History::Prompt => {
            vec![Turn { role: Role::User, text: flattened(window, question) }]
        }
        History::Messages => native(window, question),
    }
}

fn flattened<'a>(window: &[Said], question: &'a str) -> Cow<'a, str> {
    if window.is_empty() {
        return Cow::Borrowed(question);
    }
    let length: usize = window.iter().map(|said| said.text.len() + 16).sum();
    let mut prompt = String::with_capacity(length + question.len() + 64);
    prompt.push_str("Previous conversation:\n");
    for said in window {
        prompt.push_str(match said.role {
            Role::User => "Human: ",
            Role::Assistant => "Assistant: ",
        });
        prompt.push_str(&said.text);
        prompt.push_str("\n\n");
    }
    prompt.push_str("Human: ");
    prompt.push_str(question);
    Cow::Owned(prompt)
}

/// Roles alternate and begin with the user, as the stricter APIs demand: an answer at the beginning is dropped, and
/// messages of one role in a row, as a file written by hand may have them, become one.
fn native<'a>(window: &'a [Said], question: &'a str) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn> = Vec::with_capacity(window.len() + 1);
    let spoken = window.iter().map(|said| (said.role, said.text.as_str()));
    for (role, text) in spoken.skip_while(|(role, _)| *role == Role::Assistant).chain([(Role::User, question)]) {
        match turns.last_mut().filter(|last| last.role == role) {
            Some(last) => last.text = Cow::Owned(format!("{}\n\n{text}", last.text)),
            None => turns.push(Turn { role, text: Cow::Borrowed(text) }),
        }
    }
    turns
}

/// The window's newest messages that have at most `most` bytes together, and how many were left out.
pub(crate) fn fit(mut window: Vec<Said>, most: usize) -> (Vec<Said>, usize) {
    let mut bytes = 0;
    let fits = window.iter().rev().take_while(|said| {
        bytes += said.text.len();
        bytes <= most
    });
    let left_out = window.len() - fits.count();
    window.drain(..left_out);
    (window, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Said {
        Said { role, text: text.to_owned() }
    }

    #[test]
    fn the_flattened_form_is_exact() {
        let window = [said(Role::User, "one"), said(Role::Assistant, "two\n"), said(Role::User, "three")];
        let turns = turns(&window, "four", History::Prompt);
        assert_eq!(turns.len(), 1);
        assert_eq!(
            turns[0].text,
            "Previous conversation:\nHuman: one\n\nAssistant: two\n\n\nHuman: three\n\nHuman: four"
        );
        assert_eq!(super::turns(&[], "four", History::Prompt)[0].text, "four");
    }

    #[test]
    fn native_turns_alternate_and_begin_with_the_user() {
        let window = [
            said(Role::Assistant, "zero"),
            said(Role::User, "one"),
            said(Role::User, "uno"),
            said(Role::Assistant, "two"),
            said(Role::User, "three"),
        ];
        let turns = turns(&window, "four", History::Messages);
        let spoken: Vec<(Role, &str)> = turns.iter().map(|turn| (turn.role, &*turn.text)).collect();
        assert_eq!(spoken, [(Role::User, "one\n\nuno"), (Role::Assistant, "two"), (Role::User, "three\n\nfour")]);
    }

    #[test]
    fn the_oldest_messages_are_left_out_first() {
        let window = vec![said(Role::User, "aaaa"), said(Role::Assistant, "bb"), said(Role::User, "cc")];
        for (most, kept) in [(8, 3), (7, 2), (4, 2), (3, 1), (1, 0), (0, 0)] {
            let (fitting, left_out) = fit(window.clone(), most);
            assert_eq!((fitting.len(), left_out), (kept, 3 - kept), "{most}");
        }
    }

    #[test]
    fn the_system_prompt_names_system_shell_and_date() {
        let today = Date::from_calendar_date(2026, time::Month::November, 21).expect("a date");
        let prompt = system("linux", Some("/usr/bin/zsh"), today);
        assert!(prompt.contains("linux, shell zsh.") && prompt.contains("2026-11-21"), "{prompt}");
        assert!(system("linux", None, today).contains("is linux. Today"));
    }
}
