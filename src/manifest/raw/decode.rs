//! The types of a manifest before templates and defaults, and their decoding from YAML values. An error is reported, and the other values remain.
//!
//! `schemas/manifest.schema.json` describes the same to editors. A test compares its keys with those that are decoded.

use encoding_rs::Encoding;
use serde_yaml::Value;

use super::sections::{self, Budget, Cell, Faces, RawMatrix, RawMove};
use super::table::{FieldValue, FieldValues, JobField as F, Table, kind, text_or_number, wrong_type};
use crate::manifest::source::diagnostic::{
    Diagnostic, Findings, JobLabel, Location, Part, Pointer, error, have_errors,
};
use crate::manifest::source::reader::RawEntry;
use crate::manifest::template::engine::is_template;

pub(in crate::manifest) const TOP_KEYS: [&str; 11] =
    ["version", "name", "batch", "timezone", "ledger", "budget", "vars", "faces", "defaults", "jobs", "moved"];
/// The keys of an entry of `jobs` that are no fields.
pub(in crate::manifest) const ENTRY_KEYS: [&str; 3] = ["id", "for_each", "matrix"];

/// The names of the fields that a job and `defaults` share.
pub(in crate::manifest) fn field_keys() -> Vec<&'static str> {
    F::shared().map(F::name).collect()
}

impl RawManifest {
    /// Decodes a file without its jobs, which are only counted here. Reports each error, and leaves out its value.
    pub(crate) fn decode(value: Value, jobs: usize, found: &mut Findings) -> Option<Self> {
        if value.is_null() {
            found.push(error!(Empty, Location::File, "the manifest is empty";
                "`shotlist init` writes a manifest to start from"));
            return None;
        }
        let mut table = Table::open(value, Pointer::top(), "a manifest", found)?;
        check_jobs(&mut table, jobs);
        decode_version(&mut table);
        let raw = Self {
            name: table.text("name"),
            batch: table.text("batch"),
            timezone: table.text("timezone"),
            is_ledger_shared: decode_ledger(&mut table),
            budget: sections::decode_budget(&mut table),
            vars: table.inner("vars").map(Table::into_pairs).unwrap_or_default(),
            faces: sections::decode_faces(&mut table),
            defaults: decode_defaults(&mut table),
            moved: sections::decode_moves(&mut table),
        };
        table.close(&TOP_KEYS);
        Some(raw)
    }
}

fn decode_version(table: &mut Table<'_>) {
    let help = "write `version: 1` at the top of the manifest";
    let diagnostic = match table.take("version") {
        Some(Value::Number(number)) if number.as_i64() == Some(1) => return,
        // As Docker Compose has it.
        Some(Value::String(text)) if text == "1" => return,
        Some(other) => {
            let found = text_or_number(&other).map_or_else(|| kind(&other).to_owned(), |text| format!("`{text}`"));
            error!(VersionUnknown, table.at("version").value(), "`version` must be 1, found {found}")
        }
        None if !table.misses("version") => return,
        None => error!(VersionMissing, Pointer::top().value(), "the manifest has no `version`"),
    };
    table.tell(diagnostic.with_help(help));
}

fn decode_ledger(table: &mut Table<'_>) -> bool {
    let place = table.at("ledger").value();
    match table.take("ledger") {
        None => false,
        Some(Value::String(text)) if text == "shared" => true,
        Some(_) => {
            table.tell(error!(WrongType, place, "`ledger` must be `shared`";
                "write `ledger: shared`, and name the database in `SHOTLIST_LEDGER`"));
            true
        }
    }
}

fn decode_defaults(table: &mut Table<'_>) -> RawFields {
    let Some(mut defaults) = table.inner("defaults") else { return RawFields::default() };
    let fields = decode_fields(&mut defaults);
    defaults.close(&field_keys());
    fields
}

