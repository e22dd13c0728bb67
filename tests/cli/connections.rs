//! Connections: one for all rounds of a question, one that is opened while q waits, and none that is used in vain.

use serde_json::json;

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

/// A sandbox in which the model may call `shop__now`, which takes that many seconds.
fn with_command(seconds: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.config(&format!(
        "[tools.shop.now]\nreads = true\nrun = [\"sleep\", \"{seconds}\"]\n"
    ));
    sandbox
}

/// A reply that calls this command, with a length, so that its end needs nothing more.
fn calling(dialect: &Dialect) -> Reply {
    let calls = (dialect.calls)("", &[("call00001", "shop__now", json!({}))]);
    Reply::new(200)
        .header("content-type", "text/event-stream")
        .pieces(calls)
}

/// The numbers of the connections on which the requests came.
fn connections(server: &Server) -> Vec<usize> {
    let mut numbers = Vec::new();
    for request in server.requests() {
        numbers.push(request.connection);
    }
    numbers
}

#[test]
fn all_rounds_of_a_question_have_one_connection_unless_the_server_ends_it() {
    for dialect in &DIALECTS {
        // How the reply that calls ends, and the connections of the three requests.
        for (how, end, expected) in [
            ("kept", Reply::keep_alive as fn(Reply) -> Reply, [0, 0, 0]),
            ("closed", |reply| reply, [0, 1, 2]),
            // The body is longer, and nothing more comes.
            ("open", Reply::hang, [0, 1, 2]),
        ] {
            let _case = case((dialect.provider, how));
            // There is no terminal event, so only the end of the body ends the reply.
            if dialect.provider == "gemini" && how == "open" {
                continue;
            }
            let server = Server::start(move |request, number| match number {
                0 | 1 => end(calling(dialect)),
                _ => (dialect.reply)(request, "the answer"),
            });
            let sandbox = with_command("0");
            let q = dialect.q(&sandbox, &server, &["-t", "shop", "hi"]);
            q.run().success().stdout("the answer\n");
            assert_eq!(connections(&server), expected);
        }
    }
}
