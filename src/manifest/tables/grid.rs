//! The cells of a sheet that hold something, by lines. A small file may claim any number of cells, so each is counted before it is kept.

use crate::manifest::source::bounds::MAX_JOBS;

/// The last row of a sheet, from 1, and the number of its columns: as Excel and LibreOffice have them.
pub(super) const LAST_ROW: u64 = 1_048_576;
pub(super) const MAX_COLUMNS: usize = 16_384;
/// The most cells of a sheet, twice those of a hundred thousand rows of ten columns; and the most of their texts, in bytes, as of a CSV file.
pub(super) const MAX_CELLS: usize = 2_000_000;
pub(super) const MAX_TEXT: usize = 64 << 20;

/// The most that a workbook may unpack to, in bytes: four times what a hundred thousand rows of ten columns take.
pub(super) const MAX_UNPACKED: u64 = 192 << 20;
/// The most places of all sheets, blank or not, where the library makes each of them.
const MAX_MADE: u64 = 3_000_000;

/// The text in place of a formula whose result no one stored, as in a workbook that a program wrote.
pub(super) const NO_RESULT: &str = "#NO-RESULT!";
/// The text in place of a cell to which a text box is pinned.
pub(super) const TEXT_BOX: &str = "#TEXT-BOX!";

/// The reason why a sheet can't be read.
#[derive(Debug)]
pub(super) enum Problem {
    /// The file is damaged, or of another kind.
    Unreadable(String),
    /// It has more of something than is read.
    TooLong(String),
}

impl Problem {
    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
    pub(super) fn unreadable(error: impl ToString) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Refuses more places than the library should make.
pub(super) fn check_places(places: u64) -> Result<(), Problem> {
    if places > MAX_MADE { Err(Problem::TooLong(format!("{MAX_MADE} cells, blank or not"))) } else { Ok(()) }
}

/// The cells of one row that hold something, by their columns.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number in the sheet, from 1.
    pub number: u64,
    /// True if the user or a filter hides it.
    pub is_hidden: bool,
    /// The column of each cell, from 0, and its text.
    pub cells: Vec<(usize, String)>,
}

impl Line {
    /// The texts of the first columns, blank where a cell holds nothing.
    pub(super) fn texts(&self, columns: usize) -> Vec<&str> {
        let mut texts = vec![""; columns];
        for (column, text) in self.cells.iter().filter(|(column, _)| *column < columns) {
            texts[*column] = text.trim();
        }
        texts
    }

    /// The number of columns up to its rightmost cell.
    pub(super) fn width(&self) -> usize {
        self.cells.iter().map(|(column, _)| column + 1).max().unwrap_or_default()
    }
}

/// A cell that reaches over several rows.
#[derive(Debug)]
pub(super) struct Merged {
    /// The first and the last row, from 1.
    pub rows: (u64, u64),
    /// The first column, from 0.
    pub column: usize,
}

/// The lines of a sheet, one more than `most` at most.
#[derive(Debug, Default)]
pub(super) struct Grid {
    pub lines: Vec<Line>,
    pub merged: Vec<Merged>,
    most: usize,
    cells: usize,
    bytes: usize,
}

