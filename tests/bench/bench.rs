//! What all parts need: servers, directories and programs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{Q, quiet};

pub struct Bench {
    /// Addresses of the servers of the short and of the long answer.
    pub short: String,
    pub long: String,
    pub state: PathBuf,
    pub disk: PathBuf,
    pub client: Option<PathBuf>,
    pub archive: Option<PathBuf>,
    /// An older q, with which some things are compared.
    pub old: Option<PathBuf>,
}

impl Bench {
    pub fn q(&self, server: &str, state: &Path, arguments: &[&str]) -> Command {
        self.program(Path::new(Q), server, state, arguments)
    }

    pub fn program(
        &self,
        program: &Path,
        server: &str,
        state: &Path,
        arguments: &[&str],
    ) -> Command {
        let mut command = quiet(program);
        command.env_clear().arg("-q").args(arguments);
        command.env("HOME", &self.state);
        command.env("XDG_STATE_HOME", state);
        command.env("OPENAI_BASE_URL", format!("{server}/v1"));
        command.env("OPENAI_API_KEY", "sk-0123456789");
        command
    }

    /// Writes a conversation of this name that has about this many bytes, with this word in every message.
    pub fn converse(&self, state: &Path, name: &str, word: &str, bytes: usize) {
        let sessions = state.join("q/sessions");
        std::fs::create_dir_all(&sessions).expect("a directory");
        let text = "a line of \\\"text\\\" as it is\\n".repeat(100);
        let time = "2026-11-21T10:00:00.000Z";
        // Piece by piece: the system would count the memory of this process as that of its children.
        let mut file =
            BufWriter::new(File::create(sessions.join(format!("{name}.json"))).expect("a file"));
        let mut write = |piece: String| file.write_all(piece.as_bytes()).expect("a file");
        write(format!(
            "{{\"version\":1,\"provider\":\"openai\",\"model\":\"gpt-6-luna\",\"created\":\"{time}\",\"updated\":\"{time}\",\"messages\":["
        ));
        for number in 0..bytes / text.len() {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let comma = if number == 0 { "" } else { "," };
            write(format!(
                "{comma}\n{{\"role\":\"{role}\",\"content\":\"{number} {word} {text}\",\"timestamp\":\"{time}\"}}"
            ));
        }
        write("\n]}\n".to_owned());
    }

    /// Writes a configuration with a command that may run, and returns its directory.
    pub fn configure_command(&self) -> PathBuf {
        let configured = self.state.join("command");
        std::fs::create_dir_all(configured.join("q")).expect("a directory");
        let section = "[tools.now.true]\nrun = [\"true\"]\nreads = true\n";
        std::fs::write(configured.join("q/config.toml"), section).expect("a file");
        configured
    }
}
