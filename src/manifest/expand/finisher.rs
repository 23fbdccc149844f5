//! From a rendered entry to jobs: checked, priced, unique, one for each take.

use std::sync::Arc;

use super::maker::{Entry, Rendered, location_of};
use super::names_in_use::NamesInUse;
use super::takes::take_id;
use crate::catalog::{Model, Violation};
use crate::domain::{Cells, FaceReview, Job, JobId, Labels, OutputPath, Request, Rule, Spec};
use crate::manifest::raw::faces::{Faces, Review};
use crate::manifest::raw::job_field::{JobField, JobField as F};
use crate::manifest::raw::matrix::Cell;
use crate::manifest::raw::mirror::RawJob;
use crate::manifest::source::diagnostic::{Diagnostic, JobLabel, RowLocation, Severity};
use crate::manifest::source::location::Location;
use crate::manifest::source::slips::{self, Same};
use crate::manifest::source::suggest;

/// Where a rendered entry came from.
pub(super) struct Origin<'o> {
    /// Which entry of `jobs`.
    pub number: usize,
    /// The entry as it was written.
    pub raw_job: &'o RawJob,
    /// The same, compiled.
    pub entry: Entry<'o, 'o, 'o>,
    /// The combination of its matrix.
    pub combination: &'o [Cell],
    /// The line of its CSV file.
    pub row: Option<&'o RowLocation>,
    /// The cells of its row.
    pub cells: Option<&'o Arc<Cells>>,
    /// The values of its combination, by name.
    pub matrix: Option<&'o Arc<Labels>>,
}

/// Makes jobs, and knows which ids and files are taken.
pub(super) struct Finisher<'f> {
    /// The declared faces.
    faces: &'f Faces,
    /// Whether a job's file was named by hand.
    names_files: bool,
    /// What is taken.
    names: NamesInUse,
    /// What was asked for.
    same: Same,
    /// The sound jobs so far.
    pub jobs: Vec<Arc<Job>>,
}

impl<'f> Finisher<'f> {
    /// No jobs yet.
    pub(super) fn new(faces: &'f Faces) -> Self {
        let (names, same) = (NamesInUse::default(), Same::default());
        Self { faces, names_files: false, names, same, jobs: Vec::new() }
    }

    /// From here on files are named by hand. Ids are unique, so until then files need not be looked at.
    pub(super) fn name_files(&mut self) {
        if std::mem::replace(&mut self.names_files, true) {
            return;
        }
        for job in self.jobs.iter_mut().filter_map(Arc::get_mut) {
            let file = job.output();
            // After ids that differ, nothing can stand in the way of another.
            let _free = self.names.file(&job.id, &file, Location::File);
            job.file = Some(file);
        }
    }

    /// Checks what was rendered and adds its jobs. One with a mistake is told and left out.
    pub(super) fn finish(&mut self, rendered: Rendered<'_>, origin: &Origin<'_>, found: &mut Vec<Diagnostic>) {
        let Rendered { id, mut spec, model, tags, labels, takes, files, found: mut list, .. } = rendered;
        let ids = id.iter().flat_map(|id| (1..=takes).map(move |take| take_id(id, take)));
        let ids: Vec<JobId> = ids.filter_map(|id| self.claim(&id, origin, &mut list)).collect();
        let mut jobs = Vec::new();
        // What could not be filled in is told already; a second message that it is missing would only confuse.
        let is_told = |finding: &Diagnostic| {
            finding.severity == Severity::Warning
                || finding.rule == Rule::IdInvalid
                || finding.rule == Rule::IdDuplicate
        };
        if let (Some(model), true) = (model, list.iter().all(is_told)) {
            model.fill_defaults(&mut spec);
            list.extend(model.check(&spec).into_iter().map(|violation| locate(violation, origin)));
            list.extend(slips::page_for_image(&spec, || location(origin, F::Image)));
            let review = self.review(&spec, model, origin, &mut list);
            let seconds = spec.duration.and_then(|seconds| u32::try_from(seconds).ok());
            if let (Some(seconds), Some(first)) = (seconds, ids.first()) {
                let job = Job {
                    id: first.clone(),
                    request: Request::new(&spec),
                    price: model.price(seconds),
                    charging: model.family.charging,
                    typical_s: model.family.typical_s(),
                    take: 1,
                    tags: tags.clone(),
                    labels,
                    file: None,
                    row: origin.cells.cloned(),
                    matrix: origin.matrix.cloned(),
                    review,
                    spec,
                };
                let id_place = || origin.entry.own.at(F::Id).value();
                list.extend(self.same.note(&self.jobs, &job, id_place));
                // The last of them is the job itself, and no copy of it.
                let takes = std::iter::repeat_n(job, ids.len()).zip(1..).zip(ids);
                jobs = takes.map(|((job, take), id)| Job { id, take, ..job }).collect();
            }
        }
        self.place_files(&mut jobs, files, origin, &mut list);
        // In an entry with an unknown or mistyped key, that is what is missing.
        list.retain(|finding| !origin.raw_job.is_damaged || !finding.rule.is_about_absence());
        let sound = !origin.raw_job.is_damaged && list.iter().all(|finding| finding.severity == Severity::Warning);
        let label = id.map(|id| JobLabel { id, tags });
        found.extend(list.into_iter().map(|finding| finding.with_job(label.clone(), origin.row.cloned())));
        if sound {
            self.jobs.extend(jobs.into_iter().map(Arc::new));
        }
    }

