//! Finds the file of a program by its name.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Returns the file of a program: by its absolute path, or by its name in this PATH. Relative directories of PATH do not count,
/// because they would depend on where q is started: anybody may have put a program there.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let directories = if name.contains('/') {
        vec![PathBuf::new()]
    } else {
        env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))).collect()
    };
    let mut files = directories
        .into_iter()
        .map(|directory| directory.join(name));
    files.find(|file| file.is_absolute() && is_program(file))
}

/// Whether a path is that of a file that this user may execute, once links are followed. A shell goes on to the next directory of
/// PATH where it may not, as do we.
fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file())
        && accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_an_executable_file_in_an_absolute_directory_of_path() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().to_str().expect("UTF-8");
        for directory in ["one", "two", "two/directory"] {
            fs::create_dir(format!("{root}/{directory}")).expect("a directory");
        }
        for (file, mode) in [
            ("one/plain", 0o644),
            ("two/plain", 0o700),
            ("one/both", 0o700),
            ("two/both", 0o700),
            ("one/others", 0o001),
            ("two/others", 0o700),
        ] {
            let path = format!("{root}/{file}");
            fs::write(&path, "").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        symlink("../two/both", format!("{root}/one/link")).expect("a link");
        symlink("nowhere", format!("{root}/one/dangling")).expect("a link");
        let both = format!("{root}/one:{root}/two");
        // The same directories from the current one.
        let here = env::current_dir().expect("a directory");
        let up = "../".repeat(here.components().count() - 1);
        let relative = format!("{up}{}", root.trim_start_matches('/'));
        assert!(is_program(Path::new(&format!("{relative}/one/both"))));
        // Root may execute what anybody may; its owner may not.
        let others = if rustix::process::geteuid().is_root() {
            "one/others"
        } else {
            "two/others"
        };
        for (name, path, found) in [
            ("both", &*both, Some("one/both")),
            ("both", &*format!("{root}/two:{root}/one"), Some("two/both")),
            ("plain", &both, Some("two/plain")),
            ("others", &both, Some(others)),
            ("link", &both, Some("one/link")),
            ("dangling", &both, None),
            ("directory", &both, None),
            ("gone", &both, None),
            ("both", "", None),
            ("both", &*format!("{relative}/one:."), None),
            (
                "both",
                &*format!("{relative}/one:{root}/two"),
                Some("two/both"),
            ),
            (&format!("{relative}/one/both"), &both, None),
            (
                "both",
                &*format!(":{root}/gone:{root}/one"),
                Some("one/both"),
            ),
            (&format!("{root}/two/both"), "", Some("two/both")),
            (&format!("{root}/one/plain"), &both, None),
            ("./both", &both, None),
            ("two/both", root, None),
        ] {
            let found = found.map(|found| PathBuf::from(format!("{root}/{found}")));
            let path = Some(OsStr::new(path));
            assert_eq!(find_program(name, path), found, "{name} {path:?}");
        }
        let shell = find_program("sh", None).expect("the system's shell");
        assert!(shell.is_absolute() && shell.ends_with("sh"), "{shell:?}");
    }
}
