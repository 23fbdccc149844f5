//! A mirror of the manifest file: what may be written, before templates and defaults.
//!
//! The JSON Schema for editors is generated from these types, so their doc comments are what an editor shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_yaml::{Mapping, Value};

use super::decode::{Table, WholeOrTemplate, wrong_type};
use super::diagnostic::{Diagnostic, JobLabel};
use super::faces::{self, Faces};
use super::matrix::{self, RawMatrix};
use super::place::Pointer;
use super::schema::{
    budget_schema, faces_schema, family_rules, for_each_schema, matrix_schema, model_schema, size_schema, takes_schema,
    text_schema, texts_schema, version_schema, whole_schema, zone_schema,
};
use super::template::is_template;
use crate::domain::Usd;

/// A list of video jobs for shotlist.
#[derive(Debug, JsonSchema)]
#[schemars(title = "shotlist manifest", deny_unknown_fields)]
pub struct RawManifest {
    /// The version of this format: 1.
    #[schemars(schema_with = "version_schema")]
    pub version: (),
    /// What this list is called; the file's stem by default. Part of every job's identity.
    #[schemars(schema_with = "text_schema", default)]
    pub name: Option<String>,
    /// Jobs are due once for each batch: a new value makes all of them due again. May be a template, for example `{{ today }}`.
    #[schemars(schema_with = "text_schema", default)]
    pub batch: Option<String>,
    /// The IANA time zone for `today`; the machine's by default.
    #[schemars(schema_with = "zone_schema", default)]
    pub timezone: Option<String>,
    /// Limits on spending, in dollars.
    #[schemars(schema_with = "budget_schema", default)]
    pub budget: RawBudget,
    /// Values for templates, by name. `--set NAME=VALUE` overrides one.
    #[schemars(with = "BTreeMap<String, serde_json::Value>", default)]
    pub vars: Mapping,
    /// Names of environment variables that templates may read as `env.NAME`.
    #[schemars(default)]
    pub env: Vec<String>,
    /// Real human faces, by name, and how far their review is: `{ review: approved }` or `{ review: pending }`.
    #[schemars(schema_with = "faces_schema", default)]
    pub faces: Faces,
    /// Fields for every job that does not say otherwise. One that a job's model does not take is passed over.
    #[schemars(default)]
    pub defaults: RawFields,
    /// The jobs, in the order in which they are submitted.
    pub jobs: Vec<RawJob>,
}

/// Limits on spending.
#[derive(Debug, Default)]
pub struct RawBudget {
    /// The most that one run may newly spend.
    pub run: Option<Usd>,
    /// The most that all batches of the ledger may spend in a day.
    pub day: Option<Usd>,
    /// The most that all batches of the ledger may spend in a month.
    pub month: Option<Usd>,
}

/// One job, or with `for_each` one job for each row.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = family_rules)]
pub struct RawJob {
    /// The job's name: 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or a digit. May be a template.
    #[schemars(schema_with = "text_schema")]
    pub id: Option<String>,
    /// A file of rows (.csv, .txt or .jsonl, relative to the manifest) or a list of mappings: one job for each, as `row` and `row_number` in templates.
    #[schemars(schema_with = "for_each_schema", default)]
    pub for_each: Option<RawForEach>,
    /// One job for each combination of these values, with `exclude` and `include` as GitHub Actions has them. A value
    /// that is named like a field is that field; every value is in scope in templates by its name.
    #[schemars(schema_with = "matrix_schema", default)]
    pub matrix: Option<RawMatrix>,
    /// The plain fields.
    #[schemars(flatten)]
    pub fields: RawFields,
    /// Whether something was wrong with the entry itself, and told.
    #[schemars(skip)]
    pub is_damaged: bool,
}

/// Where the rows of a job come from.
#[derive(Debug)]
pub enum RawForEach {
    /// A CSV file, as the manifest names it.
    File(String),
    /// Rows that stand in the manifest.
    Rows(Vec<Value>),
}

