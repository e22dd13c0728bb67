//! Tables of tests (pure).

/// Returns the rows of a table, a line each, with bars between their cells. A cell begins and ends with no blank, a dash means
/// nothing, and the last one may have bars.
pub fn rows<const CELLS: usize>(table: &str) -> Vec<[&str; CELLS]> {
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let mut cells = line.trim().splitn(CELLS, " |").map(str::trim);
        rows.push([(); CELLS].map(|()| match cells.next() {
            Some("-") => "",
            cell => cell.expect(line),
        }));
        assert_eq!(cells.next(), None, "{line}");
    }
    rows
}
