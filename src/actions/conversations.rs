//! The actions on conversations: print one, its last answer, undo, copy, delete. Nothing is sent to a model.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::slice;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::{self, Arguments};
use crate::message::{self, Attachment, Role, Sources, Step, ToolRun, Usage, cut_results};
use crate::output::{Look, code, print, print_exactly, print_texts, source_lines};
use crate::session::name::Which;
use crate::session::rules::FileContent;
use crate::session::store::{self, Handle, Purpose};
use crate::session::{Conversation, Entry};
use crate::session::{edit, list};
use crate::settings::{Settings, Values};
use crate::text::one_line::on_one_line;

/// Refuses a word after an action that takes none. It may name the conversation that is meant.
pub fn refuse_words(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let mode = arguments.mode;
    match arguments.words.first() {
        Some(word) if !mode.takes_words() => {
            let mut meant = String::new();
            if let Some(option) = option_of_existing(word, context) {
                meant = format!("did you mean{option}? ");
            }
            Err(flags::stray_word(mode, word, &meant))
        }
        _ => Ok(()),
    }
}

/// The option for the conversation that a word names, if there is one.
fn option_of_existing(word: &OsStr, context: &Context) -> Option<String> {
    let which = Which::find(Some(word), None).ok()?;
    let folder = context.folder.as_ref()?;
    let opened = store::open(folder, &which, Purpose::Look).ok()?;
    match opened.found {
        Ok(FileContent::Conversation(_)) => Some(which.option()),
        _ => None,
    }
}

/// Prints the conversation; as JSON, its file.
pub fn history(context: &Context, json: bool) -> Result<(), Error> {
    let (_, conversation) = context.open(Purpose::Look)?.existing()?;
    let Some(conversation) = conversation else {
        context.notes.note("there is no conversation");
        return Ok(());
    };
    if json && let Some(source) = &conversation.source {
        return print(&String::from_utf8_lossy(source));
    }
    let look = context.look(&settings(context));
    // Only answers are known to be Markdown.
    let plain = Look {
        styles: false,
        ..look
    };
    let mut texts = Vec::new();
    for entry in conversation.entries() {
        let begin = if texts.is_empty() { "" } else { "\n" };
        let heading = heading(entry, &conversation);
        let steps = steps_as_text(&entry.steps);
        texts.push((format!("{begin}{heading}{steps}"), plain));
        let is_answer = entry.role == Role::Assistant;
        let line_end = if entry.text.ends_with('\n') { "" } else { "\n" };
        let text = format!("{}{line_end}", entry.text);
        texts.push((text, if is_answer { look } else { plain }));
        let sources = Sources::from_json(entry.sources.as_ref().unwrap_or_default());
        texts.push((source_lines(&sources.list), plain));
    }
    if texts.is_empty() {
        context.notes.note("the conversation has no messages");
    }
    print_texts(&texts)
}

/// The lines before a message: its role and time; for an answer also its model, what it used, and how it ended; and what is
/// attached.
fn heading(entry: &Entry, conversation: &Conversation) -> String {
    let mut heading = format!("[{}", entry.role);
    if let Some(time) = entry.timestamp() {
        let shown = if io::stdout().is_terminal() {
            time.local()
        } else {
            time.to_string()
        };
        heading.push_str(&format!(" {shown}"));
    }
    if entry.role == Role::Assistant {
        let provider = entry.provider.as_ref().unwrap_or(&conversation.provider);
        let model = entry.model.as_ref().unwrap_or(&conversation.model);
        heading.push_str(&format!(
            " {}/{}",
            on_one_line(provider),
            on_one_line(model)
        ));
    }
    if let Some(usage) = &entry.usage
        && let Ok(usage) = Usage::deserialize(usage)
        && let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens)
    {
        heading.push_str(&format!(", {input} in, {output} out"));
    }
    if entry.interrupted {
        heading.push_str(" interrupted");
    }
    if let Some(word) = &entry.finish {
        heading.push_str(&format!(" {word}"));
    }
    heading.push_str("]\n");
    for Attachment { name, media, .. } in &entry.attachments {
        let attached = on_one_line(&format!("attached: {name}, {media}"));
        heading.push_str(&format!("[{attached}]\n"));
    }
    heading
}

