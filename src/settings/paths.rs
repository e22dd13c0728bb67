//! Paths in settings: they are absolute, because a relative one would depend on where q is started (pure).

/// Refuses a relative path.
pub fn check_path(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        return Ok(());
    }
    Err(format!("“{path}” is a relative path; write the full path"))
}

/// Refuses a program with a relative path. One without a slash is looked up in PATH.
pub fn check_program(program: &str) -> Result<(), String> {
    if program.contains('/') {
        return check_path(program);
    }
    Ok(())
}

/// Checks the folder that a program is started in: a path, which may begin with the home folder `~`, or `.`.
pub fn check_folder(folder: &str) -> Result<(), String> {
    let is_below_home = folder == "~" || folder.starts_with("~/");
    if folder == "." || is_below_home {
        return Ok(());
    }
    check_path(folder).map_err(|reason| format!("{reason}, or \".\""))
}
