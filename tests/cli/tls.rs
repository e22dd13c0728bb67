//! TLS: whose certificates q takes, what it says of others, and that a proxy sees nothing of what goes through it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConnection, StreamOwned};

use crate::authority::Authority;
use crate::conversations::talked;
use crate::dialect::{openai_stream, word};
use crate::fixtures::{UNKNOWN_HOST, case, prompt};
use crate::machine::lacks;
use crate::run::{API_KEY, Q};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};
use crate::snapshot::snapshot;
use crate::toolserver;

/// The years in which a certificate is valid that is neither too old nor too new.
const ALWAYS: RangeInclusive<i32> = 2000..=2999;

/// A host that no resolver knows, and that only a proxy leads to.
const FAR: &str = "q.test";

/// An address that is nobody's (RFC 5737), and that only a proxy leads to.
const FAR_ADDRESS: &str = "192.0.2.1";

/// Gives each connection to `serve`, in a thread of its own, for as long as the test process lives.
fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
    let address = listener.local_addr().expect("the listener's address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            // A client that leaves, or that takes the certificate for a bad one, is what some tests want.
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// TLS before a server, one request a connection.
struct Tls {
    address: SocketAddr,
    /// How many connections there were.
    connections: Arc<Mutex<usize>>,
}

impl Tls {
    fn start(
        authority: &Authority,
        names: &[&str],
        years: RangeInclusive<i32>,
        server: &Server,
        end: End,
    ) -> Tls {
        let (config, server) = (authority.server(names, years), server.address());
        let connections = Arc::new(Mutex::new(0));
        let address = listen({
            let connections = Arc::clone(&connections);
            move |stream| {
                *connections.lock().unwrap() += 1;
                let connection =
                    ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
                let mut client = StreamOwned::new(connection, stream);
                let mut backend = TcpStream::connect(server)?;
                pass_request(&mut BufReader::new(&mut client), &mut backend)?;
                io::copy(&mut backend, &mut client)?;
                if matches!(end, End::CloseNotify) {
                    client.conn.send_close_notify();
                }
                client.flush()
            }
        });
        Tls {
            address,
            connections,
        }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/v1", self.address.port())
    }
}

/// Whether the end of TLS is announced, or the connection just closed, as some servers do.
#[derive(Clone, Copy)]
enum End {
    CloseNotify,
    Close,
}

fn pass_request(client: &mut impl BufRead, server: &mut impl Write) -> io::Result<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        client.read_line(&mut line)?;
        server.write_all(line.as_bytes())?;
        if line.trim().is_empty() {
            io::copy(&mut client.take(length), server)?;
            return Ok(());
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

/// A proxy that leads everything to one place, and notes what it was asked for and all that it saw from the client.
struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    targets: Vec<String>,
    bytes: Vec<u8>,
}

impl Proxy {
    /// `greet` reads what the client wants, grants it, and returns it.
    fn start(greet: fn(&mut TcpStream) -> io::Result<String>, target: SocketAddr) -> Proxy {
        let seen = Arc::<Mutex<Seen>>::default();
        let address = listen({
            let seen = Arc::clone(&seen);
            move |mut client| {
                let asked = greet(&mut client)?;
                seen.lock().unwrap().targets.push(asked);
                let mut server = TcpStream::connect(target)?;
                let (mut back, mut to) = (server.try_clone()?, client.try_clone()?);
                thread::spawn(move || {
                    let _ = io::copy(&mut back, &mut to);
                    to.shutdown(Shutdown::Write)
                });
                let mut buffer = vec![0; 16 << 10];
                loop {
                    match client.read(&mut buffer)? {
                        0 => return server.shutdown(Shutdown::Write),
                        count => {
                            // First noted, then sent on: who has the answer finds all of its request here.
                            let mut seen = seen.lock().unwrap();
                            seen.bytes.extend_from_slice(&buffer[..count]);
                            drop(seen);
                            server.write_all(&buffer[..count])?;
                        }
                    }
                }
            }
        });
        Proxy { address, seen }
    }

    /// What the proxy was asked for, in order.
    fn targets(&self) -> Vec<String> {
        self.seen.lock().unwrap().targets.clone()
    }

    fn saw(&self, text: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        String::from_utf8_lossy(&seen.bytes).contains(text)
    }
}

fn http_connect(client: &mut TcpStream) -> io::Result<String> {
    let mut head = String::new();
    // Byte by byte: what follows the head is not the greeting's.
    while !head.ends_with("\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.push(byte[0].into());
    }
    assert!(!head.contains(API_KEY), "{head}");
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let target = head
        .strip_prefix("CONNECT ")
        .and_then(|rest| rest.split(' ').next());
    Ok(target.unwrap_or(&head).to_owned())
}

/// RFC 1928, without a password.
fn socks5(client: &mut TcpStream) -> io::Result<String> {
    fn take<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        client.read_exact(&mut bytes).map(|()| bytes)
    }
    let [_, methods] = take(client)?;
    io::copy(&mut client.take(methods.into()), &mut io::sink())?;
    client.write_all(&[5, 0])?;
    let [_, _, _, kind] = take(client)?;
    let mut host = String::new();
    if kind == 3 {
        let [length] = take(client)?;
        client.take(length.into()).read_to_string(&mut host)?;
    } else {
        // A name would have been looked up before.
        let address: [u8; 4] = take(client)?;
        host = Ipv4Addr::from(address).to_string();
    }
    let port = take(client)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    Ok(format!("{host}:{}", u16::from_be_bytes(port)))
}

