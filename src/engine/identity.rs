//! Decides which task a response is about.
//!
//! A mixed-up or cached response about another task must not end this one. But gateways give a task other IDs than the
//! submission did: `id` and `task_id` that differ, or a new ID for polls. So an unknown ID is rejected while it changes
//! from poll to poll, and always if another task in the ledger has it. An ID that stays the same becomes the task's
//! alias, and is recorded. The ledger doesn't know the ID of a task in doubt, so repeated responses about that one
//! would be accepted.
//!
//! The planned price is that of the request. A gateway that ignores a field, such as `duration`, generates and charges
//! for another video, and shows it only in the fields that it echoes (interface §2.3).

use crate::domain::{Asked, Difference, MIN_DURATION_DIFFERENCE_S, PriceList, TaskId, TaskNames, sides};
use crate::service::{Echo, TaskReport};

/// The number of polls in a row with the same unknown ID that make it an alias.
const STABLE: u32 = 3;

/// The IDs of a task, and the IDs in responses to its polls.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(super) names: TaskNames,
    /// True if polls use the alias, because the service doesn't know the ID.
    pub(super) is_polled_by_alias: bool,
    /// The unknown ID of the last polls, and their number.
    other: Option<(TaskId, u32)>,
    /// A third ID, in the responses to polls.
    third: Option<TaskId>,
}

/// The task that a response is about.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum ReportOwner {
    /// This one.
    Own,
    /// Probably another task.
    Other(TaskId),
    /// This one, unless the ledger knows the ID as another's.
    Renamed(TaskId),
}

impl Identity {
    /// The identity of a task with these IDs.
    pub(crate) fn new(names: TaskNames) -> Self {
        Self { names, is_polled_by_alias: false, other: None, third: None }
    }

    /// Returns the ID to poll by.
    pub(super) fn polled_id(&self) -> &TaskId {
        self.names.alias.as_ref().filter(|_| self.is_polled_by_alias).unwrap_or(&self.names.id)
    }

    /// Decides which task a report is about.
    pub(crate) fn identify(&mut self, report: &TaskReport) -> ReportOwner {
        let Some(name) = report.other_id(&self.names).filter(|name| self.third.as_ref() != Some(*name)) else {
            self.other = None;
            return ReportOwner::Own;
        };
        let seen = self.other.as_ref().filter(|(known, _)| known == name).map_or(1, |(_, seen)| seen + 1);
        self.other = Some((name.clone(), seen));
        if seen < STABLE { ReportOwner::Other(name.clone()) } else { ReportOwner::Renamed(name.clone()) }
    }

    /// Accepts an unknown ID as this task's own.
    pub(super) fn accept_alias(&mut self, name: TaskId) {
        self.other = None;
        match self.names.alias {
            None => self.names.alias = Some(name),
            Some(_) => self.third = Some(name),
        }
    }

    /// Switches to the other ID after the service denied this one. Returns whether the alias is next.
    pub(super) fn on_denial(&mut self) -> bool {
        self.is_polled_by_alias = !self.is_polled_by_alias && self.names.alias.is_some();
        self.is_polled_by_alias
    }
}

/// Returns the reported model if it is another one than was requested, with the prices of the video by both if they are known.
pub(super) fn other_model(asked: &Asked, echo: &Echo, prices: &PriceList<'_>) -> Option<String> {
    let (model, other) = (asked.model(), echo.model.as_deref()?);
    if other.trim().eq_ignore_ascii_case(model) {
        return None;
    }
    let price = |model| asked.price(model, prices).map_or_else(String::new, |price| format!(" ({price:#})"));
    let (theirs, ours) = (price(other), price(model));
    let hint = "if both are one, name it under `model_aliases` in a `--catalog`";
    Some(format!("the service reports the model {other}{theirs}, requested {model}{ours}; {hint}"))
}

/// The differences between a task, as the service reports it, and its request.
pub fn echo_differences(request: &str, echo: &Echo) -> Vec<String> {
    differences(&Asked::from_request(request), echo).into_iter().map(|(_, difference)| difference.text).collect()
}

