//! `faces`: declared human faces with the state of their review (interface §3).

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_yaml::Value;

use super::table::{Table, wrong_type};
use crate::domain::Rule;
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::Pointer;

/// The state of a face's review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Review {
    /// The service allows it.
    Approved,
    /// The review is still open. Customer support starts it.
    Pending,
}

/// A declared face.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Face {
    pub(crate) review: Review,
    /// The day on which its review was paid.
    pub(crate) paid_on: Option<Date>,
}

/// The declared faces, by name.
pub(crate) type Faces = BTreeMap<String, Face>;

/// Reads the declarations. An invalid one is reported and left out.
pub(crate) fn decode(value: Value, at: &Pointer, found: &mut Vec<Diagnostic>) -> Faces {
    let mut faces = Faces::new();
    let Value::Mapping(map) = value else {
        found.push(wrong_type("`faces`", "a mapping of names to reviews", &value, at.clone().value()));
        return faces;
    };
    for (key, value) in map {
        let Some(name) = key.as_str() else {
            found.push(Diagnostic::error(Rule::KeyNotText, "the name of a face must be a string", at.clone().value()));
            continue;
        };
        // Declared, however wrong: jobs that name it need no diagnostic of their own.
        let face = face(value, &at.key(name), found).unwrap_or(Face { review: Review::Pending, paid_on: None });
        faces.insert(name.to_owned(), face);
    }
    faces
}

fn face(value: Value, at: &Pointer, found: &mut Vec<Diagnostic>) -> Option<Face> {
    let help = "write `{ review: approved }` or `{ review: pending }`";
    let mut table = Table::open(value, at.clone(), "a face", found)?;
    let (said, day) = (table.text("review"), table.text("paid_on"));
    let paid_on = day.as_ref().and_then(|day| day.parse().ok());
    if let Some(day) = day.as_ref().filter(|_| paid_on.is_none()) {
        let message = format!("`paid_on` must be a date, found `{day}`");
        let diagnostic = Diagnostic::error(Rule::ReviewPaidOn, message, at.key("paid_on").value());
        table.tell(diagnostic.with_help("write the day of the payment, such as 2026-11-02"));
    }
    let review = match said.as_deref() {
        Some("approved") => Some(Review::Approved),
        Some("pending") => Some(Review::Pending),
        Some(other) => {
            let message = format!("`review` must be `approved` or `pending`, found `{other}`");
            table.tell(Diagnostic::error(Rule::ReviewUnknown, message, at.key("review").value()).with_help(help));
            None
        }
        None => {
            table.tell(
                Diagnostic::error(Rule::ReviewMissing, "this face has no `review`", at.clone().named()).with_help(help),
            );
            None
        }
    };
    table.close(&["review", "paid_on"]);
    review.map(|review| Face { review, paid_on })
}