/// The authority's certificate as a file of the sandbox, in a directory of its own.
fn certificate(sandbox: &Sandbox, authority: &Authority) -> PathBuf {
    let directory = sandbox.root().join("certificates");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("authority.pem");
    fs::write(&file, authority.pem()).unwrap();
    file
}

/// q with a key for the OpenAI-like API at `base`.
fn q(sandbox: &Sandbox, base: String, args: &[&str]) -> Q {
    let q = sandbox.q(args).env("OPENAI_API_KEY", API_KEY);
    q.env("OPENAI_BASE_URL", base)
}

#[test]
fn a_certificate_authority_that_a_variable_names_is_trusted() {
    let (authority, server) = (Authority::new("known"), Server::openai("sealed"));
    let names = ["localhost", "127.0.0.1"];
    let tls = Tls::start(&authority, &names, ALWAYS, &server, End::CloseNotify);
    let sandbox = Sandbox::new();
    let file = certificate(&sandbox, &authority);
    let directory = file.parent().unwrap();
    for host in ["localhost", "127.0.0.1"] {
        for (name, path) in [("SSL_CERT_FILE", &*file), ("SSL_CERT_DIR", directory)] {
            let outcome = q(&sandbox, tls.url(host), &["hi"]).env(name, path).run();
            outcome.success().stdout("sealed\n");
        }
    }
    server.expect_requests(4);
}

