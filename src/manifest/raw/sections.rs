//! The parts of a manifest with a shape of their own: `budget`, `faces`, `moved`, and a job's `labels` and `matrix`. An invalid value is reported and left out.
//!
//! The combinations of a matrix are the product of its axes in file order, the first axis outermost. An entry of `exclude` removes each combination with all of its
//! values, like GitHub Actions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::successors;
use std::slice::from_ref;

use jiff::civil::Date;
use serde_yaml::Value;

use super::table::{JobField as F, Table, text, text_key, text_or_number, wrong_type};
use crate::domain::{InvalidUsd, JobId, Label, Move, Usd};
use crate::manifest::source::diagnostic::{Findings, Pointer, error, help_near, warning};

/// A matrix before its product.
#[derive(Debug, Default)]
pub(crate) struct RawMatrix {
    axes: Vec<(String, Vec<Cell>)>,
    exclude: Vec<Vec<Cell>>,
}

/// One value of a combination.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cell {
    /// The name of its axis.
    pub name: String,
    /// The value: a text, a number, or true or false.
    pub value: Value,
    /// Its location in the manifest.
    pub at: Pointer,
}

impl Cell {
    /// Returns whether it has this value, written as a text or as a number.
    fn is_same(&self, other: &Self) -> bool {
        let is_another_type = std::mem::discriminant(&self.value) != std::mem::discriminant(&other.value);
        self.value == other.value || is_another_type && self.text() == other.text()
    }

    /// Its value as text.
    pub(crate) fn text(&self) -> String {
        text_or_number(&self.value).or_else(|| Some(self.value.as_bool()?.to_string())).unwrap_or_default()
    }
}

/// One value of each axis.
pub(crate) type Combination = Vec<Cell>;

/// Decodes a matrix. Reports each error, and leaves out its value.
pub(super) fn decode_matrix(value: Value, at: &Pointer, found: &mut Findings) -> RawMatrix {
    let mut matrix = RawMatrix::default();
    let Some(table) = Table::open(value, at.clone(), "`matrix`", found) else { return matrix };
    for (key, value) in table.into_pairs() {
        let Some(name) = text_key(&key, at, found) else { continue };
        let place = at.key(name);
        match name {
            "exclude" => matrix.exclude = entries(value, &place, found),
            _ => matrix.axes.extend(axis(name.to_owned(), value, &place, found)),
        }
    }
    matrix.refuse_excludes_of_nothing(found);
    matrix
}

fn axis(name: String, value: Value, at: &Pointer, found: &mut Findings) -> Option<(String, Vec<Cell>)> {
    let Value::Sequence(values) = value else {
        let diagnostic = wrong_type(&format!("the axis `{name}`"), "a list of values", &value, at.value());
        found.push(diagnostic.with_help(format!("write `{name}: [one, another]`")));
        return None;
    };
    if values.is_empty() {
        found.push(error!(AxisEmpty, at.named(), "the axis `{name}` has no values"; "write at least one value"));
        return None;
    }
    let cells = values.into_iter().enumerate();
    let cells: Vec<Cell> = cells.filter_map(|(index, value)| cell(&name, value, at.index(index), found)).collect();
    let mut seen = HashSet::with_capacity(cells.len());
    for cell in &cells {
        if !seen.insert(&cell.value) {
            found.push(error!(AxisRepeats, cell.at.value(), "the axis has this value twice";
                "keep it once; write `takes: 2` for two videos of one request"));
        }
    }
    Some((name, cells))
}

fn cell(name: &str, value: Value, at: Pointer, found: &mut Findings) -> Option<Cell> {
    if matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
        return Some(Cell { name: name.to_owned(), value, at });
    }
    found.push(wrong_type(&format!("a value of `{name}`"), "a string or a number", &value, at.value()));
    None
}

/// The list under `exclude`.
pub(super) fn entries(value: Value, at: &Pointer, found: &mut Findings) -> Vec<Vec<Cell>> {
    let Value::Sequence(items) = value else {
        if !value.is_null() {
            found.push(wrong_type("this", "a list of mappings", &value, at.value()));
        }
        return Vec::new();
    };
    let entry = |(index, item): (usize, Value)| {
        let at = at.index(index);
        let map = Table::open(item, at.clone(), "an entry", found)?.into_pairs();
        let cells = map.into_iter().map(|(key, value)| {
            let name = text_key(&key, &at, found)?;
            cell(name, value, at.key(name), found)
        });
        // Without its invalid cell, an entry would leave out more.
        cells.collect::<Vec<_>>().into_iter().collect()
    };
    items.into_iter().enumerate().filter_map(entry).collect()
}

