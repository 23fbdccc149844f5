//! An Excel workbook, with its values as people see them: whole numbers without a point, dates as ISO, formulas by their stored results.

use std::collections::HashMap;
use std::io::Cursor;

use calamine::{Data, ExcelDateTime, Reader as _, SheetType, SheetVisible};

use super::grid::{Grid, Merged, NO_RESULT, Problem};
use super::parts::{self, Marks};

/// An open workbook.
pub(super) struct Xlsx<'b> {
    book: calamine::Xlsx<Cursor<&'b [u8]>>,
    marks: HashMap<String, Marks>,
}

impl<'b> Xlsx<'b> {
    pub(super) fn open(bytes: &'b [u8]) -> Result<Self, Problem> {
        let marks = parts::read(bytes).map_err(Problem::Unreadable)?;
        let book = calamine::Xlsx::new(Cursor::new(bytes)).map_err(Problem::unreadable)?;
        Ok(Self { book, marks })
    }

    /// The name of each sheet, and whether it is visible.
    pub(super) fn sheets(&self) -> Vec<(String, bool)> {
        let sheets = self.book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect()
    }

    /// The first lines of a sheet.
    pub(super) fn grid(&mut self, sheet: &str, most: usize) -> Result<Grid, Problem> {
        let mut grid = Grid::up_to(most);
        let merged = self.book.merge_cells_by_sheet_name(sheet).unwrap_or_default().into_iter();
        let reaches_down = merged.filter(|cells| cells.start.0 < cells.end.0);
        grid.merged = reaches_down
            .map(|cells| Merged {
                rows: (u64::from(cells.start.0) + 1, u64::from(cells.end.0) + 1),
                column: cells.start.1 as usize,
            })
            .collect();
        // Without them, a hidden row or a missing result would be bought.
        let marks =
            self.marks.get(sheet).ok_or_else(|| Problem::Unreadable(format!("it has no part for `{sheet}`")))?;
        let mut cells = self.book.worksheet_cells_reader(sheet).map_err(Problem::unreadable)?;
        let zeros: Vec<usize> = cells.styles().iter().map(zeros_of).collect();
        while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(Problem::unreadable)? {
            let (number, column) = (u64::from(cell.get_position().0) + 1, cell.get_position().1 as usize);
            // Blank, it would mean "as usual", and something else would be bought than the formula says.
            let text = if marks.without_result.contains(&(number, column)) {
                NO_RESULT.to_owned()
            } else {
                text(&Data::from(cell.get_value().clone()), zeros.get(style).copied().unwrap_or_default())
            };
            if !grid.add(number, column, marks.hidden.contains(&number), &text)? {
                break;
            }
        }
        Ok(grid)
    }
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
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
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

/// A date as ISO, with its time of day if it has one.
fn date(moment: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (moment.as_f64() < 1.0, hour, minute, second, milli) {
        // A time alone, as a sheet shows it.
        (true, ..) => format!("{hour:02}:{minute:02}:{second:02}"),
        (false, 0, 0, 0, 0) => day,
        _ => format!("{day}T{hour:02}:{minute:02}:{second:02}"),
    }
}
