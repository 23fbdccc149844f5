//! From the entries of a manifest to its jobs: one for each row, checked, priced and unique.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, JobLabel, RowPlace};
use super::fields::Fields;
use super::place::{Place, Pointer};
use super::raw::{RawJob, RawManifest};
use super::render::{Rendered, render};
use super::rows::{self, Row};
use super::template::Templates;
use crate::catalog::{Catalog, Violation};
use crate::domain::{Field, Job, JobId, Request};

/// Everything that expansion needs besides the entries.
pub struct Expander<'e> {
    /// The template engine with the manifest's names in scope.
    pub templates: &'e Templates,
    /// The families.
    pub catalog: &'e Catalog,
    /// Where CSV paths start from.
    pub folder: &'e Path,
}

/// Where an id was given, for a message about giving it twice.
struct Given {
    id: String,
    entry: usize,
    row: Option<RowPlace>,
}

impl Expander<'_> {
    /// All jobs in file order. Those with a mistake are told and left out.
    pub fn expand(&self, raw: &RawManifest, found: &mut Vec<Diagnostic>) -> Vec<Arc<Job>> {
        let defaults = Fields::compile(self.templates, &raw.defaults, Pointer::top().key("defaults"), found);
        let mut jobs = Vec::with_capacity(raw.jobs.len());
        let mut given: HashMap<String, Given> = HashMap::with_capacity(raw.jobs.len());
        let mut passed_over: BTreeMap<(Field, &str), usize> = BTreeMap::new();
        for (entry, raw_job) in raw.jobs.iter().enumerate().filter(|(_, job)| job.id.is_some()) {
            let at = Pointer::top().key("jobs").index(entry);
            let before = found.len();
            let own = Fields::of_job(self.templates, raw_job, at.clone(), found);
            if found.len() > before {
                continue;
            }
            for row in self.rows_of(raw_job, &at, found) {
                let rendered = render(self.templates, self.catalog, &own, &defaults, row.as_ref());
                if let Some(model) = rendered.model {
                    for &field in &rendered.passed_over {
                        *passed_over.entry((field, &model.family.title)).or_default() += 1;
                    }
                }
                let place = row.and_then(|row| row.place);
                let (job, mut findings) = finish(rendered, &own, &defaults, &at);
                if let Some(id) = findings.id.as_ref().filter(|id| JobId::new(id.as_str()).is_ok()) {
                    findings.list.extend(claim(&mut given, id, entry, place.clone(), &at));
                }
                // In an entry with an unknown or mistyped key, that is what is missing.
                findings.list.retain(|finding| !raw_job.is_damaged || !finding.code.ends_with("-missing"));
                let sound = !raw_job.is_damaged
                    && findings.list.iter().all(|finding| finding.severity == super::Severity::Warning);
                let label = findings.id.map(|id| JobLabel { id, tags: findings.tags });
                found.extend(findings.list.into_iter().map(|f| f.with_job(label.clone(), place.clone())));
                jobs.extend(job.filter(|_| sound).map(Arc::new));
            }
        }
        for ((field, family), count) in passed_over {
            let count = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
            tracing::info!("the default `{field}` is passed over for {count} of {family}, which has no choice there");
        }
        jobs
    }

    fn rows_of(&self, job: &RawJob, at: &Pointer, found: &mut Vec<Diagnostic>) -> Vec<Option<Row>> {
        match &job.for_each {
            None => vec![None],
            Some(from) => rows::read(from, self.folder, &at.key("for_each"), found).into_iter().map(Some).collect(),
        }
    }
}

/// What was found about one job, and what names it.
struct Findings {
    id: Option<String>,
    tags: Vec<String>,
    list: Vec<Diagnostic>,
}

/// Checks and prices what was rendered.
fn finish(rendered: Rendered<'_>, own: &Fields<'_>, defaults: &Fields<'_>, at: &Pointer) -> (Option<Job>, Findings) {
    let Rendered { id, mut spec, model, tags, found: mut list, .. } = rendered;
    let job_id = id.as_ref().and_then(|id| {
        JobId::new(id.clone())
            .map_err(|error| {
                let finding = Diagnostic::error("id-invalid", format!("{error}: `{id}`"), at.key("id").value());
                list.push(finding.with_help("use letters, digits, dots, dashes and underscores"));
            })
            .ok()
    });
    let mut job = None;
    // What could not be filled in is told already; a second message that it is missing would only confuse.
    if let (Some(model), true) = (model, list.iter().all(|finding| finding.code == "id-invalid")) {
        model.fill_defaults(&mut spec);
        list.extend(model.check(&spec).into_iter().map(|violation| locate(violation, own, defaults, at)));
        let seconds = spec.duration.and_then(|seconds| u32::try_from(seconds).ok());
        if let (Some(id), Some(seconds)) = (job_id, seconds) {
            job = Some(Job {
                id,
                request: Request::new(&spec),
                price: model.price(seconds),
                charging: model.family.charging,
                typical_s: model.family.typical_s(),
                take: 1,
                tags: tags.clone(),
                spec,
            });
        }
    }
    (job, Findings { id, tags, list })
}

fn locate(violation: Violation, own: &Fields<'_>, defaults: &Fields<'_>, at: &Pointer) -> Diagnostic {
    let place = if own.has(violation.field) {
        own.place(violation.field)
    } else if defaults.has(violation.field) {
        defaults.place(violation.field)
    } else {
        at.key("id").value()
    };
    let mut finding = Diagnostic::error(violation.code, violation.message, place);
    finding.severity = violation.severity;
    finding.help = violation.help;
    finding
}

/// Notes that an id is taken, or tells that it already was, also where only letter case differs.
fn claim(
    given: &mut HashMap<String, Given>,
    id: &str,
    entry: usize,
    row: Option<RowPlace>,
    at: &Pointer,
) -> Option<Diagnostic> {
    let folded = id.to_ascii_lowercase();
    let Some(first) = given.get(&folded) else {
        given.insert(folded, Given { id: id.to_owned(), entry, row });
        return None;
    };
    let message = match (&first.row, first.id == id) {
        (_, false) => {
            format!("the ids `{id}` and `{}` differ only in letter case, and files are named after them", first.id)
        }
        (Some(row), true) => format!("the id `{id}` is taken: {} line {} gives it too", row.file, row.line),
        (None, true) => format!("the id `{id}` is taken"),
    };
    let mut finding = Diagnostic::error("id-duplicate", message, at.key("id").value());
    if first.entry == entry {
        return Some(
            finding.with_help("put a column that differs in every row into the id: \"name-{{ row.column }}\""),
        );
    }
    let other = Pointer::top().key("jobs").index(first.entry).key("id");
    finding.other = Some((Place::Value(other, super::place::Part::Value), "first given here"));
    Some(finding.with_help("give each job an id of its own"))
}