impl Grid {
    pub(super) fn up_to(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Takes a cell in, of a row from 1 and a column from 0. Returns false if there are enough lines.
    pub(super) fn add(&mut self, number: u64, column: usize, is_hidden: bool, text: &str) -> Result<bool, Problem> {
        if number > LAST_ROW || column >= MAX_COLUMNS {
            return Err(Problem::Unreadable(format!("it has a cell in row {number} and column {}", column + 1)));
        }
        if text.trim().is_empty() {
            return Ok(true);
        }
        let last = self.lines.last().map_or(0, |line| line.number);
        if number < last {
            return Err(Problem::Unreadable(format!("row {number} follows row {last}")));
        }
        if number > last {
            // The header is one more.
            if self.lines.len() > self.most {
                let too_long = Problem::TooLong(format!("{MAX_JOBS} rows"));
                return if self.most == MAX_JOBS { Err(too_long) } else { Ok(false) };
            }
            self.lines.push(Line { number, is_hidden, cells: Vec::new() });
        }
        self.count(text)?;
        if let Some(line) = self.lines.last_mut() {
            line.cells.push((column, text.to_owned()));
        }
        Ok(true)
    }

    fn count(&mut self, text: &str) -> Result<(), Problem> {
        self.cells += 1;
        self.bytes += text.len();
        if self.cells > MAX_CELLS {
            return Err(Problem::TooLong(format!("{MAX_CELLS} cells")));
        }
        if self.bytes > MAX_TEXT {
            return Err(Problem::TooLong(format!("{} MiB of text", MAX_TEXT >> 20)));
        }
        Ok(())
    }

    /// Gives each row below the header the text of the merged cell that reaches over it: blank, it would mean "as usual". Returns the number of
    /// these cells.
    pub(super) fn fill_merged(&mut self, header_row: u64) -> Result<usize, Problem> {
        let mut filled = 0;
        for Merged { rows: (first, last), column } in std::mem::take(&mut self.merged) {
            let Ok(at) = self.lines.binary_search_by_key(&first, |line| line.number) else { continue };
            let cell = self.lines[at].cells.iter().find(|(own, _)| *own == column);
            let Some(text) = cell.map(|(_, text)| text.clone()).filter(|_| first > header_row) else { continue };
            let below = self.lines[at + 1..].iter().take_while(|line| line.number <= last).count();
            for at in at + 1..=at + below {
                self.count(&text)?;
                let cells = &mut self.lines[at].cells;
                let place = cells.partition_point(|(own, _)| *own < column);
                // A merged cell hides the others.
                let is_there = cells.get(place).is_some_and(|(own, _)| *own == column);
                cells.splice(place..place + usize::from(is_there), [(column, text.clone())]);
            }
            filled += usize::from(below > 0);
        }
        Ok(filled)
    }
}

/// The row, from 1, and the column, from 0, of an address such as `B7`.
pub(super) fn address(text: &str) -> Option<(u64, usize)> {
    let (letters, digits) = text.split_at(text.find(|c: char| c.is_ascii_digit())?);
    if !(1..=3).contains(&letters.len()) || digits.len() > 7 {
        return None;
    }
    let letter = |byte: u8| byte.is_ascii_alphabetic().then(|| usize::from(byte.to_ascii_uppercase() - b'A') + 1);
    let column = letters.bytes().try_fold(0, |column, byte| Some(column * 26 + letter(byte)?))? - 1;
    let row = digits.parse().ok()?;
    ((1..=LAST_ROW).contains(&row) && column < MAX_COLUMNS).then_some((row, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_within_the_sheet() {
        assert_eq!(address("A1"), Some((1, 0)));
        assert_eq!(address("xfd1048576"), Some((LAST_ROW, MAX_COLUMNS - 1)));
        for bad in ["", "A", "1", "A0", "XFE1", "A1048577", "ZZZZZZ1", "A-1", "É1", "A1B", "A99999999999"] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }

    #[test]
    fn rows_are_in_order_and_cells_need_not_be() {
        let mut grid = Grid::up_to(10);
        for (row, column) in [(1, 1), (1, 0), (3, 0)] {
            assert!(grid.add(row, column, false, "x").expect("in bounds"));
        }
        assert_eq!((grid.lines[0].width(), grid.lines[0].texts(2)), (2, vec!["x", "x"]));
        assert!(matches!(grid.add(2, 0, false, "x"), Err(Problem::Unreadable(_))));
    }

    #[test]
    fn a_merged_cell_is_the_cell_of_each_of_its_rows() {
        let mut grid = Grid::up_to(10);
        for (row, column, text) in
            [(1, 0, "id"), (1, 1, "model"), (2, 0, "a"), (2, 1, "m"), (3, 0, "b"), (3, 1, "x"), (5, 0, "c")]
        {
            assert!(grid.add(row, column, false, text).expect("in bounds"));
        }
        let merged = |first, last, column| Merged { rows: (first, last), column };
        grid.merged = vec![merged(2, 4, 1), merged(1, 3, 0), merged(5, 5, 0), merged(9, 12, 0)];
        assert_eq!(grid.fill_merged(1).expect("in bounds"), 1);
        let texts: Vec<Vec<&str>> = grid.lines.iter().map(|line| line.texts(2)).collect();
        assert_eq!(texts, [["id", "model"], ["a", "m"], ["b", "m"], ["c", ""]]);
    }
}
