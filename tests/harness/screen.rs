//! What a terminal shows of the bytes that it got. It knows nothing of how q counts columns.

use super::pty::without_styles;

/// The columns from one tab stop to the next.
const TAB: usize = 8;

/// Ranges of characters that take two columns: East Asian ones, and emoji.
const WIDE: &[(char, char)] = &[
    ('\u{1100}', '\u{115f}'),
    ('\u{231a}', '\u{231b}'),
    ('\u{23e9}', '\u{23ec}'),
    ('\u{2614}', '\u{2615}'),
    ('\u{26a1}', '\u{26a1}'),
    ('\u{2705}', '\u{2705}'),
    ('\u{274c}', '\u{274c}'),
    ('\u{2753}', '\u{2757}'),
    ('\u{2b50}', '\u{2b50}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{a4cf}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff01}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{1f1e6}', '\u{1f320}'),
    ('\u{1f32d}', '\u{1f64f}'),
    ('\u{1f680}', '\u{1f6ff}'),
    ('\u{1f900}', '\u{1f9ff}'),
    ('\u{20000}', '\u{3fffd}'),
];

/// Ranges of characters that are drawn over the one before them, or not at all.
const WITHOUT_WIDTH: &[(char, char)] = &[
    ('\u{300}', '\u{36f}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{64b}', '\u{65f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    // The colours of skin.
    ('\u{1f3fb}', '\u{1f3ff}'),
];

/// Makes one emoji of those next to it.
const JOINER: char = '\u{200d}';

/// Two of them are a flag.
const REGIONAL: (char, char) = ('\u{1f1e6}', '\u{1f1ff}');

/// The lines that a terminal shows after these bytes: text, CR, LF, styles and "erase to the end of the line" are all that
/// q may use; anything else fails. A line that is full, or has one column left for a character of two, continues in the
/// next one, and cannot be reached again.
pub fn screen(bytes: &[u8], columns: u16) -> Vec<String> {
    let text = without_styles(&String::from_utf8_lossy(bytes));
    let columns = usize::from(columns);
    let mut lines = vec![Line::default()];
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let line = lines.last_mut().expect("a line");
        match character {
            '\r' => line.column = 0,
            '\n' => {
                // The terminal's driver has sent the CR before it.
                assert_eq!(line.column, 0, "a bare LF in {text:?}");
                lines.push(Line::default());
            }
            '\u{1b}' => {
                let is_right = rest.as_str().starts_with("[K");
                assert!(is_right, "an unknown control in {text:?}");
                rest = rest.as_str()[2..].chars();
                line.cut(line.column);
                line.cells.truncate(line.column);
            }
            _ if line.joins(character) => line.join(character),
            _ => {
                let is_right = character == '\t' || !character.is_control();
                assert!(is_right, "{character:?} in {text:?}");
                let width = match character {
                    '\t' => TAB - line.column % TAB,
                    _ if is_in(character, WIDE) => 2,
                    _ => 1,
                };
                let is_full = line.column == columns;
                if is_full || character != '\t' && line.column + width > columns {
                    lines.push(Line::default());
                }
                let line = lines.last_mut().expect("a line");
                // A tab leads to the last column at most.
                line.put(character, width.min(columns - line.column));
            }
        }
    }
    lines.into_iter().map(|line| line.cells.concat()).collect()
}

/// A line of the screen while it is written.
#[derive(Default)]
struct Line {
    /// What each column shows: a character with all that is drawn over it, or nothing right of one that takes more than one.
    cells: Vec<String>,
    /// Where the cursor is.
    column: usize,
}

impl Line {
    /// Whether a character is drawn in the place of the one before it.
    fn joins(&self, character: char) -> bool {
        let written = &self.cells[..self.column];
        let Some(before) = written.iter().rfind(|cell| !cell.is_empty()) else {
            return false;
        };
        let regional = &[REGIONAL];
        let is_half_a_flag =
            before.chars().count() == 1 && before.starts_with(|half| is_in(half, regional));
        is_in(character, WITHOUT_WIDTH)
            || before.ends_with(JOINER)
            || is_half_a_flag && is_in(character, regional)
    }

    fn join(&mut self, character: char) {
        let written = &mut self.cells[..self.column];
        let before = written.iter_mut().rfind(|cell| !cell.is_empty());
        before.expect("a character").push(character);
    }

    fn put(&mut self, character: char, width: usize) {
        let end = self.column + width;
        self.cut(self.column);
        self.cut(end);
        self.cells.resize(self.cells.len().max(end), String::new());
        self.cells[self.column..end].fill(String::new());
        self.cells[self.column] = character.to_string();
        self.column = end;
    }

    /// Blanks stand for a character of which only one half is left when something is written from or up to this column.
    fn cut(&mut self, column: usize) {
        if self.cells.get(column).is_none_or(|cell| !cell.is_empty()) {
            return;
        }
        let is_begin = |cell: &String| !cell.is_empty();
        let begin = self.cells[..column].iter().rposition(is_begin);
        let rest = self.cells[column..].iter().position(is_begin);
        let end = rest.map_or(self.cells.len(), |length| column + length);
        self.cells[begin.unwrap_or(column)..end].fill(" ".to_owned());
    }
}

fn is_in(character: char, ranges: &[(char, char)]) -> bool {
    let mut ranges = ranges.iter();
    ranges.any(|(first, last)| (*first..=*last).contains(&character))
}
