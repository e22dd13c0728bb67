//! Failures of the network in which time, the order of events or a great size matters.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::dialect::{DIALECTS, openai_reply, openai_stream, word};
use crate::fixtures::case;
use crate::machine::{FASTER, fast_clock};
use crate::outcome::Outcome;
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

#[test]
fn the_wait_before_a_retry_is_the_requested_one_or_at_least_half_a_second() {
    for (asked, least) in [("1", 950), ("0.01", 480)] {
        let _case = case(asked);
        let server = Server::start(move |request, number| match number {
            0 => Reply::new(429).header("retry-after", asked),
            _ => openai_reply(request, "ok"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.q(&["hi"]).run().success();
        let requests = server.requests();
        let waited = requests[1].received.duration_since(requests[0].received);
        assert!(waited >= Duration::from_millis(least), "{waited:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_saved_and_not_requested_again() {
    let mut started = Vec::new();
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        for (what, end) in [
            ("cut", Reply::cut as fn(Reply) -> Reply),
            ("reset", Reply::reset),
            ("silence", Reply::hang),
        ] {
            let gate = Gate::new();
            let reply = Reply::sse(dialect.unfinished(&["half ", "answer "])).wait_for(&gate);
            let server = Server::always(end(reply));
            let sandbox = Sandbox::new();
            let q = dialect.q(&sandbox, &server, &["hi"]);
            let q = q.env("Q_RETRIES", "3").env("Q_TIMEOUT", "1s");
            let mut running = q.spawn();
            // A reset overtakes what the client has not read yet.
            running.read_stdout_until("half answer ");
            gate.open();
            started.push((dialect.provider, what, server, sandbox, running));
        }
    }
    for (provider, what, server, sandbox, running) in started {
        let _case = case((provider, what));
        let outcome = running.wait();
        outcome.exit(1).stdout("half answer \n");
        outcome.stderr_contains(&server.url());
        server.expect_requests(1);
        sandbox.expect_answer("half answer ", true);
    }
}

#[test]
fn an_answer_with_a_finish_reason_is_complete_without_the_terminal_event() {
    let library = Sandbox::new();
    let clock = fast_clock(&library);
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let mut events = (dialect.stream)(&["one ", "two"]);
        events.truncate(events.len() - dialect.after_finish);
        for end in [|reply: Reply| reply, Reply::cut, Reply::hang] {
            let server = Server::always(end(Reply::sse(events.clone())));
            let sandbox = Sandbox::new();
            // Silence is taken for the end after ten seconds on q's clock, and nothing else ends an answer.
            let q = dialect
                .q(&sandbox, &server, &["hi"])
                .env("Q_TIMEOUT", "never");
            let outcome = match &clock {
                Some(clock) => q.env("LD_PRELOAD", clock).run(),
                None => q.run(),
            };
            outcome.success().stdout("one two\n");
            sandbox.expect_answer("one two", false);
        }
    }
}

#[test]
fn a_slow_stream_is_not_cut_while_bytes_keep_arriving() {
    // Time itself is what is tested here. Where the machine was too busy to send in time, a longer limit is tried.
    for limit in [2, 10, 50] {
        let limit = Duration::from_secs(limit);
        let (outcome, silence) = slow_stream(limit);
        if silence < limit {
            outcome.success().stdout("one two\n");
            return;
        }
    }
    panic!("this machine is too busy");
}

/// A stream whose silences are well below the limit, and all together above it. Returns how it ended, and the longest of them.
fn slow_stream(limit: Duration) -> (Outcome, Duration) {
    let gates = [Gate::new(), Gate::new(), Gate::new(), Gate::new()];
    let sent = Arc::new(Mutex::new(Vec::new()));
    let now = {
        let sent = Arc::clone(&sent);
        move || sent.lock().expect("times").push(Instant::now())
    };
    let begun = Reply::sse([word("one ")]).then(now.clone());
    let reply = gates.iter().fold(begun, |reply, gate| {
        reply.wait_for(gate).piece(": ping\n\n").then(now.clone())
    });
    let server = Server::always(reply.pieces(openai_stream(&["two"])));
    let sandbox = Sandbox::new();
    let running = DIALECTS[0].q(&sandbox, &server, &["hi"]);
    let q_timeout = format!("{}s", limit.as_secs());
    let mut running = running.env("Q_TIMEOUT", q_timeout).spawn();
    running.read_stdout_until("one ");
    for gate in &gates[..3] {
        thread::sleep(limit * 3 / 10);
        gate.open();
    }
    // What comes while q is stopped counts, too.
    running.signal(libc::SIGSTOP);
    gates[3].open();
    thread::sleep(limit * 5 / 4);
    running.signal(libc::SIGCONT);
    let outcome = running.wait();
    let sent = sent.lock().expect("times");
    let silences = sent.windows(2).map(|times| times[1] - times[0]);
    (outcome, silences.max().unwrap_or(limit))
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_connection_that_is_not_accepted_is_given_up_after_15_s_and_retried() {
    let (listener, _waiting) = full_listener();
    let sandbox = Sandbox::new().openai_at(format!("http://{}/v1", listener.local_addr().unwrap()));
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    let terminal = Terminal::new(WIDE);
    let began = Instant::now();
    // Silence may last longer.
    let q = sandbox.q(&["-v", "hi"]).env("LD_PRELOAD", clock);
    let q = q.env("Q_TIMEOUT", "1h");
    let mut running = q.stderr_to(terminal.end()).spawn();
    terminal.wait_for("no connection within 15 s", 0);
    let waited = began.elapsed() * FASTER;
    assert!(waited >= Duration::from_secs(15), "{waited:?}");
    terminal.wait_for("; retrying in", 0);
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM).stdout_is_empty();
}

/// A listener that has no room for another connection: what asks for one gets no answer. The connections that are in
/// its way last as long as they are held.
fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // SAFETY: a plain system call on a descriptor that is open.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok();
    let waiting: Vec<TcpStream> = std::iter::from_fn(connect).take(100).collect();
    assert!(waiting.len() < 100, "there is always room");
    (listener, waiting)
}

#[test]
fn endless_responses_are_refused_with_a_short_error() {
    let line = "b".repeat(1 << 20);
    let many = |begin: &str, piece: &str, count| {
        let reply = Reply::raw(begin);
        (0..count).fold(reply, |reply, _| reply.piece(piece)).hang()
    };
    let fine = "HTTP/1.1 200 OK\r\n";
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let whole = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"";
    let error = "HTTP/1.1 400 Bad Request\r\n\r\n";
    let (headers, events) = ("x-a: b\r\n".repeat(1000), format!("data: {line}\n"));
    let (header, in_line) = (format!("{fine}x-a: "), format!("{stream}data: "));
    for (what, reply, words) in [
        ("headers", many(fine, &headers, 100), "header"),
        ("a header", many(&header, &line, 20), "header"),
        ("a line", many(&in_line, &line, 20), "16 MB"),
        ("an event", many(stream, &events, 20), "16 MB"),
        ("a whole answer", many(whole, &line, 20), "16 MB"),
        ("an error", many(error, &line, 20), "400 Bad Request"),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let outcome = DIALECTS[0].q(&Sandbox::new(), &server, &["hi"]).run();
        outcome.exit(1).stdout_is_empty().stderr_contains(words);
        assert!(outcome.stderr.len() < 1000, "a long message");
    }
}

#[test]
fn a_request_is_retried_if_the_server_closes_without_reading_it() {
    // It accepts, and closes before the request has been read: q's own write may be what fails.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        first.shutdown(Shutdown::Both).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let answer = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]});
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
        write!(second, "{head}{answer}").unwrap();
        // Closing with the request unread would be a reset.
        let _ = second.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut second, &mut std::io::sink());
    });
    let sandbox = Sandbox::new().openai_at(format!("http://{address}/v1"));
    let outcome = sandbox.q(&["hi"]).stdin(vec![b'x'; 2_000_000]).run();
    outcome.success().stdout("hi\n");
    serving.join().unwrap();
}