/// The plain fields of a job. Every text may be a template.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RawFields {
    /// The model: `alpha-2`, `beta-2.0-lite` or `beta-2.0-lite-fast`.
    #[schemars(schema_with = "model_schema", default)]
    pub model: Option<String>,
    /// What the video shows. Family B takes at most 1500 characters.
    #[schemars(schema_with = "text_schema", default)]
    pub prompt: Option<String>,
    /// A text file (relative to the manifest) that holds the prompt; templates in it are filled in.
    #[schemars(schema_with = "text_schema", default)]
    pub prompt_file: Option<String>,
    /// Seconds: 12 on alpha-2, 5 to 10 on the beta models.
    #[schemars(schema_with = "whole_schema", default)]
    pub duration: Option<WholeOrTemplate>,
    /// `16:9` or `9:16` (alpha-2 only).
    #[schemars(schema_with = "text_schema", default)]
    pub aspect_ratio: Option<String>,
    /// `<width>x<height>` in pixels (beta models only).
    #[schemars(schema_with = "size_schema", default)]
    pub size: Option<String>,
    /// The URL of a first-frame image, or a list of URLs (alpha-2 only).
    #[schemars(schema_with = "texts_schema", default)]
    pub image: Option<Vec<String>>,
    /// Stands in for the image's URL where it is asked whether the request has changed: for signed URLs that differ every
    /// day.
    #[schemars(schema_with = "text_schema", default)]
    pub image_key: Option<String>,
    /// A face that is declared under `faces` (beta models only). While its review is pending, the job is held.
    #[schemars(schema_with = "text_schema", default)]
    pub face: Option<String>,
    /// How many separate generations of the same request: take 1 keeps the id, take n is `id.n`.
    #[schemars(schema_with = "takes_schema", default)]
    pub takes: Option<WholeOrTemplate>,
    /// Labels for `--tag`; no part of a job's identity.
    #[schemars(schema_with = "texts_schema", default)]
    pub tags: Option<Vec<String>>,
    /// Where the video goes, inside the output folder; `{{ id }}.mp4` by default. `take` is in scope, too.
    #[schemars(schema_with = "text_schema", default)]
    pub file: Option<String>,
    /// Merged into the request as it is: for fields that the interface does not document.
    #[schemars(with = "BTreeMap<String, serde_json::Value>", default)]
    pub extra: Option<Mapping>,
}

const TOP_KEYS: [&str; 10] =
    ["version", "name", "batch", "timezone", "budget", "vars", "env", "faces", "defaults", "jobs"];
const FIELD_KEYS: [&str; 13] = [
    "model",
    "prompt",
    "prompt_file",
    "duration",
    "aspect_ratio",
    "size",
    "image",
    "image_key",
    "face",
    "takes",
    "tags",
    "file",
    "extra",
];
/// What an entry of `jobs` may have besides the fields.
const ENTRY_KEYS: [&str; 3] = ["id", "for_each", "matrix"];

impl RawManifest {
    /// Decodes a whole file. What is wrong is told; what is right is still there.
    pub fn decode(value: Value, found: &mut Vec<Diagnostic>) -> Option<Self> {
        let top = Pointer::top();
        if value.is_null() {
            let finding = Diagnostic::error("empty", "the manifest is empty", super::place::Place::File);
            found.push(finding.with_help("`shotlist init` writes a manifest to start from"));
            return None;
        }
        let mut table = Table::open(value, top, "a manifest", found)?;
        let jobs = decode_jobs(&mut table);
        Some(Self::decode_rest(table, jobs))
    }

    /// Decodes what stands beside the jobs, which were read one by one.
    pub fn with_jobs(rest: Mapping, jobs: Vec<RawJob>, found: &mut Vec<Diagnostic>) -> Option<Self> {
        Some(Self::decode_rest(Table::open(Value::Mapping(rest), Pointer::top(), "a manifest", found)?, jobs))
    }

    fn decode_rest(mut table: Table<'_>, jobs: Vec<RawJob>) -> Self {
        decode_version(&mut table);
        let raw = Self {
            version: (),
            name: table.text("name"),
            batch: table.text("batch"),
            timezone: table.text("timezone"),
            budget: decode_budget(&mut table),
            vars: decode_vars(&mut table),
            env: table.texts("env").unwrap_or_default(),
            faces: decode_faces(&mut table),
            defaults: decode_defaults(&mut table),
            jobs,
        };
        table.close(&TOP_KEYS);
        raw
    }
}

