//! A mirror of the manifest file: what may be written, before templates and defaults.
//!
//! The JSON Schema for editors is generated from these types, so their doc comments are what an editor shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_yaml::{Mapping, Value};

use super::budget::RawBudget;
use super::faces::Faces;
use super::labels::RawLabels;
use super::matrix::{Cell, RawMatrix};
use super::moved::RawMove;
use super::schema::{
    budget_schema, faces_schema, family_rules, for_each_schema, labels_schema, ledger_schema, matrix_schema,
    model_schema, moved_schema, size_schema, takes_schema, text_schema, texts_schema, version_schema, whole_schema,
    zone_schema,
};
use super::table::WholeOrTemplate;

/// A list of video jobs for shotlist.
#[derive(Debug, JsonSchema)]
#[schemars(title = "shotlist manifest", deny_unknown_fields)]
pub(crate) struct RawManifest {
    /// The version of this format: 1.
    #[schemars(schema_with = "version_schema")]
    #[expect(dead_code, reason = "it stands here for the schema; there is only one")]
    pub version: (),
    /// The name of the manifest; by default the file's stem. Part of every job's identity.
    #[schemars(schema_with = "text_schema", default)]
    pub name: Option<String>,
    /// Jobs are due once for each batch: a new value makes all of them due again. May be a template, for example `{{ today }}`.
    #[schemars(schema_with = "text_schema", default)]
    pub batch: Option<String>,
    /// The IANA time zone for `today`; the machine's by default.
    #[schemars(schema_with = "zone_schema", default)]
    pub timezone: Option<String>,
    /// `shared` refuses to run without a ledger in a database: a machine where `SHOTLIST_LEDGER` is not set would buy everything again.
    #[schemars(rename = "ledger", schema_with = "ledger_schema", default)]
    pub is_ledger_shared: bool,
    /// Limits on spending, in dollars.
    #[schemars(schema_with = "budget_schema", default)]
    pub budget: RawBudget,
    /// Values for templates, by name. `--set NAME=VALUE` overrides one.
    #[schemars(with = "BTreeMap<String, serde_json::Value>", default)]
    pub vars: Mapping,
    /// Names of environment variables that templates may read as `env.NAME`.
    #[schemars(default)]
    pub env: Vec<String>,
    /// Real human faces, by name: `{ review: approved, paid_on: 2026-11-02 }` or `{ review: pending }`. A fee counts on the day of
    /// `paid_on`.
    #[schemars(schema_with = "faces_schema", default)]
    pub faces: Faces,
    /// Fields for every job that does not say otherwise. One that a job's model does not take is passed over.
    #[schemars(default)]
    pub defaults: RawFields,
    /// The jobs, in the order in which they are submitted.
    #[schemars(with = "Vec<RawJob>")]
    #[expect(dead_code, reason = "it stands here for the schema; jobs are decoded one by one")]
    pub jobs: (),
    /// Jobs that have a new id: what was bought under the old one belongs to the new one, and costs nothing.
    #[schemars(schema_with = "moved_schema", default)]
    pub moved: Vec<RawMove>,
}

/// One job, or with `for_each` one job for each row.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = family_rules)]
pub(crate) struct RawJob {
    /// The job's name: 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or a digit. May be a template.
    #[schemars(schema_with = "text_schema")]
    pub id: Option<String>,
    /// A file of rows (.csv, .tsv, .xlsx, .ods, .txt or .jsonl, relative to the manifest; `{ file: …, sheet: …, header_row: …, hidden: skip, exclude: […] }` for a sheet of a workbook, a header below line 1, and rows to leave out) or a list of mappings: one job for each, as `row` and `row_number` in templates.
    #[schemars(schema_with = "for_each_schema", default)]
    pub for_each: Option<RawForEach>,
    /// One job for each combination of these values, with `exclude` and `include` as GitHub Actions has them. A value
    /// that is named like a field is that field; every value is in scope in templates by its name.
    #[schemars(schema_with = "matrix_schema", default)]
    pub matrix: Option<RawMatrix>,
    /// The plain fields.
    #[schemars(flatten)]
    pub fields: RawFields,
    /// True if the entry itself has a reported error.
    #[schemars(skip)]
    pub is_damaged: bool,
}

/// The source of a job's rows.
#[derive(Debug)]
pub(crate) enum RawForEach {
    /// A file.
    File(RawTable),
    /// Rows that stand in the manifest.
    Rows(Vec<Value>),
}

/// A table in a file.
#[derive(Debug)]
pub(crate) struct RawTable {
    /// The path, as the manifest names it.
    pub file: String,
    /// The sheet of a workbook; by default the first visible one.
    pub sheet: Option<String>,
    /// The line with the names of the columns, from 1.
    pub header_row: u64,
    /// True if rows that are hidden in the sheet are left out.
    pub skips_hidden: bool,
    /// Rows with all of these texts in their columns are left out.
    pub exclude: Vec<Vec<Cell>>,
}

impl RawTable {
    /// A whole file, with its header in line 1.
    pub(crate) fn of(file: String) -> Self {
        Self { file, sheet: None, header_row: 1, skips_hidden: false, exclude: Vec::new() }
    }
}

/// The plain fields of a job. Every text may be a template.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RawFields {
    /// The model: `alpha-2`, `beta-2.0-lite` or `beta-2.0-lite-fast`.
    #[schemars(schema_with = "model_schema", default)]
    pub model: Option<String>,
    /// The prompt. Family B takes at most 1500 characters.
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
    /// A local image (relative to the manifest) in place of `image`, or a list of them; `run --asset-command` gives each a URL. Its
    /// contents are part of the request.
    #[schemars(schema_with = "texts_schema", default)]
    pub image_file: Option<Vec<String>>,
    /// Stands in for the image's URL where it is asked whether the request has changed: for signed URLs that differ every
    /// day.
    #[schemars(schema_with = "text_schema", default)]
    pub image_key: Option<String>,
    /// A face that is declared under `faces` (beta models only). While its review is pending, the job is held.
    #[schemars(schema_with = "text_schema", default)]
    pub face: Option<String>,
    /// The number of takes of the same request: take 1 keeps the ID, take n is `id.n`. `{ up_to: N, until: kept }` buys them one by one,
    /// until a reviewer keeps one.
    #[schemars(schema_with = "takes_schema", default)]
    pub takes: Option<WholeOrTemplate>,
    /// True if `takes` is the most that are bought until one is kept.
    #[schemars(skip)]
    pub until_kept: bool,
    /// Words for `--tag`; no part of a job's identity.
    #[schemars(schema_with = "texts_schema", default)]
    pub tags: Option<Vec<String>>,
    /// The labels of the job, such as its client: kept with every attempt, and shown by `spend --by NAME`. No part of a job's identity.
    #[schemars(schema_with = "labels_schema", default)]
    pub labels: Option<RawLabels>,
    /// The path of the video in the output directory; by default `{{ id }}.mp4`. `take` is in scope, too.
    #[schemars(schema_with = "text_schema", default)]
    pub file: Option<String>,
    /// Merged into the request as it is: for fields that the interface does not document.
    #[schemars(with = "BTreeMap<String, serde_json::Value>", default)]
    pub extra: Option<Mapping>,
}
