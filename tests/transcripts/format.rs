//! The text of a transcript: cases of directives, commands and what came of them. (pure but for reading and writing files)

use std::fs;
use std::path::{Path, PathBuf};

use crate::keys::{Key, Setup};
use crate::matching::{blessed, diff, matches, merge, resolved};

/// One case: what is set up, typed and expected, in order.
#[derive(Clone)]
pub struct Case {
    pub path: PathBuf,
    /// The name of its file, and its own name.
    pub full_name: String,
    pub name: String,
    /// Whether it was made of a row of a table, so that the file does not have it as it is.
    pub is_row: bool,
    /// Directives that the file has above its first case.
    pub shared: Vec<Item>,
    pub items: Vec<Item>,
}

#[derive(Clone)]
pub enum Item {
    /// A blank line, or a line of a comment.
    Comment(String),
    Directive(Directive),
    Command(Command),
}

/// A line that begins with `@`, and the lines with `|` below it.
#[derive(Clone)]
pub struct Directive {
    pub key: Key,
    pub value: String,
    /// The lines of its block; none where it has no block.
    pub block: Vec<String>,
}

/// What somebody types, and what comes of it.
#[derive(Clone)]
pub struct Command {
    /// Without the `$`; a script of several lines has newlines.
    pub script: String,
    /// Whether it is the question of the whole file (`@asks`), so that the case does not have it.
    is_usual: bool,
    pub output: Output,
}

/// Lines of standard output and standard error, made visible, and the exit status.
#[derive(Clone)]
pub struct Output {
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
    pub status: String,
}

/// How the lines begin of what is several cases.
const EACH: &str = "@each ";
const ROWS: &str = "@rows ";
/// How a case begins whose rows are those of a table above the first case.
const ROWS_OF: &str = "@rows of ";

/// How a line may begin that is no output.
const MARKS: [&str; 8] = ["$ ", "> ", "! ", "= ", "@", "=== ", "# ", "\\"];

/// Returns the cases of a file. `name` is its path below the directory, without its suffix.
pub fn read(path: &Path, name: &str) -> Vec<Case> {
    let text = fs::read_to_string(path).expect("a transcript");
    let mut parts = text.split("\n=== ");
    let head = parts.next().unwrap_or_default().lines();
    let shared = items(head.filter(|line| line.starts_with(['@', '|'])), "", name);
    let asked = shared.iter().find_map(|item| match item {
        Item::Directive(directive) if directive.key == Key::Setup(Setup::Asks) => {
            Some(directive.value.clone())
        }
        _ => None,
    });
    let asked = asked.unwrap_or_default();
    let mut cases = Vec::new();
    for part in parts {
        let (title, lines) = part.split_once('\n').unwrap_or((part, ""));
        let is_row = lines.starts_with(EACH) || lines.starts_with(ROWS);
        let lines = with_rows(lines, &shared);
        for (title, lines) in expanded(title, &lines) {
            let full_name = format!("{name}: {title}");
            cases.push(Case {
                path: path.to_owned(),
                items: items(lines.lines(), &asked, &full_name),
                full_name,
                name: title,
                is_row,
                shared: shared.clone(),
            });
        }
    }
    cases
}

/// Returns the lines of a case, with the rows in place of the name of their table, which is a `@table` of the file.
fn with_rows(lines: &str, shared: &[Item]) -> String {
    let Some(rest) = lines.strip_prefix(ROWS_OF) else {
        return lines.to_owned();
    };
    let (name, lines) = rest.split_once('\n').expect("lines below @rows");
    let table = shared.iter().find_map(|item| match item {
        Item::Directive(directive) if directive.key == Key::Setup(Setup::Table) => {
            let columns = directive.value.strip_prefix(name)?.strip_prefix(": ")?;
            Some((columns, &directive.block))
        }
        _ => None,
    });
    let (columns, rows) = table.unwrap_or_else(|| panic!("there is no @table {name}"));
    let mut text = format!("{ROWS}{columns}\n");
    push_marked(&mut text, '|', rows);
    text + lines
}

/// Returns the name and the lines of a case, or of one for each value of its `@each` and each row of its `@rows`.
fn expanded(title: &str, lines: &str) -> Vec<(String, String)> {
    if let Some(rest) = lines.strip_prefix(EACH) {
        let (head, lines) = rest.split_once('\n').expect("lines below @each");
        let (name, values) = head.split_once(" = ").expect("@each name = a | b");
        let case = |value| {
            let lines = filled(lines.lines(), &[name], &[value]);
            expanded(&format!("{title}, {value}"), &lines)
        };
        return values.split(" | ").flat_map(case).collect();
    }
    let Some(table) = lines.strip_prefix(ROWS) else {
        return vec![(title.to_owned(), lines.to_owned())];
    };
    let (columns, lines) = table.split_once('\n').expect("rows");
    let columns: Vec<&str> = columns.split(" | ").collect();
    let is_row = |line: &&str| line.starts_with("| ");
    let case = |row: &str| {
        let cells: Vec<&str> = row[2..].split(" | ").collect();
        assert_eq!(cells.len(), columns.len(), "{title}: {row}");
        let common = lines.lines().skip_while(is_row);
        let text = filled(common, &columns, &cells);
        expanded(&format!("{title}, {}", cells[0]), &text)
    };
    lines.lines().take_while(is_row).flat_map(case).collect()
}

