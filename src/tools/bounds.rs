//! What a confined program may read, change and reach on this machine, and how that is said.

use std::fs;
use std::path::{self, Path, PathBuf};

use serde_json::{Value, json};

use crate::settings::{Confinement, Environment, LocalProgram, expand_home};

/// The files and the network that the kernel lets a program use: the key `confine` of its section, with absolute paths in
/// which links have not been followed yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub network: bool,
}

impl Bounds {
    /// The bounds of a program; `None` if it is not confined. `own` is the environment of q. The error says which path is
    /// wrong.
    pub fn find(local: &LocalProgram, own: &Environment) -> Option<Result<Bounds, String>> {
        let confinement = local.confine.as_ref()?;
        Some(Bounds::resolve(confinement, own))
    }

    fn resolve(confinement: &Confinement, own: &Environment) -> Result<Bounds, String> {
        let resolve = |key: &str, written: &[String]| {
            let mut paths = Vec::new();
            for path in written {
                let found = resolve(path, own);
                paths.push(found.map_err(|reason| format!("confine.{key}: {reason}"))?);
            }
            Ok::<_, String>(paths)
        };
        Ok(Bounds {
            read: resolve("read", &confinement.read)?,
            write: resolve("write", &confinement.write)?,
            network: confinement.network,
        })
    }

    /// Whether a directory is among the paths, or below one of them, once links are followed.
    pub fn has_folder(&self, folder: &Path) -> bool {
        let Ok(folder) = fs::canonicalize(folder) else {
            return false;
        };
        let mut paths = self.read.iter().chain(&self.write);
        paths.any(|path| fs::canonicalize(path).is_ok_and(|path| folder.starts_with(path)))
    }

    /// What a person reads before a call: the last part of each path, unless two have the same.
    pub fn summary(&self) -> String {
        let all = || self.read.iter().chain(&self.write);
        let name_of = |path: &PathBuf| {
            let name = path.file_name();
            let twins = all().filter(|other| other.file_name() == name && *other != path);
            match name {
                Some(name) if twins.count() == 0 => name.to_string_lossy().into_owned(),
                _ => path.display().to_string(),
            }
        };
        self.said(name_of)
    }

    /// The same with full paths.
    pub fn full_summary(&self) -> String {
        self.said(|path| path.display().to_string())
    }

    fn said(&self, name_of: impl Fn(&PathBuf) -> String) -> String {
        let names = |paths: &[PathBuf]| Vec::from_iter(paths.iter().map(&name_of)).join(", ");
        let mut parts = Vec::new();
        if !self.read.is_empty() {
            parts.push(format!("reads {}", names(&self.read)));
        }
        if !self.write.is_empty() {
            parts.push(format!("writes {}", names(&self.write)));
        }
        if parts.is_empty() {
            parts.push("no files".to_owned());
        }
        parts.push(
            if self.network {
                "network"
            } else {
                "no network"
            }
            .to_owned(),
        );
        format!("confined: {}", parts.join("; "))
    }

    pub fn to_json(&self) -> Value {
        let paths = |paths: &[PathBuf]| {
            Vec::from_iter(paths.iter().map(|path| path.to_string_lossy().into_owned()))
        };
        json!({
            "read": paths(&self.read),
            "write": paths(&self.write),
            "network": self.network,
        })
    }
}

/// The full path of something that is there.
fn resolve(written: &str, own: &Environment) -> Result<PathBuf, String> {
    let expanded = expand_home(written, own)?;
    let full = path::absolute(&expanded).map_err(|error| format!("{written}: {error}"))?;
    match fs::metadata(&full) {
        Ok(_) => Ok(full),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("there is no {written}"))
        }
        Err(error) => Err(format!("{written}: {error}")),
    }
}