#[test]
fn the_systems_certificate_authorities_are_trusted_unless_others_are_named() {
    // In a namespace of its own the test brings the store of the system with it.
    let trial = "unshare -rm mount -t tmpfs none /etc/ssl";
    if lacks("a system with another store", trial) {
        return;
    }
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    let twin = Authority::new("known");
    let server = Server::openai("sealed");
    let tls = Tls::start(&known, &["localhost"], ALWAYS, &server, End::CloseNotify);
    // The authority that the system trusts, and the one that a variable names.
    for (system, name, named, is_taken) in [
        (Some(&known), "", None, true),
        (Some(&unknown), "", None, false),
        (Some(&known), "SSL_CERT_FILE", Some(&unknown), false),
        (Some(&known), "SSL_CERT_DIR", Some(&unknown), false),
        (Some(&unknown), "SSL_CERT_FILE", Some(&known), true),
        (None, "SSL_CERT_DIR", Some(&known), true),
        // With Mozilla's list, which has neither.
        (None, "", None, false),
        // In a file of its own next to the one that should have all, or without that one.
        (Some(&unknown), "BESIDE", Some(&known), true),
        (None, "BESIDE", Some(&known), true),
        // Another one of the same name is in the file that should have all.
        (Some(&twin), "BESIDE", Some(&known), true),
    ] {
        let _case = case((system.is_some(), name, is_taken));
        let sandbox = Sandbox::new().openai_at(tls.url("localhost"));
        let store = system.map_or(String::new(), Authority::pem);
        sandbox.write_home("store.pem", store);
        let script = "mount -t tmpfs none /etc/ssl && mkdir /etc/ssl/certs &&
            cp store.pem /etc/ssl/certs/ca-certificates.crt &&
            cp ${BESIDE:-store.pem} /etc/ssl/certs/beside.pem && exec q hi";
        let mut run = sandbox.shell("exec unshare -rm sh -c \"$0\"").arg(script);
        if let Some(named) = named {
            let file = certificate(&sandbox, named);
            let is_directory = name == "SSL_CERT_DIR";
            let value = if is_directory {
                file.parent().unwrap()
            } else {
                &file
            };
            run = run.env(name, value);
        }
        let outcome = run.run();
        if is_taken {
            outcome.success().stdout("sealed\n");
        } else {
            outcome.exit(1).stdout_is_empty();
            outcome.stderr_contains("is not signed by a CA that this system trusts");
        }
    }
}

#[test]
fn a_bad_certificate_ends_the_run_at_once_and_changes_no_file() {
    let (authority, stranger) = (Authority::new("known"), Authority::new("unknown"));
    let twin = Authority::new("known");
    let (here, elsewhere) = ("localhost", "elsewhere.example");
    // Who signed, for which hosts, in which years, and words of the error.
    let unknown = [
        "is not signed by a CA that this system trusts",
        "SSL_CERT_FILE",
    ];
    let expired = ["certificate expired on 200", "this machine's clock says 20"];
    let early = ["is not valid before 2998-", "this machine's clock says 20"];
    for (signer, names, years, words) in [
        (&stranger, &[here][..], ALWAYS, unknown),
        (&twin, &[here], ALWAYS, unknown),
        (&authority, &[elsewhere], ALWAYS, [here, elsewhere]),
        (&authority, &[here], 2000..=2001, expired),
        (&authority, &[here], 2998..=2999, early),
        (
            &authority,
            &[],
            ALWAYS,
            ["certificate is one of a CA", "CA:FALSE"],
        ),
    ] {
        let _case = case(words);
        let server = Server::openai("never");
        let tls = Tls::start(signer, names, years, &server, End::CloseNotify);
        let sandbox = talked("openai", 1);
        let before = snapshot(sandbox.state());
        let file = certificate(&sandbox, &authority);
        let url = tls.url("localhost");
        let q = q(&sandbox, url.clone(), &["-f", "next"]);
        let outcome = q.env("SSL_CERT_FILE", file).run();
        outcome.exit(1).stdout_is_empty().explains();
        outcome.stderr_contains_all(&words).stderr_contains("TLS");
        outcome.stderr_contains(&url).stderr_lacks(API_KEY);
        assert_eq!(*tls.connections.lock().unwrap(), 1, "it was tried again");
        server.expect_requests(0);
        before.expect_unchanged();
    }
}

#[test]
fn a_server_without_tls_at_an_https_url_is_reported_with_advice() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new();
    let url = server.url().replace("http:", "https:");
    let outcome = q(&sandbox, url, &["hi"]).run();
    outcome.exit(1).stdout_is_empty().explains();
    outcome.stderr_contains_all(&["TLS", "begin its URL with http://"]);
}