impl RawMatrix {
    /// The most combinations that are made, before `exclude` or an axis without valid values removes any.
    pub(crate) fn size(&self) -> usize {
        self.axes.iter().fold(1, |size, (_, values)| values.len().max(1).saturating_mul(size))
    }

    /// Every combination, in order.
    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let start: Vec<Combination> = if self.axes.is_empty() { Vec::new() } else { vec![Vec::new()] };
        let mut product = self.axes.iter().fold(start, |product, (_, values)| {
            let longer = |one: Combination| values.iter().map(move |value| [&one[..], from_ref(value)].concat());
            product.into_iter().flat_map(longer).collect()
        });
        let agrees = |one: &Combination, cell: &Cell| one.iter().any(|own| own.name == cell.name && own.is_same(cell));
        product.retain(|one| !self.exclude.iter().any(|entry| entry.iter().all(|cell| agrees(one, cell))));
        product
    }

    /// The names in combinations, each with its first location.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Pointer)> {
        self.axes.iter().filter_map(|(name, values)| Some((name.as_str(), &values.first()?.at)))
    }

    fn refuse_excludes_of_nothing(&self, found: &mut Findings) {
        let axes: Vec<&str> = self.axes.iter().map(|(name, _)| name.as_str()).collect();
        for cell in self.exclude.iter().flatten() {
            match self.axes.iter().find(|(name, _)| *name == cell.name) {
                None => {
                    found.push(error!(AxisUnknown, cell.at.named(),
                        "`exclude` has `{}`, which is not an axis of the matrix", cell.name;
                        "{}", help_near(&cell.name, "axes", &axes)));
                }
                // A misspelled value leaves nothing out.
                Some((axis, values)) if !values.iter().any(|value| value.is_same(cell)) => {
                    found.push(warning!(AxisUnknown, cell.at.value(),
                        "`exclude` has `{}`, which is not a value of `{axis}`", cell.text();
                        "correct the value, or remove the entry"));
                }
                Some(_) => {}
            }
        }
    }
}

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
    let Some(text) = text_or_number(&value) else {
        table.tell_wrong_type(key, "an amount in USD", &value);
        return None;
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
    let (at, mut faces) = (table.at("faces"), Faces::new());
    for (key, value) in table.inner("faces").map(Table::into_pairs).unwrap_or_default() {
        let Some(name) = text_key(&key, &at, table.found()) else { continue };
        // An invalid declaration counts, so that jobs with this face get no second diagnostic.
        let unread = Face { review: Review::Pending, paid_on: None };
        faces.insert(name.to_owned(), face(value, &at.key(name), table.found()).unwrap_or(unread));
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
        _ => None,
    };
    match said {
        Some(other) if review.is_none() => table.tell(error!(ReviewUnknown, at.key("review").value(),
            "`review` must be `approved` or `pending`, found `{other}`"; "{help}")),
        None => table.tell(error!(ReviewMissing, at.named(), "this face has no `review`"; "{help}")),
        Some(_) => {}
    }
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
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) || RESERVED.contains(&&*name) {
            table.tell(error!(LabelInvalid, at.key(&name).named(),
                "the name of a label must be 1 to {MAX_NAME} of A-Z a-z 0-9 . _ -, and no word of `spend --by`, found `{name}`";
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

/// The moves, each chain from its first id to its last. `ids` are those of the manifest's jobs; while some of them are unknown, because
/// a job has a mistake, nothing is said of ids that are not there. What is wrong is reported, and left out.
pub(in crate::manifest) fn moves(
    raw: &[RawMove],
    ids: &HashSet<&JobId>,
    is_complete: bool,
    found: &mut Findings,
) -> Vec<Move> {
    let mut by_old: HashMap<&JobId, &RawMove> = HashMap::new();
    let mut new: HashSet<&JobId> = HashSet::new();
    for a_move in raw {
        let Move { from, to } = &a_move.entry;
        let (of_old, of_new) = (a_move.at.key("from").value(), a_move.at.key("to").value());
        if ids.contains(from) {
            found.push(error!(MovedFromJob, of_old, "`{from}` is moved, but is still a job";
                "write each ID once; to swap jobs, use two runs"));
        } else if by_old.insert(from, a_move).is_some() {
            found.push(error!(MovedConflict, of_old, "`{from}` is moved twice"; "keep one of the two entries"));
        } else if !new.insert(to) {
            found.push(
                error!(MovedConflict, of_new, "`moved` has two entries to `{to}`"; "keep one of the two entries"),
            );
        }
    }
    let is_unknown = |id: &JobId| is_complete && !ids.contains(id) && !by_old.contains_key(id);
    for RawMove { entry: Move { to, .. }, at } in raw.iter().filter(|it| is_unknown(&it.entry.to)) {
        let names: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        found.push(error!(MovedToUnknown, at.key("to").value(), "`{to}` is not a job of this manifest";
            "{}", help_near(to.as_str(), "jobs", &names)));
    }
    // A cycle has no first move, and conflicting entries may lead into one.
    let chain = |first| successors(Some(first), |it: &&RawMove| by_old.get(&it.entry.to).copied());
    let chains = raw.iter().filter(|it| !new.contains(&it.entry.from)).flat_map(chain).take(raw.len());
    let ordered: Vec<Move> = chains.map(|it| it.entry.clone()).collect();
    // A move that no chain reaches is part of a cycle.
    let is_ordered: HashSet<&JobId> = ordered.iter().map(|a_move| &a_move.from).collect();
    if let Some(a_move) = raw.iter().find(|a_move| !is_ordered.contains(&a_move.entry.from)) {
        found.push(error!(MovedCycle, a_move.at.value(), "`moved` has a cycle at `{}`", a_move.entry.from));
    }
    ordered
}

#[cfg(test)]
mod tests {

    use super::*;

    /// The combinations of a matrix, each as `name=value` texts.
    fn combinations(yaml: &str) -> Vec<String> {
        let mut found = Vec::new();
        let matrix = decode_matrix(serde_yaml::from_str(yaml).expect("YAML"), &Pointer::top(), &mut found);
        assert_eq!(found, []);
        let shown = |cell: &Cell| {
            let value =
                cell.value.as_str().map_or_else(|| serde_yaml::to_string(&cell.value), |text| Ok(text.to_owned()));
            format!("{}={}", cell.name, value.expect("YAML").trim())
        };
        matrix.combinations().iter().map(|one| one.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn first_axis_is_outermost() {
        assert_eq!(combinations("{ a: [x, y], b: [1, 2] }"), ["a=x b=1", "a=x b=2", "a=y b=1", "a=y b=2"]);
    }

    #[test]
    fn exclude_removes_combinations_with_all_its_values() {
        let yaml = "{ a: [x, y], b: [1, 2], exclude: [{ a: x, b: 2 }] }";
        assert_eq!(combinations(yaml), ["a=x b=1", "a=y b=1", "a=y b=2"]);
        assert_eq!(combinations("{ a: [x, y], b: [1, 2], exclude: [{ a: x }] }"), ["a=y b=1", "a=y b=2"]);
        // The other axes are multiplied before an axis without values leaves nothing.
        let unread = serde_yaml::from_str("{ a: [1, 2], b: [3, 4, 5], c: [~] }").expect("YAML");
        assert_eq!(decode_matrix(unread, &Pointer::top(), &mut Vec::new()).size(), 6);
        // Written as a text or as a number, it is the same value.
        assert_eq!(combinations("{ a: [5, '10'], exclude: [{ a: '5' }] }"), ["a=10"]);
    }

    #[test]
    fn invalid_matrix_is_reported() {
        for (yaml, code) in [
            ("[a]", "wrong-type"),
            ("{ a: x }", "wrong-type"),
            ("{ a: [] }", "axis-empty"),
            ("{ a: [[x]] }", "wrong-type"),
            ("{ a: [x, y, x] }", "axis-repeats"),
            ("{ a: [x], exclude: [{ b: 1 }] }", "axis-unknown"),
            ("{ a: [x], exclude: [{ a: y }] }", "axis-unknown"),
            ("{ a: [x], exclude: [{ 1: y }] }", "key-not-text"),
            ("{ a: [x], exclude: x }", "wrong-type"),
            ("{ 1: [x] }", "key-not-text"),
        ] {
            let mut found = Vec::new();
            decode_matrix(serde_yaml::from_str(yaml).expect("YAML"), &Pointer::top(), &mut found);
            assert_eq!(found.first().map(|diagnostic| diagnostic.rule.code()), Some(code), "{yaml}");
        }
    }
}
