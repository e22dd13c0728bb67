//! Two state folders and a file that both share, and what a run of q in them looks like.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::command::{FILE, IMAGE, Row, SLOT};
use crate::image;
use crate::model::Place;
use crate::question::{Question, WITH_IMAGE};
use crate::snapshot::Snapshot;
use crate::toolserver;

const Q: &str = env!("CARGO_BIN_EXE_q");

/// How many state folders there are.
pub const HOMES: usize = 2;

pub struct World {
    folder: TempDir,
    server: SocketAddr,
    /// `Q_KEEP`, if it is set.
    keep: Option<&'static str>,
}

impl World {
    pub fn new(work: &Path, server: SocketAddr, keep: Option<&'static str>) -> io::Result<World> {
        let folder = tempfile::tempdir_in(work)?;
        fs::create_dir(folder.path().join("shared"))?;
        fs::write(folder.path().join(image::NAME), image::bytes())?;
        for home in 0..HOMES {
            let configuration = folder.path().join(format!("home{home}/config/q"));
            fs::create_dir_all(&configuration)?;
            fs::write(configuration.join("config.toml"), toolserver::section()?)?;
        }
        Ok(World { folder, server, keep })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn keeps_nothing(&self) -> bool {
        self.keep == Some("0")
    }

    /// The folder `q` among a home's state.
    pub fn state(&self, home: usize) -> PathBuf {
        self.path().join(format!("home{home}/state/q"))
    }

    /// Where all that a run of q may write is.
    pub fn state_paths(&self) -> Vec<PathBuf> {
        (0..HOMES).map(|home| self.state(home)).chain([self.shared()]).collect()
    }

    pub fn sessions(&self, home: usize) -> PathBuf {
        self.state(home).join("sessions")
    }

    /// Where the file is that both state folders share.
    pub fn shared(&self) -> PathBuf {
        self.path().join("shared")
    }

    pub fn file(&self) -> PathBuf {
        self.shared().join("talk.json")
    }

    /// A run of q, by another program (`wrapper`) if there is one.
    pub fn command(&self, wrapper: &[String], home: usize, row: &Row, question: Option<&Question>) -> Command {
        let mut words = wrapper.iter().map(String::as_str).chain([Q]);
        let mut command = Command::new(words.next().unwrap_or(Q));
        command.args(words);
        for argument in row.args {
            match *argument {
                FILE => command.arg(self.file()),
                IMAGE => command.arg(self.path().join(image::NAME)),
                argument => command.arg(argument),
            };
        }
        let with_image = if row.attaches() { WITH_IMAGE } else { "" };
        command.args(question.map(|question| format!("{question}{with_image}")));
        let folder = self.path().join(format!("home{home}"));
        command.env_clear().current_dir("/");
        command.env("HOME", &folder).env("XDG_STATE_HOME", folder.join("state"));
        command.env("XDG_CONFIG_HOME", folder.join("config"));
        command.env("OPENAI_API_KEY", "sk-soak").env("OPENAI_BASE_URL", format!("http://{}/v1", self.server));
        command.env("Q_PROVIDER", "openai").env("Q_MODEL", "soak");
        // All of the conversation is sent, and kept, so that each request shows which one it belongs to.
        command.env("Q_HISTORY", "messages").env("Q_MESSAGES", "100000").env("Q_PAIRS", "1000000");
        command.envs(self.keep.map(|keep| ("Q_KEEP", keep)));
        if matches!((row.place)(home), Place::Slot(_)) {
            command.env("Q_SESSION", SLOT);
        }
        command
    }

    pub fn snapshot(&self) -> Snapshot {
        let homes: Vec<PathBuf> = (0..HOMES).map(|home| self.sessions(home)).collect();
        Snapshot::take(&homes, &self.shared())
    }

    /// Changes when a file appears in a state folder, or beside the shared file, or goes from there.
    pub fn listing(&self, home: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        for folder in [self.sessions(home), self.shared()] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name: &OsStr = &name;
                name.hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
