//! Images and PDFs in the files of conversations: kept as they are, named where a conversation is shown, the first to go
//! where it grows too large.

use serde_json::{Value, json};

use crate::fixtures::{CREATED, HOUR, PIXEL, attachment, case, idle_for, numbered, texts, with};

fn error_png() -> Value {
    attachment("error.png", "image/png", PIXEL)
}

#[test]
fn a_follow_up_leaves_attachments_as_the_file_has_them() {
    // As q writes it, and as another tool may have written it.
    for message in [
        json!({"role": "user", "content": "what is it?", "timestamp": CREATED, "attachments": [error_png()]})
            .to_string(),
        format!(
            r#"{{ "attachments" : [ {{"data": "{}", "x": 1.50, "type":"image/png", "name":"\u00e4.png"}},{{"name":"b.pdf","type":"application/pdf","data":null}} ], "content":"what is it?","role":"user","stars": 1e2}}"#,
            PIXEL.replace('/', "\\/")
        ),
    ] {
        let _case = case(&message);
        let (server, sandbox) = numbered();
        let file = with(idle_for(HOUR, &[""; 0]), "messages", "here").to_string();
        let file = file.replace("\"here\"", &format!("[{message},{{\"role\":\"assistant\",\"content\":\"a\"}}]"));
        for (name, ask) in [("current.json", &["-f", "more"][..]), ("work.json", &["-s", "work", "more"])] {
            sandbox.write_bytes(name, &file);
            sandbox.q(ask).run().success().stderr_is_empty();
            let written = String::from_utf8(sandbox.read_bytes(name)).expect("text");
            sandbox.check(written.contains(&message), || format!("expected {message} in {written}"));
            assert_eq!(texts(&sandbox.session(name))[2], "more");
        }
        server.expect_requests(2);
    }
}
