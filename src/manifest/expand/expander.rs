//! From the entries of a manifest to its jobs: one for each row, combination and take.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::fields::Fields;
use super::finisher::{Finisher, Origin};
use super::lists::undocumented;
use super::maker::{Entry, Rendered, render};
use super::pictures::Pictures;
use super::prompt_files::PromptFiles;
use crate::catalog::Catalog;
use crate::domain::{Field, Job, Labels, Rule};
use crate::manifest::parallel::in_order;
use crate::manifest::raw::decode::Decoded;
use crate::manifest::raw::job_field::{JobField, JobField as F, is_reserved};
use crate::manifest::raw::matrix::{Combination, RawMatrix};
use crate::manifest::raw::mirror::{RawFields, RawJob, RawManifest};
use crate::manifest::source::bounds::Room;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::Pointer;
use crate::manifest::source::text::FileAccess;
use crate::manifest::tables::row::Row;
use crate::manifest::tables::rows;
use crate::manifest::template::engine::Templates;

/// How many jobs of an entry are filled in before it is looked how much room they take. Fewer cost more turns of the threads.
const AT_A_TIME: usize = 64;

/// Everything that expansion needs besides the entries.
pub(crate) struct Expander<'e> {
    /// The template engine with the manifest's names in scope.
    pub templates: &'e Templates,
    /// The families.
    pub catalog: &'e Catalog,
    /// What CSV files may be read.
    pub access: &'e FileAccess,
    /// The prompts that stand in files.
    pub prompts: &'e PromptFiles<'e>,
    /// The pictures on this machine.
    pub pictures: &'e Pictures,
}

impl Expander<'_> {
    /// All jobs in file order. Those with a mistake are told and left out. An entry is gone when its jobs are made: of a long list, not
    /// all are here at once.
    pub(crate) fn expand(
        &self,
        raw: &RawManifest,
        entries: &mut dyn Iterator<Item = Decoded>,
        found: &mut Vec<Diagnostic>,
    ) -> Vec<Arc<Job>> {
        let at = Pointer::top().key("defaults");
        warn_of_extras(&raw.defaults, &at, found);
        let prompt = self.prompts.named_by(&raw.defaults);
        let defaults = Fields::compile(self.templates, prompt.as_deref(), &raw.defaults, at, found);
        let mut finisher = Finisher::new(&raw.faces);
        if raw.defaults.file.is_some() {
            finisher.name_files();
        }
        let mut passed_over: BTreeMap<(Field, String), usize> = BTreeMap::new();
        let mut room = Room::new();
        for (number, (raw_job, findings)) in entries.enumerate() {
            found.extend(findings);
            if raw_job.id.is_none() {
                continue;
            }
            let raw_job = &raw_job;
            if raw_job.fields.file.is_some() {
                finisher.name_files();
            }
            let at = Pointer::top().key("jobs").index(number);
            let before = found.len();
            let prompt = self.prompts.named_by(&raw_job.fields);
            let own = Fields::of_job(self.templates, prompt.as_deref(), raw_job, at.clone(), found);
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
            // One job for each row and combination.
            let of = |job: usize| (rows[job / combinations.len()].as_ref(), job % combinations.len());
            let render_all = |jobs: &Range<usize>| -> Vec<Rendered<'_>> {
                jobs.clone().map(of).map(|(row, combination)| render(entry, row, &combinations[combination])).collect()
            };
            let is_full = in_order(&batches(rows.len() * combinations.len()), render_all, |rendered| {
                for (job, rendered) in rendered.flatten().enumerate() {
                    for &field in &rendered.passed_over {
                        *passed_over.entry((field, rendered.spec.model.clone())).or_default() += 1;
                    }
                    let (row, combination) = of(job);
                    let (place, cells) = (row.and_then(|row| row.place.as_ref()), row.map(|row| &row.cells));
                    let (combination, matrix) = (&combinations[combination], matrices[combination].as_ref());
                    let before = finisher.jobs.len();
                    let origin = Origin { number, raw_job, entry, combination, row: place, cells, matrix };
                    finisher.finish(rendered, &origin, found);
                    if let Some(finding) = room.take(finisher.jobs[before..].iter().map(Arc::as_ref), &at) {
                        found.push(finding);
                        return true;
                    }
                }
                false
            });
            if is_full {
                break;
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

/// So many jobs, some at a time.
fn batches(jobs: usize) -> Vec<Range<usize>> {
    (0..jobs).step_by(AT_A_TIME).map(|first| first..jobs.min(first + AT_A_TIME)).collect()
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
