//! Counts the instructions for an event of a long answer in each dialect, with valgrind. Unlike times they are the same on a
//! busy machine.

use std::path::Path;
use std::process::Command;
use std::thread;

use crate::bench::Bench;
use crate::instructions;
use crate::programs::Q;
use crate::server::{END, HEAD, event, listen, reply};
use crate::table::line;

/// Events of two answers. The difference is what an event costs, without the start of the program.
const FEWER: usize = 1_000;
const MORE: usize = 11_000;

/// How a server of a dialect answers.
struct Stream {
    provider: &'static str,
    /// An event with a word that ends with this number.
    event: fn(usize) -> String,
    end: &'static str,
    /// The most that the ratio to 0.4.0 should be.
    goal: &'static str,
}

const STREAMS: [Stream; 4] = [
    Stream {
        provider: "openai",
        event,
        end: END,
        goal: "0.66",
    },
    Stream {
        provider: "anthropic",
        event: |number| {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"word{number} \"}}}}\n\n"
            )
        },
        end: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        goal: "0.52",
    },
    Stream {
        provider: "responses",
        event: |number| {
            format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{number},\"item_id\":\"msg_68a1b2c3d4e5f60718293a4b5c6d7e8f\",\"output_index\":0,\"content_index\":0,\"delta\":\"word{number} \",\"logprobs\":[],\"obfuscation\":\"abcdef\"}}\n\n"
            )
        },
        end: "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        goal: "0.92",
    },
    Stream {
        provider: "gemini",
        event: |number| {
            format!(
                "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"text\": \"word{number} \"}}],\"role\": \"model\"}},\"index\": 0}}],\"usageMetadata\": {{\"promptTokenCount\": 11,\"candidatesTokenCount\": {number},\"totalTokenCount\": 34,\"promptTokensDetails\": [{{\"modality\": \"TEXT\",\"tokenCount\": 11}}],\"thoughtsTokenCount\": 20}},\"modelVersion\": \"gemini-3.8-flash\",\"responseId\": \"r1\"}}\n\n"
            )
        },
        end: "data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}]}\n\n",
        goal: "0.55",
    },
];

/// Prints a line for each dialect, with an older q next to this one if there is one.
pub fn instructions(bench: &Bench) {
    if !instructions::can_count("instructions an event") {
        return;
    }
    let home = &bench.state;
    for stream in STREAMS {
        let what = format!("instructions an event, {}", stream.provider);
        let own = per_event(&stream, Path::new(Q), home);
        match &bench.old {
            None => println!("| {what} | {own:.0} | | | |"),
            Some(old) => {
                let other = per_event(&stream, old, home);
                let shown = format!("{other:.0}");
                let own_shown = format!("{own:.0}");
                line(&what, &own_shown, "Q_OLD", &shown, own / other, stream.goal);
            }
        }
    }
}

fn per_event(stream: &Stream, program: &Path, home: &Path) -> f64 {
    let [fewer, more] = [FEWER, MORE].map(|events| total(stream, events, program, home));
    (more - fewer) / (MORE - FEWER) as f64
}

/// The instructions of a whole run.
fn total(stream: &Stream, events: usize, program: &Path, home: &Path) -> f64 {
    let (listener, address) = listen();
    let event = stream.event;
    let body: String = (0..events).map(|number| event(number % 10)).collect();
    let answer = [HEAD, &body, stream.end].concat();
    let server = thread::spawn(move || {
        let (connection, _) = listener.accept().expect("a connection");
        reply(connection, answer.as_bytes()).expect("an answer");
    });

    let section =
        format!("[providers.responses]\napi = \"responses\"\nbase_url = \"{address}/v1\"\n");
    let configured = home.join("dialects");
    std::fs::create_dir_all(configured.join("q")).expect("a directory");
    std::fs::write(configured.join("q/config.toml"), section).expect("a file");
    let mut command = Command::new(program);
    command.args([
        "-q",
        "--no-save",
        "-m",
        "m",
        "-p",
        stream.provider,
        "question",
    ]);
    command.env("HOME", home).env("XDG_CONFIG_HOME", configured);
    for (name, path) in [("OPENAI", "/v1"), ("ANTHROPIC", ""), ("GEMINI", "")] {
        command.env(format!("{name}_BASE_URL"), format!("{address}{path}"));
        command.env(format!("{name}_API_KEY"), "k");
    }
    command.env("RESPONSES_API_KEY", "k");
    let counted = instructions::count(&mut command);
    server.join().expect("the server");
    counted as f64
}
