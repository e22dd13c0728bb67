//! Says in an error of the system what failed on which file.

use std::io;
use std::path::Path;

/// An extension of results that says in an error what failed on which file.
pub trait OrCannot<T> {
    fn or_cannot(self, action: &str, path: &Path) -> io::Result<T>;
}

impl<T> OrCannot<T> for io::Result<T> {
    fn or_cannot(self, action: &str, path: &Path) -> io::Result<T> {
        self.map_err(|error| {
            let path = path.display();
            io::Error::new(error.kind(), format!("cannot {action} {path}: {error}"))
        })
    }
}
