//! What can be measured by itself.

mod conversations;
mod events;
mod far;
mod lines;
pub mod long;
pub mod short;
mod tools;

use std::path::Path;

use crate::bench::Bench;
use crate::programs::Q;

type Part = fn(&Bench);

/// Each with the name by which it is chosen.
pub const PARTS: &[(&str, Part)] = &[
    ("short", short::answer),
    ("delta", long::one_delta),
    ("long", long::answer),
    ("instructions", events::instructions),
    ("known", short::known_answer),
    ("tls", short::over_tls),
    ("far", far::first_word),
    ("far", far::rounds),
    ("large", conversations::large),
    ("list", conversations::list),
    ("many", conversations::many),
    ("image", short::image),
    ("tools", tools::tools),
    ("tools", tools::request_after_tools),
    ("tools", tools::request_after_command),
    ("lines", lines::long_lines),
    ("binary", binary),
];

fn binary(bench: &Bench) {
    let size =
        |path: &Path| std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
    let archive = bench
        .archive
        .as_ref()
        .map_or_else(String::new, |path| format!("static: {:.2} MB", size(path)));
    let own = size(Path::new(Q));
    println!("| binary | {own:.2} MB | {archive} | | 4.6 MB |");
}
