//! The cells of a sheet as people see them: whole numbers without a point, dates as ISO, formulas by their stored results. One rule for every
//! kind of workbook, as far as its file says it.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use calamine::{Data, ExcelDateTime, Range, Reader as _, Sheets};
use jiff::SignedDuration;

use super::grid::{Grid, Merged, Problem};

/// A workbook that the library has opened.
pub(super) type Opened<'b> = Sheets<Cursor<&'b [u8]>>;

/// The facts of a sheet that the library does not tell.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The rows that the user or a filter hides, from 1.
    pub hidden: HashSet<u64>,
    /// What stands in place of cells whose text can't be known, by row, from 1, and column, from 0.
    pub broken: HashMap<(u64, usize), &'static str>,
    /// The cells that reach over several rows.
    pub merged: Vec<Merged>,
}

/// The first lines of a sheet.
pub(super) fn grid(book: &mut Opened<'_>, sheet: &str, marks: &mut Marks, most: usize) -> Result<Grid, Problem> {
    let mut grid = Grid::up_to(most);
    grid.merged = std::mem::take(&mut marks.merged);
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
        // Blank, it would mean "as usual", and something else would be bought than a formula says.
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

/// The cells of a range that hold something, and broken ones, which may lie beyond it, by rows.
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

/// A cell as the sheet shows it, with so many digits at least.
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

/// A time alone, as a sheet shows it.
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