fn check_jobs(table: &mut Table<'_>, jobs: usize) {
    let at = table.at("jobs");
    match table.take("jobs") {
        Some(Value::Sequence(_)) if jobs > 0 => {}
        None if jobs > 0 || !table.misses("jobs") => {}
        Some(Value::Sequence(_)) | None => {
            table.tell(error!(NoJobs, at.value(), "the manifest lists no jobs";
                "write a list under `jobs`, each entry starting with `- id: …`"));
        }
        Some(other) => {
            let diagnostic = wrong_type("`jobs`", "a list", &other, at.value());
            table.tell(diagnostic.with_help("start each job with a dash, `- id: …`"));
        }
    }
}

/// Decodes one entry of `jobs`, with its errors. Each of them makes it damaged.
pub(crate) fn decode_job(entry: RawEntry, number: usize) -> (RawJob, Vec<Diagnostic>) {
    let nothing = || RawJob { for_each: None, matrix: None, fields: RawFields::default(), is_damaged: true };
    let mut found = Vec::new();
    let job = decode_entry(entry, &Pointer::top().key("jobs").index(number), &mut found);
    (job.unwrap_or_else(nothing), found)
}

fn decode_entry(entry: RawEntry, at: &Pointer, found: &mut Findings) -> Option<RawJob> {
    let mut table = Table::open(entry, at.clone(), "a job", found)?;
    // A key of the manifest in its list of jobs is no job with mistakes.
    if let Some(key) = ["defaults", "vars", "budget", "faces"].into_iter().find(|key| table.get(key).is_some()) {
        let place = Location::Value(table.at(key), Part::Key);
        table.tell(error!(UnknownKey, place, "`{key}` is not a job";
            "move it out of the list of jobs, up to the column of `jobs`"));
        return None;
    }
    let id = table.field(F::Id);
    if id.is_none() && !have_errors(table.found()) && table.misses("id") {
        table.tell(error!(IdMissing, at.value(), "this job has no `id`";
            "write an `id` that stays the same between runs, because payments belong to it"));
    }
    let for_each = decode_for_each(&mut table);
    let matrix = table.take("matrix").map(|value| sections::decode_matrix(value, &table.at("matrix"), table.found()));
    let mut fields = decode_fields(&mut table);
    if !table.is_empty() {
        table.close(&[&ENTRY_KEYS[..], &field_keys()].concat());
    }
    let is_damaged = have_errors(found);
    label(found, id.as_deref(), &fields);
    fields.values.0.extend(id.map(|id| (F::Id, FieldValue::Text(id))));
    Some(RawJob { for_each, matrix, fields, is_damaged })
}

/// Names the job in diagnostics about its entry, so that they stop only runs that select it. An ID with a template names no job yet.
fn label(found: &mut [Diagnostic], id: Option<&str>, fields: &RawFields) {
    if let Some(id) = id.filter(|id| !is_template(id)) {
        let job = JobLabel { id: id.to_owned(), tags: fields.values.list(F::Tags).unwrap_or_default().to_vec() };
        for diagnostic in found {
            diagnostic.job = Some(job.clone());
        }
    }
}

fn decode_for_each(table: &mut Table<'_>) -> Option<RawTable> {
    let at = table.at("for_each");
    // Rows in the manifest itself are named after their place.
    let rows = |rows| RawTable { rows: Some(rows), ..RawTable::for_file(at.to_string()) };
    Some(match table.take("for_each")? {
        Value::String(file) => RawTable::for_file(file),
        Value::Mapping(map) => {
            let mut table = Table::open(Value::Mapping(map), at.clone(), "`for_each`", table.found())?;
            let file = table.text("file").map(|file| decode_file(file, &mut table));
            if file.is_none() {
                table.tell(error!(NoRows, at.named(), "`for_each` names no `file`";
                    "write `{{ file: looks.xlsx, sheet: Spring }}`"));
            }
            table.close(&["file", "sheet", "header_row", "encoding", "hidden", "exclude"]);
            file.unwrap_or_else(|| rows(Vec::new()))
        }
        Value::Sequence(items) => {
            if items.is_empty() {
                table.tell(error!(NoRows, at.named(), "`for_each` has no rows";
                    "write at least one row, or remove `for_each`"));
            }
            rows(items)
        }
        other => {
            table.tell_wrong_type("for_each", "the path of a file of rows, or a list of mappings", &other);
            rows(Vec::new())
        }
    })
}

