//! From checked jobs to those of the manifest: unique, each take with a file of its own.

use std::sync::Arc;

use super::checked::Checked;
use super::names_in_use::NamesInUse;
use crate::domain::{Job, OutputPath, Rule};
use crate::manifest::raw::job_field::JobField as F;
use crate::manifest::source::diagnostic::{Diagnostic, JobLabel, Severity};
use crate::manifest::source::lints::{self, Same};
use crate::manifest::source::location::{Location, Pointer};

/// Takes jobs in, and knows which ids and files are taken.
#[derive(Default)]
pub(super) struct Finisher {
    /// True if a job's file was set by hand.
    names_files: bool,
    /// The names in use.
    names: NamesInUse,
    /// The requests so far.
    same: Same,
    /// The sound jobs so far.
    pub jobs: Vec<Arc<Job>>,
}

fn own(job: &mut Arc<Job>) -> &mut Job {
    Arc::get_mut(job).expect("nobody else has a job before all are made")
}

impl Finisher {
    /// From here on files are named by hand. Ids are unique, so until then files need not be looked at.
    pub(super) fn name_files(&mut self) {
        if std::mem::replace(&mut self.names_files, true) {
            return;
        }
        for job in &mut self.jobs {
            let job = own(job);
            let file = job.output();
            // After ids that differ, nothing can stand in the way of another.
            let _free = self.names.file(job.id(), &file, Location::File);
            job.purchase.output = Some(file.into());
        }
    }

    /// Holds a job against the others and takes all of its takes in. A job with an error is reported and left out.
    pub(super) fn admit(&mut self, checked: Checked, found: &mut Vec<Diagnostic>) {
        let Checked { number, is_damaged, id, ids, job, tags, files, files_at, row, found: mut list, .. } = checked;
        let id_at = || Pointer::top().key("jobs").index(number).key(F::Id.name()).value();
        list.extend(ids.iter().filter_map(|id| self.names.id(id.as_str(), number, row.as_ref())));
        let mut jobs = Vec::new();
        if let Some(job) = job {
            list.extend(self.same.note(&self.jobs, &job, id_at));
            let others = ids.into_iter().zip(1..).skip(1);
            let others: Vec<Arc<Job>> = others.map(|(id, take)| Arc::new(job.with_take(id, take))).collect();
            // The first one is the job itself.
            jobs = std::iter::once(job).chain(others).collect();
        }
        self.place_files(&mut jobs, files, || files_at.clone().unwrap_or_else(id_at), &mut list);
        // In an entry with an unknown or mistyped key, that is what is missing.
        list.retain(|diagnostic| !is_damaged || !diagnostic.rule.is_about_absence());
        let sound = !is_damaged && list.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
        if !list.is_empty() {
            let label = id.map(|id| JobLabel { id, tags });
            found.extend(list.into_iter().map(|diagnostic| diagnostic.with_job(label.clone(), row.clone())));
        }
        if sound {
            self.jobs.append(&mut jobs);
        }
    }

    /// Gives each take its file, where files are named by hand.
    fn place_files(
        &mut self,
        jobs: &mut [Arc<Job>],
        files: Option<Vec<String>>,
        place: impl Fn() -> Location,
        list: &mut Vec<Diagnostic>,
    ) {
        // An id that is taken has its file, too: one message is enough.
        if !self.names_files || list.iter().any(|diagnostic| diagnostic.rule == Rule::IdDuplicate) {
            return;
        }
        // A template that gives nothing, as for an empty cell, means "as usual".
        let said = files.into_iter().flatten().map(|file| Some(file.trim().to_owned()).filter(|file| !file.is_empty()));
        let files = said.chain(std::iter::repeat(None));
        for (job, file) in jobs.iter_mut().map(own).zip(files) {
            let path = file.unwrap_or_else(|| job.output().as_str().to_owned());
            match OutputPath::new(&path) {
                Ok(path) if path.is_version() => {
                    let message = format!("`{path}` is a name that earlier videos are kept under");
                    let diagnostic = Diagnostic::error(Rule::FileInvalid, message, place());
                    list.push(diagnostic.with_help("write a name without `~` and a number before the extension"));
                }
                Ok(path) => {
                    list.extend(lints::no_mp4(&path, place()));
                    list.extend(self.names.file(job.id(), &path, place()));
                    job.purchase.output = Some(path.into());
                }
                Err(error) => {
                    let diagnostic = Diagnostic::error(Rule::FileInvalid, format!("`{path}`: {error}"), place());
                    list.push(
                        diagnostic.with_help("write a path in the output directory, such as \"teasers/{{ id }}.mp4\""),
                    );
                }
            }
        }
    }
}
