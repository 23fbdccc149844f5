//! Tables without borders. In a narrow terminal, each row stays one line, and numbers and words stay complete.

use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::domain::text::one_line;

/// The blanks around a cell.
const BLANKS: usize = 2;
/// The widths of truncated texts and IDs: first readable, then minimal.
const READABLE_TEXT: usize = 20;
const READABLE_ID: usize = 12;
const MIN_WIDTH: usize = 8;

/// A column, with its truncation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'h> {
    head: &'h str,
    kind: Kind,
    is_spare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Never truncated.
    Word,
    /// Never truncated, aligned right.
    Number,
    /// Truncated in the middle: IDs differ at their ends.
    Id,
    /// Truncated at the end.
    Text,
}

impl<'h> Column<'h> {
    /// Of a few short words.
    pub(crate) const fn word(head: &'h str) -> Self {
        Self { head, kind: Kind::Word, is_spare: false }
    }

    /// Of numbers.
    pub(crate) const fn number(head: &'h str) -> Self {
        Self { head, kind: Kind::Number, is_spare: false }
    }

    /// Of ids.
    pub(crate) const fn id(head: &'h str) -> Self {
        Self { head, kind: Kind::Id, is_spare: false }
    }

    /// Of texts.
    pub(crate) const fn text(head: &'h str) -> Self {
        Self { head, kind: Kind::Text, is_spare: false }
    }

    /// May be hidden, from the last such column on.
    pub(crate) const fn spare(self) -> Self {
        Self { is_spare: true, ..self }
    }
}

/// A table with a header in capitals. In a wide table, cells have several lines.
pub(super) fn table(columns: &[Column<'_>], rows: impl IntoIterator<Item = Vec<String>>, width: u16) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(columns.iter().map(|column| column.head.to_uppercase()));
    for (index, _) in columns.iter().enumerate().filter(|(_, column)| column.kind == Kind::Number) {
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

/// Truncates a table to one line per row: first texts and spare columns, then IDs. Returns the names of hidden columns.
pub(super) fn fit<'h>(columns: &mut Vec<Column<'h>>, rows: &mut [Vec<String>], width: usize) -> Vec<&'h str> {
    for index in (0..columns.len()).rev() {
        if columns[index].is_spare && rows.iter().all(|row| row[index].is_empty()) {
            remove(columns, rows, index);
        }
    }
    let mut left_out = Vec::new();
    let readable = |kind| match kind {
        Kind::Text => READABLE_TEXT,
        Kind::Id => READABLE_ID,
        Kind::Word | Kind::Number => usize::MAX,
    };
    while excess(columns, rows, width, readable) > 0
        && let Some(spare) = columns.iter().rposition(|column| column.is_spare)
    {
        left_out.insert(0, remove(columns, rows, spare));
    }
    cut(columns, rows, Kind::Text, READABLE_TEXT, width);
    cut(columns, rows, Kind::Id, READABLE_ID, width);
    cut(columns, rows, Kind::Text, MIN_WIDTH, width);
    cut(columns, rows, Kind::Id, MIN_WIDTH, width);
    while excess(columns, rows, width, |_| usize::MAX) > 0
        && let Some(text) = columns.iter().rposition(|column| column.kind == Kind::Text)
    {
        left_out.push(remove(columns, rows, text));
    }
    left_out
}

fn remove<'h>(columns: &mut Vec<Column<'h>>, rows: &mut [Vec<String>], index: usize) -> &'h str {
    for row in rows {
        row.remove(index);
    }
    columns.remove(index).head.trim()
}