fn decode_file(file: String, table: &mut Table<'_>) -> RawTable {
    let mut decoded = RawTable { sheet: table.text("sheet"), ..RawTable::for_file(file) };
    if let Some(value) = table.take("header_row") {
        match value.as_u64() {
            Some(row @ 1..) => decoded.header_row = row,
            _ => table.tell_wrong_type("header_row", "a line number from 1", &value),
        }
    }
    if let Some(label) = table.text("encoding") {
        decoded.encoding = Encoding::for_label(label.as_bytes());
        if decoded.encoding.is_none() {
            table.tell(error!(EncodingUnknown, table.at("encoding").value(), "found no encoding `{label}`";
                "use a name such as `windows-1250`, `gbk`, `shift_jis`, or `macintosh`"));
        }
    }
    if let Some(value) = table.take("hidden") {
        decoded.skips_hidden = value.as_str() == Some("skip");
        if !decoded.skips_hidden {
            table.tell_wrong_type("hidden", "`skip`", &value);
        }
    }
    if let Some(value) = table.take("exclude") {
        let at = table.at("exclude");
        decoded.exclude = sections::entries(value, &at, table.found());
    }
    decoded
}

/// The number of takes, and whether they are bought one by one until one is kept.
fn decode_takes(table: &mut Table<'_>, until_kept: &mut bool) -> Option<FieldValue<String>> {
    let key = F::Takes.name();
    let at = table.at(key);
    let Some(mut takes) = table.inner_mapping(key) else { return table.whole_or_template(key) };
    *until_kept = true;
    let (up_to, until) = (takes.whole_or_template("up_to"), takes.take("until"));
    takes.close(&["up_to", "until"]);
    if up_to.is_none() || until.as_ref().and_then(Value::as_str) != Some("kept") {
        table.tell(error!(WrongType, at.value(), "`takes` must have `up_to` and `until: kept`";
            "write `takes: {{ up_to: 4, until: kept }}`, or a whole number"));
    }
    up_to
}

/// The local images, and whether the job waits for them.
fn decode_image_file(table: &mut Table<'_>, waits: &mut bool) -> Option<Vec<String>> {
    let key = F::ImageFile.name();
    let at = table.at(key);
    let Some(mut image) = table.inner_mapping(key) else { return table.texts(key) };
    let (path, wait) = (image.text("path"), image.take("wait"));
    image.close(&["path", "wait"]);
    if path.is_none() || wait.as_ref().is_some_and(|wait| wait.as_bool().is_none()) {
        table.tell(error!(WrongType, at.value(), "`image_file` must have `path` and `wait: true`";
            "write `image_file: {{ path: frames/a.png, wait: true }}`, or a path"));
    }
    *waits = wait.and_then(|wait| wait.as_bool()).unwrap_or_default();
    path.map(|path| vec![path])
}

fn decode_fields(table: &mut Table<'_>) -> RawFields {
    let extra = table.inner(F::Extra.name()).map(Table::into_pairs);
    let (mut until_kept, mut waits_for_image) = (false, false);
    let mut values = Vec::with_capacity(6);
    for field in F::shared() {
        let name = field.name();
        let value = match field {
            F::Extra => continue,
            F::Duration => table.whole_or_template(name),
            F::Takes => decode_takes(table, &mut until_kept),
            F::Image | F::Tags => table.texts(name).map(FieldValue::List),
            F::ImageFile => decode_image_file(table, &mut waits_for_image).map(FieldValue::List),
            F::Labels => sections::decode_labels(table).map(FieldValue::Labels),
            _ => table.field(field).map(FieldValue::Text),
        };
        values.extend(value.map(|value| (field, value)));
    }
    values.shrink_to_fit();
    RawFields { values: FieldValues(values), extra, until_kept, waits_for_image }
}

