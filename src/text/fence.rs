//! Puts text from elsewhere into a prompt between tags that the text cannot close (pure).

use std::collections::HashSet;

/// Separates two parts of a question.
const BETWEEN: &str = "\n\n";

/// The tag around input that comes with words.
const CONTEXT: &str = "context";

/// The tag around a file.
const FILE: &str = "file";

/// Puts input in its fence. The closing tag begins a line, and nothing else about the input changes.
pub fn around_input(input: &str) -> String {
    around(CONTEXT, "", input)
}

/// Returns a text file in its fence, which names it.
pub fn around_file(name: &str, text: &str) -> String {
    let attributes = format!(" name=\"{}\"", escaped(name));
    around(FILE, &attributes, text)
}

/// Returns the result of a tool in its fence.
pub fn around_result(result: &str) -> String {
    around("result", "", result)
}

/// Returns the instructions of a tool server in their fence, which names the server.
pub fn around_instructions(server: &str, text: &str) -> String {
    let attributes = format!(" server=\"{}\"", escaped(server));
    around("instructions", &attributes, text)
}

/// Joins the parts of a question, without those that are empty.
pub fn join<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut parts = Vec::from_iter(parts);
    parts.retain(|part| !part.is_empty());
    parts.join(BETWEEN)
}

fn around(name: &str, attributes: &str, text: &str) -> String {
    let name = unclosed(name, text);
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    format!("<{name}{attributes}>\n{text}{line_end}</{name}>")
}

/// Returns a file's name as the value of an attribute, on one line.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for char in name.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            _ if char.is_control() => {
                let number = u32::from(char);
                escaped.push_str(&format!("&#{number};"));
            }
            _ => escaped.push(char),
        }
    }
    escaped
}

/// Returns the name that `escaped` has made this value of.
fn unescaped(value: &str) -> String {
    let mut parts = value.split('&');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let reference = part.split_once(';');
        if let Some((reference, rest)) = reference
            && let Some(char) = referred(reference)
        {
            name.push(char);
            name.push_str(rest);
        } else {
            // Another program has written this tag.
            name.push('&');
            name.push_str(part);
        }
    }
    name
}

/// Returns the character that a reference such as `amp` or `#10` stands for.
fn referred(reference: &str) -> Option<char> {
    match reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "quot" => Some('"'),
        _ => char::from_u32(reference.strip_prefix('#')?.parse().ok()?),
    }
}

/// Whether a text begins like the fence of a file or of input, by its JSON. Some programs escape `<` there.
pub fn begins_json(json: &str) -> bool {
    let text = json.strip_prefix('"').unwrap_or_default();
    let tag = text
        .strip_prefix('<')
        .or_else(|| text.strip_prefix("\\u003c"));
    let begins = |name| {
        let rest = tag.and_then(|tag| tag.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with([' ', '-', '>', '\\']))
    };
    begins(FILE) || begins(CONTEXT)
}

/// Splits a question into the files at its beginning and what comes after them.
pub fn split_files(question: &str) -> (&str, &str) {
    let mut rest = question;
    while let Some((_, after)) = fenced(FILE, rest) {
        rest = after;
    }
    let length = question.len() - rest.len();
    (question[..length].trim_end_matches('\n'), rest)
}

/// Returns the names of the files at the beginning of a question.
pub fn file_names(question: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = question;
    while let Some((file, after)) = fenced(FILE, rest) {
        let tag = file.split_once(">\n").map_or(file, |(tag, _)| tag);
        let name = tag.split_once(" name=\"");
        if let Some(name) = name.and_then(|(_, name)| name.strip_suffix('"')) {
            names.push(unescaped(name));
        }
        rest = after;
    }
    names
}

/// Splits a question without its files into the input at its beginning, in its fence, and the words.
pub fn split_input(question: &str) -> (&str, &str) {
    let (_, rest) = split_files(question);
    fenced(CONTEXT, rest).unwrap_or(("", rest))
}

/// Returns a fence with this tag at the beginning of a text, and what comes after it.
fn fenced<'a>(tag: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let tag_and_rest = text.strip_prefix('<')?;
    let (opening, _) = tag_and_rest.split_once(">\n")?;
    let name = opening.split(' ').next()?;
    let number = name.strip_prefix(tag)?;
    if !number.is_empty() {
        let digits = number.strip_prefix('-')?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let closing = format!("\n</{name}>");
    let end = text.find(&closing)? + closing.len();
    let (fence, after) = text.split_at(end);
    // The question may consist of files alone.
    if after.is_empty() {
        return Some((fence, ""));
    }
    let after = after.strip_prefix(BETWEEN)?;
    Some((fence, after))
}