/// The differences by field. One is grave if it is another duration or shape, and not only another way to write it.
pub(super) fn differences(asked: &Asked, echo: &Echo) -> Vec<(&'static str, Difference)> {
    let mut found = Vec::new();
    if let (Some(asked), Some(made)) = (asked.duration.as_f64(), echo.duration_s)
        && (asked - made).abs() >= MIN_DURATION_DIFFERENCE_S
    {
        let text = format!("{made} s, requested {asked} s");
        found.push(("duration", Difference { is_grave: true, text }));
    }
    let texts = [("size", &asked.size, &echo.size), ("aspect_ratio", &asked.aspect_ratio, &echo.aspect_ratio)];
    for (field, asked, made) in texts {
        if let (Some(asked), Some(made)) = (asked.as_str(), made)
            && plain(asked) != plain(made)
        {
            let text = format!("`{field}` {made}, requested {asked}");
            let ratio = |text: &str| sides(&plain(text), 'x').or_else(|| sides(text, ':'));
            let is_grave = ratio(asked).zip(ratio(made)).is_some_and(|((a, b), (c, d))| a * d != b * c);
            found.push((field, Difference { is_grave, text }));
        }
    }
    found
}

/// A size or shape without variations of spelling.
fn plain(text: &str) -> String {
    text.trim().to_lowercase().replace(['×', '*'], "x")
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
    fn stable_id_is_an_alias_and_a_changing_one_is_not() {
        let mut identity = Identity::new(name("t").into());
        for (id, whose) in [
            ("t", ReportOwner::Own),
            ("a", ReportOwner::Other(name("a"))),
            ("a", ReportOwner::Other(name("a"))),
            ("b", ReportOwner::Other(name("b"))),
            ("a", ReportOwner::Other(name("a"))),
            ("a", ReportOwner::Other(name("a"))),
            ("a", ReportOwner::Renamed(name("a"))),
        ] {
            assert_eq!(identity.identify(&said(id)), whose);
        }
        identity.accept_alias(name("a"));
        assert_eq!(
            [identity.identify(&said("a")), identity.identify(&said("t"))],
            [ReportOwner::Own, ReportOwner::Own]
        );
    }

    #[test]
    fn both_names_are_asked_by_in_turn_once_one_was_denied() {
        let mut identity = Identity::new(TaskNames { id: name("t"), alias: Some(name("u")) });
        assert_eq!(identity.polled_id(), &name("t"));
        assert!(identity.on_denial());
        assert_eq!(identity.polled_id(), &name("u"));
        assert!(!identity.on_denial());
        assert_eq!(identity.polled_id(), &name("t"));
        assert!(!Identity::new(name("t").into()).on_denial());
    }

    #[test]
    fn difference_is_of_values_and_not_of_spelling() {
        let found = |request: &str, answer: &str| {
            let report =
                crate::service::TaskReport::parse(answer.as_bytes(), &crate::domain::TerminalStates::default())
                    .expect("a report");
            echo_differences(request, &report.echo)
        };
        let asked = r#"{"duration":10,"model":"beta-2.0-lite","size":"1280x720"}"#;
        for same in [
            r#"{"duration": 10, "size": "1280x720"}"#,
            r#"{"duration": 10.04, "size": "1280X720"}"#,
            r#"{"seconds": "10", "size": "1280×720"}"#,
            r#"{"duration": null, "size": "", "aspect_ratio": "16:9"}"#,
            r#"{"duration": {"s": 4}, "size": 720}"#,
            "{}",
        ] {
            assert_eq!(found(asked, same), [""; 0], "{same}");
        }
        let both = found(asked, r#"{"seconds": "4", "size": "480x832"}"#);
        assert_eq!(both, ["4 s, requested 10 s", "`size` 480x832, requested 1280x720"]);
        let alpha = r#"{"aspect_ratio":"9:16","duration":12,"model":"alpha-2"}"#;
        assert_eq!(found(alpha, r#"{"aspect_ratio": "16:9", "duration": 12}"#).len(), 1);
    }
}
