//! Loads a manifest: from a path and options to jobs and diagnostics. Every command uses it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_yaml::Value;

use super::expand::fields::{Cache, Inputs};
use super::raw::decode::{RawJob, RawManifest, decode_job};
use super::raw::sections::{Budget, Review, moves};
use super::raw::table::{is_reserved, text_key};
use super::source::diagnostic::{
    Diagnostic, Findings, Location, Pointer, Severity, Sources, error, have_errors, help_near, unreadable,
};
use super::source::lints;
use super::source::reader;
use super::source::syntax::unindented;
use super::source::text::{FileAccess, TextError, directory_of, is_stream, read_origin};
use super::tables::rows::SHEET_ENDINGS;
use super::template::bounds::template_diagnostic;
use super::template::engine::Templates;
use crate::catalog::Catalog;
use crate::domain::{BatchKey, Job, JobId, Move, Usd};
use crate::files::own_zone;

/// Additions of the command line and the environment to a manifest.
pub struct Options<'o> {
    /// The manifest.
    pub path: &'o Path,
    /// `--set`: names and values that override vars.
    pub set: &'o [(String, String)],
    /// `--batch`: takes the place of the manifest's batch value.
    pub batch: Option<&'o str>,
    /// Now, for `today`.
    pub now: Timestamp,
    /// The directory that the manifest may read files of, if it is not the manifest's own.
    pub root: Option<&'o Path>,
    /// The file of the key, which no manifest may read.
    pub secret: Option<&'o Path>,
}

impl<'o> Options<'o> {
    /// A manifest without additions, with this process's clock.
    pub fn new(path: &'o Path) -> Self {
        Self { path, set: &[], batch: None, now: Timestamp::now(), root: None, secret: None }
    }
}

/// A manifest. Its jobs are checked and priced; jobs with an error are left out.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name and batch of its jobs.
    pub key: BatchKey,
    /// The sound jobs, in file order.
    pub jobs: Vec<Arc<Job>>,
    /// True if it must not run without a ledger in a database.
    pub is_ledger_shared: bool,
    /// The limits on spending.
    pub budget: Budget,
    /// The time zone of days and months.
    pub zone: TimeZone,
    /// The IDs of jobs with an error, if they are valid IDs: these jobs are part of the manifest.
    pub unsound: Vec<JobId>,
    /// The files that it reads, under their names in the manifest, in alphabetical order.
    pub inputs: Vec<String>,
    /// The rows that became no jobs, a sentence for each file.
    pub rows_left_out: Vec<String>,
    /// Jobs with a new ID, in the order of the moves.
    pub moves: Vec<Move>,
    /// The approved face reviews.
    pub face_reviews: FaceReviews,
    /// The day of the catalog's prices, and their age in days.
    pub prices: (Date, i32),
}

/// The approved face reviews of a manifest. They are paid outside the interface, so no ledger or limit has their fees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaceReviews {
    /// The day of each payment, if known.
    paid_on: Vec<Option<Date>>,
    fee: Usd,
}

impl FaceReviews {
    /// The sum of the fees, one per face, since a day. A fee without a day counts.
    pub fn usd(&self, since: Option<Date>) -> Usd {
        self.paid_on.iter().filter(|paid_on| paid_on.is_none_or(|day| Some(day) >= since)).map(|_| self.fee).sum()
    }
}

/// The result of loading a manifest.
#[derive(Debug)]
pub struct Loaded {
    /// The manifest, unless nothing at all could be made of it.
    pub manifest: Option<Manifest>,
    /// All diagnostics, in file order.
    pub diagnostics: Vec<Diagnostic>,
    /// Its text, to show the diagnostics in.
    pub sources: Sources,
}

impl Loaded {
    /// The approved face reviews; `None` if the declared faces have an error, because their fees are then unknown.
    pub fn face_reviews(self) -> Option<FaceReviews> {
        let is_about_faces =
            |it: &Diagnostic| matches!(&it.place, Location::Value(at, _) if at.to_string().starts_with("faces"));
        let has_error = self.diagnostics.iter().any(|it| it.severity == Severity::Error && is_about_faces(it));
        self.manifest.filter(|_| !has_error).map(|manifest| manifest.face_reviews)
    }

