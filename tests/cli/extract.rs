//! `-x`: the code of an answer and nothing else; in a pipe only once the answer is complete.

use crate::dialect::openai_stream;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

/// A script that must not run in part.
const SCRIPT: &str = "Here:\n```sh\necho one\necho two\n```\n";

#[test]
fn code_is_not_printed_into_a_pipe_before_the_answer_has_ended() {
    let gate = Gate::new();
    let mut events = openai_stream(&[SCRIPT]);
    let end = events.split_off(2);
    let server = Server::always(Reply::sse(events).wait_for(&gate).pieces(end));
    let sandbox = Sandbox::new().server_env(&server);
    let mut waiting = sandbox.q(&["-x", "--no-save", "how?"]).spawn();
    server.wait_for_requests(1);
    // This one has been sent the same, and later.
    let mut other = sandbox.q(&["how?"]).spawn();
    other.read_stdout_until("echo two");
    assert_eq!(waiting.read_stdout_until(""), b"");
    gate.open();
    waiting.wait().success().stdout("echo one\necho two\n");
    other.wait().success();
}