/// Returns lines with the cells of a row in place of the names of columns. A line with a cell that is a dash is left out.
fn filled<'a>(lines: impl Iterator<Item = &'a str>, columns: &[&str], cells: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut line = line.to_owned();
        let mut is_left_out = false;
        for (column, cell) in columns.iter().zip(cells) {
            let place = format!("<{column}>");
            is_left_out |= *cell == "-" && line.contains(&place);
            line = line.replace(&place, cell);
        }
        if !is_left_out {
            push_line(&mut text, &line);
        }
    }
    text
}

/// Puts what came of a case in its place in the file.
pub fn replace(case: &Case, came: &Case) {
    let text = fs::read_to_string(&case.path).expect("a transcript");
    let head = format!("\n=== {}\n", case.name);
    let begin = text.find(&head).expect("the case in its file") + head.len();
    let end = text[begin..]
        .find("\n=== ")
        .map_or(text.len(), |at| begin + at + 1);
    let blank = if end < text.len() { "\n" } else { "" };
    let new = format!("{}{}{blank}{}", &text[..begin], came.text(), &text[end..]);
    fs::write(&case.path, new).expect("a transcript that can be written");
}

impl Case {
    /// Returns the value of the last directive with this key; those of the file come first.
    pub fn last(&self, key: Key) -> Option<&str> {
        let mut items = self.shared.iter().chain(&self.items).rev();
        items.find_map(|item| match item {
            Item::Directive(directive) if directive.key == key => Some(directive.value.as_str()),
            _ => None,
        })
    }

    /// Whether it or its file has a directive with this key.
    pub fn has(&self, key: Key) -> bool {
        self.last(key).is_some()
    }

    /// Whether the first command is a question that can be asked with `-j` as well.
    pub fn can_be_json(&self) -> bool {
        let first = self.items.iter().find_map(|item| match item {
            Item::Command(command) => Some(command.script.as_str()),
            _ => None,
        });
        let first = first.unwrap_or_default();
        let is_other = |option| first.contains(option);
        first.starts_with("q ") && ![" -x", " -j", " -v"].into_iter().any(is_other)
    }

    /// Returns the lines of the case in its file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for item in &self.items {
            match item {
                Item::Comment(line) => push_line(&mut text, line),
                Item::Directive(directive) => directive.write(&mut text),
                Item::Command(command) => {
                    if !command.is_usual {
                        let script = command.script.replace('\n', "\n> ");
                        push_line(&mut text, &format!("$ {script}"));
                    }
                    command.output.write(&mut text);
                }
            }
        }
        text
    }

    /// The case with wildcards where another way of playing it comes to something else.
    pub fn merged(mut self, other: Case) -> Case {
        for (item, other) in self.items.iter_mut().zip(other.items) {
            match (item, other) {
                (Item::Command(command), Item::Command(other)) => {
                    merge(&mut command.output.stdout, &other.output.stdout);
                    merge(&mut command.output.stderr, &other.output.stderr);
                }
                (Item::Directive(directive), Item::Directive(other)) => {
                    merge(&mut directive.block, &other.block);
                }
                _ => {}
            }
        }
        self
    }
}

impl Directive {
    /// The block as text, each line with its end; the last one has none where it ends in `␄`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.block {
            push_line(&mut text, line);
        }
        if text.ends_with("␄\n") {
            text.truncate(text.len() - "␄\n".len());
        }
        text
    }

    fn write(&self, text: &mut String) {
        push_line(text, format!("@{} {}", self.key, self.value).trim_end());
        push_marked(text, '|', &self.block);
    }
}

impl Command {
    fn new(script: &str, is_usual: bool) -> Command {
        let output = Output {
            stdout: Vec::new(),
            stderr: Vec::new(),
            status: "0".to_owned(),
        };
        Command {
            script: script.to_owned(),
            is_usual,
            output,
        }
    }

    /// Returns the script of the same question with `-j`.
    pub fn as_json(&self) -> String {
        self.script.replacen("q ", "q -j ", 1)
    }
}

impl Output {
    pub fn matches(&self, came: &Output) -> bool {
        matches(&self.stdout, &came.stdout)
            && matches(&self.stderr, &came.stderr)
            && self.status == came.status
    }

    /// Returns what came, in which lines that fit are written as they are here.
    pub fn blessed(&self, came: Output) -> Output {
        Output {
            stdout: blessed(&self.stdout, came.stdout),
            stderr: blessed(&self.stderr, came.stderr),
            status: came.status,
        }
    }

