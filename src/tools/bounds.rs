//! What a confined program may read, change and reach on this machine, and how that is said.

use std::borrow::Cow;
use std::fs;
use std::path::{self, Path, PathBuf};

use serde_json::{Value, json};

use crate::settings::{Confinement, Environment, LocalProgram, expand_home};

/// The most links of a path, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The files and the network that the kernel lets a program use: the key `confine` of its section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    pub read: Vec<BoundPath>,
    pub write: Vec<BoundPath>,
    pub network: bool,
}

/// A file or directory that a program may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundPath {
    /// As the section has it, from the root on.
    pub written: PathBuf,
    /// Where its links led when q started.
    pub real: PathBuf,
}

impl Bounds {
    /// Returns the bounds of a program; `None` if it is not confined. `own` is the environment of q. The error says which path is
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
        let bounds = Bounds {
            read: resolve("read", &confinement.read)?,
            write: resolve("write", &confinement.write)?,
            network: confinement.network,
        };
        if let Some(path) = bounds.paths().find(|path| bounds.may_have_made(path)) {
            return Err(format!("confine: {}", made_link(path)));
        }
        Ok(bounds)
    }

    /// Returns where the program's file is behind all links. The error says that the program itself may have put one there.
    pub fn real_program(&self, file: &Path) -> Result<PathBuf, String> {
        let real = fs::canonicalize(file)
            .map_err(|error| format!("{file}: {error}", file = file.display()))?;
        let path = BoundPath {
            written: file.to_owned(),
            real,
        };
        if self.may_have_made(&path) {
            return Err(made_link(&path));
        }
        Ok(path.real)
    }

    /// Whether a path leads out of what the program may change by a link in there. An earlier call may have put it there, to reach
    /// more.
    fn may_have_made(&self, path: &BoundPath) -> bool {
        if self.is_writable_by_others(&path.real, path) {
            return false;
        }
        for link in links_of(&path.written) {
            if let Some(directory) = link.parent()
                && let Ok(real) = fs::canonicalize(directory)
                && self.is_writable_by_others(&real, path)
            {
                return true;
            }
        }
        false
    }

    /// Whether what is here may be changed because of another path than this one.
    fn is_writable_by_others(&self, real: &Path, path: &BoundPath) -> bool {
        let mut others = self.write.iter().filter(|own| *own != path);
        others.any(|own| real.starts_with(&own.real))
    }

    /// All paths that may be read or written.
    fn paths(&self) -> impl Iterator<Item = &BoundPath> {
        self.read.iter().chain(&self.write)
    }

    /// Whether a directory is among the paths, or below one of them, once links are followed.
    pub fn has_directory(&self, directory: &Path) -> bool {
        let Ok(directory) = fs::canonicalize(directory) else {
            return false;
        };
        self.paths().any(|path| directory.starts_with(&path.real))
    }

    /// Returns what a person reads before a call: the last part of each path, unless two have the same.
    pub fn summary(&self) -> String {
        let name_of = |path: &Path| {
            let name = path.file_name();
            let mut others = self.paths().map(|other| &*other.written);
            let twin = others.find(|other| other.file_name() == name && *other != path);
            match name {
                Some(name) if twin.is_none() => name.to_string_lossy().into_owned(),
                _ => path.display().to_string(),
            }
        };
        self.in_words(name_of)
    }

    /// Returns the same with absolute paths.
    pub fn full_summary(&self) -> String {
        self.in_words(|path| path.display().to_string())
    }

    /// Returns what a program may do, with these names for paths.
    fn in_words(&self, name_of: impl Fn(&Path) -> String) -> String {
        let names = |paths: &[BoundPath]| {
            Vec::from_iter(paths.iter().map(|path| name_of(&path.written))).join(", ")
        };
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
        let network = if self.network {
            "network"
        } else {
            "no network"
        };
        parts.push(network.to_owned());
        format!("confined: {}", parts.join("; "))
    }

    pub fn to_json(&self) -> Value {
        let paths = |paths: &[BoundPath]| {
            let written = paths.iter().map(|path| path.written.to_string_lossy());
            Vec::from_iter(written.map(Cow::into_owned))
        };
        json!({
            "read": paths(&self.read),
            "write": paths(&self.write),
            "network": self.network,
        })
    }
}

/// Returns the links that a path leads through, each by a path whose directories are none.
fn links_of(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut path = path.to_owned();
    while links.len() < MAX_LINKS {
        let parts = Vec::from_iter(path.ancestors());
        let mut from_root = parts.into_iter().rev();
        let Some(link) = from_root.find(|part| part.is_symlink()) else {
            break;
        };
        let Ok(target) = fs::read_link(link) else {
            break;
        };
        let directory = link.parent().unwrap_or(link);
        let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
        let mut followed = directory.join(target);
        // An empty rest would add a slash.
        if rest != Path::new("") {
            followed.push(rest);
        }
        links.push(link.to_owned());
        path = followed;
    }
    links
}

/// Says that a program may have made a link on the way to this path.
fn made_link(path: &BoundPath) -> String {
    format!(
        "{} is behind a link in a directory of write and leads out of it, so the program itself may have made the link; write {} if that is what you mean",
        path.written.display(),
        path.real.display()
    )
}

