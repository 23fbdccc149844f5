//! From a rendered entry to a job: checked and priced on its own, then compared with the others. Each ID is unique, and each take has its own file.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::sync::Arc;

use super::lists::take_id;
use super::maker::{Origin, Rendered, render};
use crate::catalog::{FieldDiagnostic, Model};
use crate::domain::{FaceReview, Field, Job, JobId, LocalImage, OutputPath, Purchase, Request, Rule, Spec};
use crate::manifest::raw::sections::Review;
use crate::manifest::raw::table::{JobField, JobField as F};
use crate::manifest::source::diagnostic::{
    Diagnostic, Findings, JobLabel, Location, Part, Pointer, RowLocation, Severity, error, help_near, warning,
};
use crate::manifest::source::lints;
use crate::manifest::source::reader::MAX_TEXT;
use crate::manifest::source::syntax::MAX_JOBS;
use crate::manifest::template::engine::Text;

/// Takes jobs in, and knows which ids and files are taken.
#[derive(Default)]
pub(super) struct Finisher {
    /// True if an entry names files. Without that, unique IDs make them unique.
    names_files: bool,
    /// The first use of each ID.
    ids: HashMap<String, Given>,
    /// The job of each video, by path.
    files: HashMap<String, JobId>,
    /// A job with a video in each directory.
    directories: HashMap<String, JobId>,
    /// The first job with each request, by the first bytes of its fingerprint: a copy of each fingerprint would take more memory.
    requests: HashMap<u64, usize>,
    /// The bytes of the requests so far.
    text: usize,
    /// The jobs without a default that their family does not take, by field and model.
    pub passed_over: BTreeMap<Field, usize>,
    /// The number of rows and combinations so far.
    pub rendered: usize,
    /// The sound jobs so far.
    pub jobs: Vec<Arc<Job>>,
}

impl Finisher {
    /// No job is taken in yet. `names_files` is true if an entry names files.
    pub(super) fn new(names_files: bool) -> Self {
        Self { names_files, ..Self::default() }
    }

    /// Renders and checks a job of the entry at `at`, compares it with the others, and adds all of its takes, unless there is no room for them. A job
    /// with an error is reported and left out.
    pub(super) fn admit(
        &mut self,
        origin: &Origin<'_>,
        at: &Pointer,
        found: &mut Findings,
    ) -> Result<(), Box<Diagnostic>> {
        self.rendered += 1;
        let mut rendered = render(origin);
        for field in rendered.passed_over.drain(..) {
            *self.passed_over.entry(field).or_default() += 1;
        }
        let mut list = std::mem::take(&mut rendered.found);
        let (id, tags, files) = (rendered.id.clone(), rendered.tags.clone(), rendered.files.take());
        let ids = id.iter().flat_map(|id| (1..=rendered.takes).map(move |take| take_id(id, take)));
        let ids: Vec<JobId> = ids.filter_map(|id| valid(&id, origin, &mut list)).collect();
        let job = checked(rendered, ids.first(), origin, &mut list);
        let is_damaged = origin.is_damaged;
        let row = origin.row.and_then(|row| row.place.as_ref());
        let id_at = || at.key(F::Id.name()).value();
        list.extend(ids.iter().filter_map(|id| self.record_id(id.as_str(), origin)));
        let mut jobs = Vec::new();
        if let Some(job) = job {
            list.extend(self.same_request(&job, id_at));
            let others = ids.into_iter().zip(1..).skip(1);
            let others: Vec<Job> = others.map(|(id, take)| job.with_take(id, take)).collect();
            // The first one is the job itself.
            jobs.push(job);
            jobs.extend(others);
        }
        let says_files = origin.own.says(F::File) || origin.defaults.says(F::File);
        let files_at = || if says_files { origin.location(F::File) } else { id_at() };
        self.place_files(&mut jobs, files, files_at, &mut list);
        // A missing field may be the one with the unknown or mistyped key.
        list.retain(|diagnostic| !is_damaged || !diagnostic.rule.is_about_absence());
        let sound = !is_damaged && list.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
        if !list.is_empty() {
            let label = id.map(|id| JobLabel { id, tags });
            found.extend(list.into_iter().map(|diagnostic| diagnostic.with_job(label.clone(), row.cloned())));
        }
        if sound {
            Self::expect(self.jobs.len() + jobs.len(), at)?;
            self.text += jobs.iter().map(|job| job.purchase.request.body().len()).sum::<usize>();
            if self.text > MAX_TEXT {
                return Err(error!(TooMuchText, at.value(),
                    "the requests of the manifest must have at most {} MiB", MAX_TEXT >> 20;
                    "split the manifest, or shorten the prompts")
                .into());
            }
            self.jobs.extend(jobs.into_iter().map(Arc::new));
        }
        Ok(())
    }

