//! The small parts of a manifest: `budget`, `faces`, `moved`, and the `labels` of a job. An invalid value is reported and left out.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_yaml::Value;

use super::job_field::JobField as F;
use super::table::{Table, text, text_key, wrong_type};
use crate::domain::{InvalidUsd, JobId, Label, Move, Usd};
use crate::manifest::source::diagnostic::{Findings, error};
use crate::manifest::source::location::Pointer;

/// Limits on spending that a manifest sets.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// The limit on new spending of one run.
    pub run: Option<Usd>,
    /// The limits on spending of all batches of the ledger.
    pub all: SpanBudget,
    /// The limits for jobs with a label.
    pub labels: BTreeMap<Label, SpanBudget>,
}

/// The most that all batches of the ledger may spend in a span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpanBudget {
    /// In a day.
    pub day: Option<Usd>,
    /// In a month.
    pub month: Option<Usd>,
}

/// Decodes `budget`. Reports each error, and leaves out its limit.
pub(super) fn decode_budget(table: &mut Table<'_>) -> Budget {
    let Some(mut budget) = table.inner("budget") else { return Budget::default() };
    let run = amount(&mut budget, "run");
    let all = spans(&mut budget);
    let labels_at = budget.at("labels");
    let labels = budget.take("labels").map(|value| labels(value, &labels_at, budget.found())).unwrap_or_default();
    budget.close(&["run", "day", "month", "labels"]);
    Budget { run, all, labels }
}

fn spans(table: &mut Table<'_>) -> SpanBudget {
    SpanBudget { day: amount(table, "day"), month: amount(table, "month") }
}

/// By name, by value: `{ client: { acme: { month: 200 } } }`.
fn labels(value: Value, at: &Pointer, found: &mut Findings) -> BTreeMap<Label, SpanBudget> {
    let mut limits = BTreeMap::new();
    let Some(names) = Table::open(value, at.clone(), "`labels`", found) else { return limits };
    for (name, values) in names.into_pairs() {
        let Some(name) = label_key(&name, at, found) else { continue };
        let at = at.key(&name);
        let Some(values) = Table::open(values, at.clone(), "a label", found) else { continue };
        for (value, amounts) in values.into_pairs() {
            let Some(value) = label_key(&value, &at, found) else { continue };
            let Some(mut amounts) = Table::open(amounts, at.key(&value), "a limit", found) else { continue };
            let limit = spans(&mut amounts);
            amounts.close(&["day", "month"]);
            let place = at.key(&value).named();
            if limits.insert(Label { name: name.clone(), value: value.clone() }, limit).is_some() {
                found.push(error!(KeyDuplicate, place, "`{name}: {value}` has two limits"; "keep one of the two"));
            }
        }
    }
    limits
}

/// An amount in USD. A key without a value is an error, because it could be read as "no limit".
fn amount(table: &mut Table<'_>, key: &str) -> Option<Usd> {
    let value = table.take_even_null(key)?;
    // The parser hands numbers over as binary floats; their shortest decimal form is the text that was written as long as that has
    // at most 15 significant digits, which every amount below a billion with six decimals has.
    let text = match &value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => {
            let diagnostic = wrong_type(&format!("`{key}`"), "an amount in USD", other, table.at(key).value());
            table.tell(diagnostic);
            return None;
        }
    };
    text.parse().map_err(|error: InvalidUsd| table.tell(error!(NotMoney, table.at(key).value(), "{error}"))).ok()
}

/// A key of labels as text. A whole number is taken as its digits: a client may be called 7.
fn label_key(key: &Value, at: &Pointer, found: &mut Findings) -> Option<String> {
    let number = key.as_i64();
    number.map(|number| number.to_string()).or_else(|| text_key(key, at, found).map(str::to_owned))
}

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
    /// The day of the payment for its review.
    pub(crate) paid_on: Option<Date>,
}

/// The declared faces, by name.
pub(crate) type Faces = BTreeMap<String, Face>;

/// Reads the declarations, and reports invalid ones.
pub(super) fn decode_faces(table: &mut Table<'_>) -> Faces {
    let at = table.at("faces");
    let Some(value) = table.take("faces") else { return Faces::default() };
    let found = table.found();
    let unread = Face { review: Review::Pending, paid_on: None };
    let Value::Mapping(map) = value else {
        found.push(wrong_type("`faces`", "a mapping of names to reviews", &value, at.value()));
        let names = value.as_sequence().into_iter().flatten().filter_map(Value::as_str);
        return names.map(|name| (name.to_owned(), unread)).collect();
    };
    let mut faces = Faces::new();
    for (key, value) in map {
        let Some(name) = text_key(&key, &at, found) else { continue };
        // An invalid declaration counts, so that jobs with this face get no second diagnostic.
        faces.insert(name.to_owned(), face(value, &at.key(name), found).unwrap_or(unread));
    }
    faces
}