    /// Returns how another one differs.
    pub fn difference(&self, came: &Output) -> String {
        let (mut expected, mut text) = (String::new(), String::new());
        let resolved = Output {
            stdout: resolved(&self.stdout, &came.stdout),
            stderr: resolved(&self.stderr, &came.stderr),
            status: self.status.clone(),
        };
        resolved.write(&mut expected);
        came.write(&mut text);
        diff(&expected, &text)
    }

    /// Writes the lines as a case has them below a command.
    pub fn write(&self, text: &mut String) {
        for line in &self.stdout {
            let is_marked = line.is_empty() || MARKS.iter().any(|mark| line.starts_with(mark));
            let escape = if is_marked { "\\" } else { "" };
            push_line(text, &format!("{escape}{line}"));
        }
        push_marked(text, '!', &self.stderr);
        if self.status != "0" {
            push_line(text, &format!("= {}", self.status));
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn push_marked(text: &mut String, mark: char, lines: &[String]) {
    for line in lines {
        let blank = if line.is_empty() { "" } else { " " };
        push_line(text, &format!("{mark}{blank}{line}"));
    }
}

/// A line without its mark and the blank after it.
fn unmarked(line: &str, mark: char) -> Option<String> {
    let rest = line.strip_prefix(mark)?;
    Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned())
}

/// Reads the lines of a case. Where an output stands below a reply, what came before it is what is `asked`.
fn items<'a>(lines: impl Iterator<Item = &'a str>, asked: &str, place: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for line in lines {
        if !asked.is_empty() && is_output_of_reply(items.last(), line) {
            items.push(Item::Command(Command::new(asked, true)));
        }
        if let Some(script) = line.strip_prefix("$ ") {
            items.push(Item::Command(Command::new(script, false)));
        } else if let Some(rest) = line.strip_prefix('@') {
            let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
            items.push(Item::Directive(Directive {
                key: key.parse().unwrap_or_else(|what| panic!("{place}: {what}")),
                value: value.to_owned(),
                block: Vec::new(),
            }));
        } else if line.is_empty() || line.starts_with("# ") {
            items.push(Item::Comment(line.to_owned()));
        } else if belongs(items.last_mut(), line).is_none() {
            panic!("{place}: no place for: {line}");
        }
    }
    items
}

fn is_output_of_reply(last: Option<&Item>, line: &str) -> bool {
    let is_reply = matches!(last, Some(Item::Directive(directive)) if directive.key == Key::Setup(Setup::Reply));
    is_reply && !line.is_empty() && !line.starts_with(['|', '@', '#', '$'])
}

/// Adds a line to the command or directive that it stands below.
fn belongs(last: Option<&mut Item>, line: &str) -> Option<()> {
    match last? {
        Item::Directive(directive) => directive.block.push(unmarked(line, '|')?),
        Item::Command(command) => {
            let output = &mut command.output;
            if let Some(more) = line.strip_prefix("> ") {
                command.script.push('\n');
                command.script.push_str(more);
            } else if let Some(error) = unmarked(line, '!') {
                output.stderr.push(error);
            } else if let Some(status) = line.strip_prefix("= ") {
                output.status = status.to_owned();
            } else {
                let line = line.strip_prefix('\\').unwrap_or(line);
                output.stdout.push(line.to_owned());
            }
        }
        Item::Comment(_) => return None,
    }
    Some(())
}

/// Checks what `@each`, `@rows` and `@table` become. The runner calls it as a trial, because it has no tests of its own.
pub fn check_expansion() {
    let lines = "@rows place | slot\n| here | -\n| there | t1\n@each ask = new | -f\n@env Q_SESSION=<slot>\n$ q <ask> # <place>";
    let expected = [
        ("it works, here, new", "$ q new # here\n"),
        ("it works, here, -f", "$ q -f # here\n"),
        (
            "it works, there, new",
            "@env Q_SESSION=t1\n$ q new # there\n",
        ),
        ("it works, there, -f", "@env Q_SESSION=t1\n$ q -f # there\n"),
    ];
    let expected = expected.map(|(title, lines)| (title.to_owned(), lines.to_owned()));
    assert_eq!(expanded("it works", lines), expected);
    let alone = ("it works".to_owned(), "$ q hi\n".to_owned());
    assert_eq!(expanded(&alone.0, &alone.1), [alone]);
    let tables = "@table nouns: one | many\n| cat | cats\n@table places: place | slot\n| here | -\n| there | t1";
    let shared = items(tables.lines(), "", "a file");
    let (rows, common) = lines.split_once("@each").expect("a second table");
    let of_table = format!("@rows of places\n@each{common}");
    assert_eq!(
        with_rows(&of_table, &shared),
        format!("{rows}@each{common}")
    );
    assert_eq!(with_rows(lines, &shared), lines);
}