#[test]
fn what_does_not_answer_in_tls_is_reported_with_the_scheme_that_may_be_wrong() {
    // It closes the connection at the first bytes, or waits for more of them, here for longer than the user's own timeout.
    let closes = listen(|mut stream| stream.read(&mut [0; 100]).map(|_| ()));
    let waits = listen(|mut stream| io::copy(&mut stream, &mut io::sink()).map(|_| ()));
    let sandbox = Sandbox::new();
    for (address, said) in [
        (closes, "TLS: no answer, and the connection was closed"),
        (waits, "timed out"),
    ] {
        let _case = case(said);
        let server = format!("https://{address}/v1");
        let far = format!("https://{FAR}/v1");
        let proxy = ("HTTPS_PROXY", format!("https://{address}"));
        let of_server = "; if the server has no TLS, begin its URL with http://\n";
        let of_proxy = "q: if the proxy has no TLS, begin its URL in HTTPS_PROXY with http://\n";
        let is_closed = said.starts_with("TLS");
        for (url, (name, value), advice) in [
            (server, ("NO_PROXY", "*".to_owned()), of_server),
            (far, proxy, of_proxy),
        ] {
            let q = q(&sandbox, url, &["hi"]).env("Q_RETRIES", "0");
            let outcome = q.env("Q_TIMEOUT", "1s").env(name, value).run();
            outcome.exit(1).stdout_is_empty().explains();
            let advice = if is_closed { advice } else { "Q_TIMEOUT" };
            outcome.stderr_contains_all(&[said, advice]);
        }
    }
}

#[test]
fn a_server_with_tls_at_an_http_url_is_reported_with_advice() {
    // The alert of a server that wants TLS.
    let server = Server::start(|_, _| Reply::raw([0x15, 3, 1, 0, 2, 2, 0x46]));
    let sandbox = Sandbox::new();
    let outcome = q(&sandbox, server.url(), &["hi"]).run();
    outcome.exit(1).stdout_is_empty().explains();
    let advice = "q: begin its URL with https://\n";
    outcome.stderr_contains_all(&["TLS: the server answers in TLS", advice]);
    server.expect_requests(1);
    // It may be the proxy that wants it.
    let far = q(&sandbox, "http://192.0.2.1/v1".to_owned(), &["hi"]);
    let outcome = far.env("HTTP_PROXY", server.url()).run();
    outcome.exit(1).stdout_is_empty();
    let advice = "if the proxy has TLS, its URL in HTTP_PROXY\n";
    outcome.stderr_contains_all(&["TLS: the server answers in TLS", advice]);
}

#[test]
fn the_certificate_of_a_tool_server_is_checked() {
    let (authority, stranger) = (Authority::new("known"), Authority::new("unknown"));
    let server = toolserver::site("", |_| None);
    let tls = Tls::start(
        &authority,
        &["localhost"],
        ALWAYS,
        &server,
        End::CloseNotify,
    );
    let sandbox = Sandbox::new();
    let url = tls.url("localhost");
    sandbox.config(&format!(
        "[tools.web]\nurl = \"{url}\"\nonly = [\"echo\"]\n"
    ));
    let list = |known: &Authority| {
        let q = sandbox.q(&["--list-tools"]);
        q.env("SSL_CERT_FILE", certificate(&sandbox, known)).run()
    };
    list(&authority)
        .success()
        .stdout("web__echo\treads\tasks\tdoes echo\n");
    let outcome = list(&stranger);
    outcome.exit(0).stdout_is_empty();
    outcome.stderr_contains("q: web: TLS: ");
    let q = sandbox
        .q(&["-t", "web", "hi"])
        .env("SSL_CERT_FILE", "/dev/null");
    let empty = q.env("OPENAI_API_KEY", API_KEY).run();
    empty.exit(2).stderr_contains("SSL_CERT_FILE");
}

#[test]
fn no_text_is_lost_if_a_server_closes_tls_without_a_close_notify() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let whole = Reply::raw(head).pieces(openai_stream(&["all"]));
    let half = Reply::raw(head).piece(word("half"));
    let authority = Authority::new("known");
    for (reply, code, text, interrupted) in [(whole, 0, "all", false), (half, 1, "half", true)] {
        let server = Server::always(reply);
        let tls = Tls::start(&authority, &["localhost"], ALWAYS, &server, End::Close);
        let _case = case(text);
        let sandbox = talked("openai", 1);
        let file = certificate(&sandbox, &authority);
        let outcome = q(&sandbox, tls.url("localhost"), &["-f", "next"])
            .env("SSL_CERT_FILE", file)
            .run();
        outcome.exit(code).stdout(format!("{text}\n"));
        sandbox.expect_answer(text, interrupted);
        assert_eq!(*tls.connections.lock().unwrap(), 1, "it was tried again");
    }
}

