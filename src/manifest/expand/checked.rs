//! From what an entry became to a job, checked and priced. Nothing here depends on other entries.

use std::sync::Arc;

use super::maker::{Entry, Rendered, location_of};
use super::takes::take_id;
use crate::catalog::{FieldDiagnostic, Model};
use crate::domain::{Cells, FaceReview, Field, Job, JobId, Labels, LocalImage, Purchase, Request, Rule, Spec};
use crate::manifest::raw::faces::{Faces, Review};
use crate::manifest::raw::job_field::{JobField, JobField as F};
use crate::manifest::raw::matrix::Cell;
use crate::manifest::source::diagnostic::{Diagnostic, RowLocation, Severity};
use crate::manifest::source::lints;
use crate::manifest::source::location::{Location, help_near};
use crate::manifest::template::engine::Text;

/// The source of a rendered entry.
pub(super) struct Origin<'o> {
    /// The position in `jobs`.
    pub number: usize,
    /// True if the entry itself has a reported error.
    pub is_damaged: bool,
    /// The entry, compiled.
    pub entry: Entry<'o, 'o, 'o>,
    /// The declared faces.
    pub faces: &'o Faces,
    /// The combination of its matrix.
    pub combination: &'o [Cell],
    /// The line of its CSV file.
    pub row: Option<&'o RowLocation>,
    /// The cells of its row.
    pub cells: Option<&'o Arc<Cells>>,
    /// The values of its combination, by name.
    pub matrix: Option<&'o Arc<Labels>>,
}

/// A job that is checked, and not yet held against the others.
pub(super) struct Checked {
    /// The position in `jobs`.
    pub number: usize,
    /// True if the entry itself has a reported error.
    pub is_damaged: bool,
    /// Its id as it was made, and that of each take, as far as they are ids.
    pub id: Option<String>,
    pub ids: Vec<JobId>,
    /// Its first take, unless a mistake keeps it from being one. Where it is checked it gets its place, too: whoever takes it in moves none of it.
    pub job: Option<Arc<Job>>,
    /// The words that it is selected by.
    pub tags: Vec<String>,
    /// The path of each take's video, with its location.
    pub files: Option<Vec<String>>,
    pub files_at: Option<Location>,
    /// The line of its CSV file.
    pub row: Option<RowLocation>,
    /// Defaults that the family of its model does not take.
    pub passed_over: Vec<(Field, String)>,
    /// The diagnostics.
    pub found: Vec<Diagnostic>,
}

/// Checks what was rendered.
pub(super) fn check(rendered: Rendered<'_>, origin: &Origin<'_>) -> Checked {
    let Rendered { id, mut spec, model, tags, labels, takes, up_to, files, passed_over, mut found } = rendered;
    let passed_over = passed_over.into_iter().map(|field| (field, spec.model.clone())).collect();
    let ids = id.iter().flat_map(|id| (1..=takes).map(move |take| take_id(id, take)));
    let ids: Vec<JobId> = ids.filter_map(|id| valid(&id, origin, &mut found)).collect();
    let mut checked = None;
    // An error in a template is reported already; a second message that the field is missing would confuse.
    let is_told = |diagnostic: &Diagnostic| {
        diagnostic.severity == Severity::Warning || matches!(diagnostic.rule, Rule::IdInvalid | Rule::TakesOutOfRange)
    };
    if let (Some(model), true) = (model, found.iter().all(is_told)) {
        model.fill_defaults(&mut spec);
        found.extend(model.check(&spec).into_iter().map(|diagnostic| locate(diagnostic, origin)));
        found.extend(lints::page_for_image(&spec, || location(origin, F::Image)));
        let review = review(&spec, model, origin, &mut found);
        let seconds = spec.duration.and_then(|seconds| u32::try_from(seconds).ok());
        if let (Some(seconds), Some(first)) = (seconds, ids.first()) {
            checked = Some(Arc::new(Job {
                purchase: Purchase {
                    job: first.clone(),
                    request: Request::new(&spec),
                    model: spec.model.clone(),
                    price: model.price(seconds, spec.size.as_deref()),
                    charging: model.family.charging,
                    typical_s: model.family.typical_s(),
                    labels,
                    output: None,
                    local_images: LocalImage::digests(&spec.local_images),
                },
                take: 1,
                up_to,
                tags: tags.clone(),
                row: origin.cells.cloned(),
                matrix: origin.matrix.cloned(),
                review,
                has_no_review: model.family.fields.face.is_some() && spec.face.is_none(),
                spec,
            }));
        }
    }
    let says_files = origin.entry.own.says(F::File) || origin.entry.defaults.says(F::File);
    Checked {
        number: origin.number,
        is_damaged: origin.is_damaged,
        id,
        ids,
        job: checked,
        tags,
        files,
        files_at: says_files.then(|| location(origin, F::File)),
        row: origin.row.cloned(),
        passed_over,
        found,
    }
}