/// What the model said before its calls, and the calls, in order.
fn steps_as_text(steps: &[Step]) -> String {
    let mut steps = steps.to_vec();
    cut_results(&mut steps);
    let mut text = String::new();
    for step in &steps {
        let calls = message::calls_as_text(slice::from_ref(step));
        for part in [step.text.trim(), &calls] {
            if !part.is_empty() {
                text.push_str(&format!("{part}\n\n"));
            }
        }
    }
    text
}

/// The settings, even if some are wrong.
fn settings(context: &Context) -> Values {
    Settings::for_actions(&context.environment, &context.configuration)
}

/// The conversation to act on. Without one there is nothing to do.
fn existing(context: &Context, purpose: Purpose) -> Result<(Handle, Conversation), Error> {
    let (handle, conversation) = context.open(purpose)?.existing()?;
    let conversation = conversation.ok_or_else(|| Error::nothing("there is no conversation"))?;
    Ok((handle, conversation))
}

/// Prints the last answer again; with `extract` only its code, which goes to a pipe or file only if the answer
/// is complete.
pub fn last(context: &Context, extract: bool, json: bool) -> Result<(), Error> {
    let (handle, conversation) = existing(context, Purpose::Look)?;
    let Some(answer) = conversation.last_answer() else {
        return Err(Error::nothing("there is no answer in the conversation"));
    };
    if let Some(incomplete) = incompleteness(answer) {
        if extract && !io::stdout().is_terminal() {
            let option = handle.which.option();
            let error = Error::nothing(format!("{incomplete}, so its code is not printed"));
            return Err(error.advise(format!("q --last{option} prints the answer as it came")));
        }
        context.notes.note(&incomplete);
    }
    let mut text = answer.text.to_string();
    let mut look = context.look(&settings(context));
    if extract {
        let code = code::extract(&text);
        text = code.map_err(|reason| Error::new(ErrorKind::NoCode, reason))?;
        look = Look::default();
    }
    if !json {
        return print_texts(&[(text, look)]);
    }
    let mut finish = answer.finish.as_deref();
    // How an interrupted answer would have ended is unknown.
    if finish.is_none() && !answer.interrupted {
        finish = Some("stop");
    }
    let report = json!({
        "id": handle.id(),
        "provider": answer.provider.as_ref().unwrap_or(&conversation.provider),
        "model": answer.model.as_ref().unwrap_or(&conversation.model),
        "answer": text,
        "finish": finish,
        "interrupted": answer.interrupted,
    });
    print(&report.to_string())
}

/// Prints the result of the last call that led to the last answer; as JSON, all of that answer's calls.
pub fn result(context: &Context, json: bool) -> Result<(), Error> {
    let (_, conversation) = existing(context, Purpose::Look)?;
    let answer = conversation.last_answer();
    let steps = answer.map_or(&[][..], |answer| &answer.steps);
    let runs: Vec<&ToolRun> = steps.iter().flat_map(|step| &step.calls).collect();
    let Some(last) = runs.last() else {
        return Err(Error::nothing("the last answer called no tool"));
    };
    let mut is_changed = last.changed;
    if json {
        let mut calls = Vec::new();
        for run in &runs {
            is_changed |= run.changed;
            calls.push(json!({
                "name": run.name,
                "arguments": run.json_arguments(),
                "result": run.result,
                "error": run.is_error,
            }));
        }
        print(&Value::from(calls).to_string())?;
    } else {
        print_exactly(&last.result)?;
    }
    if is_changed {
        let message = "this is not all that the tool gave, or not as it gave it: q cuts long results, hides keys, and replaces what is not UTF-8";
        return Err(Error::new(ErrorKind::Incomplete, message));
    }
    Ok(())
}

/// Says why an answer is or may be incomplete.
fn incompleteness(answer: &Entry) -> Option<String> {
    if answer.interrupted {
        return Some("this answer was interrupted".to_owned());
    }
    let word = answer.finish.as_ref()?;
    Some(format!(
        "this answer may be incomplete: it ended with “{word}”"
    ))
}

