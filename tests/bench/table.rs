//! The lines of the table.

/// A line of the table; a goal is the most that the ratio should be.
pub fn line(what: &str, q: &str, name: &str, other: &str, ratio: f64, goal: &str) {
    println!("| {what} | {q} | {name}: {other} | {ratio:.2} | {goal} |");
}

/// A line with the seconds of q next to those of another.
pub fn times(what: &str, q: f64, name: &str, other: f64, goal: &str) {
    line(what, &shown(q), name, &shown(other), q / other, goal);
}

/// A line that says how much longer than the other q takes, and how many bytes of memory it needs more.
pub fn more(what: &str, q: f64, name: &str, other: f64, bytes: f64, goal: &str) {
    // Rounded, and without the minus of a zero.
    let tenths = |value: f64| (value * 10.0).round() / 10.0 + 0.0;
    let (time, memory) = (tenths((q - other) * 1e3), tenths(bytes / 1e6));
    let (own, others) = (shown(q), shown(other));
    println!("| {what} | {own} | {name}: {others} | {time:+.1} ms, {memory:+.1} MB | {goal} |");
}

/// A line that has nothing to be compared with.
pub fn alone(what: &str, seconds: f64, goal: &str) {
    println!("| {what} | {} | | | {goal} |", shown(seconds));
}

/// A line for what this machine cannot measure.
pub fn unmeasured(what: &str, why: &str) {
    println!("| {what} | not measured: {why} | | | |");
}

/// A time as the table has it.
pub fn shown(seconds: f64) -> String {
    match seconds * 1e3 {
        small if small < 1.0 => format!("{:.0} µs", small * 1e3),
        small if small < 100.0 => format!("{small:.1} ms"),
        large => format!("{large:.0} ms"),
    }
}
