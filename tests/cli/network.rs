//! Failures of the network and of providers: what is tried again, what is said, and that nothing else changes.

use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::dialect::{
    DIALECTS, built_in_dialects, data, finish, openai_reply, openai_stream, word,
};
use crate::fixtures::{CLOSED, UNKNOWN_HOST, case};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{API_KEY, Outcome, Sandbox};
use crate::server::{Gate, Reply, Server};

/// One question to an OpenAI-like server that answers everything so, with no second try.
fn ask(reply: Reply) -> (Outcome, Server) {
    let server = Server::always(reply);
    let outcome = DIALECTS[0].q(&Sandbox::new(), &server, &["hi"]).run();
    (outcome, server)
}

#[test]
fn a_request_is_sent_again_until_the_retries_are_used_up() {
    // Two failures, then an answer: what the two retries of the default just reach.
    let server = Server::start(|request, number| match number {
        0 => Reply::raw("").reset(),
        1 => Reply::new(429).header("retry-after", "0"),
        _ => openai_reply(request, "at last"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.q(&["hi"]).run().success().stdout("at last\n");
    let bodies: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.text())
        .collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    for (retries, requests) in [("0", 1), ("1", 2), ("2", 3)] {
        let _case = case(retries);
        let server = Server::always(Reply::new(503).header("retry-after", "0.5"));
        sandbox
            .q(&["hi"])
            .server_env(&server)
            .env("Q_RETRIES", retries)
            .run()
            .exit(1);
        server.expect_requests(requests);
    }
}

#[test]
fn every_failure_that_may_pass_is_tried_again() {
    let statuses = [408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529];
    let mut failures: Vec<(String, Reply)> = statuses
        .into_iter()
        .map(|status| (status.to_string(), Reply::new(status)))
        .collect();
    for code in ["server_is_overloaded", "slow_down"] {
        let error = json!({"error": {"message": "no", "code": code}});
        failures.push((format!("{code} in a stream"), Reply::sse([data(&error)])));
        failures.push((
            format!("{code} in place of an answer"),
            Reply::json(200, error),
        ));
    }
    failures.push((
        "a bad end without text".to_owned(),
        Reply::sse([finish("error")]),
    ));
    failures.push(("a reset".to_owned(), Reply::raw("").reset()));
    failures.push(("a connection that is closed".to_owned(), Reply::raw("")));
    failures.push((
        "half of the headers".to_owned(),
        Reply::raw("HTTP/1.1 200 OK\r\ncontent-"),
    ));
    let mut started = Vec::new();
    for (what, failure) in failures {
        let server = Server::start(move |request, number| match number {
            0 => failure.clone(),
            _ => openai_reply(request, "at last"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        let running = sandbox.q(&["hi"]).env("Q_RETRIES", "1").spawn();
        started.push((what, server, sandbox, running));
    }
    for (what, server, _sandbox, running) in started {
        let _case = case(what);
        running.wait().success().stdout("at last\n");
        server.expect_requests(2);
    }
}

#[test]
fn the_wait_before_another_try_is_what_the_server_asks_for_and_never_very_short() {
    for (asked, least) in [("1", 950), ("0", 480), ("0.01", 480)] {
        let _case = case(asked);
        let server = Server::start(move |request, number| match number {
            0 => Reply::new(429).header("retry-after", asked),
            _ => openai_reply(request, "ok"),
        });
        Sandbox::new()
            .server_env(&server)
            .q(&["hi"])
            .run()
            .success();
        let requests = server.requests();
        let waited = requests[1].received.duration_since(requests[0].received);
        assert!(waited >= Duration::from_millis(least), "{waited:?}");
    }
}

#[test]
fn after_the_first_word_nothing_is_sent_again_and_what_came_is_kept() {
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
            let q = dialect
                .q(&sandbox, &server, &["hi"])
                .env("Q_RETRIES", "3")
                .env("Q_TIMEOUT", "1s");
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
        outcome
            .exit(1)
            .stdout("half answer \n")
            .stderr_contains(&server.url());
        server.expect_requests(1);
        sandbox.expect_answer("half answer ", true);
    }
}

#[test]
fn after_a_finish_reason_the_terminal_event_may_stay_away() {
    let mut started = Vec::new();
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let mut events = (dialect.stream)(&["one ", "two"]);
        events.truncate(events.len() - dialect.after_finish);
        for (what, reply, limit) in [
            ("end", Reply::sse(events.clone()), 9),
            ("cut", Reply::sse(events.clone()).cut(), 9),
            ("silence", Reply::sse(events.clone()).hang(), 60),
        ] {
            let server = Server::always(reply);
            let sandbox = Sandbox::new();
            let running = dialect.q(&sandbox, &server, &["hi"]).spawn();
            started.push((
                dialect.provider,
                what,
                Duration::from_secs(limit),
                server,
                sandbox,
                running,
            ));
        }
    }
    for (provider, what, limit, _server, sandbox, running) in started {
        let _case = case((provider, what));
        running
            .wait()
            .success()
            .stdout("one two\n")
            .ended_within(limit);
        sandbox.expect_answer("one two", false);
    }
}

#[test]
fn a_slow_stream_is_not_cut_while_something_comes() {
    // Each silence is well below the limit, all together are above it.
    let gates = [Gate::new(), Gate::new(), Gate::new(), Gate::new()];
    let begun = Reply::sse([word("one ")]);
    let reply = gates.iter().fold(begun, |reply, gate| {
        reply.wait_for(gate).piece(": ping\n\n")
    });
    let server = Server::always(reply.pieces(openai_stream(&["two"])));
    let sandbox = Sandbox::new();
    let mut running = DIALECTS[0]
        .q(&sandbox, &server, &["hi"])
        .env("Q_TIMEOUT", "3s")
        .spawn();
    running.read_stdout_until("one ");
    for gate in gates {
        // Time itself is what is tested here.
        thread::sleep(Duration::from_secs(1));
        gate.open();
    }
    running.wait().success().stdout("one two\n");
}

#[test]
fn silence_ends_a_connection_after_the_time_of_the_setting() {
    let server = Server::always(Reply::raw("").hang());
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["hi"]).env("Q_TIMEOUT", "1s").run();
    outcome.exit(1).stderr_contains("Q_TIMEOUT");
    // A silence is not tried again: the answer may be on its way, and paid for.
    server.expect_requests(1);
    let elapsed = outcome.elapsed();
    outcome.check(elapsed >= Duration::from_secs(1), || {
        format!("expected a silence of 1 s, not {elapsed:?}")
    });
}

#[test]
fn a_server_that_takes_no_connection_is_given_up_after_a_while_and_tried_again() {
    let (listener, _waiting) = full_listener();
    let sandbox = Sandbox::new().openai_at(format!("http://{}/v1", listener.local_addr().unwrap()));
    let terminal = Terminal::new(WIDE);
    let began = Instant::now();
    // Silence may last longer.
    let mut running = sandbox
        .q(&["-v", "hi"])
        .env("Q_TIMEOUT", "2m")
        .stderr_to(terminal.end())
        .spawn();
    terminal.wait_for("no connection within 15 s", 0);
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(15) && waited < Duration::from_secs(60),
        "{waited:?}"
    );
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
fn a_refused_connection_and_an_unknown_host_are_reported_at_once() {
    for (base, words) in [
        (CLOSED.to_owned(), &["refused", "127.0.0.1:1"][..]),
        (format!("http://{UNKNOWN_HOST}"), &["resolve", UNKNOWN_HOST]),
        (
            format!("https://{UNKNOWN_HOST}"),
            &["resolve", UNKNOWN_HOST],
        ),
    ] {
        for dialect in built_in_dialects() {
            let sandbox = Sandbox::new();
            let name = dialect.provider.to_uppercase();
            let q = sandbox.q(&["hi"]).env(format!("{name}_BASE_URL"), &base);
            let q = q.env(format!("{name}_API_KEY"), API_KEY);
            // So many tries would take minutes.
            let outcome = q.env("Q_RETRIES", "20").run();
            outcome
                .exit(1)
                .stdout_is_empty()
                .stderr_contains(&base)
                .stderr_lacks(API_KEY);
            outcome.stderr_contains_all(words);
            sandbox.expect_no_state();
        }
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_distinguished() {
    let server = Server::always(Reply::new(200));
    let base = server.url().replace("http:", "https:");
    let sandbox = Sandbox::new()
        .server_env(&server)
        .env("OPENAI_BASE_URL", base)
        .env("Q_RETRIES", "20");
    sandbox.q(&["hi"]).run().exit(1).stderr_contains("TLS");
}

#[test]
fn replies_without_end_are_refused_with_a_clear_error() {
    let line = "b".repeat(1 << 20);
    let many = |begin: &str, piece: &str, count| {
        let reply = Reply::raw(begin);
        (0..count).fold(reply, |reply, _| reply.piece(piece)).hang()
    };
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let whole = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"";
    for (what, reply, words) in [
        (
            "headers",
            many("HTTP/1.1 200 OK\r\n", &"x-a: b\r\n".repeat(1000), 100),
            "headers",
        ),
        (
            "a header",
            many("HTTP/1.1 200 OK\r\nx-a: ", &line, 20),
            "headers",
        ),
        (
            "a line",
            many(&format!("{stream}data: "), &line, 20),
            "16000000 bytes",
        ),
        (
            "an event",
            many(stream, &format!("data: {line}\n"), 20),
            "16000000 bytes",
        ),
        ("a whole answer", many(whole, &line, 20), "16000000 bytes"),
        (
            "an error",
            many("HTTP/1.1 400 Bad Request\r\n\r\n", &line, 20),
            "400 Bad Request",
        ),
    ] {
        let _case = case(what);
        let (outcome, _server) = ask(reply);
        outcome.exit(1).stdout_is_empty().stderr_contains(words);
        outcome.check(outcome.stderr.len() < 1000, || {
            "expected a short message".to_owned()
        });
    }
}

#[test]
fn a_key_that_the_server_echoes_is_not_shown() {
    let echo = format!("no such key: {API_KEY} (Bearer {API_KEY})");
    // Where the text of a server is cut, the cut may go through the key.
    let at_the_cut = |before: usize| format!("{}{API_KEY}", "y".repeat(before));
    let mut replies: Vec<(String, Reply)> = (170..200)
        .step_by(5)
        .map(|at| {
            (
                format!("cut at {at}"),
                Reply::new(400).piece(at_the_cut(at)),
            )
        })
        .collect();
    for dialect in &DIALECTS {
        let error = (dialect.error)(401, &echo);
        let mut add =
            |what: &str, reply| replies.push((format!("{what} of {}", dialect.provider), reply));
        add("a refusal", Reply::json(401, error.clone()));
        add("an error as an answer", Reply::json(200, error.clone()));
        add("an error in a stream", Reply::sse([data(&error)]));
        add(
            "nonsense",
            Reply::json(
                200,
                json!({"choices": API_KEY, "type": API_KEY, "candidates": API_KEY}),
            ),
        );
    }
    for (what, reply) in replies {
        for dialect in &DIALECTS {
            let _case = case((&what, dialect.provider));
            let server = Server::always(reply.clone());
            let outcome = dialect.q(&Sandbox::new(), &server, &["hi"]).run();
            outcome
                .exit(1)
                .stderr_lacks("sk-test")
                .stdout_lacks("sk-test");
        }
    }
}

/// A server that lets a client through to itself, as a proxy does.
fn proxy() -> Server {
    Server::start(|request, _| {
        if request.method == "CONNECT" {
            Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive()
        } else {
            openai_reply(request, "by the proxy")
        }
    })
}

#[test]
fn loopback_never_goes_through_a_proxy() {
    let server = Server::openai("straight");
    let sandbox = Sandbox::new().server_env(&server);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        for host in ["127.0.0.1", "localhost"] {
            let base = format!("http://{host}:{}/v1", server.address().port());
            let q = sandbox
                .q(&["hi"])
                .env(name, CLOSED)
                .env("OPENAI_BASE_URL", base);
            q.run().success().stdout("straight\n");
        }
    }
}

#[test]
fn a_proxy_is_chosen_by_scheme_and_no_proxy_exempts_from_it() {
    let http = "http://llm.corp.example/v1";
    let https = "https://llm.corp.example/v1";
    // Variables (`P`: the proxy, `X`: a closed port), base URL, whether the proxy is asked.
    for (variables, base, used) in [
        (&[("HTTP_PROXY", "P")][..], http, true),
        (&[("http_proxy", "P")], http, true),
        (&[("ALL_PROXY", "P")], http, true),
        (&[("all_proxy", "P")], http, true),
        (
            &[
                ("HTTP_PROXY", "P"),
                ("ALL_PROXY", "X"),
                ("HTTPS_PROXY", "X"),
            ],
            http,
            true,
        ),
        (&[("HTTP_PROXY", ""), ("ALL_PROXY", "P")], http, true),
        (
            &[
                ("HTTPS_PROXY", "P"),
                ("ALL_PROXY", "X"),
                ("HTTP_PROXY", "X"),
            ],
            https,
            true,
        ),
        (&[("https_proxy", "P")], https, true),
        (&[("HTTP_PROXY", "X"), ("ALL_PROXY", "P")], https, true),
        (
            &[
                ("ALL_PROXY", "P"),
                ("NO_PROXY", "example.com, notcorp.example,rp.example"),
            ],
            http,
            true,
        ),
        (&[("ALL_PROXY", "P"), ("NO_PROXY", "")], http, true),
    ] {
        let proxy = proxy();
        let sandbox = Sandbox::new().openai_at(base);
        let at = proxy.url();
        let meant = |value: &'static str| match value {
            "P" => at.clone(),
            "X" => CLOSED.to_owned(),
            other => other.to_owned(),
        };
        let q = sandbox.q(&["hi"]).env("Q_RETRIES", "0");
        let outcome = variables
            .iter()
            .fold(q, |q, (name, value)| q.env(name, meant(value)))
            .run();
        let requests = proxy.requests();
        let asked = requests
            .iter()
            .any(|request| request.path.contains("llm.corp.example"));
        outcome.check(asked == used, || {
            format!("expected the proxy to be asked: {used}, with {variables:?}")
        });
        if base == http && used {
            outcome.exit(0).stdout("by the proxy\n");
        }
    }
}

#[test]
fn what_no_proxy_names_is_asked_directly() {
    let base = format!("http://{UNKNOWN_HOST}/v1");
    let parent = UNKNOWN_HOST
        .split_once('.')
        .map(|(_, parent)| parent)
        .expect("a domain");
    for list in [
        UNKNOWN_HOST,
        parent,
        &format!("a.example , .{parent}"),
        "*",
        &UNKNOWN_HOST.to_uppercase(),
    ] {
        for name in ["NO_PROXY", "no_proxy"] {
            let proxy = proxy();
            let sandbox = Sandbox::new().openai_at(&base);
            let outcome = sandbox
                .q(&["hi"])
                .env("ALL_PROXY", proxy.url())
                .env(name, list)
                .env("Q_RETRIES", "0")
                .run();
            outcome
                .exit(1)
                .stderr_contains("resolve")
                .stderr_lacks("proxy");
            proxy.expect_requests(0);
        }
    }
}

#[test]
fn a_proxy_that_fails_is_named_without_its_password() {
    let refusing = Server::always(Reply::new(407));
    let at = |address: &str| format!("http://user:proxy-secret-3@{address}");
    for (proxy, words) in [
        (
            at("127.0.0.1:1"),
            &["refused", "127.0.0.1:1", "HTTP_PROXY"][..],
        ),
        (at(&refusing.address().to_string()), &["407", "HTTP_PROXY"]),
        (
            at(&format!("{UNKNOWN_HOST}:3128")),
            &["resolve", UNKNOWN_HOST, "HTTP_PROXY"],
        ),
        (
            "socks5://127.0.0.1:1".to_owned(),
            &["refused", "127.0.0.1:1", "HTTP_PROXY"],
        ),
    ] {
        let sandbox = Sandbox::new().openai_at("http://192.0.2.1/v1");
        let outcome = sandbox
            .q(&["hi"])
            .env("HTTP_PROXY", proxy)
            .env("Q_RETRIES", "0")
            .run();
        outcome.exit(1).stdout_is_empty().stderr_lacks("secret");
        outcome.stderr_contains_all(words);
        // It is the proxy's name that cannot be resolved; the server's is none at all.
        outcome.stderr_lacks("name 192.0.2.1");
    }
    let sandbox = Sandbox::new().openai_at("http://192.0.2.1/v1");
    let wrong = sandbox
        .q(&["hi"])
        .env("HTTP_PROXY", "http://user:proxy-secret-3@:x")
        .run();
    wrong
        .exit(2)
        .stderr_contains("HTTP_PROXY")
        .stderr_lacks("secret");
}

#[test]
fn a_key_that_leaves_the_machine_unencrypted_gets_a_note() {
    let proxy = proxy();
    let local = Server::openai("ok");
    let sandbox = Sandbox::new().env("HTTP_PROXY", proxy.url());
    let (far, near) = ("http://llm.corp.example/v1", format!("{}/v1", local.url()));
    let asked = |base: &str| {
        sandbox
            .q(&["hi"])
            .env("OPENAI_API_KEY", API_KEY)
            .env("OPENAI_BASE_URL", base)
            .run()
    };
    let outcome = asked(far);
    outcome.exit(0).stdout("by the proxy\n").stderr_has_lines(1);
    outcome
        .stderr_contains("q: ")
        .stderr_contains("http")
        .stderr_lacks(API_KEY);
    asked(&near).success();
    // Headers and passwords of the settings are keys, too.
    sandbox.config(&format!(
        "[providers.work]\nbase_url = \"{far}\"\nmodel = \"m\"\nheaders = {{ Authorization = \"Bearer {API_KEY}\" }}\n"
    ));
    let with_login = "http://joe:open-sesame@llm.corp.example/v1";
    for (provider, base) in [("work", far), ("lmstudio", with_login)] {
        let _case = case(provider);
        let asked = sandbox
            .q(&["-p", provider, "-m", "m", "hi"])
            .env("LMSTUDIO_BASE_URL", base)
            .run();
        asked
            .exit(0)
            .stderr_contains(&format!(
                "the key of {provider} goes to http://llm.corp.example"
            ))
            .stderr_has_lines(1);
        asked.stderr_lacks(API_KEY).stderr_lacks("sesame");
    }
    // Without a key there is nothing to give away.
    let keyless = sandbox
        .q(&["-p", "lmstudio", "-m", "m", "hi"])
        .env("LMSTUDIO_BASE_URL", far);
    keyless.run().success().stdout("by the proxy\n");
}

#[test]
fn a_server_that_closes_without_reading_is_answered_by_another_try() {
    // It accepts, and closes before the request has been read: q's own write may be what fails.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        first.shutdown(Shutdown::Both).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let answer = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]});
        write!(
            second,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{answer}"
        )
        .unwrap();
        // Closing with the request unread would be a reset.
        let _ = second.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut second, &mut std::io::sink());
    });
    let sandbox = Sandbox::new().openai_at(format!("http://{address}/v1"));
    sandbox
        .q(&["hi"])
        .stdin(vec![b'x'; 2_000_000])
        .run()
        .success()
        .stdout("hi\n");
    serving.join().unwrap();
}

#[test]
fn a_connection_that_breaks_within_an_event_is_reported_as_that() {
    let cut_after = |pieces: &[Vec<u8>]| {
        let server = Server::always(
            Reply::sse(pieces)
                .piece("data: {\"choices\":[],\"usa")
                .cut(),
        );
        let outcome = Sandbox::new().server_env(&server).q(&["hi"]).run();
        outcome.stdout("Hello\n");
        outcome
    };
    let outcome = cut_after(&[word("Hello")]);
    outcome
        .exit(1)
        .stderr_contains("the server closed the connection")
        .stderr_lacks("cannot be read");
    // The answer was complete by then.
    cut_after(&[word("Hello"), finish("stop")]).success();
}
