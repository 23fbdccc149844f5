//! The rows of `for_each`: a list of mappings in the manifest, or a file. A spreadsheet is a [`sheet`]; a file of prompts has one text or one JSON
//! object per line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use encoding_rs::Encoding;
use globset::GlobBuilder;
use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::Serde;
use serde_yaml::Mapping;

use super::sheet::{self, Beginning, Row, TableRows, collect};
use crate::domain::text::one_line;
use crate::domain::{Cells, Columns, count};
use crate::files::table::Undecoded;
use crate::manifest::raw::decode::RawTable;
use crate::manifest::raw::sections::Cell;
use crate::manifest::raw::table::wrong_type;
use crate::manifest::source::diagnostic::{Diagnostic, Findings, Pointer, error, help_near, unreadable, warning};
use crate::manifest::source::lints;
use crate::manifest::source::text::{FileAccess, MAX_FILE_BYTES, MAX_PROMPT_BYTES, TextError, is_url, table_text};

/// The most hidden rows that are named in a message.
const MAX_NAMED: usize = 8;

/// The rows of a job's `for_each`. Reports invalid rows, and returns the others.
pub(crate) fn read(table: &RawTable, access: &FileAccess, at: &Pointer, found: &mut Findings) -> Vec<Row> {
    let read = match &table.rows {
        Some(rows) => Ok(rows_of(rows, at, found)),
        None if is_pattern(&table.file) && !access.path_of(&table.file).exists() => images(&table.file, access, at),
        None => read_file(table, access, at, found),
    };
    let mut rows = read.unwrap_or_else(|diagnostic| {
        found.push(*diagnostic);
        Vec::new()
    });
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    // An unreadable file has its own error.
    if !rows.is_empty() {
        leave_out(&mut rows, table, access, at, found);
    }
    rows
}

/// The rows in the manifest itself.
fn rows_of(rows: &[serde_yaml::Value], at: &Pointer, found: &mut Findings) -> Vec<Row> {
    let mut made: Vec<Row> = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        if let serde_yaml::Value::Mapping(cells) = row {
            made.push(Row::of_values(Value::from(Serde(with_empty_cells(cells))), None, made.last()));
        } else {
            found.push(wrong_type("a row", "a mapping of names to values", row, at.index(index).value()));
        }
    }
    made
}

/// Leaves out the rows that the table excludes, and those with `skip` in a column `status`. The others keep their numbers.
fn leave_out(rows: &mut Vec<Row>, table: &RawTable, access: &FileAccess, at: &Pointer, found: &mut Findings) {
    for cell in table.exclude.iter().flatten() {
        let mut values = rows.iter().filter_map(|row| row.cells.get(&cell.name)).peekable();
        // Objects of JSON need not all have the same names.
        if values.peek().is_some() {
            let has = values.clone().any(|text| is_text(text, cell));
            let meant = values.find(|text| !has && is_slip(&cell.text(), text));
            found.extend(meant.map(|meant| {
                warning!(ColumnUnknown, cell.at.value(), "no row of {} has `{}: {}`", table.file, cell.name, cell.text();
                    "a similar value exists: `{meant}`")
            }));
            continue;
        }
        let names = rows.first().map(|row| row.cells.columns().names()).unwrap_or_default();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        found.push(error!(ColumnUnknown, cell.at.named(),
            "`exclude` names `{}`, which is not a column of {}", cell.name, table.file;
            "{}", help_near(&cell.name, "columns", &names)));
    }
    let all = rows.len();
    let mut left_out = Vec::new();
    rows.retain(|row| {
        let why = reason_to_leave_out(row, table);
        let line = row.place.as_ref().map_or(row.number as u64, |place| place.line);
        left_out.extend(why.iter().map(|why| (line, why.clone())));
        why.is_none()
    });
    if !left_out.is_empty() {
        let mut reasons: IndexMap<&str, usize> = IndexMap::new();
        for (_, why) in &left_out {
            *reasons.entry(why).or_default() += 1;
        }
        let named: Vec<String> = if left_out.len() > MAX_NAMED {
            reasons.iter().map(|(why, rows)| format!("{} ({why})", count(*rows, "row"))).collect()
        } else {
            left_out.iter().map(|(line, why)| format!("row {line} ({why})")).collect()
        };
        let (all, used, named) = (count(all, "row"), rows.len(), named.join(", "));
        access.left_out.lock().insert(format!("{}: {all}, {used} used; left out: {named}", table.file));
    }
    for row in rows.iter().filter(|row| lints::is_no_video(&row.cells)) {
        let odd = warning!(RowNoVideo, at.value(), "a row of sums, or with the names of the columns, becomes a job";
            "remove the row, or leave it out with `exclude`");
        found.push(odd.with_job(None, row.place.clone()));
    }
    let hidden: Vec<String> =
        rows.iter().filter(|row| row.is_hidden).filter_map(|row| Some(row.place.as_ref()?.line.to_string())).collect();
    if !hidden.is_empty() {
        let becomes = if hidden.len() == 1 { "becomes a job" } else { "become jobs" };
        let named = hidden.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        found.push(warning!(RowsHidden, at.value(),
            "{} of {} {becomes}: row {named}", count(hidden.len(), "hidden row"), table.file;
            "`hidden: skip` under `for_each` leaves them out"));
    }
    if rows.is_empty() {
        found.push(error!(NoRows, at.value(), "every row of {} is left out", table.file));
    }
}