#[test]
fn blank_lines_before_an_answer_in_one_piece_are_skipped() {
    // DeepSeek sends such lines while a request waits for its turn. There are so many here that no read gets past them.
    let server = Server::start(move |_, _| {
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
        let reply = Reply::new(200)
            .header("content-type", "application/json")
            .chunked();
        reply.piece("\n".repeat(200_000)).piece(answer.to_string())
    });
    for args in [&["--no-stream", "hi"][..], &["hi"]] {
        let outcome = DIALECTS[0].q(&Sandbox::new(), &server, args).run();
        outcome.success().stdout("hi\n");
    }
}

#[test]
fn a_body_that_trickles_is_given_up_after_a_while() {
    let trickle = |status: u16| {
        let mut reply = Reply::new(status).chunked().piece("{\"error\":\"no");
        for _ in 0..10_000 {
            reply = reply
                .then(|| thread::sleep(Duration::from_millis(50)))
                .piece(" ");
        }
        reply
    };
    for (what, reply, arguments, says) in [
        (
            "a list",
            trickle(200),
            "--models",
            "timed out: the response was not complete in time",
        ),
        (
            "a list that has not begun",
            Reply::raw("").hang(),
            "--models",
            "timed out: no data from the server",
        ),
        (
            "an error",
            trickle(400),
            "hi",
            "400 Bad Request: {\"error\"",
        ),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
        let q = sandbox.q(&[arguments]).env("Q_TIMEOUT", "1s");
        let outcome = q.run();
        outcome.exit(1).stderr_contains(says);
    }
}