#[test]
fn a_proxy_sees_the_host_but_neither_key_nor_question() {
    let authority = Authority::new("known");
    type Greet = fn(&mut TcpStream) -> io::Result<String>;
    for (name, scheme, greet, host) in [
        ("HTTPS_PROXY", "http", http_connect as Greet, FAR),
        ("ALL_PROXY", "http", http_connect, FAR),
        ("ALL_PROXY", "socks5h", socks5, FAR),
        // Names are looked up here and not by the proxy.
        ("ALL_PROXY", "socks5", socks5, FAR_ADDRESS),
        ("HTTPS_PROXY", "socks5", socks5, FAR_ADDRESS),
    ] {
        let _case = case((name, scheme));
        let server = Server::openai("sealed");
        let tls = Tls::start(&authority, &[host], ALWAYS, &server, End::CloseNotify);
        let proxy = Proxy::start(greet, tls.address);
        let sandbox = Sandbox::new();
        let url = format!("https://{host}/v1");
        let q = q(&sandbox, url, &["a secret question"])
            .env("SSL_CERT_FILE", certificate(&sandbox, &authority))
            .env(name, format!("{scheme}://{}", proxy.address));
        q.run().success().stdout("sealed\n");
        assert_eq!(proxy.targets(), [format!("{host}:443")]);
        let (request, bearer) = (server.request(), format!("Bearer {API_KEY}"));
        assert_eq!(prompt(&request), "a secret question");
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
        for text in [API_KEY, "a secret question"] {
            assert!(!proxy.saw(text), "the proxy saw {text}");
        }
    }
}

#[test]
fn a_server_without_tls_is_reached_through_socks5() {
    let server = Server::openai("in the open");
    let proxy = Proxy::start(socks5, server.address());
    for (scheme, host) in [("socks5h", FAR), ("socks5", FAR_ADDRESS)] {
        let _case = case((scheme, host));
        let sandbox = Sandbox::new();
        let q = q(&sandbox, format!("http://{host}:8080/v1"), &["-q", "hi"]);
        q.env("ALL_PROXY", format!("{scheme}://{}", proxy.address))
            .run()
            .success()
            .stdout("in the open\n");
    }
    let expected = [format!("{FAR}:8080"), format!("{FAR_ADDRESS}:8080")];
    assert_eq!(proxy.targets(), expected);
    // So a key in the clear is seen here, and one that is not seen elsewhere was not in the clear.
    assert!(proxy.saw(API_KEY), "the proxy did not see the key");
}