/// Returns whether the text of a cell is that of an entry of `exclude`.
fn is_text(text: &str, cell: &Cell) -> bool {
    text.trim().to_lowercase() == cell.text().trim().to_lowercase()
}

/// Returns whether two words differ by one slip of the pen. Numbers, dates, and codes that differ are others.
fn is_slip(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| text.trim().to_lowercase());
    let is_word = |text: &str| text.chars().count() > 3 && !text.contains(|c: char| c.is_ascii_digit());
    is_word(&one) && is_word(&other) && strsim::osa_distance(&one, &other) == 1
}

/// The reason why a row becomes no job: it is excluded, has `skip` in a column `status`, or is hidden.
fn reason_to_leave_out(row: &Row, table: &RawTable) -> Option<String> {
    let has = |cell: &Cell| row.cells.get(&cell.name).is_some_and(|text| is_text(text, cell));
    let is = |text: &str, word: &str| text.trim().eq_ignore_ascii_case(word);
    let is_skipped = |(name, text): &(&str, &str)| is(text, "skip") && is(name, "status");
    let excluded = table.exclude.iter().find(|cells| cells.iter().all(has));
    let told = |cells: &Vec<Cell>| {
        let cells = cells.iter().map(|cell| one_line(&format!("{}: {}", cell.name, cell.text())));
        cells.collect::<Vec<_>>().join(", ")
    };
    let skipped = || row.cells.iter().find(is_skipped).map(|(name, _)| format!("{}: skip", one_line(name)));
    excluded.map(told).or_else(skipped).or_else(|| (table.skips_hidden && row.is_hidden).then(|| "hidden".to_owned()))
}

/// Endings of image files, in lower case.
const IMAGES: [&str; 7] = ["png", "jpg", "jpeg", "webp", "gif", "avif", "heic"];

/// Returns whether a name ends as that of an image.
pub(in crate::manifest) fn is_image_name(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| IMAGES.contains(&&*ending.to_lowercase()))
}

/// Returns whether the name of a file is a pattern.
fn is_pattern(file: &str) -> bool {
    file.contains(['*', '?'])
}

