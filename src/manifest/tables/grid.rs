//! The non-empty cells of a sheet, by lines. A small file may declare any number of cells, so each one is counted before it is stored.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use calamine::{Data, ExcelDateTime, Range, Reader as _, Sheets};
use jiff::SignedDuration;

use crate::manifest::source::syntax::MAX_JOBS;

/// The last row of a sheet, from 1, and the number of its columns: as Excel and LibreOffice have them.
pub(super) const LAST_ROW: u64 = 1_048_576;
pub(super) const MAX_COLUMNS: usize = 16_384;
/// The most cells of a sheet, twice those of a hundred thousand rows of ten columns; and the most of their texts, in bytes, as of a CSV file.
pub(super) const MAX_CELLS: usize = 2_000_000;
pub(super) const MAX_TEXT: usize = 64 << 20;

/// Unpacked bytes of a workbook: at most four times the size of 100,000 rows of ten columns.
pub(super) const MAX_UNPACKED: u64 = 192 << 20;
/// The most places of all sheets, blank or not, where the library makes each of them.
const MAX_MADE: u64 = 3_000_000;

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

/// The non-empty cells of one row, by column.
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
    /// The texts of the first columns, blank for empty cells.
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
        if self.bytes > MAX_TEXT { Err(Problem::TooLong(format!("{} MiB of text", MAX_TEXT >> 20))) } else { Ok(()) }
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

/// A workbook that the library has opened.
pub(super) type Opened<'b> = Sheets<Cursor<&'b [u8]>>;

/// The facts of a sheet that the library does not report.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The rows that the user or a filter hides, from 1.
    pub hidden: HashSet<u64>,
    /// The replacements for cells without a known text, by row from 1 and column from 0.
    pub broken: HashMap<(u64, usize), &'static str>,
    /// The cells that reach over several rows.
    pub merged: Vec<Merged>,
}

/// The first lines of a sheet.
pub(super) fn grid(book: &mut Opened<'_>, sheet: &str, marks: &mut Marks, most: usize) -> Result<Grid, Problem> {
    let mut grid = Grid { most, merged: std::mem::take(&mut marks.merged), ..Grid::default() };
    let merged = match book {
        Sheets::Xlsx(book) => book.merge_cells_by_sheet_name(sheet).unwrap_or_default(),
        Sheets::Xls(book) => book.merge_cells_by_sheet_name(sheet).unwrap_or_default(),
        Sheets::Xlsb(_) | Sheets::Ods(_) => Vec::new(),
    };
    let reaches_down = merged.into_iter().filter(|cells| cells.start.0 < cells.end.0);
    grid.merged.extend(reaches_down.map(|cells| Merged {
        rows: (u64::from(cells.start.0) + 1, u64::from(cells.end.0) + 1),
        column: cells.start.1 as usize,
    }));
    let mut add = |(row, column): (u32, u32), text: &str| {
        let (number, column) = (u64::from(row) + 1, column as usize);
        // A blank cell would mean the default, and the formula may mean another value.
        let text = marks.broken.get(&(number, column)).copied().unwrap_or(text);
        grid.add(number, column, marks.hidden.contains(&number), text)
    };
    match book {
        Sheets::Xlsx(book) => {
            let mut cells = book.worksheet_cells_reader(sheet).map_err(Problem::unreadable)?;
            let zeros: Vec<usize> = cells.styles().iter().map(zeros_of).collect();
            while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(Problem::unreadable)? {
                let digits = zeros.get(style).copied().unwrap_or_default();
                if !add(cell.get_position(), &text(&Data::from(cell.get_value().clone()), digits))? {
                    break;
                }
            }
        }
        Sheets::Xlsb(book) => {
            let mut cells = book.worksheet_cells_reader(sheet).map_err(Problem::unreadable)?;
            while let Some(cell) = cells.next_cell().map_err(Problem::unreadable)? {
                if !add(cell.get_position(), &text(&Data::from(cell.get_value().clone()), 0))? {
                    break;
                }
            }
        }
        Sheets::Xls(_) | Sheets::Ods(_) => {
            let range = book.worksheet_range(sheet).map_err(Problem::unreadable)?;
            for (position, text) in cells_of(&range, marks.broken.keys()) {
                if !add(position, &text)? {
                    break;
                }
            }
        }
    }
    Ok(grid)
}

