//! `budget`: limits on spending, for everything and for what has a label.

use std::collections::BTreeMap;

use serde_yaml::Value;

use super::table::{Table, wrong_type};
use crate::domain::{InvalidUsd, Label, Rule, Usd};
use crate::manifest::source::diagnostic::Diagnostic;
use crate::manifest::source::location::Pointer;

/// Limits on spending that a manifest sets.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// The limit on new spending of one run.
    pub run: Option<Usd>,
    /// The limits on spending of all batches of the ledger.
    pub all: SpanBudget,
    /// Their limits on spending for what has a label.
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

/// Takes the limits out of a manifest. What is wrong is reported, and left out.
pub(super) fn decode(table: &mut Table<'_>) -> Budget {
    let at = table.at("budget");
    let Some(value) = table.take("budget") else { return Budget::default() };
    let Some(mut budget) = Table::open(value, at, "`budget`", table.found()) else { return Budget::default() };
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
fn labels(value: Value, at: &Pointer, found: &mut Vec<Diagnostic>) -> BTreeMap<Label, SpanBudget> {
    let mut limits = BTreeMap::new();
    let Some(names) = Table::open(value, at.clone(), "`labels`", found) else { return limits };
    for (name, values) in names.into_map() {
        let Some(name) = text_key(&name, "a label", at, found) else { continue };
        let at = at.key(&name);
        let Some(values) = Table::open(values, at.clone(), "a label", found) else { continue };
        for (value, amounts) in values.into_map() {
            let Some(value) = text_key(&value, "the value of a label", &at, found) else { continue };
            let Some(mut amounts) = Table::open(amounts, at.key(&value), "a limit", found) else { continue };
            let limit = spans(&mut amounts);
            amounts.close(&["day", "month"]);
            let place = at.key(&value).named();
            if limits.insert(Label { name: name.clone(), value: value.clone() }, limit).is_some() {
                let message = format!("`{name}: {value}` has two limits");
                found.push(Diagnostic::error(Rule::KeyDuplicate, message, place).with_help("keep one of the two"));
            }
        }
    }
    limits
}

/// A key as text. A whole number is taken as its digits: a client may be called 7.
fn text_key(key: &Value, what: &str, at: &Pointer, found: &mut Vec<Diagnostic>) -> Option<String> {
    match key {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => {
            let message = format!("{what} must be a string");
            found.push(
                Diagnostic::error(Rule::KeyNotText, message, at.clone().value()).with_help("put quotes around it"),
            );
            None
        }
    }
}

/// An amount of dollars. One that was forgotten is reported: no one means "no limit" by it.
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
    text.parse()
        .map_err(|error: InvalidUsd| {
            let diagnostic = Diagnostic::error(Rule::NotMoney, error.to_string(), table.at(key).value());
            table.tell(diagnostic);
        })
        .ok()
}