/// Returns the absolute path of something that is there.
fn resolve(path: &str, own: &Environment) -> Result<BoundPath, String> {
    let expanded = expand_home(path, own)?;
    let written = path::absolute(&expanded).map_err(|error| format!("{path}: {error}"))?;
    match fs::canonicalize(&written) {
        Ok(real) => Ok(BoundPath { written, real }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("there is no {path}"))
        }
        Err(error) => Err(format!("{path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::settings::ToolServer;
    use crate::text::table::rows;

    #[test]
    fn bounds_are_said_by_the_last_part_of_each_path_unless_two_have_the_same() {
        // What may be read and written, whether there is a network, and the two summaries.
        let table = "
            - | - | no | no files; no network | no files; no network
            - | - | yes | no files; network | no files; network
            /a/x | - | no | reads x; no network | reads /a/x; no network
            /a/x,/b/y | /c/z | yes | reads x, y; writes z; network | reads /a/x, /b/y; writes /c/z; network
            /a/x | /b/x | no | reads /a/x; writes /b/x; no network | reads /a/x; writes /b/x; no network
            /a/x | /a/x | no | reads x; writes x; no network | reads /a/x; writes /a/x; no network
            / | - | no | reads /; no network | reads /; no network
        ";
        for [read, write, network, short, full] in rows(table) {
            let paths = |list: &str| {
                let paths = list.split(',').filter(|path| !path.is_empty());
                let bound = |path: &str| BoundPath {
                    written: path.into(),
                    real: path.into(),
                };
                paths.map(bound).collect()
            };
            let bounds = Bounds {
                read: paths(read),
                write: paths(write),
                network: network == "yes",
            };
            assert_eq!(bounds.summary(), format!("confined: {short}"));
            assert_eq!(bounds.full_summary(), format!("confined: {full}"));
        }
    }

    /// The bounds of a command whose `confine` has these keys.
    fn find(confine: &str, home: &str) -> Result<Bounds, String> {
        let section = format!("command = [\"x\"]\nconfine = {{ {confine} }}");
        let section = ToolServer::parse("s", &section);
        let crate::settings::ServerKind::Local(local) = &section.kind else {
            panic!("no program");
        };
        let own = Environment::new(&[("HOME", home)]);
        Bounds::find(local, &own).expect("it is confined")
    }

    #[test]
    fn a_path_that_is_missing_or_behind_a_link_of_the_program_itself_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = fs::canonicalize(directory.path()).expect("a path");
        for name in ["own", "own/below", "other", "other/file"] {
            fs::create_dir(home.join(name)).expect("a directory");
        }
        symlink(home.join("other"), home.join("own/out")).expect("a link");
        symlink(home.join("own/below"), home.join("own/in")).expect("a link");
        symlink(home.join("other"), home.join("theirs")).expect("a link");
        let home = home.to_str().expect("text");
        let refused = "the program itself may have made the link";
        // A command may write in `own`, so the links in there may be its own.
        for (confine, expected) in [
            (r#"read = ["~/other"], write = ["~/own"]"#, ""),
            (r#"read = ["~/own/in"], write = ["~/own"]"#, ""),
            (r#"read = ["~/theirs"], write = ["~/own"]"#, ""),
            (r#"read = ["~/own/out"]"#, ""),
            (r#"read = ["~/own/out"], write = ["~/own"]"#, refused),
            (r#"read = ["~/own/out/file"], write = ["~/own"]"#, refused),
            (r#"write = ["~/own/out", "~/own"]"#, refused),
            (r#"read = ["~/no"]"#, "confine.read: there is no ~/no"),
            (r#"write = ["~/no"]"#, "confine.write: there is no ~/no"),
        ] {
            match find(confine, home) {
                Ok(_) => assert_eq!(expected, "", "{confine}"),
                Err(reason) => {
                    let is_expected = !expected.is_empty() && reason.contains(expected);
                    assert!(is_expected, "{confine}: {reason}");
                }
            }
        }
    }

    #[test]
    fn a_directory_counts_as_reached_where_its_links_lead_below_a_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = fs::canonicalize(directory.path()).expect("a path");
        for name in ["read", "read/below", "write", "other"] {
            fs::create_dir(home.join(name)).expect("a directory");
        }
        symlink(home.join("read/below"), home.join("other/in")).expect("a link");
        symlink(home.join("other"), home.join("read/out")).expect("a link");
        let confine = r#"read = ["~/read"], write = ["~/write"]"#;
        let bounds = find(confine, home.to_str().expect("text")).expect("bounds");
        for (name, expected) in [
            ("read", true),
            ("read/below", true),
            ("write", true),
            ("other/in", true),
            ("read/out", false),
            ("other", false),
            ("no", false),
        ] {
            assert_eq!(bounds.has_directory(&home.join(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_path_behind_a_link_that_the_program_may_have_made_is_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(root.path()).expect("a path");
        for directory in ["own/sub", "other"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        for file in ["own/file", "other/file"] {
            fs::write(root.join(file), "").expect("a file");
        }
        for (link, target) in [
            ("own/out", "../other/file"),
            ("own/far", "sub/next"),
            ("own/sub/next", "../../other/file"),
            ("own/dir", "../other"),
            ("own/in", "file"),
            ("to-own", "own/file"),
            ("to-other", "other/file"),
            ("by-own", "own/out"),
            ("by-dir", "own/dir/file"),
            ("circle", "circle"),
        ] {
            symlink(target, root.join(link)).expect("a link");
        }
        let own = root.join("own");
        let bounds = Bounds {
            write: vec![BoundPath {
                written: own.clone(),
                real: own,
            }],
            ..Bounds::default()
        };
        for (name, is_allowed) in [
            ("own/file", true),
            ("own/in", true),
            ("to-own", true),
            ("other/file", true),
            ("to-other", true),
            ("own/../other/file", true),
            ("own/out", false),
            ("own/far", false),
            ("own/dir/file", false),
            ("by-own", false),
            ("by-dir", false),
            ("circle", false),
            ("gone", false),
        ] {
            let found = bounds.real_program(&root.join(name));
            assert_eq!(found.is_ok(), is_allowed, "{name}: {found:?}");
        }
    }
}
