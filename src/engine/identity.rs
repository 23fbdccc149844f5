//! Whose task an answer is about.
//!
//! A mixed-up or cached answer about another task must not become this one's final word. But gateways give a task other
//! names than the submission did: `id` and `task_id` that differ, or a name that is made anew for polls. So a name that
//! is not the task's own is distrusted while it changes from poll to poll, and for good if it is that of another task
//! in the ledger; one that stays the same is the task's own, and is written down. What the ledger can't know is the name of a task in doubt: an
//! answer about that one, again and again, would be believed.

use crate::domain::{TaskId, TaskNames};
use crate::service::TaskReport;

/// How often in a row a poll has to give the same strange name, before it is taken for the task's own.
const STABLE: u32 = 3;

/// What is known of a task's names.
#[derive(Debug)]
pub(crate) struct Identity {
    names: TaskNames,
    /// The service denied its first name last.
    asked_by_alias: bool,
    /// The name that the last polls gave, and how many did.
    stranger: Option<(TaskId, u32)>,
    /// A third name, which polls are answered with.
    third: Option<TaskId>,
}

/// Whose an answer is.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// The task's own.
    Own,
    /// Another task's, for all that is known.
    Strange(TaskId),
    /// The task's own, unless this name is another's in the ledger.
    Renamed(TaskId),
}

impl Identity {
    /// Knows a task by these names.
    pub(crate) fn new(names: TaskNames) -> Self {
        Self { names, asked_by_alias: false, stranger: None, third: None }
    }

    /// The names.
    pub(super) fn names(&self) -> &TaskNames {
        &self.names
    }

    /// The name to ask by.
    pub(super) fn asked_by(&self) -> &TaskId {
        self.names.alias.as_ref().filter(|_| self.asked_by_alias).unwrap_or(&self.names.id)
    }

    /// Takes in an answer.
    pub(crate) fn hear(&mut self, report: &TaskReport) -> Whose {
        let Some(name) = report.strange_name(&self.names).filter(|name| self.third.as_ref() != Some(*name)) else {
            self.stranger = None;
            return Whose::Own;
        };
        let seen = match &self.stranger {
            Some((known, seen)) if known == name => seen + 1,
            _ => 1,
        };
        self.stranger = Some((name.clone(), seen));
        if seen < STABLE { Whose::Strange(name.clone()) } else { Whose::Renamed(name.clone()) }
    }

    /// The strange name is the task's own.
    pub(super) fn adopt(&mut self, name: TaskId) {
        self.stranger = None;
        match self.names.alias {
            None => self.names.alias = Some(name),
            Some(_) => self.third = Some(name),
        }
    }

    /// Whether the service denied its first name, and is asked by the other one.
    pub(super) fn is_asked_by_alias(&self) -> bool {
        self.asked_by_alias
    }

    /// The service does not know the name that it was asked by. True if there is another to ask by first.
    pub(super) fn was_denied(&mut self) -> bool {
        self.asked_by_alias = !self.asked_by_alias && self.names.alias.is_some();
        self.asked_by_alias
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
        TaskReport::parse(format!("{{\"id\": \"{id}\"}}").as_bytes(), &crate::domain::FinalWords::default())
            .expect("a report")
    }

    #[test]
    fn a_name_that_stays_is_the_tasks_own_and_one_that_changes_is_not() {
        let mut identity = Identity::new(name("t").into());
        for (id, whose) in [
            ("t", Whose::Own),
            ("a", Whose::Strange(name("a"))),
            ("a", Whose::Strange(name("a"))),
            ("b", Whose::Strange(name("b"))),
            ("a", Whose::Strange(name("a"))),
            ("a", Whose::Strange(name("a"))),
            ("a", Whose::Renamed(name("a"))),
        ] {
            assert_eq!(identity.hear(&said(id)), whose);
        }
        identity.adopt(name("a"));
        assert_eq!([identity.hear(&said("a")), identity.hear(&said("t"))], [Whose::Own, Whose::Own]);
    }

    #[test]
    fn both_names_are_asked_by_in_turn_once_one_was_denied() {
        let mut identity = Identity::new(TaskNames { id: name("t"), alias: Some(name("u")) });
        assert_eq!(identity.asked_by(), &name("t"));
        assert!(identity.was_denied());
        assert_eq!(identity.asked_by(), &name("u"));
        assert!(!identity.was_denied());
        assert_eq!(identity.asked_by(), &name("t"));
        assert!(!Identity::new(name("t").into()).was_denied());
    }
}