    /// The manifest, if nothing in it stops a run.
    pub fn sound(self) -> Result<Manifest, Unsound> {
        let errors = self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let path = self.sources.path().display();
        let lines: Vec<String> = errors
            .map(|error| match self.sources.locate(&error.place) {
                Some(at) => format!("{path}:{}:{}: {}", at.line, at.column, error.message),
                None => format!("{path}: {}", error.message),
            })
            .collect();
        self.manifest.filter(|_| lines.is_empty()).ok_or_else(|| Unsound(lines.join("\n")))
    }
}

/// A manifest with errors: each on a line, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsound(String);

/// Reads, decodes, expands, checks and prices a manifest.
pub fn load(options: &Options<'_>, catalog: &Catalog) -> Loaded {
    let text = match read_origin(options.path) {
        Ok(text) => text,
        Err(error) => {
            let mut diagnostic = unreadable(&format!("manifest `{}`", options.path.display()), &error, Location::File);
            diagnostic.help = Some(match &error {
                TextError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let sheets = SHEET_ENDINGS.map(|ending| options.path.with_extension(ending));
                    let sheet = sheets.iter().find(|sheet| sheet.is_file());
                    let from = sheet.map_or_else(|| options.path.display(), |sheet| sheet.display());
                    format!("check the path; `shotlist init {from}` writes a manifest")
                }
                error => error.help().unwrap_or("a manifest is a YAML file").to_owned(),
            });
            return Loaded {
                manifest: None,
                diagnostics: vec![diagnostic],
                sources: Sources::new(options.path, String::new()),
            };
        }
    };
    load_text(text, options, catalog)
}

/// The same for the text of a manifest. Files that it names, and its ledger, are relative to `options.path`, which is not read.
pub fn load_text(text: String, options: &Options<'_>, catalog: &Catalog) -> Loaded {
    let mut diagnostics = lints::cut_by_comments(&text);
    let read = reader::read(&text, decode_job, &mut diagnostics);
    let cause = read.is_ok().then(|| unindented(&text)).flatten();
    diagnostics.extend(lints::odd_scalars(&text));
    let sources = Sources::new(options.path, text);
    let mut manifest = None;
    match read {
        Ok((value, jobs)) => {
            let (entries, found): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
            diagnostics.extend(found.into_iter().flatten());
            let raw = RawManifest::decode(value, entries.len(), &mut diagnostics);
            manifest = raw.map(|raw| build(&raw, entries, options, catalog, &mut diagnostics));
            reader::without_consequences(&mut diagnostics);
        }
        Err(errors) => diagnostics.extend(errors),
    }
    if let Some(cause) = cause {
        diagnostics = vec![cause];
    }
    sources.sort(&mut diagnostics);
    Loaded { manifest, diagnostics, sources }
}

fn build(
    raw: &RawManifest,
    entries: Vec<RawJob>,
    options: &Options<'_>,
    catalog: &Catalog,
    found: &mut Findings,
) -> Manifest {
    let now = options.now.to_zoned(zone(raw, found));
    let today = now.date().to_string();
    let vars = vars(raw, options, found);
    let templates = Templates::new(vars, &today);
    let batch = options.batch.map_or_else(|| batch(raw, &templates, found), str::to_owned);
    let access = FileAccess::new(&directory_of(options.path), options.root, options.secret);
    let (prompts, local_images) = (Cache::default(), Cache::default());
    let inputs = Inputs { templates: &templates, catalog, access: &access, prompts, local_images };
    let jobs = inputs.expand(raw, entries, found);
    for label in raw.budget.labels.keys() {
        let place = Pointer::top().key("budget").key("labels").key(&label.name).key(&label.value).named();
        found.extend(lints::limit_beside_similar_label(label, &jobs, place));
    }
    let unsound = unsound(found);
    let ids =
        if raw.moved.is_empty() { HashSet::new() } else { jobs.iter().map(|job| job.id()).chain(&unsound).collect() };
    let moves = moves(&raw.moved, &ids, !have_errors(found), found);
    Manifest {
        key: BatchKey { name: name(raw, options.path, found), batch },
        jobs,
        is_ledger_shared: raw.is_ledger_shared,
        budget: raw.budget.clone(),
        zone: now.time_zone().clone(),
        unsound,
        inputs: access.read.into_inner().into_iter().collect(),
        rows_left_out: access.left_out.into_inner().into_iter().collect(),
        moves,
        face_reviews: face_reviews_of(raw, now.date(), catalog, found),
        prices: (catalog.prices_taken_on, (now.date() - catalog.prices_taken_on).get_days()),
    }
}

