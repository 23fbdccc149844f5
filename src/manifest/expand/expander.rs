//! From the entries of a manifest to its jobs: one for each row, combination and take.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::fields::Fields;
use super::finisher::{Finisher, Origin};
use super::lists::undocumented;
use super::maker::{Entry, render};
use super::names_in_use::NamesInUse;
use super::pictures::Pictures;
use super::prompt_files::PromptFiles;
use crate::catalog::Catalog;
use crate::domain::{Field, Job, Labels, Rule};
use crate::manifest::raw::job_field::{JobField, JobField as F, is_reserved};
use crate::manifest::raw::matrix::{Combination, RawMatrix};
use crate::manifest::raw::mirror::{RawFields, RawJob, RawManifest};
use crate::manifest::source::bounds::Room;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::Pointer;
use crate::manifest::source::slips::Same;
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::row::Row;
use crate::manifest::tables::rows;
use crate::manifest::template::engine::Templates;

/// Everything that expansion needs besides the entries.
pub(crate) struct Expander<'e> {
    /// The template engine with the manifest's names in scope.
    pub templates: &'e Templates,
    /// The families.
    pub catalog: &'e Catalog,
    /// What CSV files may be read.
    pub access: &'e FileAccess,
    /// The prompts that stand in files.
    pub prompts: &'e PromptFiles,
    /// The pictures on this machine.
    pub pictures: &'e Pictures,
}

impl Expander<'_> {
    /// All jobs in file order. Those with a mistake are told and left out.
    pub(crate) fn expand(&self, raw: &RawManifest, found: &mut Vec<Diagnostic>) -> Vec<Arc<Job>> {
        let at = Pointer::top().key("defaults");
        warn_of_extras(&raw.defaults, &at, found);
        let defaults = Fields::compile(self.templates, self.prompts, &raw.defaults, at, found);
        // Ids are unique, so files are only where one is named by hand.
        let names_files = raw.jobs.iter().map(|job| &job.fields).chain([&raw.defaults]).any(|job| job.file.is_some());
        let mut finisher = Finisher {
            faces: &raw.faces,
            names_files,
            names: NamesInUse::of(raw.jobs.len()),
            same: Same::default(),
            jobs: Vec::with_capacity(raw.jobs.len()),
        };
        let mut passed_over: BTreeMap<(Field, String), usize> = BTreeMap::new();
        let mut room = Room::new();
        'entries: for (number, raw_job) in raw.jobs.iter().enumerate().filter(|(_, job)| job.id.is_some()) {
            let at = Pointer::top().key("jobs").index(number);
            let before = found.len();
            let own = Fields::of_job(self.templates, self.prompts, raw_job, at.clone(), found);
            refuse_twice(raw_job, &own, found);
            if found.len() > before {
                continue;
            }
            warn_of_extras(&raw_job.fields, &at, found);
            let Self { templates, catalog, prompts, pictures, .. } = *self;
            let entry = Entry { templates, catalog, prompts, pictures, own: &own, defaults: &defaults };
            let combinations = combinations_of(raw_job, &at, found);
            let rows = self.rows_of(raw_job, &at, found);
            let takes = own.whole(F::Takes).and_then(|takes| usize::try_from(takes).ok()).unwrap_or(1);
            let asked_for = rows.len().saturating_mul(combinations.len()).saturating_mul(takes);
            if let Some(finding) = room.expect(asked_for, &at) {
                found.push(finding);
                break;
            }
            let matrices: Vec<Option<Arc<Labels>>> = combinations.iter().map(values_of).collect();
            for row in rows {
                for (combination, matrix) in combinations.iter().zip(&matrices) {
                    let rendered = render(entry, row.as_ref(), combination);
                    for &field in &rendered.passed_over {
                        *passed_over.entry((field, rendered.spec.model.clone())).or_default() += 1;
                    }
                    let place = row.as_ref().and_then(|row| row.place.as_ref());
                    let before = finisher.jobs.len();
                    let (cells, matrix) = (row.as_ref().map(|row| &row.cells), matrix.as_ref());
                    let origin = Origin { number, raw_job, entry, combination, row: place, cells, matrix };
                    finisher.finish(rendered, &origin, found);
                    if let Some(finding) = room.take(finisher.jobs[before..].iter().map(Arc::as_ref), &at) {
                        found.push(finding);
                        break 'entries;
                    }
                }
            }
        }
        for ((field, model), count) in passed_over {
            let count = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
            tracing::info!("the default `{field}` is passed over for {count} of {model}, which has no choice there");
        }
        finisher.jobs
    }

    fn rows_of(&self, job: &RawJob, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Option<Row>> {
        match &job.for_each {
            None => vec![None],
            Some(from) => rows::read(from, self.access, &at.key("for_each"), found).into_iter().map(Some).collect(),
        }
    }
}

/// The values of a combination by name, as they were written; nothing of a job without a matrix.
fn values_of(combination: &Combination) -> Option<Arc<Labels>> {
    let values = combination.iter().map(|cell| (cell.name.clone(), text_of(&cell.value)));
    (!combination.is_empty()).then(|| Arc::new(values.collect()))
}

fn text_of(value: &serde_yaml::Value) -> String {
    match value {
        serde_yaml::Value::String(text) => text.clone(),
        serde_yaml::Value::Number(number) => number.to_string(),
        serde_yaml::Value::Bool(is_so) => is_so.to_string(),
        _ => String::new(),
    }
}

/// The combinations of a job's matrix; one of nothing if it has none.
fn combinations_of(job: &RawJob, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Combination> {
    let Some(matrix) = &job.matrix else { return vec![Vec::new()] };
    let combinations = matrix.combinations();
    // A matrix that was wrong is told already.
    if combinations.is_empty() && !job.is_damaged {
        let place = at.key("matrix").named();
        let finding = Diagnostic::error(Rule::MatrixEmpty, "nothing is left of this matrix, so there is no job", place);
        found.push(finding.with_help("exclude less, or leave the entry out"));
    }
    combinations
}

/// A value of the matrix that the job itself has too, or that templates know as something else.
fn refuse_twice(job: &RawJob, own: &Fields<'_>, found: &mut Vec<Diagnostic>) {
    let mut told = HashSet::new();
    for (name, at) in job.matrix.iter().flat_map(RawMatrix::names).filter(|(name, _)| told.insert(*name)) {
        let field = JobField::named(name);
        if name == F::Id.name() || field.is_some_and(|field| own.says(field)) {
            let message = format!("`{name}` stands on the job and in its matrix");
            let finding = Diagnostic::error(Rule::MatrixAndJob, message, at.clone().value());
            found.push(finding.with_help("keep one of the two: nobody can know which was meant"));
        } else if is_reserved(name) && !field.is_some_and(JobField::is_plain) {
            let message = format!("an axis can't be called `{name}`: templates use that name for something else");
            found.push(Diagnostic::error(Rule::AxisReserved, message, at.clone().value()).with_help("rename the axis"));
        }
    }
}

/// Names the fields under `extra` that no family documents, once for each entry.
fn warn_of_extras(fields: &RawFields, at: &Pointer, found: &mut Vec<Diagnostic>) {
    let names = fields.extra.iter().flat_map(|extra| extra.keys().filter_map(|key| key.as_str()));
    for name in names.filter(|name| Field::named(name).is_none()) {
        found.push(undocumented(name, at.key(F::Extra.name()).key(name)));
    }
}
