//! One row of a table that jobs were made of, as it was written.

use std::collections::HashMap;
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// The names of a table's columns; shared by all of its rows.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    index: HashMap<String, usize>,
}

impl Columns {
    /// Takes the names, in their order; a second column of one name, which is given back, is reported and not taken.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        let mut index = HashMap::with_capacity(names.len());
        for (column, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if index.insert(name.clone(), column).is_some() {
                return Err(name.clone());
            }
        }
        Ok(Self { names, index })
    }

    /// The names, in their order. One may be blank.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// The cells of one row, in one piece of memory: a table may have a hundred thousand rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cells {
    columns: Arc<Columns>,
    text: Box<str>,
    /// The end of each cell.
    ends: Box<[u32]>,
}

impl Cells {
    /// The cells under these columns, in their order.
    pub fn new<'c>(columns: Arc<Columns>, cells: impl IntoIterator<Item = &'c str>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::with_capacity(columns.names.len()));
        for cell in cells {
            text.push_str(cell);
            // No table that is read is longer than 64 MiB.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        Self { columns, text: text.into(), ends: ends.into() }
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// The cell under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.at(*self.columns.index.get(name)?)
    }

    fn at(&self, column: usize) -> Option<&str> {
        let start = if column == 0 { 0 } else { *self.ends.get(column - 1)? };
        self.text.get(start as usize..*self.ends.get(column)? as usize)
    }

    /// Each name with its cell, in the order of the columns; columns without a name are passed over.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.columns.names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        named.filter_map(|(column, name)| Some((name.as_str(), self.at(column)?)))
    }
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, cell) in self.iter() {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_found_by_its_name_and_is_what_was_written() {
        let names = ["sku", "", "name", "empty"].map(str::to_owned).to_vec();
        let columns = Arc::new(Columns::new(names).expect("columns"));
        let cells = Cells::new(Arc::clone(&columns), ["A 1", "x", "Łódź, \"mug\"", ""]);
        assert_eq!(
            [cells.get("sku"), cells.get("name"), cells.get("empty")],
            [Some("A 1"), Some("Łódź, \"mug\""), Some("")]
        );
        assert_eq!((cells.get(""), cells.get("other")), (None, None));
        assert_eq!(serde_json::to_string(&cells).expect("JSON"), r#"{"sku":"A 1","name":"Łódź, \"mug\"","empty":""}"#);
        assert_eq!(Columns::new(vec!["a".into(), "a".into()]), Err("a".to_owned()));
    }
}
