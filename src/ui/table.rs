//! Tables without lines, as wide as the terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::domain::printable::one_line;

/// The blanks around a cell, and the fewest columns that are worth having for a text that is cut.
const BLANKS: usize = 2;
const LEAST: usize = 8;

/// A table with a header in capitals; `right` are the columns whose cells are numbers.
pub(super) fn table(
    header: &[&str],
    right: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
    width: u16,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Cuts a table to a width, so that no row takes two lines: the last column first, down to a few words; then those columns are left empty
/// that may be, in their order; and ids are cut in their middle only where that is not enough.
pub(super) fn fit(header: &mut [&str], ids: usize, spare: &[usize], rows: &mut [Vec<String>], width: usize) {
    let last = header.len().saturating_sub(1);
    let cut = |header: &[&str], rows: &mut [Vec<String>], column: usize, cut: fn(&str, usize) -> String| {
        let widest = |other: usize| {
            let cells = rows.iter().map(|row| row[other].width());
            cells.max().unwrap_or(0).max(header[other].width()).max(1) + BLANKS
        };
        let others: usize = (0..=last).filter(|&other| other != column).map(widest).sum();
        let room = width.saturating_sub(others + BLANKS);
        for row in rows.iter_mut() {
            row[column] = cut(&row[column], room.max(LEAST));
        }
        room
    };
    cut(header, rows, last, shortened);
    for &column in spare {
        // Asked without cutting anything.
        if cut(header, rows, ids, |id, _| id.to_owned()) >= LEAST {
            break;
        }
        header[column] = "";
        for row in rows.iter_mut() {
            row[column].clear();
        }
    }
    cut(header, rows, ids, shortened_inside);
}

/// A text of at most so many columns on one line; what is cut off is marked.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.width() <= most {
        return line;
    }
    let mut room = most.saturating_sub(1);
    let fits = line.chars().take_while(|c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    });
    fits.chain(['…']).collect()
}

/// An id of at most so many columns: what is cut out of its middle is marked, because ids differ at their ends.
pub(super) fn shortened_inside(id: &str, most: usize) -> String {
    // Ids are ASCII.
    if id.len() <= most || most < 3 {
        return shortened(id, most);
    }
    let end = (most - 1) / 2;
    format!("{}…{}", &id[..most - 1 - end], &id[id.len() - end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_marked_and_fits() {
        for (text, most, expected) in
            [("abcdef", 6, "abcdef"), ("abcdef", 4, "abc…"), ("日本語", 5, "日本…"), ("a\nb", 9, "a b")]
        {
            assert_eq!(shortened(text, most), expected);
        }
        for (id, most, expected) in [("spin-17", 9, "spin-17"), ("a-long-name-17", 9, "a-lo…e-17"), ("abcdef", 2, "a…")]
        {
            assert_eq!(shortened_inside(id, most), expected);
        }
    }
}
