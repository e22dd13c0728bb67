//! What each server listed last, kept in a file, so that a question need not wait until the server has started.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::about::ServerInfo;
use super::connection::Callee;
use super::server::Server;
use crate::text::json;
use crate::whole_file::{self, PRIVATE};

/// The most bytes of a list. A server may send half of it.
const MAX_LIST: u64 = 2_000_000;

/// Returns the file of a server's list; `None` if it has none.
pub fn list_path(cache: Option<&Path>, server: &Server) -> Option<PathBuf> {
    let name = whole_file::name_of(&identity(server)?.to_string());
    Some(cache?.join("tools").join(format!("{name}.json")))
}

/// Reads a list. What cannot be read counts as absent.
pub fn read_list(path: &Path) -> Option<ServerInfo> {
    let bytes = whole_file::read(path, MAX_LIST).unwrap_or_default();
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
