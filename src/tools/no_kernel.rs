//! Says that no program can be confined, on systems whose kernel cannot do that.

use std::env::consts::{ARCH, OS};
use std::path::Path;

use super::bounds::Bounds;

/// Returns why the kernel cannot hold a program.
pub fn what_is_missing() -> Option<String> {
    Some(reason())
}

/// Fails, always.
pub fn confine(_limits: &Bounds, _program: &Path, _scratch: Option<&Path>) -> Result<(), String> {
    Err(reason())
}

fn reason() -> String {
    format!("Linux 6.12 or later on x86_64 or aarch64 is needed, and this is {OS} on {ARCH}")
}
