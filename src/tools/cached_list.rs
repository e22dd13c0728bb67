//! What each server listed last, kept in a file, so that a question need not wait until the server has started.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::about::ServerInfo;
use super::connection::Callee;
use super::server::Server;
use crate::text::digest::sha256_hex;
use crate::text::json;
use crate::whole_file::{self, Links, PRIVATE};

/// The most bytes of a list. A server may send half of it.
const MAX_LIST: u64 = 2_000_000;

/// Returns the file of a server's list; `None` if it has none.
pub fn list_path(cache: Option<&Path>, server: &Server) -> Option<PathBuf> {
    let name = sha256_hex(&identity(server)?.to_string());
    Some(cache?.join("tools").join(format!("{name}.json")))
}

/// Reads a list. What cannot be read counts as absent, and so does what another user has put there: the model believes it.
pub fn read_list(path: &Path) -> Option<ServerInfo> {
    let bytes = whole_file::read_own(path, Links::Refused, MAX_LIST).ok()?;
    json::parse_bytes(&bytes).ok()
}

/// Keeps a list. Without it, the next question waits.
pub fn write_list(path: &Path, about: &ServerInfo) {
    if let Ok(text) = serde_json::to_vec(about) {
        let _ = whole_file::replace(path, &text, PRIVATE);
    }
}

/// Returns what tells a server from others, and from itself after a change; `None` for commands, which are known at once. The
/// values of `env_from` do not count, because tokens change all the time.
fn identity(server: &Server) -> Option<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let section = server.section.identity();
    match &server.callee {
        Callee::Local(program) => {
            let metadata = fs::metadata(&program.file).ok()?;
            let time = (metadata.mtime(), metadata.mtime_nsec());
            let file = program.file.to_string_lossy();
            Some(json!([version, section, file, metadata.len(), time]))
        }
        Callee::Remote(_) => Some(json!([version, section])),
        Callee::Commands(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;
    use crate::server::client::Client;
    use crate::settings::{Environment, ServerKind, ToolServer};
    use crate::tools::commands::Commands;
    use crate::tools::groups::ProcessGroups;
    use crate::tools::http::Site;
    use crate::tools::program::Program;

    /// The server of a section. Its program is this file.
    fn server(name: &str, section: &str, file: &Path) -> Server {
        let section = ToolServer::parse(name, &section.replace("; ", "\n"));
        let callee = match &section.kind {
            ServerKind::Local(_) => Callee::Local(Program {
                file: file.to_owned(),
                ..Program::shell("")
            }),
            ServerKind::Remote(remote) => {
                let client = Client::new(&remote.url.server, None, &Environment::default());
                Callee::Remote(std::sync::Arc::new(Site {
                    client: client.expect("a client"),
                    url: remote.url.clone(),
                    origin: section.origin.clone(),
                    headers: Vec::new(),
                    keys: crate::secret::Secrets::default(),
                    retries: 0,
                }))
            }
            _ => Callee::Commands(Commands {
                runnable: Vec::new(),
                about: None,
            }),
        };
        Server::new(section, callee, &ProcessGroups::default())
    }

    #[test]
    fn a_list_is_of_another_server_if_what_is_started_or_reached_is_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("program");
        fs::write(&file, "one").expect("a file");
        let path = |name: &str, section: &str| {
            let server = server(name, section, &file);
            list_path(Some(Path::new("/cache")), &server).expect("a path")
        };
        // Two sections, and whether they have one list.
        for (one, other, is_same) in [
            (r#"command = ["x"]"#, r#"command = ["x"]"#, true),
            (
                r#"command = ["x"]"#,
                r#"command = ["x"]; timeout = "5s""#,
                true,
            ),
            (
                r#"command = ["x"]"#,
                r#"command = ["x"]; only = ["a"]"#,
                true,
            ),
            (r#"command = ["x"]"#, r#"command = ["x", "-a"]"#, false),
            (
                r#"command = ["x", "a b"]"#,
                r#"command = ["x", "a", "b"]"#,
                false,
            ),
            (
                r#"command = ["x"]"#,
                r#"command = ["x"]; env = { A = "1" }"#,
                false,
            ),
            (
                r#"command = ["x"]"#,
                r#"command = ["x"]; env_from = ["A"]"#,
                false,
            ),
            (r#"command = ["x"]"#, r#"command = ["x"]; cwd = "/""#, false),
            (
                r#"command = ["x"]"#,
                r#"command = ["x"]; confine = {}"#,
                false,
            ),
            (
                r#"url = "http://h/a""#,
                r#"url = "http://h/a"; start = "5s""#,
                true,
            ),
            (r#"url = "http://h/a""#, r#"url = "http://h/b""#, false),
            (r#"url = "http://h/a""#, r#"url = "http://h/a?b""#, false),
            (
                r#"url = "http://h/a""#,
                r#"url = "http://h/a"; headers = { A = "1" }"#,
                false,
            ),
            (
                r#"url = "http://h/a""#,
                r#"url = "http://h/a"; key_env = "K""#,
                false,
            ),
        ] {
            assert_eq!(path("db", one) == path("db", other), is_same, "{other}");
        }
        let section = r#"command = ["x"]"#;
        let before = path("db", section);
        fs::write(&file, "another").expect("a file");
        assert_ne!(path("db", section), before, "its program was replaced");
        let commands = server("db", r#"a.run = ["x"]"#, &file);
        assert_eq!(list_path(Some(Path::new("/cache")), &commands), None);
        assert_eq!(list_path(None, &server("db", section, &file)), None);
    }

    #[test]
    fn a_list_that_cannot_be_read_counts_as_absent() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tools").join("list.json");
        assert_eq!(read_list(&path), None);
        let about = ServerInfo {
            name: "N".to_owned(),
            ..ServerInfo::default()
        };
        write_list(&path, &about);
        assert_eq!(read_list(&path), Some(about));
        let size = usize::try_from(MAX_LIST).expect("a size");
        let too_long = serde_json::to_string(&ServerInfo {
            instructions: "x".repeat(size),
            ..ServerInfo::default()
        });
        let too_long = too_long.expect("a list");
        for wrong in ["", "{", "[]", "{}", &too_long] {
            fs::write(&path, wrong).expect("a file");
            assert_eq!(read_list(&path), None, "{wrong:.20}");
        }
    }

    #[test]
    fn a_list_that_is_a_link_or_belongs_to_another_user_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let [list, link] = ["list", "link"].map(|name| directory.path().join(name));
        let about = ServerInfo::default();
        write_list(&list, &about);
        symlink(&list, &link).expect("a link");
        assert_eq!(read_list(&list), Some(about));
        assert_eq!(read_list(&link), None);
        assert_eq!(read_list(directory.path()), None);
        // Only root can give a file away.
        if chown(&list, Some(12345), None).is_ok() {
            assert_eq!(read_list(&list), None);
        }
    }
}
