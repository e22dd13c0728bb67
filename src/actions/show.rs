//! `q --history`, `--last` and `--result`: the actions that print what is in a conversation.

use std::io::{self, IsTerminal};
use std::slice;

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::message::{self, Role, Sources, Step, cut_results};
use crate::output::code::{self, Audience};
use crate::output::{DisplayOptions, print, print_exactly, print_texts, source_lines};
use crate::provider::finish::Finish;
use crate::session::store::Purpose;
use crate::session::{Conversation, Entry, Exchange};
use crate::text::one_line::on_one_line;

/// Prints the conversation; as JSON, its file.
pub fn history(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let terminal = context.notes.terminal();
    let Some(conversation) = context.find(Purpose::Look)?.open_named_or_current()? else {
        context.notes.note("there is no conversation");
        return Ok(());
    };
    if arguments.json
        && let Some(source) = &conversation.source
    {
        return print(source, terminal);
    }
    let display = context.display_options(&context.load_values());
    // Only answers are known to be Markdown.
    let plain = DisplayOptions {
        styles: false,
        ..display
    };
    let mut texts = Vec::new();
    for stored in conversation.entries() {
        let entry = stored.entry();
        let begin = if texts.is_empty() { "" } else { "\n" };
        let heading = heading(&entry, &conversation);
        let steps = steps_as_text(&entry.steps);
        texts.push((format!("{begin}{heading}{steps}"), plain));
        let is_answer = entry.role == Role::Assistant;
        let text = if entry.text.is_empty() {
            "\n"
        } else {
            &entry.text
        };
        texts.push((text.to_owned(), if is_answer { display } else { plain }));
        let sources = Sources::from_json(entry.sources.as_ref().unwrap_or_default());
        texts.push((source_lines(&sources.list).join("\n"), plain));
    }
    if texts.is_empty() {
        context.notes.note("the conversation has no messages");
    }
    print_texts(&texts, terminal)
}

/// Returns the lines before a message: its role and time; for an answer also its model, what it used, and how it ended; and what
/// is attached.
fn heading(entry: &Entry, conversation: &Conversation) -> String {
    let mut heading = format!("[{}", entry.role);
    if let Some(time) = entry.timestamp() {
        let shown = if io::stdout().is_terminal() {
            time.local()
        } else {
            time.to_string()
        };
        heading += &format!(" {shown}");
    }
    if entry.role == Role::Assistant {
        let provider = entry.provider.as_ref().unwrap_or(&conversation.provider);
        let model = entry.model.as_ref().unwrap_or(&conversation.model);
        heading += &format!(" {}", on_one_line(&format!("{provider}/{model}")));
    }
    if let Some(usage) = &entry.usage
        && let (Some(input), Some(output)) = (
            token_count(&usage["input_tokens"]),
            token_count(&usage["output_tokens"]),
        )
    {
        heading += &format!(", {input} in, {output} out");
    }
    if entry.interrupted {
        heading += " interrupted";
    }
    if let Some(word) = &entry.finish {
        heading += &format!(" {}", on_one_line(word));
    }
    heading += "]\n";
    for attachment in &entry.attachments {
        let attached = format!("attached: {}, {}", attachment.name, attachment.media);
        heading += &format!("[{}]\n", on_one_line(&attached));
    }
    heading
}

/// Returns a number of tokens as the file has it, of any size. `None` if it is no number, or less than nothing.
fn token_count(count: &Value) -> Option<String> {
    let Value::Number(count) = count else {
        return None;
    };
    Some(count.to_string()).filter(|count| !count.starts_with('-'))
}

/// Returns what the model said before its calls, and the calls, in order.
fn steps_as_text(steps: &[Step]) -> String {
    let mut steps = steps.to_vec();
    cut_results(&mut steps);
    let mut text = String::new();
    for step in &steps {
        let calls = message::calls_as_text(slice::from_ref(step));
        for part in [step.text.trim(), &calls] {
            if !part.is_empty() {
                text += &format!("{part}\n\n");
            }
        }
    }
    text
}

