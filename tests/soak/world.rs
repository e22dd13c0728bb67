//! Two state directories and a file that both share, and what a run of q in them looks like.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use serde_json::json;
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::command::{Command, SLOT, Target};
use crate::image;
use crate::model::Link;
use crate::question::Question;
use crate::role;
use crate::snapshot::{self, Snapshot};
use crate::toolserver;

/// The q that is hammered: the one that `Q_NEW` names, or the one that cargo has built with the soak.
fn program_of_q() -> OsString {
    std::env::var_os("Q_NEW").unwrap_or_else(|| env!("CARGO_BIN_EXE_q").into())
}

/// How many state directories there are.
pub const HOMES: usize = 2;

pub struct World {
    directory: TempDir,
    server: SocketAddr,
    /// `Q_KEEP`, if it is set.
    keep: Option<&'static str>,
}

impl World {
    pub fn new(work: &Path, server: SocketAddr, keep: Option<&'static str>) -> io::Result<World> {
        let directory = tempfile::tempdir_in(work)?;
        fs::create_dir(directory.path().join("shared"))?;
        fs::write(directory.path().join(image::NAME), image::bytes())?;
        for home in 0..HOMES {
            let configuration = directory.path().join(format!("home{home}/config/q"));
            fs::create_dir_all(&configuration)?;
            fs::write(
                configuration.join("config.toml"),
                toolserver::sections()? + &role::section(),
            )?;
            if keep == Some("0") {
                // Conversations without a link are looked for once a day, and not again today.
                let state = directory.path().join(format!("home{home}/state/q"));
                fs::create_dir_all(&state)?;
                fs::write(state.join("swept"), "")?;
            }
        }
        Ok(World {
            directory,
            server,
            keep,
        })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn keeps_nothing(&self) -> bool {
        self.keep == Some("0")
    }

    pub fn home(&self, home: usize) -> PathBuf {
        self.path().join(format!("home{home}"))
    }

    /// The directory `q` among a home's state.
    pub fn state(&self, home: usize) -> PathBuf {
        self.home(home).join("state/q")
    }

    /// Where the temporary directories of confined commands are.
    pub fn temporary(&self, home: usize) -> PathBuf {
        self.home(home).join(".cache/q/tmp")
    }

    /// Where all that a run of q may write is.
    pub fn state_paths(&self) -> Vec<PathBuf> {
        let states = (0..HOMES).map(|home| self.state(home));
        states.chain([self.shared()]).collect()
    }

    pub fn sessions(&self, home: usize) -> PathBuf {
        self.state(home).join("sessions")
    }

    /// Where the file is that both state directories share.
    pub fn shared(&self) -> PathBuf {
        self.path().join("shared")
    }

    pub fn file(&self) -> PathBuf {
        self.shared().join("talk.json")
    }

    /// A run of a command, by another program (`wrapper`) if there is one.
    pub fn run(
        &self,
        wrapper: &[String],
        command: &Command,
        question: &Question,
    ) -> process::Command {
        self.asking(self.q(wrapper, command.home), command, question)
    }

    /// The same by another program, such as an older q.
    pub fn run_other(
        &self,
        program: &Path,
        command: &Command,
        question: &Question,
    ) -> process::Command {
        let run = self.program(process::Command::new(program), command.home);
        self.asking(run, command, question)
    }

    fn asking(
        &self,
        mut run: process::Command,
        command: &Command,
        question: &Question,
    ) -> process::Command {
        let [file, image] =
            [self.file(), self.path().join(image::NAME)].map(|path| path.display().to_string());
        run.args(command.arguments(question.id, &file, &image));
        if command.asks() {
            run.arg(format!("{question}{}", command.with.end()));
        }
        if command.target == Target::Linked(Link::Slot) {
            run.env("Q_SESSION", SLOT);
        }
        run
    }

    /// q in this state directory.
    pub fn q(&self, wrapper: &[String], home: usize) -> process::Command {
        let q = program_of_q();
        let run = match wrapper {
            [] => process::Command::new(q),
            [wrapper, arguments @ ..] => {
                let mut run = process::Command::new(wrapper);
                run.args(arguments).arg(q);
                run
            }
        };
        self.program(run, home)
    }

    fn program(&self, mut run: process::Command, home: usize) -> process::Command {
        let directory = self.home(home);
        run.env_clear().current_dir("/");
        run.env("HOME", &directory)
            .env("XDG_STATE_HOME", directory.join("state"));
        run.env("XDG_CONFIG_HOME", directory.join("config"));
        run.env("ANTHROPIC_API_KEY", "sk-soak")
            .env("ANTHROPIC_BASE_URL", format!("http://{}", self.server));
        run.env("Q_PROVIDER", "anthropic").env("Q_MODEL", "soak");
        // All of the conversation is sent, and kept, so that each request shows which one it belongs to.
        run.env("Q_HISTORY", "messages")
            .env("Q_MESSAGES", "100000")
            .env("Q_PAIRS", "1000000");
        run.envs(self.keep.map(|keep| ("Q_KEEP", keep)));
        run
    }

    /// Puts a conversation with this exchange in the place of a link, as q before 0.3 has it. Returns its id.
    pub fn plant(&self, home: usize, link: Link, question: &Question) -> io::Result<String> {
        // An hour ago, when no other conversation was created; and in milliseconds that do not end in 0, because a 0 at the end
        // would be left out.
        let now = OffsetDateTime::now_utc() - Duration::from_secs(3600);
        let moment = now
            .replace_millisecond(now.millisecond() / 10 * 10 + 1)
            .map_err(io::Error::other)?;
        let now = moment.format(&Rfc3339).map_err(io::Error::other)?;
        let messages = json!([
            {"role": "user", "content": question.to_string(), "timestamp": now},
            {"role": "assistant", "content": question.answer(), "timestamp": now},
        ]);
        let conversation = json!({
            "version": 1, "provider": "anthropic", "model": "soak", "created": now, "updated": now, "messages": messages,
        });
        let name = name_of(link);
        let planted = self.path().join("planted");
        fs::write(&planted, conversation.to_string())?;
        // Its id will be its time.
        fs::File::options()
            .append(true)
            .open(&planted)?
            .set_modified(moment.into())?;
        fs::create_dir_all(self.sessions(home))?;
        fs::rename(planted, self.sessions(home).join(name))?;
        Ok(snapshot::id_of(&now))
    }

    pub fn snapshot(&self) -> Snapshot {
        let states: Vec<PathBuf> = (0..HOMES).map(|home| self.state(home)).collect();
        Snapshot::take(&states, &self.shared())
    }

    /// Removes the empty files of a killed run that had reserved a name. A file in the place of a link would get the next
    /// name, and the model does not know that.
    pub fn release_names(&self, home: usize) {
        for entry in fs::read_dir(self.sessions(home))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry
                .metadata()
                .is_ok_and(|file| file.is_file() && file.len() == 0)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// A run that is killed while it moves a file out of the place of a link leaves it under its id, without a link. Makes
    /// the link, so that the next commands find the conversation.
    pub fn link_again(&self, home: usize, link: Link, id: &str) -> io::Result<()> {
        let sessions = self.sessions(home);
        let file = format!("{id}.json");
        let path = sessions.join(name_of(link));
        if path.symlink_metadata().is_err() && sessions.join(&file).exists() {
            symlink(file, path)?;
        }
        Ok(())
    }

    /// The names of the files in a state directory, and next to the shared file.
    pub fn listing(&self, home: usize) -> Vec<OsString> {
        let directories = [self.sessions(home), self.shared()];
        let entries = directories
            .iter()
            .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten());
        entries.map(|entry| entry.file_name()).collect()
    }
}

/// The file name of a link.
fn name_of(link: Link) -> String {
    match link {
        Link::Current => "current.json".to_owned(),
        Link::Slot => format!("current-{SLOT}.json"),
    }
}