/// A list of video jobs for shotlist.
#[derive(Debug)]
pub(crate) struct RawManifest {
    /// The name of the manifest; by default the file's stem. Part of every job's identity.
    pub name: Option<String>,
    /// Jobs are due once for each batch: a new value makes all of them due again. May be a template, for example `{{ today }}`.
    pub batch: Option<String>,
    /// The IANA time zone for `today`; the machine's by default.
    pub timezone: Option<String>,
    /// `shared` refuses to run without a ledger in a database: a machine where `SHOTLIST_LEDGER` is not set would buy everything again.
    pub is_ledger_shared: bool,
    /// Limits on spending, in dollars.
    pub budget: Budget,
    /// Values for templates, by name. `--set NAME=VALUE` overrides one.
    pub vars: Vec<(Value, Value)>,
    /// Real human faces, by name: `{ review: approved, paid_on: 2026-11-02 }` or `{ review: pending }`. The fee counts once
    /// per approved face.
    pub faces: Faces,
    /// Fields for every job that does not set them. A field that the job's model lacks is skipped.
    pub defaults: RawFields,
    /// Jobs with a new ID. Purchases under the old ID belong to the new one, free of charge.
    pub moved: Vec<RawMove>,
}

/// One job, or with `for_each` one job for each row.
#[derive(Debug)]
pub(crate) struct RawJob {
    /// A file of rows (.csv, .tsv, .xlsx, .xls, .xlsb, .ods, .txt or .jsonl, relative to the manifest; `{ file: …, sheet: …, header_row: …, encoding: …, hidden: skip, exclude: […] }` for a sheet of a workbook, a header below line 1, an encoding other than UTF-8 and UTF-16, and rows to leave out) or a list of mappings: one job for each, as `row` and `row_number` in templates.
    pub for_each: Option<RawTable>,
    /// One job for each combination of these values, with `exclude` as GitHub Actions has it. A value
    /// that is named like a field is that field; every value is in scope in templates by its name.
    pub matrix: Option<RawMatrix>,
    /// The plain fields.
    pub fields: RawFields,
    /// True if the entry itself has a reported error.
    pub is_damaged: bool,
}

/// A table in a file.
#[derive(Debug)]
pub(crate) struct RawTable {
    /// The path, as the manifest names it.
    pub file: String,
    /// The rows, if they are in the manifest itself.
    pub rows: Option<Vec<Value>>,
    /// The sheet of a workbook; by default the first visible one.
    pub sheet: Option<String>,
    /// The line with the names of the columns, from 1.
    pub header_row: u64,
    /// The encoding, unless it is UTF-8 or UTF-16.
    pub encoding: Option<&'static Encoding>,
    /// True if rows that are hidden in the sheet are left out.
    pub skips_hidden: bool,
    /// Rows with all of these texts in their columns are left out.
    pub exclude: Vec<Vec<Cell>>,
}

impl RawTable {
    /// A whole file, with its header in line 1.
    pub(crate) fn for_file(file: String) -> Self {
        Self { file, rows: None, sheet: None, header_row: 1, encoding: None, skips_hidden: false, exclude: Vec::new() }
    }
}

/// The fields of a job. Every string may be a template.
#[derive(Debug, Default)]
pub(crate) struct RawFields {
    pub values: FieldValues<String>,
    /// Request fields that the interface does not document, sent unchanged.
    pub extra: Option<Vec<(Value, Value)>>,
    /// True if `takes` is the most that are bought until one is kept.
    pub until_kept: bool,
    /// True if the job waits for its local images.
    pub waits_for_image: bool,
}