    /// The id, if it is one and nobody else has it.
    fn claim(&mut self, id: &str, origin: &Origin<'_>, list: &mut Vec<Diagnostic>) -> Option<JobId> {
        match JobId::new(id) {
            Ok(job) => {
                list.extend(self.names.id(id, origin.number, origin.row));
                Some(job)
            }
            Err(error) => {
                let place = origin.entry.own.at(F::Id).value();
                let finding = Diagnostic::error(Rule::IdInvalid, format!("{error}: `{id}`"), place);
                list.push(finding.with_help("use letters, digits, dots, dashes and underscores"));
                None
            }
        }
    }

    /// The review that the job waits for. A face that is not declared is an error.
    fn review(
        &self,
        spec: &Spec,
        model: Model<'_>,
        origin: &Origin<'_>,
        list: &mut Vec<Diagnostic>,
    ) -> Option<FaceReview> {
        let (face, rule) = (spec.face.as_ref()?, model.family.fields.face.as_ref()?);
        match self.faces.get(face) {
            Some(Review::Approved) => None,
            Some(Review::Pending) => Some(FaceReview { face: face.clone(), fee: rule.review_usd }),
            None => {
                let names: Vec<&str> = self.faces.keys().map(String::as_str).collect();
                let message = format!("the face `{face}` is not declared");
                let finding = Diagnostic::error(Rule::FaceUnknown, message, location(origin, F::Face));
                list.push(finding.with_help(if names.is_empty() {
                    format!("declare it at the top of the manifest: `faces: {{ {face}: {{ review: pending }} }}`")
                } else {
                    suggest::help(face, "faces", &names)
                }));
                None
            }
        }
    }

    /// Gives each take its file, where files are named by hand.
    fn place_files(
        &mut self,
        jobs: &mut [Job],
        files: Option<Vec<String>>,
        origin: &Origin<'_>,
        list: &mut Vec<Diagnostic>,
    ) {
        // An id that is taken has its file, too: one message is enough.
        if !self.names_files || list.iter().any(|finding| finding.rule == Rule::IdDuplicate) {
            return;
        }
        // A template that gives nothing, as for an empty cell, means "as usual".
        let said = files.into_iter().flatten().map(|file| Some(file.trim().to_owned()).filter(|file| !file.is_empty()));
        let files = said.chain(std::iter::repeat(None));
        for (job, file) in jobs.iter_mut().zip(files) {
            let path = file.unwrap_or_else(|| job.output().as_str().to_owned());
            let place = location(origin, F::File);
            match OutputPath::new(&path) {
                Ok(path) if path.is_version() => {
                    let message = format!("`{path}` is a name that earlier videos are kept under");
                    let finding = Diagnostic::error(Rule::FileInvalid, message, place);
                    list.push(finding.with_help("write it without `~` and a number in front of the extension"));
                }
                Ok(path) => {
                    list.extend(slips::no_mp4(&path, place.clone()));
                    list.extend(self.names.file(&job.id, &path, place));
                    job.file = Some(path);
                }
                Err(error) => {
                    let finding = Diagnostic::error(Rule::FileInvalid, format!("`{path}`: {error}"), place);
                    list.push(
                        finding.with_help("write a path inside the output folder, such as \"teasers/{{ id }}.mp4\""),
                    );
                }
            }
        }
    }
}

fn location(origin: &Origin<'_>, field: JobField) -> Location {
    location_of(field, origin.entry.own, origin.entry.defaults, origin.combination)
}

fn locate(violation: Violation, origin: &Origin<'_>) -> Diagnostic {
    let mut finding =
        Diagnostic::error(violation.rule, violation.message, location(origin, JobField::of(violation.field)));
    finding.severity = violation.severity;
    finding.help = violation.help;
    finding
}
