//! The code in an answer: the contents of its fenced blocks, by CommonMark's rules.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// The contents of all fenced code blocks, one after the other, including those in lists and block quotes; `None` if
/// there is no block. A last block that is not closed extends to the end.
pub(crate) fn extract(answer: &str) -> Option<String> {
    let mut code: Option<String> = None;
    let mut is_inside = false;
    for (event, range) in Parser::new(answer).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                is_inside = true;
                code.get_or_insert_default();
            }
            Event::End(TagEnd::CodeBlock) => is_inside = false,
            Event::Text(text) if is_inside => {
                let code = code.get_or_insert_default();
                // The parser leaves carriage returns out.
                if text.starts_with('\n') && answer[..range.start].ends_with('\r') {
                    code.push('\r');
                }
                code.push_str(&text);
            }
            _ => {}
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_fences_are_extracted() {
        for (answer, code) in [
            ("text\n```sh\nls -l\n```\nmore\n", Some("ls -l\n")),
            ("~~~\na\n~~~\n", Some("a\n")),
            ("```\na\n```\nthen\n~~~ python\nb\n~~~\n", Some("a\nb\n")),
            ("````md\n```sh\nx\n```\n````\n", Some("```sh\nx\n```\n")),
            ("```\na\n~~~\nb\n```\n", Some("a\n~~~\nb\n")),
            ("```\nnot closed", Some("not closed")),
            ("```\n``` not a close\n```\n", Some("``` not a close\n")),
            ("  ```\n    a\n  b\nc\n  ```\n", Some("  a\nb\nc\n")),
            ("```\n\n\ta\n  \n```\n", Some("\n\ta\n  \n")),
            ("```\n&amp; \\* <b>\n```\n", Some("&amp; \\* <b>\n")),
            ("```\r\na\r\n\r\n\tb\r\n```\r\n", Some("a\r\n\r\n\tb\r\n")),
            ("> - x\r\n>   ```\r\n>   a\r\n>\r\n>   ```\r\n", Some("a\r\n\r\n")),
            ("1. Run\n   ```sh\n   ls\n   ```\n2. Then\n\n   ```sh\n   df\n   ```\n", Some("ls\ndf\n")),
            ("- a\n  - b\n\n    ```\n    deep\n      er\n    ```\n", Some("deep\n  er\n")),
            ("-\tx\n\n\t```\n\ta\n\t\tb\n\t```\n", Some("a\n\tb\n")),
            ("> ```sh\n> ls -l\n>\n> df\n> ```\n", Some("ls -l\n\ndf\n")),
            ("    ```\n    x\n    ```\n", None),
            ("``\nx\n``\n", None),
            ("inline ```x``` code\n", None),
            ("<pre>\n```\nx\n```\n</pre>\n\n```\ny\n```\n", Some("y\n")),
            ("<details>\n\n```\nx\n```\n\n</details>\n", Some("x\n")),
            ("```\n```\n", Some("")),
            ("", None),
            ("plain\n", None),
        ] {
            assert_eq!(extract(answer).as_deref(), code, "{answer:?}");
        }
    }
}
