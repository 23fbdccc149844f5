//! From the entries of a manifest to its jobs: one for each row, combination, and take.

use std::collections::HashSet;
use std::sync::Arc;

use super::fields::{Fields, Inputs, exclude_each_other};
use super::finisher::Finisher;
use super::lists::undocumented;
use super::maker::Origin;
use crate::catalog::Family;
use crate::domain::{Field, Job, Labels, NoticeCode, count};
use crate::manifest::draft::written::Written;
use crate::manifest::raw::decode::{RawFields, RawJob, RawManifest, RawTable};
use crate::manifest::raw::sections::{Combination, RawMatrix};
use crate::manifest::raw::table::{JobField, JobField as F, is_reserved};
use crate::manifest::source::diagnostic::{
    Diagnostic, Findings, Location, Pointer, error, have_errors, synonym, warning,
};
use crate::manifest::tables::rows;
use crate::manifest::tables::sheet::Row;
use crate::manifest::template::row::CellsOfRow;

impl Inputs<'_> {
    /// All jobs in file order. Jobs with an error are reported and left out. An entry is dropped when its jobs are
    /// made.
    pub(crate) fn expand(&self, raw: &RawManifest, entries: Vec<RawJob>, found: &mut Findings) -> Vec<Arc<Job>> {
        let at = Pointer::top().key("defaults");
        warn_of_extras(&raw.defaults, &at, found);
        let defaults = Fields::compile(self.templates, &raw.defaults, at, found);
        let has_file = |fields: &RawFields| fields.values.has(F::File);
        let names_files = has_file(&raw.defaults) || entries.iter().any(|entry| has_file(&entry.fields));
        let mut finisher = Finisher::new(names_files);
        let mut has_room = true;
        for (number, raw_job) in entries.into_iter().enumerate() {
            // Errors of the other entries are reported, too.
            if has_room && let Err(diagnostic) = self.make_all(number, &raw_job, &defaults, raw, &mut finisher, found) {
                found.push(*diagnostic);
                has_room = false;
            }
        }
        for (field, jobs) in finisher.passed_over {
            let key = JobField::for_request_field(field).name();
            if jobs == finisher.rendered {
                found.push(warning!(FieldNotOfFamily, Pointer::top().key("defaults").key(key).named(),
                    "the default `{key}` applies to no job, because no model of the jobs has this field";
                    "remove it, or write a field of these models, such as `shape` for the aspect ratio"));
            }
            let jobs = count(jobs, "job");
            tracing::info!(code = NoticeCode::DefaultSkipped.code(), "the default `{field}` does not apply to {jobs}");
        }
        finisher.jobs
    }

    /// Makes the jobs of an entry, unless there is no room for them.
    fn make_all(
        &self,
        number: usize,
        raw_job: &RawJob,
        defaults: &Fields<'_>,
        raw: &RawManifest,
        finisher: &mut Finisher,
        found: &mut Findings,
    ) -> Result<(), Box<Diagnostic>> {
        let at = Pointer::top().key("jobs").index(number);
        let Some(own) = self.compile(raw_job, &at, found) else { return Ok(()) };
        if let Err(too_large) = Finisher::expect(raw_job.matrix.as_ref().map_or(1, RawMatrix::size), &at.key("matrix"))
        {
            found.push(*too_large);
            return Ok(());
        }
        let combinations = combinations_of(raw_job, &at, found);
        let rows = match &raw_job.for_each {
            None => vec![None],
            Some(from) => rows::read(from, self.access, &at.key("for_each"), found).into_iter().map(Some).collect(),
        };
        // A template of `takes` counts as one.
        let takes = own.values.whole(F::Takes).filter(|_| !own.raw.until_kept).and_then(|takes| takes.try_into().ok());
        let jobs = rows.len().saturating_mul(combinations.len()).saturating_mul(takes.unwrap_or(1));
        Finisher::expect(finisher.jobs.len().saturating_add(jobs), &at)?;
        let matrices: Vec<Option<Arc<Labels>>> = combinations.iter().map(values_of).collect();
        // One job for each row and combination.
        let origin = |job: usize| {
            let (row, nth) = (rows[job / combinations.len()].as_ref(), job % combinations.len());
            let (combination, matrix, is_damaged) = (&combinations[nth], matrices[nth].as_ref(), raw_job.is_damaged);
            let (inputs, own, faces) = (self, &own, &raw.faces);
            Origin { number, is_damaged, inputs, own, defaults, faces, combination, row, matrix }
        };
        let before = finisher.jobs.len();
        (0..rows.len() * combinations.len()).try_for_each(|job| finisher.admit(&origin(job), &at, found))?;
        let model = finisher.jobs.get(before).and_then(|job| self.catalog.model(&job.spec.model));
        if let (Some(model), Some(from)) = (model, &raw_job.for_each) {
            let rows: Vec<&Row> = rows.iter().flatten().collect();
            let axes = raw_job.matrix.iter().flat_map(RawMatrix::names);
            let axes: Vec<JobField> = axes.filter_map(|(name, _)| JobField::named(name)).collect();
            let is_set = |field| {
                own.says_any(field) || axes.iter().any(|axis| *axis == field || exclude_each_other(*axis, field))
            };
            found.extend(self.unread_columns(&rows, from, model.family, is_set, at.key("for_each").value()));
        }
        Ok(())
    }

    /// The warning about unread columns with the model, length, or shape of the videos.
    fn unread_columns(
        &self,
        rows: &[&Row],
        from: &RawTable,
        family: &Family,
        is_set: impl Fn(JobField) -> bool,
        place: Location,
    ) -> Option<Diagnostic> {
        let is_excluded = |name: &str| from.exclude.iter().flatten().any(|cell| cell.name == name);
        let unread = CellsOfRow::unread(rows.iter().map(|row| &row.value)).into_iter().filter_map(|name| {
            let cells: Vec<&str> = rows.iter().filter_map(|row| row.cells.get(name)).collect();
            let field = Written::new(name, &cells, false, self.catalog).certain_field(family)?;
            if is_set(field) || is_excluded(name) {
                return None;
            }
            Some((format!("`{name}`"), format!("`{}: \"{{{{ row['{name}'] }}}}\"`", field.name())))
        });
        let (columns, lines): (Vec<_>, Vec<_>) = unread.unzip();
        (!columns.is_empty()).then(|| {
            warning!(ColumnUnread, place, "no field reads {}, which may describe the videos", columns.join(", ");
                "write {}, or rename the columns", lines.join(", "))
        })
    }

    /// The fields of an entry, unless they can't be filled in, which is reported.
    fn compile<'t>(&'t self, raw_job: &'t RawJob, at: &Pointer, found: &mut Findings) -> Option<Fields<'t>> {
        raw_job.fields.values.text(F::Id)?;
        let before = found.len();
        let own = Fields::compile(self.templates, &raw_job.fields, at.clone(), found);
        refuse_twice(raw_job, &own, found);
        if have_errors(&found[before..]) {
            return None;
        }
        warn_of_extras(&raw_job.fields, at, found);
        Some(own)
    }
}

