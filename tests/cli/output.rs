//! That an answer is printed as it comes.

use crate::dialect::DIALECTS;
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

#[test]
fn each_piece_is_printed_before_the_next_arrives() {
    let words = ["one ", "two\n", "\tthree"];
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let gates = [Gate::new(), Gate::new(), Gate::new()];
        let mut next = gates.iter();
        let mut reply = Reply::sse::<&[u8]>([]);
        for piece in (dialect.stream)(&words) {
            // After each event with a word the server waits until the word has been printed.
            let text = String::from_utf8(piece.clone()).unwrap();
            reply = reply.piece(piece);
            if ["one ", "two\\n", "three"]
                .iter()
                .any(|word| text.contains(word))
                && let Some(gate) = next.next()
            {
                reply = reply.wait_for(gate);
            }
        }
        assert!(next.next().is_none(), "a gate after each word");
        let server = Server::always(reply);
        let sandbox = Sandbox::new();
        let mut running = dialect.q(&sandbox, &server, &["why"]).spawn();
        let mut expected = String::new();
        for (word, gate) in words.iter().zip(&gates) {
            expected.push_str(word);
            assert_eq!(running.read_stdout_until(word), expected.as_bytes());
            gate.open();
        }
        running.wait().success().stdout(format!("{expected}\n"));
    }
}
