//! Tells which text can be put into a shell's command line, so that the user sees all of it (pure).

use super::escape::is_hidden;
use super::locale::Charset;

/// Returns the command that may be put into a shell's command line, without the newlines at its end: one line in which nothing is
/// hidden, in the characters of the terminal, because not every shell escapes the others. The error says why a text is none.
pub fn command_line(text: &str, charset: Charset) -> Result<&str, &'static str> {
    let line = text.trim_end_matches(['\r', '\n']);
    if line.contains('\n') {
        // Blocks of code are joined, so a block may end at any newline.
        return Err("the answer has several blocks or lines; to read them, ask with q");
    }
    if line.chars().any(is_hidden) {
        return Err("the answer has control or invisible characters; to read it, ask with q");
    }
    if charset == Charset::Ascii && !line.is_ascii() {
        return Err("the answer has letters that the locale does not have; to read it, ask with q");
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_several_lines_or_with_hidden_characters_is_refused() {
        for (text, line) in [
            ("ls -l\n\n\n", "ls -l"),
            ("ls\r\n", "ls"),
            (
                "du Größe 日本 e\u{301} “x” – 👩",
                "du Größe 日本 e\u{301} “x” – 👩",
            ),
            ("", ""),
        ] {
            assert_eq!(command_line(text, Charset::Unicode), Ok(line));
        }
        for text in ["ls\ndf", "ls # \\\ndf\n", "\nls"] {
            let reason = command_line(text, Charset::Unicode).expect_err(text);
            assert!(reason.contains("several"), "{text:?}: {reason}");
        }
        assert_eq!(command_line("ls -l\n", Charset::Ascii), Ok("ls -l"));
        let reason = command_line("ls ÛH", Charset::Ascii).expect_err("a letter");
        assert!(reason.contains("locale"), "{reason}");
        let hidden = "\0\u{1}\t\r\u{1b}\u{1e}\u{7f}\u{80}\u{9b}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{1680}\u{180e}\u{200b}\u{200d}\
            \u{200f}\u{2028}\u{202e}\u{202f}\u{2060}\u{2066}\u{2800}\u{3000}\u{3164}\u{e000}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\
            \u{1d159}\u{1fffe}\u{e0041}\u{e01ef}\u{f0000}\u{10ffff}";
        for character in hidden.chars() {
            let text = format!("ls{character} -l");
            let reason = command_line(&text, Charset::Unicode).expect_err(&text);
            assert!(reason.contains("invisible"), "{text:?}: {reason}");
        }
    }
}
