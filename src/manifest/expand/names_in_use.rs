//! IDs and files in use, compared without letter case: file names follow IDs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::domain::{JobId, OutputPath, Rule};
use crate::manifest::source::diagnostic::{Diagnostic, RowLocation};
use crate::manifest::source::location::{Location, Part, Pointer};

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