/// Prints the last answer again; with `-x` only its code, which goes to a pipe or file only if the answer is complete.
pub fn last(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let terminal = context.notes.terminal();
    let (handle, conversation) = context.open_existing(Purpose::Look)?;
    let Some(answer) = last_answer(&conversation) else {
        return Err(Error::nothing("there is no answer in the conversation"));
    };
    if let Some(incomplete) = incompleteness(&answer) {
        if arguments.extract && !io::stdout().is_terminal() {
            let option = handle.which.option();
            let error = Error::nothing(format!("{incomplete}, so its code is not printed"));
            return Err(error.advise(code::advice_to_print_answer(&option)));
        }
        context.notes.note(&incomplete);
    }
    let mut text = answer.text.to_string();
    let mut display = context.display_options(&context.load_values());
    if arguments.extract {
        let audience = Audience::of_stdout(io::stdout().is_terminal());
        let code = code::extract(&text, audience);
        text = code.map_err(|reason| reason.to_error(Some(&handle.which.option())))?;
        display = DisplayOptions::default();
    }
    if !arguments.json {
        return print_texts(&[(text, display)], terminal);
    }
    let report = json!({
        "id": handle.id(),
        "provider": answer.provider.as_ref().unwrap_or(&conversation.provider),
        "model": answer.model.as_ref().unwrap_or(&conversation.model),
        "answer": text,
        "finish": reported_finish(&answer),
        "interrupted": answer.interrupted,
    });
    print(&report.to_string(), terminal)
}

/// Returns the word for how an answer ended. How one would have ended that was interrupted is unknown.
fn reported_finish(answer: &Entry) -> Option<String> {
    match answer.finish.as_deref().and_then(Finish::read) {
        Some(finish) => Some(finish.reported().to_owned()),
        None if answer.interrupted => None,
        None => Some("stop".to_owned()),
    }
}

/// Returns the newest answer, even if questions without one follow it.
fn last_answer(conversation: &Conversation) -> Option<Entry> {
    let mut newest_first = conversation.exchanges.iter().rev();
    let answer = newest_first.find_map(Exchange::answer)?;
    Some(answer.entry())
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

/// Prints the result of the last call that led to the last answer; as JSON, all of that answer's calls.
pub fn result(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let terminal = context.notes.terminal();
    let (_, conversation) = context.open_existing(Purpose::Look)?;
    let answer = last_answer(&conversation);
    let steps = answer.iter().flat_map(|answer| &answer.steps);
    let mut runs = Vec::from_iter(steps.flat_map(|step| &step.calls));
    let Some(&last) = runs.last() else {
        return Err(Error::nothing("the last answer called no tool"));
    };
    if arguments.json {
        let mut calls = Vec::new();
        for run in &runs {
            calls.push(json!({
                "name": run.name,
                "arguments": run.json_arguments(),
                "result": run.result,
                "error": run.is_error,
            }));
        }
        print(&Value::from(calls).to_string(), terminal)?;
    } else if !last.no_result {
        print_exactly(&last.result, terminal)?;
        runs = vec![last];
    }
    if last.no_result {
        let reason = on_one_line(&last.result);
        let message = format!(
            "the last call, {}, has no result: {reason}",
            on_one_line(&last.name)
        );
        return Err(Error::new(ErrorKind::PartMissing, message));
    }
    if runs.iter().any(|run| run.changed) {
        let message = "this is not the tool's exact output: q truncates long results, redacts keys and replaces invalid UTF-8";
        return Err(Error::new(ErrorKind::Incomplete, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_incomplete_if_it_was_interrupted_or_ended_in_another_way_than_usual() {
        for (fields, expected) in [
            (json!({}), None),
            (json!({"interrupted": false}), None),
            (
                json!({"interrupted": true}),
                Some("this answer was interrupted"),
            ),
            (
                json!({"finish": "MAX_TOKENS"}),
                Some("this answer may be incomplete: it ended with “MAX_TOKENS”"),
            ),
            (
                json!({"interrupted": true, "finish": "length"}),
                Some("this answer was interrupted"),
            ),
        ] {
            let mut entry = json!({"role": "assistant", "content": "text"});
            for (key, value) in fields.as_object().expect("fields") {
                entry[key] = value.clone();
            }
            let entry: Entry = serde_json::from_value(entry).expect("an entry");
            assert_eq!(incompleteness(&entry).as_deref(), expected, "{fields}");
        }
    }
}