/// The unrendered values of a combination by name. `None` for a job without a matrix.
fn values_of(combination: &Combination) -> Option<Arc<Labels>> {
    let values = combination.iter().map(|cell| (cell.name.clone(), cell.text()));
    (!combination.is_empty()).then(|| Arc::new(values.collect()))
}

/// The combinations of a job's matrix; one of nothing if it has none.
fn combinations_of(job: &RawJob, at: &Pointer, found: &mut Findings) -> Vec<Combination> {
    let Some(matrix) = &job.matrix else { return vec![Vec::new()] };
    let combinations = matrix.combinations();
    // A matrix that was wrong is reported already.
    if combinations.is_empty() && !job.is_damaged {
        let place = at.key("matrix").named();
        found.push(
            error!(MatrixEmpty, place, "the matrix has no combination left"; "exclude less, or remove the entry"),
        );
    }
    combinations
}

/// A value of the matrix that the job itself has too, or that templates know as something else.
fn refuse_twice(job: &RawJob, own: &Fields<'_>, found: &mut Findings) {
    let mut shown = HashSet::new();
    for (name, at) in job.matrix.iter().flat_map(RawMatrix::names).filter(|(name, _)| shown.insert(*name)) {
        let field = JobField::named(name);
        if field.is_some_and(|field| own.says_any(field)) {
            found.push(error!(MatrixAndJob, at.value(), "`{name}` is set on the job and in its matrix";
                "keep one of the two"));
        } else if is_reserved(name) && !field.is_some_and(JobField::is_plain) {
            found.push(error!(AxisReserved, at.value(), "the axis name `{name}` is reserved for templates";
                "rename the axis"));
        } else if let Some(meant) =
            synonym(name).filter(|meant| field.is_none() && F::shared().any(|field| field.name() == *meant))
        {
            found.push(
                warning!(UnknownKey, at.value(), "the axis `{name}` sets no field of a job"; "name it `{meant}`"),
            );
        }
    }
}

/// Names the fields under `extra` that no family documents, once for each entry.
fn warn_of_extras(fields: &RawFields, at: &Pointer, found: &mut Findings) {
    let names = fields.extra.iter().flatten().filter_map(|(key, _)| key.as_str());
    for name in names.filter(|name| Field::named(name).is_none()) {
        found.push(undocumented(name, &at.key(F::Extra.name()).key(name)));
    }
}
