//! From checked jobs to those of the manifest: unique, each take with a file of its own.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::checked::Checked;
use crate::domain::{Job, JobId, Move, OutputPath, Rule};
use crate::manifest::raw::job_field::JobField as F;
use crate::manifest::raw::moved::RawMove;
use crate::manifest::source::diagnostic::{Diagnostic, JobLabel, RowLocation, Severity};
use crate::manifest::source::lints::{self, Same};
use crate::manifest::source::location::{Location, Part, Pointer, help_near};

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

/// The moves, each chain from its first id to its last. `ids` are those of the manifest's jobs; while some of them are unknown, because
/// a job has a mistake, nothing is said of ids that are not there. What is wrong is reported, and left out.
pub(in crate::manifest) fn moves(
    raw: &[RawMove],
    ids: &HashSet<&JobId>,
    is_complete: bool,
    found: &mut Vec<Diagnostic>,
) -> Vec<Move> {
    let mut by_old: HashMap<&JobId, &RawMove> = HashMap::new();
    let mut new: HashSet<&JobId> = HashSet::new();
    for a_move in raw {
        let Move { from, to } = &a_move.entry;
        let (of_old, of_new) = (a_move.at.key("from").value(), a_move.at.key("to").value());
        if ids.contains(from) {
            let message = format!("`{from}` is moved, but is still a job");
            let diagnostic = Diagnostic::error(Rule::MovedFromJob, message, of_old);
            found.push(diagnostic.with_help("write each ID once; to swap jobs, use two runs"));
        } else if by_old.insert(from, a_move).is_some() {
            let diagnostic = Diagnostic::error(Rule::MovedConflict, format!("`{from}` is moved twice"), of_old);
            found.push(diagnostic.with_help("keep one of the two entries"));
        } else if !new.insert(to) {
            let diagnostic =
                Diagnostic::error(Rule::MovedConflict, format!("`moved` has two entries to `{to}`"), of_new);
            found.push(diagnostic.with_help("keep one of the two entries"));
        }
    }
    for a_move in raw.iter().filter(|a_move| is_complete && !is_known(&a_move.entry.to, ids, &by_old)) {
        let to = &a_move.entry.to;
        let message = format!("`{to}` is not a job of this manifest");
        let names: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        let diagnostic = Diagnostic::error(Rule::MovedToUnknown, message, a_move.at.key("to").value());
        found.push(diagnostic.with_help(help_near(to.as_str(), "jobs", &names)));
    }
    let mut ordered = Vec::with_capacity(raw.len());
    for first in raw.iter().filter(|a_move| !new.contains(&a_move.entry.from)) {
        let mut next = Some(first);
        while let Some(a_move) = next.filter(|_| ordered.len() < raw.len()) {
            ordered.push(a_move.entry.clone());
            next = by_old.get(&a_move.entry.to).copied();
        }
    }
    // A move that no chain reaches is part of a cycle.
    let is_ordered: HashSet<&JobId> = ordered.iter().map(|a_move| &a_move.from).collect();
    if let Some(a_move) = raw.iter().find(|a_move| !is_ordered.contains(&a_move.entry.from)) {
        let message = format!("`moved` has a cycle at `{}`", a_move.entry.from);
        found.push(Diagnostic::error(Rule::MovedCycle, message, a_move.at.clone().value()));
    }
    ordered
}

/// Returns whether an ID is that of a job, or is moved on.
fn is_known(id: &JobId, ids: &HashSet<&JobId>, by_old: &HashMap<&JobId, &RawMove>) -> bool {
    ids.contains(id) || by_old.contains_key(id)
}

/// The first use of a name, for the message about a second one.
#[derive(Debug)]
struct Given {
    /// As it was written, where that differs.
    name: Option<Box<str>>,
    entry: usize,
    row: Option<RowLocation>,
}

/// The ids and files of the jobs so far.
#[derive(Debug, Default)]
pub(super) struct NamesInUse {
    ids: HashMap<String, Given>,
    /// By path: the job whose video goes there.
    files: HashMap<String, JobId>,
}

impl NamesInUse {
    /// Notes that an id is taken, or tells that it already was.
    pub(super) fn id(&mut self, id: &str, entry: usize, row: Option<&RowLocation>) -> Option<Diagnostic> {
        let folded = id.to_ascii_lowercase();
        let name = (folded != id).then(|| id.into());
        let given = Given { name, entry, row: row.cloned() };
        let first = match self.ids.entry(folded) {
            Entry::Vacant(free) => {
                free.insert(given);
                return None;
            }
            Entry::Occupied(first) => first,
        };
        let (folded, first) = (first.key(), first.get());
        let name = first.name.as_deref().unwrap_or(folded);
        let message = match (&first.row, name == id) {
            (_, false) => {
                format!("the IDs `{id}` and `{name}` differ only in letter case")
            }
            (Some(row), true) => format!("the ID `{id}` is not unique: {} line {} also has it", row.file, row.line),
            (None, true) => format!("the ID `{id}` is not unique"),
        };
        let at = |entry: usize| Pointer::top().key("jobs").index(entry).key("id");
        let mut diagnostic = Diagnostic::error(Rule::IdDuplicate, message, at(entry).value());
        if first.entry == entry {
            return Some(diagnostic.with_help(
                "put what differs into the ID: a column of the row, `name-{{ row.column }}`, or a value of the matrix, \
                 `name-{{ model }}`",
            ));
        }
        diagnostic.other = Some((Location::Value(at(first.entry), Part::Value), "first written here"));
        Some(diagnostic.with_help("write a unique ID for each job"))
    }

    /// Notes that a job's video goes to a path, or tells that another's does, or that one of the two would have to be a
    /// directory.
    pub(super) fn file(&mut self, job: &JobId, file: &OutputPath, place: Location) -> Option<Diagnostic> {
        let folded = file.folded();
        let mut directories = folded.match_indices('/').map(|(at, _)| &folded[..at]);
        let above = directories.find_map(|directory| self.files.get_key_value(directory));
        let message = match (self.files.get(&folded), above) {
            (Some(other), _) => Some(format!("the videos of `{job}` and `{other}` have the same file: `{file}`")),
            (None, Some((path, other))) => {
                Some(format!("`{path}` is the video of `{other}`, and can't be a directory"))
            }
            (None, None) => None,
        };
        if let Some(message) = message {
            let diagnostic = Diagnostic::error(Rule::FileDuplicate, message, place);
            return Some(
                diagnostic.with_help("put the ID into the name: `file: \"{{ id }}.mp4\"`; each take has its own ID"),
            );
        }
        self.files.insert(folded, job.clone());
        None
    }
}
