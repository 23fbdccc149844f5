//! The moves of `moved`, checked against the jobs, in the order of their execution.

use std::collections::{HashMap, HashSet};

use crate::domain::{JobId, Move, Rule};
use crate::manifest::raw::moved::RawMove;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::suggest;

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
        found.push(diagnostic.with_help(suggest::help(to.as_str(), "jobs", &names)));
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