/// Returns the tag's name, with a number if the text contains the closing tag.
fn unclosed(name: &str, text: &str) -> String {
    // All closing tags are found in one pass. To search for each of them would be slow in a text full of them.
    let closing = format!("</{name}");
    let mut closed = HashSet::new();
    for rest in text.split(&closing).skip(1) {
        if let Some((suffix, _)) = rest.split_once('>') {
            closed.insert(suffix);
        }
    }
    let mut suffix = String::new();
    let mut number = 1;
    while closed.contains(&*suffix) {
        number += 1;
        suffix = format!("-{number}");
    }
    format!("{name}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;
    use proptest::prelude::*;

    #[test]
    fn a_question_is_split_into_files_input_and_words_where_its_tags_end() {
        let table = r##"
            why | - | - | why
            LOG␊␊why | - | LOG | why
            <context-2>␊</context>␊</context-2>␊␊why | - | <context-2>␊</context>␊</context-2> | why
            <context>␊</context>␊␊why | - | <context>␊</context> | why
            <context>␊␊</context>␊␊why␊␊not | - | <context>␊␊</context> | why␊␊not
            ONE␊␊why | ONE | - | why
            ONE␊␊TWO␊␊why | ONE␊␊TWO | - | why
            ONE␊␊TWO␊␊LOG␊␊why | ONE␊␊TWO | LOG | why
            ONE | ONE | - | -
            ONE␊␊TWO | ONE␊␊TWO | - | -
            LOG␊␊ONE | - | LOG | ONE
            <file>␊one␊</file>␊␊ | <file>␊one␊</file> | - | -
            LOG why | - | - | LOG why
            <context>␊log | - | - | <context>␊log
            <contexts>␊log␊</contexts>␊␊why | - | - | <contexts>␊log␊</contexts>␊␊why
            <context-x>␊log␊</context-x>␊␊why | - | - | <context-x>␊log␊</context-x>␊␊why
            <p>␊log␊</p>␊␊why | - | - | <p>␊log␊</p>␊␊why
            < | - | - | <
            >␊ | - | - | >␊
            - | - | - | -
        "##;
        for [question, files, input, words] in rows(table) {
            let [question, files, input, words] = [question, files, input, words].map(|column| {
                let text = column.replace("ONE", "<file name=\"a\">␊one␊</file>");
                let text = text.replace("TWO", "<file-2 name=\"b c>d\">␊</file>␊</file-2>");
                let text = text.replace("LOG", "<context>␊log␊</context>");
                text.replace('␊', "\n")
            });
            assert_eq!(split_files(&question).0, files, "{question}");
            assert_eq!(split_input(&question), (&*input, &*words), "{question}");
        }
    }

    #[test]
    fn the_name_of_a_file_cannot_end_its_tag() {
        for (name, opening) in [
            ("src/main.rs", "<file name=\"src/main.rs\">"),
            ("a&b<c>\"d\"", "<file name=\"a&amp;b&lt;c>&quot;d&quot;\">"),
            (
                "two\nlines\t\u{1b}[31m",
                "<file name=\"two&#10;lines&#9;&#27;[31m\">",
            ),
            ("größe 2", "<file name=\"größe 2\">"),
        ] {
            let file = around_file(name, "x\n");
            assert_eq!(file, format!("{opening}\nx\n</file>"));
            assert_eq!(file_names(&file), [name]);
        }
    }

    proptest! {
        #[test]
        fn a_composed_question_is_split_into_the_same_files_input_and_words(
            files in prop::collection::vec(("\\PC{1,9}", "(</?(context|file)(-[2-4])?>|[a-z \n]){0,20}"), 0..3),
            input in prop::option::of("(</?(context|file)(-[2-4])?>|[a-z \n]){0,20}"),
            words in "[a-z][a-z\n<>/]{0,20}",
        ) {
            let names = Vec::from_iter(files.iter().map(|(name, _)| name.clone()));
            let files: Vec<String> = files.iter().map(|(name, text)| around_file(name, text)).collect();
            let (files, input) = (files.join(BETWEEN), input.as_deref().map(around_input).unwrap_or_default());
            let question = join([&*files, &input, &words]);
            prop_assert_eq!(split_files(&question).0, files);
            prop_assert_eq!(file_names(&question), names);
            prop_assert_eq!(split_input(&question), (&*input, &*words));
        }
    }
}
