//! Lists the sources of an answer, a line for each (pure).

use crate::message::Source;
use crate::text::escape::escape;
use crate::text::one_line::on_one_line;

/// Returns a line for each source: its number, title and URL. They are escaped, because a page may say anything.
pub fn source_lines(sources: &[Source]) -> Vec<String> {
    let mut lines = Vec::new();
    for (source, number) in sources.iter().zip(1..) {
        let title = source.title.as_deref().unwrap_or_default();
        let words = on_one_line(&format!("{title} {}", source.url));
        lines.push(format!("[{number}] {}", escape(&words)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_one_numbered_line_without_control_characters() {
        let sources = [
            (Some("A page"), "https://a.example/x"),
            (None, "https://b.example/"),
            (Some(""), "https://c.example/"),
            (
                Some("two\n lines\u{1b}[1m"),
                "https://d.example/\r\nq: done",
            ),
        ];
        let sources = sources.map(|(title, url)| Source {
            url: url.to_owned(),
            title: title.map(str::to_owned),
        });
        let expected = [
            "[1] A page https://a.example/x",
            "[2] https://b.example/",
            "[3] https://c.example/",
            "[4] two lines^[[1m https://d.example/ q: done",
        ];
        assert_eq!(source_lines(&sources), expected);
    }
}