#[test]
fn a_password_that_a_proxy_repeats_is_redacted() {
    // It answers in the place of the provider and of the tool server.
    let tunnel = Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive();
    let proxy = Server::start(move |request, _| match request.method.as_str() {
        "CONNECT" => tunnel.clone(),
        _ => Reply::json(
            407,
            json!({"error": "who is proxy-secret-3 or bWU6cHJveHktc2VjcmV0LTM=?"}),
        ),
    });
    let host = proxy.address();
    let sandbox = Sandbox::new().openai_at("http://llm.test/v1");
    sandbox.config("[tools.web]\nurl = \"http://tools.test/mcp\"\n");
    for (login, said) in [
        ("me:proxy-secret-3", "[redacted] or [redacted]"),
        ("proxy-secret-3", "[redacted] or "),
    ] {
        for args in [&["hi"][..], &["--list-tools", "-t", "web"], &["--models"]] {
            let _case = case((login, args));
            let q = sandbox
                .q(args)
                .env("ALL_PROXY", format!("http://{login}@{host}"));
            let outcome = q.run();
            outcome.exit(1).stderr_contains(&format!("who is {said}"));
            outcome.stderr_lacks("proxy-secret-3");
        }
    }
}

#[test]
fn an_error_that_a_server_sends_before_it_has_read_the_request_is_reported() {
    for (status, words) in [
        ("413 Payload Too Large", "too large"),
        ("401 Unauthorized", "no key"),
    ] {
        let _case = case(status);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
        let server = thread::spawn(move || {
            for connection in listener.incoming().take(8) {
                let mut connection = connection.expect("a connection");
                let body = format!(r#"{{"error":{{"message":"{words}"}}}}"#);
                let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
                let length = body.len();
                let reply = format!("{head}content-length: {length}\r\n\r\n{body}");
                connection
                    .read_exact(&mut [0; 100])
                    .expect("a part of the request");
                // The rest is not read, so the connection ends in a reset.
                connection
                    .write_all(reply.as_bytes())
                    .expect("room for the reply");
            }
        });
        let sandbox = Sandbox::new().openai_at(&url).env("Q_RETRIES", "0");
        sandbox.write_home("long.txt", "word ".repeat(1_500_000));
        for _ in 0..8 {
            let outcome = sandbox.q(&["-a", "long.txt", "hi"]).run();
            outcome
                .exit(1)
                .stderr_contains(&format!("{status}: {words}"));
        }
        server.join().expect("the server");
    }
}