/// A row for each image that a pattern matches, in natural order: its path, its name without the ending, and the text of a `.txt` of that name.
fn images(pattern: &str, access: &FileAccess, at: &Pointer) -> TableRows {
    let (directory, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let unreadable = |what: &str, error: &TextError| unreadable(what, error, at.value());
    let glob = GlobBuilder::new(name).case_insensitive(true).build().map(|glob| glob.compile_matcher());
    let glob = glob.ok().filter(|_| !is_pattern(directory)).ok_or_else(|| {
        error!(NoRows, at.value(), "`{pattern}` must have its pattern in the file name";
            "write for example `stills/*.png`")
    })?;
    let listed = access.list(directory).map_err(|error| unreadable(&format!("the directory of `{pattern}`"), &error));
    let (names, links) = listed?;
    let is_meant = |name: &&String| glob.is_match(name) && is_image_name(name);
    let (mut images, links) =
        (names.iter().filter(is_meant).collect::<Vec<_>>(), links.iter().filter(is_meant).count());
    images.sort_by_cached_key(|name| natural(name));
    if links > 0 {
        let left_out = format!("{pattern}: left out: {} to a file outside, or to none", count(links, "link"));
        access.left_out.lock().insert(left_out);
    }
    let columns = Arc::new(Columns::new(["file", "stem", "text"].map(str::to_owned).to_vec()).unwrap_or_default());
    let (mut rows, mut stems) = (Vec::new(), HashMap::new());
    for name in images {
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        if let Some(other) = stems.insert(stem.to_lowercase(), name) {
            return Err(error!(NoRows, at.value(), "`{other}` and `{name}` have the same name without their endings";
                "rename one, or narrow the pattern, such as `*.png`")
            .into());
        }
        let path = |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        let beside = format!("{stem}.txt");
        let text =
            if names.contains(&beside) { access.read(&path(&beside), MAX_PROMPT_BYTES) } else { Ok(String::new()) };
        let text = text.map_err(|error| unreadable(&format!("`{}`", path(&beside)), &error))?;
        let cells = [path(name), stem.to_owned(), text.trim().to_owned()];
        let cells = Cells::new(Arc::clone(&columns), cells.iter().map(String::as_str));
        rows.push(Row::new(cells, None, None, rows.last()));
    }
    if rows.is_empty() {
        return Err(
            error!(NoRows, at.value(), "no image matches `{pattern}`"; "check the directory and the ending").into()
        );
    }
    Ok(rows)
}

/// A key that sorts `a2` before `a10`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let name = name.to_lowercase();
    name.split_inclusive(|c: char| !c.is_ascii_digit())
        .map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            (digits.parse().unwrap_or(0), part[digits.len()..].to_owned())
        })
        .collect()
}

/// The encoding that a file of rows has to name, and words of it that show whether it is right.
pub(crate) fn unnamed_encoding(file: &str, access: &FileAccess) -> Option<(&'static Encoding, String)> {
    let (_, bytes) = access.read_bytes(file, MAX_FILE_BYTES).ok()?;
    let Err(TextError::Undecoded(Undecoded::Unnamed { encoding, words })) = table_text(bytes, None) else {
        return None;
    };
    Some((Encoding::for_label(encoding.as_bytes())?, words))
}

/// The first lines of a file of rows, or of each visible sheet of a workbook, with its name. Empty if the file can't be read.
pub(crate) fn beginnings(
    file: &str,
    encoding: Option<&'static Encoding>,
    access: &FileAccess,
    most: usize,
) -> Vec<(Option<String>, Beginning)> {
    let bytes = access.read_bytes(file, MAX_FILE_BYTES).map(|(_, bytes)| bytes).unwrap_or_default();
    if is_workbook(file) {
        sheet::beginnings_of_workbook(&bytes, most).into_iter().map(|(name, lines)| (Some(name), lines)).collect()
    } else {
        vec![(None, sheet::beginning(&table_text(bytes, encoding).unwrap_or_default(), most))]
    }
}

fn ending(file: &str) -> Option<String> {
    file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())
}

/// Returns whether each line has a tab: the "Unicode text" of Excel is a table.
fn is_tabbed(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| line.contains('\t'))
}

/// Returns whether a path has the ending of a spreadsheet.
pub(crate) fn is_spreadsheet(path: &Path) -> bool {
    ending(&path.to_string_lossy()).is_some_and(|ending| SHEET_ENDINGS.contains(&&*ending))
}

/// Endings of spreadsheets, those of workbooks last.
pub(crate) const SHEET_ENDINGS: [&str; 7] = ["csv", "tsv", "xlsx", "xlsm", "xlsb", "xls", "ods"];

fn is_workbook(file: &str) -> bool {
    ending(file).is_some_and(|ending| SHEET_ENDINGS[2..].contains(&&*ending))
}

