//! System calls about files, pipes and sockets: times, renames, whether there is something to read, and keepalive.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, OFlags, RenameFlags, Timestamps, UTIME_NOW, fcntl_getfl, renameat_with, utimensat,
};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::sockopt;
use rustix::stdio;

/// Sets the time of a file to now, by the clock of its file system. If that fails, the file keeps its time.
pub fn touch(path: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Renames a file or a link, unless something has the new name already: then the error is `AlreadyExists`. Not every system
/// and file system can do that.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Other systems have no such call.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a file is open for reading. To the standard library, standard input that is not is empty.
pub fn can_read(file: impl AsFd) -> bool {
    let mode = fcntl_getfl(file).map(|flags| flags & OFlags::RWMODE);
    mode != Ok(OFlags::WRONLY)
}

/// Whether standard input has bytes to read already.
pub fn stdin_has_bytes() -> bool {
    ioctl_fionread(stdio::stdin()).is_ok_and(|count| count > 0)
}

/// Waits until a terminal or a pipe has something to read, or can never have, but not longer than `timeout`.
pub fn wait_for_input(file: &File, timeout: Duration) -> bool {
    let mut wanted = [PollFd::new(file, PollFlags::IN)];
    let limit = Timespec::try_from(timeout).ok();
    match poll(&mut wanted, limit.as_ref()) {
        Ok(count) => count > 0,
        // A signal may have arrived.
        Err(error) => error != Errno::INTR,
    }
}

/// Lets the system ask whether the other end of a connection is there whenever no data has arrived for this long. If that
/// cannot be set, the connection works without it.
pub fn keep_alive(socket: &impl AsFd, after: Duration) {
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, after);
    let _ = sockopt::set_tcp_keepintvl(socket, after);
}

/// For how long no data has arrived when the system asks whether the other end of a connection is there; `None` if it never asks.
#[cfg(test)]
pub fn kept_alive(socket: &impl AsFd) -> Option<Duration> {
    let is_on = sockopt::socket_keepalive(socket).is_ok_and(|is_on| is_on);
    is_on.then(|| sockopt::tcp_keepidle(socket).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    use super::*;
    use crate::unix::tests::skip;

    const MINUTES: Duration = Duration::from_secs(120);

    #[test]
    fn input_is_there_if_bytes_have_come_or_none_can_come() {
        let (reader, mut writer) = pipe().expect("a pipe");
        let reader = File::from(OwnedFd::from(reader));
        assert!(!wait_for_input(&reader, Duration::ZERO));
        assert!(!wait_for_input(&reader, Duration::from_millis(5)));
        writer.write_all(b"a").expect("a byte");
        assert!(wait_for_input(&reader, MINUTES));
        let (reader, writer) = pipe().expect("a pipe");
        drop(writer);
        assert!(wait_for_input(&File::from(OwnedFd::from(reader)), MINUTES));
    }

    #[test]
    fn a_rename_replaces_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let [from, to] = ["from", "to"].map(|name| root.path().join(name));
        std::fs::write(&from, "new").expect("a file");
        std::fs::write(&to, "old").expect("a file");
        let error = rename_new(&from, &to).expect_err("it is taken");
        if error.kind() == io::ErrorKind::Unsupported {
            return skip("the file system cannot refuse to replace a file");
        }
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(std::fs::read(&to).expect("a file"), b"old");
        std::fs::remove_file(&to).expect("a file");
        rename_new(&from, &to).expect("a new name");
        assert_eq!(std::fs::read(&to).expect("a file"), b"new");
        assert!(!from.exists());
    }

    #[test]
    fn touching_a_path_sets_its_own_time_and_not_that_of_what_it_links_to() {
        let root = tempfile::tempdir().expect("a directory");
        let [file, link] = ["file", "link"].map(|name| root.path().join(name));
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let made = File::create(&file).expect("a file");
        made.set_modified(long_ago).expect("a time");
        symlink("file", &link).expect("a link");
        let time = |path: &Path| {
            path.metadata()
                .and_then(|found| found.modified())
                .expect("a time")
        };
        touch(&link);
        assert_eq!(time(&file), long_ago);
        touch(&file);
        assert!(time(&file) > long_ago + Duration::from_secs(86_400 * 365));
        touch(&root.path().join("gone"));
        assert!(!root.path().join("gone").exists());
    }
}
