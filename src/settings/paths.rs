//! Paths in settings: they are absolute, because a relative one would depend on where q is started, or begin with `~/` (pure).

use super::environment::Environment;
use super::variables;

/// Advice where a path is in a home directory that nothing names, or that no path can be made of.
const SET_HOME: &str = "set it, or write an absolute path";

/// Refuses a path with a variable in it, which would be a directory of that name.
pub fn refuse_variables(path: &str) -> Result<(), String> {
    variables::refuse(path, "write the path itself")
}

/// Refuses a relative path.
pub fn check_path(path: &str) -> Result<(), String> {
    if path.starts_with('/') || path.starts_with("~/") {
        return Ok(());
    }
    Err(format!(
        "“{path}” is a relative path; write an absolute one"
    ))
}

/// Refuses a program with a relative path. One without a slash is looked up in PATH.
pub fn check_program(program: &str) -> Result<(), String> {
    if program.contains('/') {
        return check_path(program);
    }
    Ok(())
}

/// Checks the directory that a program is started in: a path, the home directory `~`, or `.`, which is where q is started.
pub fn check_directory(directory: &str) -> Result<(), String> {
    if directory == "." || directory == "~" {
        return Ok(());
    }
    check_path(directory).map_err(|reason| format!("{reason}, or \".\""))
}

/// Returns the path with the home directory in place of a leading `~`.
pub fn expand_home(path: &str, environment: &Environment) -> Result<String, String> {
    let below = path
        .strip_prefix('~')
        .filter(|below| below.is_empty() || below.starts_with('/'));
    let Some(below) = below else {
        return Ok(path.to_owned());
    };
    match environment.text("HOME") {
        Some(Ok(home)) if home.starts_with('/') => Ok(format!("{home}{below}")),
        Some(Ok(home)) => Err(format!(
            "{path} needs HOME, but “{home}” is not an absolute path; {SET_HOME}"
        )),
        Some(Err(reason)) => Err(format!("{path} needs HOME, which {reason}; {SET_HOME}")),
        None => Err(format!("{path} needs HOME, which is not set; {SET_HOME}")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_path_must_be_absolute_or_in_the_home_directory() {
        let environment = Environment::new(&[("HOME", "/home/me")]);
        for (path, expected) in [
            ("/a", "/a"),
            ("~/a", "/home/me/a"),
            ("~/", "/home/me/"),
            ("/~/a", "/~/a"),
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
            assert_eq!(check_program(path), Ok(()), "{path}");
            assert_eq!(check_directory(path), Ok(()), "{path}");
            let found = expand_home(path, &environment);
            assert_eq!(found.as_deref(), Ok(expected), "{path}");
        }
        for path in ["a/b", "./a", "../a", "~me/a", ".~/a"] {
            assert!(check_path(path).is_err(), "{path}");
            assert!(check_program(path).is_err(), "{path}");
            assert!(check_directory(path).is_err(), "{path}");
        }
        // Without a slash, a program is looked up, and nothing else is a path.
        assert_eq!(check_program("~a"), Ok(()));
        assert!(check_path("a").is_err());
        assert_eq!(check_directory("."), Ok(()));
        for (path, expected) in [("~", "/home/me"), ("~a", "~a"), ("a", "a")] {
            let found = expand_home(path, &environment);
            assert_eq!(found.as_deref(), Ok(expected), "{path}");
        }
        for (variables, reason) in [
            (&[][..], "~/a needs HOME, which is not set"),
            (
                &[("HOME", "me")],
                "~/a needs HOME, but “me” is not an absolute path",
            ),
        ] {
            let environment = Environment::new(variables);
            let expected = Err(format!("{reason}; set it, or write an absolute path"));
            assert_eq!(expand_home("~/a", &environment), expected);
        }
        let home = OsString::from_vec(b"/tmp/\xff".to_vec());
        let environment = Environment::from_iter([(OsString::from("HOME"), home)]);
        let expected = "~/a needs HOME, which is not UTF-8; set it, or write an absolute path";
        let found = expand_home("~/a", &environment);
        assert_eq!(found, Err(expected.to_owned()));
    }
}