fn read_file(table: &RawTable, access: &FileAccess, at: &Pointer, found: &mut Findings) -> TableRows {
    let file = table.file.as_str();
    let ending = ending(file);
    let cannot_read = |error| match error {
        TextError::Undecoded(why) => undecoded(file, &why, at),
        error => unreadable(&format!("file of rows `{}`", access.path_of(file).display()), &error, at.value()),
    };
    // A synchronized directory shows an online sheet as a link to it, too.
    if is_url(file) || ending.as_deref() == Some("gsheet") {
        return Err(error!(Unreadable, at.value(), "`for_each` must name a file, found a link";
            "in the sheet, choose File, Download, \"Comma-separated values\", then name that file")
        .into());
    }
    let (_, bytes) = access.read_bytes(file, MAX_FILE_BYTES).map_err(cannot_read)?;
    if is_workbook(file) {
        return sheet::parse_workbook(&bytes, table, at, found);
    }
    let text = table_text(bytes, table.encoding).map_err(cannot_read)?;
    if table.sheet.is_some() || table.skips_hidden {
        found.push(error!(SheetUnknown, at.value(), "{file} is not a workbook, and has no sheets and no hidden rows";
            "leave out `sheet` and `hidden`"));
    }
    match ending.as_deref() {
        Some("jsonl" | "ndjson") => objects(&text, file, at, found),
        Some("txt") if !is_tabbed(&text) => texts(&text, file, at, found),
        Some("csv" | "tsv" | "txt") => sheet::parse(&text, table, at, found),
        _ => Err(error!(Unreadable, at.value(), "`for_each` can't read `{file}`: its ending names no table";
            "name a .csv, .tsv, .xlsx, .ods, .txt, or .jsonl file; a .jsonl file has one JSON object a line")
        .into()),
    }
}

/// The error that the encoding of a file has to be named: a guess would be bought.
fn undecoded(file: &str, why: &Undecoded, at: &Pointer) -> Diagnostic {
    let help = match why {
        Undecoded::Unnamed { encoding, .. } => format!(
            "if these words are right, write `for_each: {{ file: {file}, encoding: {encoding} }}`; otherwise save the file as \"CSV UTF-8\""
        ),
        Undecoded::Utf8(_) => "remove `encoding`".to_owned(),
        Undecoded::Utf32 | Undecoded::Damaged(_) => "save the file as \"CSV UTF-8\"".to_owned(),
    };
    error!(EncodingUnnamed, at.value(), "can't read {file}: {why}"; "{help}")
}

/// A row of the manifest. Null means the same as an empty cell of a spreadsheet.
fn with_empty_cells(cells: &Mapping) -> Mapping {
    let cell = |value: &serde_yaml::Value| if value.is_null() { String::new().into() } else { value.clone() };
    cells.iter().map(|(name, value)| (name.clone(), cell(value))).collect()
}

/// The only column of a file of texts.
const TEXT: &str = "text";

/// Each line that is not blank, as a row with the one column `text`.
fn texts(text: &str, file: &str, at: &Pointer, found: &mut Findings) -> TableRows {
    collect(file, at, found, filled_lines(text), |line, row, before| {
        Ok(Row::of_values(Value::from_pairs([(TEXT, line)]), Some(row), before))
    })
}

/// Each line that is not blank, a JSON object, as a row with a column for each name.
fn objects(text: &str, file: &str, at: &Pointer, found: &mut Findings) -> TableRows {
    // A null is an empty cell of a spreadsheet.
    let cell = |value: serde_json::Value| if value.is_null() { Value::from("") } else { Value::from(Serde(value)) };
    collect(file, at, found, filled_lines(text), |line, row, before| {
        let cells: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).map_err(|error| {
            error!(JsonlMalformed, at.value(), "a line must be a JSON object: {error}";
                "write one object a line: {{\"id\": \"a\", \"prompt\": \"…\"}}")
        })?;
        let cells = cells.into_iter().map(|(name, value)| (name, cell(value)));
        Ok(Row::of_values(Value::from_pairs(cells), Some(row), before))
    })
}

/// The lines that are not blank, with their numbers.
fn filled_lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty())
}