/// The non-empty cells of a range and the broken ones, which may be outside of it, by row.
fn cells_of<'b>(range: &Range<Data>, broken: impl Iterator<Item = &'b (u64, usize)>) -> Vec<((u32, u32), String)> {
    let (top, left) = range.start().unwrap_or_default();
    let place = |row: usize, column: usize| Some((u32::try_from(row).ok()?, u32::try_from(column).ok()?));
    let held = range.used_cells().filter_map(|(row, column, cell)| {
        let (row, column) = place(row, column)?;
        Some(((top + row, left + column), text(cell, 0)))
    });
    let broken =
        broken.filter_map(|(number, column)| Some((place(usize::try_from(number - 1).ok()?, *column)?, String::new())));
    let mut cells: Vec<_> = held.chain(broken).collect();
    cells.sort_by_key(|(position, _)| *position);
    cells.dedup_by_key(|(position, _)| *position);
    cells
}

/// The number of digits that a format of zeros shows, such as `00000` of article numbers.
fn zeros_of(style: &calamine::Style) -> usize {
    let format = style.number_format.as_ref().map(|format| format.format_code.as_str()).unwrap_or_default();
    if format.bytes().all(|byte| byte == b'0') { format.len() } else { 0 }
}

/// The text of a cell in the sheet, with a minimum number of digits.
fn text(cell: &Data, digits: usize) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::String(text) => text.clone(),
        Data::DateTimeIso(text) => text.strip_suffix("T00:00:00").unwrap_or(text).to_owned(),
        Data::DurationIso(text) => text.parse().map_or_else(|_| text.clone(), time_of_day),
        Data::Bool(is_so) => if *is_so { "TRUE" } else { "FALSE" }.to_owned(),
        Data::Int(number) => format!("{number:0>digits$}"),
        // A spreadsheet shows the same for a failed calculation.
        Data::Float(number) if !number.is_finite() => "#NUM!".to_owned(),
        // The shortest decimal of the 15 digits that a spreadsheet shows: a whole one has no point.
        Data::Float(number) => {
            let shown: f64 = format!("{number:.14e}").parse().unwrap_or(*number);
            let digits = if shown < 0.0 { 0 } else { digits };
            format!("{:0>digits$}", shown.to_string())
        }
        Data::DateTime(moment) => date(moment),
        Data::Error(error) => error.to_string(),
    }
}

/// A time without a date, in the format of the sheet.
fn time_of_day(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A date as ISO, with its time of day if it has one.
fn date(moment: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (moment.as_f64() < 1.0, hour, minute, second, milli) {
        (true, ..) => format!("{hour:02}:{minute:02}:{second:02}"),
        (false, 0, 0, 0, 0) => day,
        _ => format!("{day}T{hour:02}:{minute:02}:{second:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_address_is_bounded_by_the_sheet() {
        assert_eq!(address("A1"), Some((1, 0)));
        assert_eq!(address("xfd1048576"), Some((LAST_ROW, MAX_COLUMNS - 1)));
        for bad in ["", "A", "1", "A0", "XFE1", "A1048577", "ZZZZZZ1", "A-1", "É1", "A1B", "A99999999999"] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }

    #[test]
    fn rows_are_in_order_and_cells_need_not_be() {
        let mut grid = Grid { most: 10, ..Grid::default() };
        for (row, column) in [(1, 1), (1, 0), (3, 0)] {
            assert!(grid.add(row, column, false, "x").expect("in bounds"));
        }
        assert_eq!((grid.lines[0].width(), grid.lines[0].texts(2)), (2, vec!["x", "x"]));
        assert!(matches!(grid.add(2, 0, false, "x"), Err(Problem::Unreadable(_))));
    }

    #[test]
    fn merged_cell_counts_for_each_of_its_rows() {
        let mut grid = Grid { most: 10, ..Grid::default() };
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