/// Drops the last exchange and prints its question; an earlier state keeps it.
pub fn undo(context: &Context, json: bool) -> Result<(), Error> {
    not_by_number(context, "--undo")?;
    let (handle, _) = existing(context, Purpose::Change)?;
    let undone = edit::undo(&handle, &settings(context).rules);
    let undone = undone.map_err(|error| Error::file(format!("undo failed: {error}")))?;
    let Some((id, exchange)) = undone else {
        return Err(Error::nothing("there is nothing to undo"));
    };
    let question = exchange.question().map_or("", |question| &question.text);
    report(json, &json!({"id": id, "question": question}), question)
}

/// Prints what was done.
fn report(json: bool, value: &Value, text: &str) -> Result<(), Error> {
    if json {
        return print(&value.to_string());
    }
    print(text)
}

/// Refuses a number of the list, because the numbers move and another conversation could be changed.
fn not_by_number(context: &Context, action: &str) -> Result<(), Error> {
    if let Which::Number(_) = context.which {
        let message = format!("{action} takes no number, because the numbers of the list move");
        return Err(Error::usage(message).advise("q --list shows names"));
    }
    Ok(())
}

/// Copies the conversation under another name. The original stays.
pub fn copy(context: &Context, name: &OsStr, json: bool) -> Result<(), Error> {
    let which = Which::for_copy(name)?;
    let (handle, _) = existing(context, Purpose::Look)?;
    let target = store::find(&handle.folder, &which, Purpose::Look)?;
    let name = name.display();
    match edit::copy(&handle, &target) {
        Ok(()) => {
            let text = format!("Conversation copied to {name}");
            report(json, &json!({"id": target.id()}), &text)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("there is already a conversation {name}");
            Err(Error::nothing(message).advise("--copy needs a new name"))
        }
        Err(error) => Err(Error::file(format!("nothing was copied: {error}"))),
    }
}

/// Deletes the conversation.
pub fn clear(context: &Context, json: bool) -> Result<(), Error> {
    not_by_number(context, "--clear")?;
    let handle = store::find(context.folder()?, &context.which, Purpose::Look)?;
    if let Which::File(_) = handle.which {
        // A path may be mistyped, so a file that is not a conversation is not deleted.
        context.open(Purpose::Look)?.existing()?;
    }
    let existed = edit::clear(&handle).map_err(Error::file)?;
    if !existed && !handle.which.is_current() {
        return Err(handle.missing());
    }
    let cleared = json!({"cleared": usize::from(existed)});
    report(json, &cleared, "Conversation cleared")?;
    if !existed {
        context.notes.note("there was no conversation");
    }
    let others = list::files(&handle.folder, false).map_err(Error::file)?;
    if !others.is_empty() {
        context.notes.note(&format!(
            "other conversations kept: {}; q --list shows them, q --clear --all deletes them",
            others.len()
        ));
    }
    Ok(())
}

/// Deletes all conversations. Without `yes` it asks first, which needs a terminal.
pub fn clear_all(context: &Context, yes: bool, json: bool) -> Result<(), Error> {
    if !yes && !io::stdin().is_terminal() {
        let error =
            "--clear --all asks first, but standard input is not a terminal; nothing was deleted";
        return Err(Error::usage(error).advise("--yes deletes all conversations without asking"));
    }
    let folder = context.folder()?;
    folder.check().map_err(Error::file)?;
    let conversations = list::files(folder, false).map_err(Error::file)?;
    if !yes && !confirmed(conversations.len()) {
        return Err(Error::nothing("nothing was deleted"));
    }
    let deleted = edit::clear_all(folder).map_err(Error::file)?;
    let text = format!("Conversations cleared: {deleted}");
    report(json, &json!({"cleared": deleted}), &text)?;
    if let Some(answers) = context.answers(&settings(context))
        && answers.size().files > 0
    {
        let place = answers.folder.display();
        context
            .notes
            .note(&format!("known answers are left in {place}"));
    }
    Ok(())
}

/// Asks for confirmation on the terminal.
fn confirmed(count: usize) -> bool {
    let question = format!("q: delete all {count} conversations for good? [y/N] ");
    let _ = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}
