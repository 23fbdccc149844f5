//! Decides which task a response is about.
//!
//! A mixed-up or cached response about another task must not end this one. But gateways give a task other IDs than the
//! submission did: `id` and `task_id` that differ, or a new ID for polls. So an unknown ID is rejected while it changes
//! from poll to poll, and always if another task in the ledger has it. An ID that stays the same becomes the task's
//! alias, and is recorded. The ledger doesn't know the ID of a task in doubt, so repeated responses about that one
//! would be accepted.

use crate::domain::{TaskId, TaskNames};
use crate::service::TaskReport;

/// The number of polls in a row with the same unknown ID that make it an alias.
const STABLE: u32 = 3;

/// The IDs of a task, and those seen in its polls.
#[derive(Debug)]
pub(crate) struct Identity {
    names: TaskNames,
    /// True if polls use the alias, because the service doesn't know the ID.
    polled_by_alias: bool,
    /// The unknown ID of the last polls, and their number.
    other: Option<(TaskId, u32)>,
    /// A third ID, in the responses to polls.
    third: Option<TaskId>,
}

/// The task that a response is about.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// This one.
    Own,
    /// Another one, as far as is known.
    Other(TaskId),
    /// This one, unless the ledger knows the ID as another's.
    Renamed(TaskId),
}

impl Identity {
    /// The identity of a task with these IDs.
    pub(crate) fn new(names: TaskNames) -> Self {
        Self { names, polled_by_alias: false, other: None, third: None }
    }

    pub(super) fn names(&self) -> &TaskNames {
        &self.names
    }

    /// Returns the ID to poll by.
    pub(super) fn polled_id(&self) -> &TaskId {
        self.names.alias.as_ref().filter(|_| self.polled_by_alias).unwrap_or(&self.names.id)
    }

    /// Decides which task a report is about.
    pub(crate) fn identify(&mut self, report: &TaskReport) -> Whose {
        let Some(name) = report.other_id(&self.names).filter(|name| self.third.as_ref() != Some(*name)) else {
            self.other = None;
            return Whose::Own;
        };
        let seen = match &self.other {
            Some((known, seen)) if known == name => seen + 1,
            _ => 1,
        };
        self.other = Some((name.clone(), seen));
        if seen < STABLE { Whose::Other(name.clone()) } else { Whose::Renamed(name.clone()) }
    }

    /// Accepts an unknown ID as this task's own.
    pub(super) fn accept_alias(&mut self, name: TaskId) {
        self.other = None;
        match self.names.alias {
            None => self.names.alias = Some(name),
            Some(_) => self.third = Some(name),
        }
    }

    /// Returns whether polls use the alias.
    pub(super) fn is_polled_by_alias(&self) -> bool {
        self.polled_by_alias
    }

    /// Switches to the other ID after the service denied this one. Returns whether the alias is next.
    pub(super) fn was_denied(&mut self) -> bool {
        self.polled_by_alias = !self.polled_by_alias && self.names.alias.is_some();
        self.polled_by_alias
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::TaskReport;

    fn name(text: &str) -> TaskId {
        TaskId::new(text).expect("an id")
    }

    fn said(id: &str) -> TaskReport {
        TaskReport::parse(format!("{{\"id\": \"{id}\"}}").as_bytes(), &crate::domain::TerminalStates::default())
            .expect("a report")
    }

    #[test]
    fn a_name_that_stays_is_the_tasks_own_and_one_that_changes_is_not() {
        let mut identity = Identity::new(name("t").into());
        for (id, whose) in [
            ("t", Whose::Own),
            ("a", Whose::Other(name("a"))),
            ("a", Whose::Other(name("a"))),
            ("b", Whose::Other(name("b"))),
            ("a", Whose::Other(name("a"))),
            ("a", Whose::Other(name("a"))),
            ("a", Whose::Renamed(name("a"))),
        ] {
            assert_eq!(identity.identify(&said(id)), whose);
        }
        identity.accept_alias(name("a"));
        assert_eq!([identity.identify(&said("a")), identity.identify(&said("t"))], [Whose::Own, Whose::Own]);
    }

    #[test]
    fn both_names_are_asked_by_in_turn_once_one_was_denied() {
        let mut identity = Identity::new(TaskNames { id: name("t"), alias: Some(name("u")) });
        assert_eq!(identity.polled_id(), &name("t"));
        assert!(identity.was_denied());
        assert_eq!(identity.polled_id(), &name("u"));
        assert!(!identity.was_denied());
        assert_eq!(identity.polled_id(), &name("t"));
        assert!(!Identity::new(name("t").into()).was_denied());
    }
}