fn decode_version(table: &mut Table<'_>) {
    let help = "write `version: 1` at the top of the manifest";
    let finding = match table.take("version") {
        Some(Value::Number(number)) if number.as_i64() == Some(1) => return,
        Some(_) => {
            let place = table.at("version").value();
            Diagnostic::error("version-unknown", "this shotlist reads version 1 of the manifest format", place)
        }
        None => Diagnostic::error("version-missing", "the manifest has no `version`", Pointer::top().value()),
    };
    table.tell(finding.with_help(help));
}

fn decode_budget(table: &mut Table<'_>) -> RawBudget {
    let at = table.at("budget");
    let Some(value) = table.take("budget") else { return RawBudget::default() };
    let Some(mut budget) = Table::open(value, at, "`budget`", table.found()) else { return RawBudget::default() };
    let mut amount = |key: &str| budget.take_even_null(key).and_then(|value| decode_usd(&value, key, &mut budget));
    let limits = RawBudget { run: amount("run"), day: amount("day"), month: amount("month") };
    budget.close(&["run", "day", "month"]);
    limits
}

/// An amount of dollars. The parser hands numbers over as binary floats; their shortest decimal form is the text that
/// was written as long as that has at most 15 significant digits, which every amount below a billion with six decimals has.
fn decode_usd(value: &Value, key: &str, table: &mut Table<'_>) -> Option<Usd> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => {
            let finding = wrong_type(&format!("`{key}`"), "an amount of dollars", other, table.at(key).value());
            table.tell(finding);
            return None;
        }
    };
    text.parse()
        .map_err(|error: crate::domain::InvalidUsd| {
            let finding = Diagnostic::error("not-money", error.to_string(), table.at(key).value());
            table.tell(finding);
        })
        .ok()
}

fn decode_vars(table: &mut Table<'_>) -> Mapping {
    let at = table.at("vars");
    match table.take("vars") {
        None => Mapping::new(),
        Some(Value::Mapping(vars)) => vars,
        Some(other) => {
            table.tell(wrong_type("`vars`", "a mapping of names to values", &other, at.value()));
            Mapping::new()
        }
    }
}

fn decode_faces(table: &mut Table<'_>) -> Faces {
    let at = table.at("faces");
    table.take("faces").map(|value| faces::decode(value, &at, table.found())).unwrap_or_default()
}

fn decode_defaults(table: &mut Table<'_>) -> RawFields {
    let at = table.at("defaults");
    let Some(value) = table.take("defaults") else { return RawFields::default() };
    let Some(mut defaults) = Table::open(value, at, "`defaults`", table.found()) else {
        return RawFields::default();
    };
    let fields = decode_fields(&mut defaults);
    defaults.close(&FIELD_KEYS);
    fields
}

fn decode_jobs(table: &mut Table<'_>) -> Vec<RawJob> {
    let at = table.at("jobs");
    let jobs = match table.take("jobs") {
        Some(Value::Sequence(jobs)) if !jobs.is_empty() => jobs,
        Some(Value::Sequence(_)) | None => {
            let finding = Diagnostic::error("no-jobs", "the manifest lists no jobs", at.named());
            table.tell(finding.with_help("write a list under `jobs`, each entry starting with `- id: …`"));
            return Vec::new();
        }
        Some(other) => {
            let finding = wrong_type("`jobs`", "a list", &other, at.value());
            table.tell(finding.with_help("start each job with a dash: `- id: …`"));
            return Vec::new();
        }
    };
    jobs.into_iter().enumerate().map(|(index, value)| decode_job(value, &at.index(index), table.found())).collect()
}

/// Decodes one entry of `jobs`. What is wrong with it is told, and it is damaged then.
pub fn decode_job(value: Value, at: &Pointer, found: &mut Vec<Diagnostic>) -> RawJob {
    let nothing = || RawJob { id: None, for_each: None, matrix: None, fields: RawFields::default(), is_damaged: true };
    decode_entry(value, at, found).unwrap_or_else(nothing)
}

