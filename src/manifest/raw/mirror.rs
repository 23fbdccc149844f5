//! A mirror of the manifest file: what may be written, before templates and defaults.
//!
//! `schemas/manifest.schema.json` describes the same to editors. A test holds its keys against those that are decoded here.

use encoding_rs::Encoding;
use serde_yaml::{Mapping, Value};

use super::budget::Budget;
use super::faces::Faces;
use super::labels::RawLabels;
use super::matrix::{Cell, RawMatrix};
use super::moved::RawMove;
use super::table::WholeOrTemplate;

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
    pub vars: Mapping,
    /// Real human faces, by name: `{ review: approved, paid_on: 2026-11-02 }` or `{ review: pending }`. The fee counts once
    /// per approved face.
    pub faces: Faces,
    /// Fields for every job that does not say otherwise. One that a job's model does not take is passed over.
    pub defaults: RawFields,
    /// Jobs that have a new id: what was bought under the old one belongs to the new one, and costs nothing.
    pub moved: Vec<RawMove>,
}

/// One job, or with `for_each` one job for each row.
#[derive(Debug)]
pub(crate) struct RawJob {
    /// The job's name: 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or a digit. May be a template.
    pub id: Option<String>,
    /// A file of rows (.csv, .tsv, .xlsx, .xls, .xlsb, .ods, .txt or .jsonl, relative to the manifest; `{ file: …, sheet: …, header_row: …, encoding: …, hidden: skip, exclude: […] }` for a sheet of a workbook, a header below line 1, an encoding other than UTF-8 and UTF-16, and rows to leave out) or a list of mappings: one job for each, as `row` and `row_number` in templates.
    pub for_each: Option<RawForEach>,
    /// One job for each combination of these values, with `exclude` as GitHub Actions has it. A value
    /// that is named like a field is that field; every value is in scope in templates by its name.
    pub matrix: Option<RawMatrix>,
    /// The plain fields.
    pub fields: RawFields,
    /// True if the entry itself has a reported error.
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
    /// The encoding, unless it is UTF-8 or UTF-16.
    pub encoding: Option<&'static Encoding>,
    /// True if rows that are hidden in the sheet are left out.
    pub skips_hidden: bool,
    /// Rows with all of these texts in their columns are left out.
    pub exclude: Vec<Vec<Cell>>,
}

impl RawTable {
    /// A whole file, with its header in line 1.
    pub(crate) fn of(file: String) -> Self {
        Self { file, sheet: None, header_row: 1, encoding: None, skips_hidden: false, exclude: Vec::new() }
    }
}

/// The plain fields of a job. Every text may be a template.
#[derive(Debug, Default)]
pub(crate) struct RawFields {
    /// The model: `alpha-2`, `beta-2.0-lite` or `beta-2.0-lite-fast`.
    pub model: Option<String>,
    /// The prompt. Family B takes at most 1500 characters.
    pub prompt: Option<String>,
    /// A text file (relative to the manifest) that holds the prompt; templates in it are filled in.
    pub prompt_file: Option<String>,
    /// Seconds: 12 on alpha-2, 5 to 10 on the beta models.
    pub duration: Option<WholeOrTemplate>,
    /// `16:9` or `9:16` (alpha-2 only).
    pub aspect_ratio: Option<String>,
    /// `<width>x<height>` in pixels (beta models only).
    pub size: Option<String>,
    /// The URL of a first-frame image, or a list of URLs (alpha-2 only).
    pub image: Option<Vec<String>>,
    /// A local image (relative to the manifest) in place of `image`, or a list of them; `run --asset-command` gives each a URL. Its
    /// contents are part of the request.
    pub image_file: Option<Vec<String>>,
    /// Stands in for the image's URL where it is asked whether the request has changed: for signed URLs that differ every
    /// day.
    pub image_key: Option<String>,
    /// A face that is declared under `faces` (beta models only). While its review is pending, the job is held.
    pub face: Option<String>,
    /// The number of takes of the same request: take 1 keeps the ID, take n is `id.n`. `{ up_to: N, until: kept }` buys them one by one,
    /// until a reviewer keeps one.
    pub takes: Option<WholeOrTemplate>,
    /// True if `takes` is the most that are bought until one is kept.
    pub until_kept: bool,
    /// Words for `--tag`; no part of a job's identity.
    pub tags: Option<Vec<String>>,
    /// The labels of the job, such as its client: kept with every attempt, and shown by `spend --by NAME`. No part of a job's identity.
    pub labels: Option<RawLabels>,
    /// The path of the video in the output directory; by default `{{ id }}.mp4`. `take` is in scope, too.
    pub file: Option<String>,
    /// Merged into the request as it is: for fields that the interface does not document.
    pub extra: Option<Mapping>,
}