    /// Refuses more jobs than a manifest may have, before they are made.
    pub(super) fn expect(jobs: usize, at: &Pointer) -> Result<(), Box<Diagnostic>> {
        if jobs <= MAX_JOBS {
            return Ok(());
        }
        Err(error!(TooManyJobs, at.value(), "the manifest must make at most {MAX_JOBS} jobs";
            "split the manifest; rows, combinations, and takes multiply")
        .into())
    }

    /// Reports a job with the request of an earlier one, unless both are takes of one job.
    fn same_request(&mut self, job: &Job, place: impl FnOnce() -> Location) -> Option<Diagnostic> {
        let fingerprint = job.purchase.fingerprint();
        let beginning = fingerprint.as_str().get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
        let first = self.requests.get(&beginning).and_then(|&number| self.jobs.get(number));
        let Some(first) = first.filter(|first| first.purchase.fingerprint() == fingerprint) else {
            self.requests.insert(beginning, self.jobs.len());
            return None;
        };
        Some(warning!(SameRequest, place(), "`{}` has the same request as `{}`", job.id(), first.id();
            "remove one of the jobs, or write `takes` for several videos of one request"))
    }

    /// Gives each take its file, where files are named by hand.
    fn place_files(
        &mut self,
        jobs: &mut [Job],
        files: Option<Vec<String>>,
        place: impl Fn() -> Location,
        list: &mut Findings,
    ) {
        // An id that is taken has its file, too: one message is enough.
        if !self.names_files || list.iter().any(|diagnostic| diagnostic.rule == Rule::IdDuplicate) {
            return;
        }
        // An empty template, as for an empty cell, means the default.
        let said = files.into_iter().flatten().map(|file| Some(file.trim().to_owned()).filter(|file| !file.is_empty()));
        let files = said.chain(std::iter::repeat(None));
        for (job, file) in jobs.iter_mut().zip(files) {
            let path = file.unwrap_or_else(|| job.output().as_str().to_owned());
            match OutputPath::new(&path) {
                Ok(path) if path.is_version() => {
                    list.push(error!(FileInvalid, place(), "`{path}` is a name that earlier videos are kept under";
                        "write a name without `~` and a number before the extension"));
                }
                Ok(path) => {
                    list.extend(lints::no_mp4(&path, place()));
                    list.extend(self.record_file(job.id(), &path, place()));
                    job.purchase.output = Some(path.into());
                }
                Err(error) => {
                    list.push(error!(FileInvalid, place(), "`{path}`: {error}";
                        "write a path in the output directory, such as \"teasers/{{{{ id }}}}.mp4\""));
                }
            }
        }
    }

    /// Records an ID, or reports that it is in use.
    fn record_id(&mut self, id: &str, origin: &Origin<'_>) -> Option<Diagnostic> {
        let (entry, combination) = (origin.number, origin.combination);
        let row = origin.row.and_then(|row| row.place.as_ref());
        let folded = id.to_ascii_lowercase();
        let name = (folded != id).then(|| id.into());
        let given = Given { name, entry, row: row.cloned() };
        let first = match self.ids.entry(folded) {
            hash_map::Entry::Vacant(free) => {
                free.insert(given);
                return None;
            }
            hash_map::Entry::Occupied(first) => first,
        };
        let (folded, first) = (first.key(), first.get());
        let name = first.name.as_deref().unwrap_or(folded);
        let message = match (&first.row, name == id) {
            (_, false) => format!("the IDs `{id}` and `{name}` differ only in letter case"),
            (Some(row), true) => format!("the ID `{id}` is not unique: {} line {} also has it", row.file, row.line),
            (None, true) => format!("the ID `{id}` is not unique"),
        };
        let at = |entry: usize| Pointer::top().key("jobs").index(entry).key("id");
        let mut diagnostic = error!(IdDuplicate, at(entry).value(), "{message}");
        if first.entry == entry {
            let is_plain = row.is_none() && !combination.iter().any(|cell| id.contains(&*cell.text()));
            let values: String = combination.iter().flat_map(|cell| ["-{{ ", &*cell.name, " | slug }}"]).collect();
            return Some(diagnostic.with_help(if is_plain && !values.is_empty() {
                format!("put the values of the matrix into the ID: `id: \"{id}{values}\"`")
            } else {
                "put what differs into the ID: a column of the row, `name-{{ row.column }}`, or a value of the matrix, \
                 `name-{{ model }}`"
                    .to_owned()
            }));
        }
        diagnostic.other = Some((Location::Value(at(first.entry), Part::Value), "first written here"));
        Some(diagnostic.with_help("write a unique ID for each job"))
    }

