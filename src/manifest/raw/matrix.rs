//! `matrix`: every combination of values, with `exclude` like GitHub Actions.
//!
//! The combinations are the product of the axes in file order, the first axis outermost. An entry of `exclude` removes each combination with all of its
//! values.

use std::collections::HashSet;

use serde_yaml::Value;

use super::table::{Table, text_key, wrong_type};
use crate::manifest::source::diagnostic::{Findings, error, warning};
use crate::manifest::source::location::{Pointer, help_near};

/// The most combinations of one matrix: as many as the largest manifest has jobs.
const MAX_COMBINATIONS: usize = 100_000;

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
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(is_so) => is_so.to_string(),
            _ => String::new(),
        }
    }
}

/// One value of each axis.
pub(crate) type Combination = Vec<Cell>;

/// Decodes a matrix. Reports each error, and leaves out its value.
pub(crate) fn decode(value: Value, at: &Pointer, found: &mut Findings) -> RawMatrix {
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
    matrix.refuse_if_too_large(at, found);
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
    /// Every combination, in order.
    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let mut product: Vec<Combination> = if self.axes.is_empty() { Vec::new() } else { vec![Vec::new()] };
        for (_, values) in &self.axes {
            let longer = |combination: &Combination, value: &Cell| {
                let mut longer = combination.clone();
                longer.push(value.clone());
                longer
            };
            product = product.iter().flat_map(|one| values.iter().map(move |value| longer(one, value))).collect();
        }
        product.retain(|combination| !self.exclude.iter().any(|entry| agrees(combination, entry)));
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

    fn refuse_if_too_large(&mut self, at: &Pointer, found: &mut Findings) {
        let size = self.axes.iter().try_fold(1_usize, |size, (_, values)| size.checked_mul(values.len()));
        if size.is_none_or(|size| size > MAX_COMBINATIONS) {
            found.push(
                error!(MatrixTooLarge, at.named(), "the matrix must have at most {MAX_COMBINATIONS} combinations";
                "use fewer values"),
            );
            *self = Self::default();
        }
    }
}

fn agrees(combination: &[Cell], entry: &[Cell]) -> bool {
    entry.iter().all(|cell| has(combination, cell))
}

fn has(combination: &[Cell], wanted: &Cell) -> bool {
    combination.iter().any(|cell| cell.name == wanted.name && cell.is_same(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The combinations of a matrix, each as `name=value` texts.
    fn combinations(yaml: &str) -> Vec<String> {
        let mut found = Vec::new();
        let matrix = decode(serde_yaml::from_str(yaml).expect("YAML"), &Pointer::top(), &mut found);
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
            decode(serde_yaml::from_str(yaml).expect("YAML"), &Pointer::top(), &mut found);
            assert_eq!(found.first().map(|diagnostic| diagnostic.rule.code()), Some(code), "{yaml}");
        }
        let axis: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        let yaml = format!("{{ a: [{0}], b: [{0}] }}", axis.join(","));
        let mut found = Vec::new();
        decode(serde_yaml::from_str(&yaml).expect("YAML"), &Pointer::top(), &mut found);
        assert_eq!(found.first().map(|diagnostic| diagnostic.rule.code()), Some("matrix-too-large"));
    }
}
