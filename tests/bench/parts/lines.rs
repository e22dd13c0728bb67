//! Long lines: whether a line twice as long takes more than twice as much.

use std::os::fd::OwnedFd;
use std::process::Stdio;

use crate::bench::Bench;
use crate::instructions;
use crate::programs::drained_terminal;
use crate::server::{END, HEAD, event_of, listen, reply};
use crate::table::line;

/// Bytes of a line that is compared with one twice as long.
const LINE: usize = 4_000;

/// What such lines repeat, separated by `☐`.
const REPEATED: &str = " ☐\t☐`☐~☐>☐> ☐*☐* ☐_☐[☐|☐| ☐#☐-☐- ☐7☐1. ☐\u{301}☐👩\u{200d}☐😀☐❤\u{fe0f}☐🇩☐日☐\u{a0}☐&☐\r☐\u{1b}☐x☐word ☐*a☐_a☐,_a☐(*☐*_☐**a** ☐\
    `a`☐ `☐``` ☐~~~ ☐|-☐|a☐\\*☐://☐\n☐```\n";

/// Where they stand: in prose, lists, quotes, tables, headings, fences and code. Each place is an answer's part of its own.
const PLACES: &[(&str, &str)] = &[
    ("a ", "\n\n"),
    ("- ", "\n\n"),
    ("> ", "\n\n"),
    ("# ", "\n\n"),
    ("| ", "\n\n"),
    ("```", "\n```\n```\n\n"),
    ("`````\n", "\n`````\n\n"),
    ("> ~~~~~\n> ", "\n> ~~~~~\n\n"),
];

/// An answer of long lines, and one of lines twice as long, by the instructions that they take: for each kind of text, as
/// one piece, in small pieces, and for `-x`. The line of the table is the worst of them.
pub fn long_lines(bench: &Bench) {
    if !instructions::can_count("lines twice as long") {
        return;
    }
    let terminal = drained_terminal();
    let mut worst = (0.0, String::new(), 0, 0);
    for repeated in REPEATED.split('☐') {
        let [short, long] = [LINE, 2 * LINE]
            .map(|length| instructions_of_lines(bench, repeated, length, &terminal));
        for ((way, short), (_, long)) in short.into_iter().zip(long) {
            let ratio = long as f64 / short as f64;
            if ratio > worst.0 {
                worst = (
                    ratio,
                    format!("`{}`, {way}", repeated.escape_debug()),
                    short,
                    long,
                );
            }
        }
    }
    let (ratio, what, short, long) = worst;
    let millions = |count: u64| format!("{:.1} million instructions", count as f64 / 1e6);
    let what = format!("lines twice as long, the worst kind ({what})").replace('|', "\\|");
    line(
        &what,
        &millions(long),
        &format!("{LINE} bytes each"),
        &millions(short),
        ratio,
        "2.5",
    );
}

/// The instructions that it takes to show an answer with lines of this length in each way.
fn instructions_of_lines(
    bench: &Bench,
    repeated: &str,
    length: usize,
    terminal: &OwnedFd,
) -> Vec<(&'static str, u64)> {
    let middle = repeated.repeat(length / repeated.len());
    let parts = PLACES
        .iter()
        .map(|(before, after)| format!("{before}{middle}{after}"));
    let answer = Vec::from_iter(parts).concat();
    let (listener, address) = listen();
    let letters = Vec::from_iter(answer.chars());
    let events = letters
        .chunks(4)
        .map(|letters| event_of(&letters.iter().collect::<String>()));
    let stream = [HEAD, &Vec::from_iter(events).concat(), END].concat();
    let server = std::thread::spawn(move || {
        let (connection, _) = listener.accept().expect("a connection");
        reply(connection, stream.as_bytes()).expect("a reply");
    });
    // The answer is saved, so the other ways show the same. `-x` refuses some of it, which takes its time, too.
    let counts = [
        (
            "in small pieces",
            &["-s", "lines", "question"][..],
            true,
            &[0][..],
        ),
        ("in one piece", &["-s", "lines", "--last"], true, &[0]),
        ("for `-x`", &["-s", "lines", "--last", "-x"], false, &[0, 1]),
    ]
    .map(|(way, arguments, on_terminal, codes)| {
        let mut command = bench.q(&address, &bench.state, arguments);
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        command.env("Q_RETRIES", "0");
        let mut stdout = Stdio::null();
        if on_terminal {
            stdout = terminal.try_clone().expect("a descriptor").into();
        }
        let count = instructions::count_ending_with(codes, stdout, &mut command);
        (way, count)
    });
    server.join().expect("a server");
    counts.to_vec()
}