#[test]
fn a_failure_of_a_socks_proxy_is_reported_with_its_reason_and_not_as_one_of_tls() {
    let without_it = "if the server can be reached without the proxy, name its host in NO_PROXY";
    let as_http = "if it is an HTTP proxy, begin its URL with http://";
    let login = "socks5h://user:password@proxy.example:1080";
    for (greeting, answer, said, advice) in [
        ("HTTP/1.1 400 Bad", "", "does not speak SOCKS", as_http),
        ("\u{5}\0", "\u{4}\0", "does not speak SOCKS", as_http),
        (
            "\u{5}\0",
            "\u{5}\0\u{1}\u{1}",
            "does not speak SOCKS",
            as_http,
        ),
        ("\u{5}\0", "\u{5}\0\0\u{7}", "does not speak SOCKS", as_http),
        ("\u{5}\u{2}", "", "another user name or password", login),
        (
            "\u{5}\u{2}",
            "\u{1}\u{1}",
            "another user name or password",
            login,
        ),
        (
            "\u{5}\0",
            "\u{5}\u{1}",
            "(general SOCKS server failure)",
            without_it,
        ),
        (
            "\u{5}\0",
            "\u{5}\u{2}",
            "(connection not allowed by ruleset)",
            without_it,
        ),
        ("\u{5}\0", "\u{5}\u{4}", "(host unreachable)", without_it),
        ("\u{5}\0", "\u{5}\u{5}", "(connection refused)", without_it),
    ] {
        let _case = case((greeting, answer));
        let address = listen(move |mut client: TcpStream| {
            let mut buffer = [0; 512];
            let _ = client.read(&mut buffer)?;
            client.write_all(greeting.as_bytes())?;
            if !answer.is_empty() {
                let _ = client.read(&mut buffer)?;
                client.write_all(answer.as_bytes())?;
            }
            // The bytes must arrive before the connection ends.
            while client.read(&mut buffer)? > 0 {}
            Ok(())
        });
        let login = if answer.starts_with('\u{1}') {
            "me:secret@"
        } else {
            ""
        };
        let sandbox = Sandbox::new();
        let q = q(&sandbox, format!("http://{FAR}/v1"), &["-q", "hi"]);
        let outcome = q
            .env("ALL_PROXY", format!("socks5h://{login}{address}"))
            .run();
        outcome
            .exit(1)
            .stderr_contains(said)
            .stderr_contains(advice)
            .stderr_lacks("TLS");
    }
}

#[test]
fn a_host_that_q_cannot_resolve_for_a_socks5_proxy_is_reported() {
    let proxy = Proxy::start(socks5, SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let sandbox = Sandbox::new();
    let q = q(&sandbox, format!("https://{UNKNOWN_HOST}/v1"), &["hi"]);
    let outcome = q.env("ALL_PROXY", format!("socks5://{}", proxy.address));
    let outcome = outcome.env("Q_RETRIES", "0").run();
    outcome
        .exit(1)
        .stderr_contains("could not resolve the host")
        .stderr_contains("begin its URL in ALL_PROXY with socks5h://");
    assert_eq!(proxy.targets(), [""; 0]);
}

#[test]
fn the_certificate_of_a_proxy_with_tls_is_checked() {
    let authority = Authority::new("known");
    let server = Server::always(Reply::new(407));
    let tls = Tls::start(
        &authority,
        &["localhost"],
        ALWAYS,
        &server,
        End::CloseNotify,
    );
    let sandbox = Sandbox::new();
    let proxy = format!("https://localhost:{}", tls.address.port());
    let asked = |file: PathBuf| {
        let q = q(&sandbox, format!("http://{FAR}/v1"), &["hi"]).env("HTTP_PROXY", &proxy);
        q.env("SSL_CERT_FILE", file).run()
    };
    // Its refusal can be read, so its certificate was taken.
    let taken = asked(certificate(&sandbox, &authority));
    taken.exit(1).stderr_contains("407").stderr_lacks("TLS");
    assert_eq!(server.request().method, "CONNECT");
    let missing = asked(sandbox.home().join("none.pem"));
    missing.exit(2).stderr_contains("SSL_CERT_FILE");
    let refused = asked(certificate(&sandbox, &Authority::new("unknown")));
    refused.exit(1);
    let said = "TLS: the proxy's certificate is not signed by a CA that this system trusts";
    refused.stderr_contains_all(&[said, "localhost", "HTTP_PROXY"]);
    server.expect_requests(1);
    // That of a server behind a proxy is another one.
    let behind = Proxy::start(http_connect, tls.address);
    let q = q(&sandbox, format!("https://{FAR}/v1"), &["hi"])
        .env("HTTPS_PROXY", format!("http://{}", behind.address))
        .env(
            "SSL_CERT_FILE",
            certificate(&sandbox, &Authority::new("unknown")),
        );
    let said = "TLS: the server's certificate is not signed by a CA that this system trusts";
    q.run().exit(1).stderr_contains_all(&[said, "HTTPS_PROXY"]);
}