    /// Records the path of a job's video. The error if it is the path of another video, or if one of the two would have to be a directory.
    fn record_file(&mut self, job: &JobId, file: &OutputPath, place: Location) -> Option<Diagnostic> {
        let folded = file.folded();
        let directories = || folded.match_indices('/').map(|(at, _)| &folded[..at]);
        let above = directories().find_map(|directory| self.files.get_key_value(directory));
        let message = match (self.files.get(&folded), above, self.directories.get(&folded)) {
            (Some(other), ..) => Some(format!("the videos of `{job}` and `{other}` have the same file: `{file}`")),
            (None, Some((path, other)), _) => {
                Some(format!("`{path}` is the video of `{other}`, and can't be a directory"))
            }
            (None, None, Some(other)) => Some(format!("`{file}` is the directory of `{other}`, and can't be a video")),
            (None, None, None) => None,
        };
        if let Some(message) = message {
            return Some(error!(FileDuplicate, place, "{message}";
                "put the ID into the name: `file: \"{{{{ id }}}}.mp4\"`; each take has its own ID"));
        }
        self.directories.extend(directories().map(|directory| (directory.to_owned(), job.clone())));
        self.files.insert(folded, job.clone());
        None
    }
}

/// The first use of a name, for the message about a second one.
#[derive(Debug)]
struct Given {
    /// The name before lower case, if that differs.
    name: Option<Box<str>>,
    entry: usize,
    row: Option<RowLocation>,
}

/// The first take of a rendered job, unless an error keeps it from being one.
fn checked(rendered: Rendered<'_>, first: Option<&JobId>, origin: &Origin<'_>, found: &mut Findings) -> Option<Job> {
    let Rendered { mut spec, model, tags, labels, up_to, .. } = rendered;
    // An error in a template is reported already; a second message that the field is missing would confuse.
    let is_told = |diagnostic: &Diagnostic| {
        diagnostic.severity == Severity::Warning || matches!(diagnostic.rule, Rule::IdInvalid | Rule::TakesOutOfRange)
    };
    let model = model.filter(|_| found.iter().all(is_told))?;
    model.fill_defaults(&mut spec);
    found.extend(model.check(&spec).into_iter().map(|diagnostic| locate(diagnostic, origin)));
    found.extend(lints::page_for_image(&spec, || origin.location(F::Image)));
    let review = review(&spec, model, origin, found);
    let seconds = spec.duration.and_then(|seconds| u32::try_from(seconds).ok())?;
    Some(Job {
        purchase: Purchase {
            job: first?.clone(),
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
        tags,
        row: origin.row.map(|row| Arc::clone(&row.cells)),
        matrix: origin.matrix.cloned(),
        review,
        has_no_review: model.family.fields.face.is_some() && spec.face.is_none(),
        spec,
    })
}

/// The id, if it is one.
fn valid(id: &str, origin: &Origin<'_>, found: &mut Findings) -> Option<JobId> {
    JobId::new(id)
        .map_err(|error| {
            let help = match id.trim_matches(['{', '}', ' ']) {
                name if id.starts_with('{') => format!("write `{{{{ {name} }}}}`"),
                _ => "use letters, digits, dots, dashes, and underscores".to_owned(),
            };
            found.push(error!(IdInvalid, origin.own.at(F::Id).value(), "{error}: `{id}`"; "{help}"));
        })
        .ok()
}

/// The review that the job waits for. A face that is not declared is an error.
fn review(spec: &Spec, model: Model<'_>, origin: &Origin<'_>, found: &mut Findings) -> Option<FaceReview> {
    let (face, rule) = (spec.face.as_ref()?, model.family.fields.face.as_ref()?);
    match origin.faces.get(face).map(|face| face.review) {
        Some(Review::Approved) => None,
        Some(Review::Pending) => Some(FaceReview { face: face.clone(), fee: rule.review_usd }),
        None => {
            let names: Vec<&str> = origin.faces.keys().map(String::as_str).collect();
            let help = match names[..] {
                [] => format!("declare it at the top of the manifest: `faces: {{ {face}: {{ review: pending }} }}`"),
                _ => help_near(face, "faces", &names),
            };
            found.push(error!(FaceUnknown, origin.location(F::Face), "the face `{face}` is not declared"; "{help}"));
            None
        }
    }
}

fn locate(diagnostic: FieldDiagnostic, origin: &Origin<'_>) -> Diagnostic {
    let field = JobField::for_request_field(diagnostic.field);
    let mut located = Diagnostic::error(diagnostic.rule, diagnostic.message, origin.location(field));
    located.severity = diagnostic.severity;
    // In a table of both families a column is of use to the jobs of one of them.
    let is_of_a_cell = origin.row.is_some() && matches!(origin.own.values.text(field), Some(Text::Template(_)));
    let may_be_absent = matches!(diagnostic.rule, Rule::FieldNotOfFamily | Rule::DurationOutOfRange);
    let empty_cell = (is_of_a_cell && may_be_absent).then_some("clear the cell to leave out the field for this job");
    located.help = match (diagnostic.help, empty_cell) {
        (Some(help), Some(empty_cell)) => Some(format!("{help}; {empty_cell}")),
        (help, empty_cell) => help.or(empty_cell.map(str::to_owned)),
    };
    located
}