/// The excess width of a table, with columns of each kind truncated to a width.
fn excess(columns: &[Column<'_>], rows: &[Vec<String>], width: usize, most: impl Fn(Kind) -> usize) -> usize {
    let widths = (0..columns.len()).map(|index| widest(columns, rows, index).min(most(columns[index].kind)) + BLANKS);
    widths.sum::<usize>().saturating_sub(width)
}

fn widest(columns: &[Column<'_>], rows: &[Vec<String>], index: usize) -> usize {
    rows.iter().map(|row| row[index].width()).max().unwrap_or(0).max(columns[index].head.width())
}

/// Truncates the columns of a kind, the widest first, until the table fits or each has the width `least`.
fn cut(columns: &[Column<'_>], rows: &mut [Vec<String>], kind: Kind, least: usize, width: usize) {
    loop {
        let excess = excess(columns, rows, width, |_| usize::MAX);
        let of_kind = (0..columns.len()).filter(|&index| columns[index].kind == kind);
        let mut widths: Vec<(usize, usize)> = of_kind.map(|index| (widest(columns, rows, index), index)).collect();
        widths.sort_unstable();
        let Some((now, index)) = widths.pop().filter(|(now, _)| excess > 0 && *now > least) else { return };
        // Down to the next width, so the widest columns are truncated first.
        let next = widths.last().map_or(0, |(next, _)| *next);
        let most = now.saturating_sub(excess).max(next.min(now - 1)).max(least);
        for row in rows.iter_mut() {
            let cut = if kind == Kind::Id { shortened_inside(&row[index], most) } else { shortened(&row[index], most) };
            row[index] = cut;
        }
        // A name is not truncated.
        if widest(columns, rows, index) >= now {
            return;
        }
    }
}

/// A text on one line, truncated to a width with a mark.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.width() <= most { line } else { within(line.chars(), most.saturating_sub(1)).chain(['…']).collect() }
}

/// An ID truncated in its middle to a width, with a mark: IDs differ at their ends.
pub(super) fn shortened_inside(id: &str, most: usize) -> String {
    let line = one_line(id);
    if line.width() <= most || most < 3 {
        return shortened(&line, most);
    }
    let end: Vec<char> = within(line.chars().rev(), (most - 1) / 2).collect();
    within(line.chars(), most - 1 - (most - 1) / 2).chain(['…']).chain(end.into_iter().rev()).collect()
}

/// The first characters within a width.
fn within(chars: impl Iterator<Item = char>, mut room: usize) -> impl Iterator<Item = char> {
    chars.take_while(move |c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    })
}

/// The minimum length of a removed prompt, in bytes. A shorter one may be part of any text.
const MIN_PROMPT: usize = 4;

/// A duration for the user: `45 s`, `4 min`, `2 h 5 min`.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A length of a file, for the user: `512 B`, `1.4 MB`.
pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// The maximum number of names in a list.
pub(super) const MAX_NAMES: usize = 5;

/// The first names of a list, and the number of others.
pub(crate) fn listed<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(MAX_NAMES).map(|name| name.to_string()).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A text of the service without the prompt, where that is in it.
pub(super) fn without_prompt(text: &str, prompt: Option<&str>) -> String {
    match prompt.map(str::trim).filter(|prompt| prompt.len() >= MIN_PROMPT) {
        Some(prompt) if text.contains(prompt) => text.replace(prompt, "[the prompt]"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_text_is_marked_and_fits() {
        for (text, most, expected) in
            [("abcdef", 6, "abcdef"), ("abcdef", 4, "abc…"), ("日本語", 5, "日本…"), ("a\nb", 9, "a b")]
        {
            assert_eq!(shortened(text, most), expected);
        }
        for (id, most, expected) in [
            ("spin-17", 9, "spin-17"),
            ("a-long-name-17", 9, "a-lo…e-17"),
            ("abcdef", 2, "a…"),
            ("12 × walk-red, …", 8, "12 ×…, …"),
        ] {
            assert_eq!(shortened_inside(id, most), expected);
        }
    }

    fn shown(columns: &[Column<'_>], rows: &[&[&str]], width: u16) -> (Vec<String>, String) {
        let mut columns = columns.to_vec();
        let mut rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        let left_out = fit(&mut columns, &mut rows, width.into()).into_iter().map(str::to_owned).collect();
        (left_out, table(&columns, rows, width))
    }

    const PLAN: [Column<'_>; 6] = [
        Column::word("action"),
        Column::id("job"),
        Column::word("model").spare(),
        Column::number("length").spare(),
        Column::number("cost"),
        Column::text("why"),
    ];
    const JOBS: [&[&str]; 2] = [
        &[
            "retry",
            "a-name-of-22-charact-1",
            "beta-2.0-lite-fast",
            "10 s",
            "$3.75",
            "failed before, and --retry-failed",
        ],
        &["submit", "b", "alpha-2", "5 s", "$0.90", "new"],
    ];

    #[test]
    fn narrow_table_cuts_its_least_useful_columns_first() {
        insta::assert_snapshot!(shown(&PLAN, &JOBS, 80).1, @r"
    ACTION  JOB            MODEL               LENGTH   COST  WHY
    retry   a-name…ract-1  beta-2.0-lite-fast    10 s  $3.75  failed before, and …
    submit  b              alpha-2                5 s  $0.90  new
    ");
        insta::assert_snapshot!(shown(&PLAN, &JOBS, 60).1, @r"
    ACTION  JOB                     COST  WHY
    retry   a-name-of-…-charact-1  $3.75  failed before, and …
    submit  b                      $0.90  new
    ");
        insta::assert_snapshot!(shown(&PLAN, &JOBS, 40).1, @r"
    ACTION  JOB            COST  WHY
    retry   a-name…act-1  $3.75  failed b…
    submit  b             $0.90  new
    ");
        assert_eq!(shown(&PLAN, &JOBS, 60).0, ["model", "length"]);
    }

    proptest::proptest! {
        #[test]
        fn every_row_is_one_line_and_money_stays_whole(
            width in 44_u16..200,
            ids in proptest::collection::vec("[a-z0-9.-]{1,100}", 1..5),
            why in "[a-z日 ]{0,120}",
        ) {
            let rows: Vec<[&str; 6]> = ids.iter().map(|id| ["in doubt", id, "beta-2.0-pro", "10 s", "$1234.75?", &why]).collect();
            let rows: Vec<&[&str]> = rows.iter().map(|row| &row[..]).collect();
            let (_, text) = shown(&PLAN, &rows, width);
            proptest::prop_assert_eq!(text.lines().count(), 1 + ids.len(), "{}", text);
            proptest::prop_assert_eq!(text.matches("$1234.75?").count(), ids.len(), "{}", text);
            proptest::prop_assert!(text.lines().all(|line| line.width() <= usize::from(width)), "{}", text);
        }
    }

    #[test]
    fn spans_read_well() {
        let said = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [said(0), said(45), said(100), said(240), said(7500)],
            ["0 s", "45 s", "2 min", "4 min", "2 h 5 min"]
        );
    }

    #[test]
    fn duration_has_a_readable_unit() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1449, "1.4 kB"), (12_000_000, "12.0 MB"), (3 << 30, "3.2 GB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