/// The manifest's name, or its file's stem. A stream may have another name the next time, or the same as another manifest's;
/// jobs are known by it.
fn name(raw: &RawManifest, path: &Path, found: &mut Findings) -> String {
    if let Some(name) = raw.name.as_ref().filter(|name| !name.trim().is_empty()) {
        return name.clone();
    }
    if is_stream(path) {
        found.push(error!(NameMissing, Location::File, "a manifest from stdin requires a `name`";
            "write `name: …` at its top"));
    }
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The approved reviews of a manifest's faces.
fn face_reviews_of(raw: &RawManifest, today: Date, catalog: &Catalog, found: &mut Findings) -> FaceReviews {
    for (face, day) in raw.faces.iter().filter_map(|(name, face)| Some((name, face.paid_on?))) {
        if day > today {
            let place = Pointer::top().key("faces").key(face).key("paid_on").value();
            found
                .push(error!(ReviewPaidOn, place, "`paid_on` is in the future: {day}"; "write the day of the payment"));
        }
    }
    let approved = raw.faces.values().filter(|face| face.review == Review::Approved);
    let fee = catalog.face_review_usd().unwrap_or_default();
    FaceReviews { paid_on: approved.map(|face| face.paid_on).collect(), fee }
}

fn unsound(found: &[Diagnostic]) -> Vec<JobId> {
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.filter_map(|diagnostic| JobId::new(diagnostic.job.as_ref()?.id.clone()).ok()).collect()
}

fn zone(raw: &RawManifest, found: &mut Findings) -> TimeZone {
    let zone = match &raw.timezone {
        Some(name) => TimeZone::get(name)
            .map_err(|_| (format!("unknown time zone `{name}`"), Pointer::top().key("timezone").value())),
        None => own_zone().map_err(|error| (error.to_string(), Location::File)),
    };
    zone.unwrap_or_else(|(message, location)| {
        found.push(error!(TimezoneUnknown, location, "{message}";
            "write `timezone:` with an IANA name such as Europe/Berlin, or UTC"));
        TimeZone::UTC
    })
}

fn batch(raw: &RawManifest, templates: &Templates, found: &mut Findings) -> String {
    let Some(source) = &raw.batch else { return String::new() };
    templates.compile(source).and_then(|text| templates.render(&text, &Arc::default())).unwrap_or_else(|error| {
        found.push(template_diagnostic(error, Pointer::top().key("batch")));
        String::new()
    })
}

/// The variables of the manifest, some with a value of the command line.
fn vars(raw: &RawManifest, options: &Options<'_>, found: &mut Findings) -> Vec<(String, Value)> {
    let (at, mut vars) = (Pointer::top().key("vars"), Vec::with_capacity(raw.vars.len()));
    for (key, value) in &raw.vars {
        let Some(name) = text_key(key, &at, found) else { continue };
        if is_reserved(name) {
            found.push(error!(VarReserved, at.key(name).named(),
                "the variable name `{name}` is reserved for templates"; "rename the variable"));
        } else {
            vars.push((name.to_owned(), value.clone()));
        }
    }
    for (name, value) in options.set {
        if let Some((_, var)) = vars.iter_mut().find(|(known, _)| known == name) {
            *var = Value::String(value.clone());
        } else {
            let known: Vec<&str> = vars.iter().map(|(name, _)| name.as_str()).collect();
            found.push(error!(SetUnknown, Location::File, "`--set {name}=…`: the manifest has no variable `{name}`";
                "{}", help_near(name, "vars", &known)));
        }
    }
    vars
}