/// The id, if it is one.
fn valid(id: &str, origin: &Origin<'_>, found: &mut Vec<Diagnostic>) -> Option<JobId> {
    JobId::new(id)
        .map_err(|error| {
            let place = origin.entry.own.at(F::Id).value();
            let diagnostic = Diagnostic::error(Rule::IdInvalid, format!("{error}: `{id}`"), place);
            found.push(diagnostic.with_help(match id.trim_matches(['{', '}', ' ']) {
                name if id.starts_with('{') => format!("write `{{{{ {name} }}}}`"),
                _ => "use letters, digits, dots, dashes, and underscores".to_owned(),
            }));
        })
        .ok()
}

/// The review that the job waits for. A face that is not declared is an error.
fn review(spec: &Spec, model: Model<'_>, origin: &Origin<'_>, found: &mut Vec<Diagnostic>) -> Option<FaceReview> {
    let (face, rule) = (spec.face.as_ref()?, model.family.fields.face.as_ref()?);
    match origin.faces.get(face).map(|face| face.review) {
        Some(Review::Approved) => None,
        Some(Review::Pending) => Some(FaceReview { face: face.clone(), fee: rule.review_usd }),
        None => {
            let names: Vec<&str> = origin.faces.keys().map(String::as_str).collect();
            let message = format!("the face `{face}` is not declared");
            let diagnostic = Diagnostic::error(Rule::FaceUnknown, message, location(origin, F::Face));
            found.push(diagnostic.with_help(if names.is_empty() {
                format!("declare it at the top of the manifest: `faces: {{ {face}: {{ review: pending }} }}`")
            } else {
                help_near(face, "faces", &names)
            }));
            None
        }
    }
}

fn location(origin: &Origin<'_>, field: JobField) -> Location {
    location_of(field, origin.entry.own, origin.entry.defaults, origin.combination)
}

fn locate(diagnostic: FieldDiagnostic, origin: &Origin<'_>) -> Diagnostic {
    let field = JobField::of(diagnostic.field);
    let mut located = Diagnostic::error(diagnostic.rule, diagnostic.message, location(origin, field));
    located.severity = diagnostic.severity;
    // In a table of both families a column is of use to the jobs of one of them.
    let is_of_a_cell = origin.cells.is_some() && matches!(origin.entry.own.text(field), Some(Text::Template(_)));
    let may_be_absent = matches!(diagnostic.rule, Rule::FieldNotOfFamily | Rule::DurationOutOfRange);
    let empty_cell = (is_of_a_cell && may_be_absent).then_some("clear the cell to leave out the field for this job");
    located.help = match (diagnostic.help, empty_cell) {
        (Some(help), Some(empty_cell)) => Some(format!("{help}; {empty_cell}")),
        (help, empty_cell) => help.or(empty_cell.map(str::to_owned)),
    };
    located
}