fn decode_entry(value: Value, at: &Pointer, found: &mut Vec<Diagnostic>) -> Option<RawJob> {
    let mut table = Table::open(value, at.clone(), "a job", found)?;
    let before = table.found().len();
    let id = table.text("id");
    if id.is_none() && table.found().len() == before {
        let finding = Diagnostic::error("id-missing", "this job has no `id`", at.clone().value());
        table.tell(finding.with_help("give it a name that stays the same between runs: what was paid is known by it"));
    }
    let for_each = decode_for_each(&mut table);
    let matrix_at = table.at("matrix");
    let matrix = table.take("matrix").map(|value| matrix::decode(value, &matrix_at, table.found()));
    let fields = decode_fields(&mut table);
    table.close(&[ENTRY_KEYS.as_slice(), &FIELD_KEYS].concat());
    let is_damaged = found.len() > before;
    label(&mut found[before..], id.as_deref(), &fields);
    Some(RawJob { id, for_each, matrix, fields, is_damaged })
}

/// Names the job in findings about its entry, so that they stop nobody who did not select it. An id that is a template
/// names no job yet.
fn label(found: &mut [Diagnostic], id: Option<&str>, fields: &RawFields) {
    if let Some(id) = id.filter(|id| !is_template(id)) {
        let job = JobLabel { id: id.to_owned(), tags: fields.tags.clone().unwrap_or_default() };
        for finding in found {
            finding.job = Some(job.clone());
        }
    }
}

fn decode_for_each(table: &mut Table<'_>) -> Option<RawForEach> {
    match table.take("for_each")? {
        Value::String(file) => Some(RawForEach::File(file)),
        Value::Sequence(rows) if rows.is_empty() => {
            let place = table.at("for_each").named();
            let finding = Diagnostic::error("no-rows", "`for_each` lists no rows, so there is no job", place);
            table.tell(finding.with_help("write at least one row, or leave `for_each` out"));
            Some(RawForEach::Rows(rows))
        }
        Value::Sequence(rows) => Some(RawForEach::Rows(rows)),
        other => {
            let place = table.at("for_each").value();
            table.tell(wrong_type("`for_each`", "the path of a file of rows, or a list of mappings", &other, place));
            Some(RawForEach::Rows(Vec::new()))
        }
    }
}

fn decode_fields(table: &mut Table<'_>) -> RawFields {
    let extra_at = table.at("extra");
    let extra = match table.take("extra") {
        Some(Value::Mapping(extra)) => Some(extra),
        Some(other) => {
            table.tell(wrong_type("`extra`", "a mapping of names to values", &other, extra_at.value()));
            None
        }
        None => None,
    };
    RawFields {
        model: table.text("model"),
        prompt: table.text("prompt"),
        prompt_file: table.text("prompt_file"),
        duration: table.whole_or_template("duration"),
        aspect_ratio: table.text("aspect_ratio"),
        size: table.text("size"),
        image: table.texts("image"),
        image_key: table.text("image_key"),
        face: table.text("face"),
        takes: table.whole_or_template("takes"),
        tags: table.texts("tags"),
        file: table.text("file"),
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema and the decoder must know the same keys, or an editor would refuse what the program takes.
    #[test]
    fn the_schema_names_the_keys_that_are_decoded() {
        let schema = schemars::schema_for!(RawManifest).to_value();
        let keys = |pointer: &str| -> std::collections::BTreeSet<String> {
            let properties = schema.pointer(pointer).and_then(serde_json::Value::as_object);
            properties.expect("properties").keys().cloned().collect()
        };
        let known = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(keys("/properties"), known(&TOP_KEYS));
        assert_eq!(keys("/$defs/RawFields/properties"), known(&FIELD_KEYS));
        assert_eq!(keys("/$defs/RawJob/properties"), known(&[ENTRY_KEYS.as_slice(), &FIELD_KEYS].concat()));
    }
}