fn face(value: Value, at: &Pointer, found: &mut Findings) -> Option<Face> {
    let help = "write `{ review: approved }` or `{ review: pending }`";
    let mut table = Table::open(value, at.clone(), "a face", found)?;
    let (said, day) = (table.text("review"), table.text("paid_on"));
    let paid_on = day.as_ref().and_then(|day| day.parse().ok());
    if let Some(day) = day.as_ref().filter(|_| paid_on.is_none()) {
        table.tell(error!(ReviewPaidOn, at.key("paid_on").value(), "`paid_on` must be a date, found `{day}`";
            "write the day of the payment, such as 2026-11-02"));
    }
    let review = match said.as_deref() {
        Some("approved") => Some(Review::Approved),
        Some("pending") => Some(Review::Pending),
        Some(other) => {
            table.tell(error!(ReviewUnknown, at.key("review").value(),
                "`review` must be `approved` or `pending`, found `{other}`"; "{help}"));
            None
        }
        None => {
            table.tell(error!(ReviewMissing, at.named(), "this face has no `review`"; "{help}"));
            None
        }
    };
    table.close(&["review", "paid_on"]);
    review.map(|review| Face { review, paid_on })
}

/// One entry, and where it is.
#[derive(Debug)]
pub(crate) struct RawMove {
    /// The move.
    pub entry: Move,
    /// The entry.
    pub at: Pointer,
}

/// Decodes `moved`. Reports each error, and leaves out its entry.
pub(super) fn decode_moves(table: &mut Table<'_>) -> Vec<RawMove> {
    let at = table.at("moved");
    let entries = match table.take("moved") {
        None => return Vec::new(),
        Some(Value::Sequence(entries)) => entries,
        Some(other) => {
            let diagnostic = wrong_type("`moved`", "a list", &other, at.value());
            table.tell(diagnostic.with_help("write `moved: [{ from: OLD-ID, to: NEW-ID }]`"));
            return Vec::new();
        }
    };
    let entries = entries.into_iter().enumerate();
    entries.filter_map(|(index, entry)| one(entry, at.index(index), table.found())).collect()
}

fn one(value: Value, at: Pointer, found: &mut Findings) -> Option<RawMove> {
    let mut table = Table::open(value, at.clone(), "an entry of `moved`", found)?;
    let (from, to) = (id(&mut table, "from"), id(&mut table, "to"));
    table.close(&["from", "to"]);
    Some(RawMove { entry: Move { from: from?, to: to? }, at })
}

fn id(table: &mut Table<'_>, key: &str) -> Option<JobId> {
    let before = table.found().len();
    let Some(text) = table.text(key) else {
        if table.found().len() == before {
            table.tell(error!(IdMissing, table.at(key).value(), "this entry has no `{key}`";
                "write `{{ from: OLD-ID, to: NEW-ID }}`"));
        }
        return None;
    };
    JobId::new(text.as_str())
        .map_err(|error| {
            let place = table.at(key).value();
            table.tell(error!(IdInvalid, place, "{error}: `{text}`";
                "an entry must name one job by its ID, without patterns and templates"));
        })
        .ok()
}

/// The longest name of a label, in bytes: it is the head of a column in reports.
const MAX_NAME: usize = 64;
/// Names with another meaning for `spend --by`.
const RESERVED: [&str; 3] = ["day", "batch", "model"];

/// Decodes the labels of an entry. Reports each error, and leaves out its label.
pub(super) fn decode_labels(table: &mut Table<'_>) -> Option<Vec<(String, String)>> {
    let name = F::Labels.name();
    let at = table.at(name);
    let mut decoded = Vec::new();
    for (name, value) in table.inner(name)?.into_pairs() {
        let Some(name) = label_key(&name, &at, table.found()) else { continue };
        if let Some(wrong) = what_is_wrong_with(&name) {
            table.tell(error!(LabelInvalid, at.key(&name).named(), "the label name `{name}` is invalid: {wrong}";
                "rename the label"));
        }
        if decoded.iter().any(|(earlier, _)| *earlier == name) {
            table.tell(
                error!(KeyDuplicate, at.key(&name).named(), "`labels` has `{name}` twice"; "keep one of the two"),
            );
        }
        let value = Some(value).filter(|value| !value.is_null());
        let value = value.and_then(|value| text(value, &name, || at.key(&name), table.found()));
        decoded.extend(value.map(|value| (name, value)));
    }
    Some(decoded)
}

fn what_is_wrong_with(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if RESERVED.contains(&name) {
        Some("it is a word of `spend --by`")
    } else if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        Some("it must be 1 to 64 of A-Z a-z 0-9 . _ -")
    } else {
        None
    }
}
