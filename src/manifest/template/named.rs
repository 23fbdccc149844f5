//! Templates in which nothing stands but words and names, as `{{ row.id }}` or `a mug in {{ colour }}`: most of those of a table. They are filled in
//! without the engine, many times as fast, and mean the same: what is not as simple as it looks is left to the engine, and so is every error.

use minijinja::Value;

use super::bounds;

/// Names that are values by themselves in Jinja.
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];

/// The words and names of a template, in their order.
pub(super) struct Named<'t>(Vec<Part<'t>>);

enum Part<'t> {
    Words(&'t str),
    Name(&'t str),
    Column(&'t str),
}

impl<'t> Named<'t> {
    /// Takes a template apart that the engine has read; nothing if there is more in it.
    pub(super) fn of(source: &'t str) -> Option<Self> {
        if source.contains("{%") || source.contains("{#") {
            return None;
        }
        // A line break at the end is not part of a template.
        let source = source.strip_suffix('\n').unwrap_or(source);
        let mut rest = source.strip_suffix('\r').unwrap_or(source);
        let mut parts = Vec::new();
        while let Some((words, tag)) = rest.split_once("{{") {
            let (name, behind) = tag.split_once("}}")?;
            let name = name.trim_ascii();
            let part = name.strip_prefix("row.").map_or(Part::Name(name), Part::Column);
            let (Part::Name(name) | Part::Column(name)) = part else { return None };
            if !is_name(name) || CONSTANTS.contains(&name) {
                return None;
            }
            parts.extend([Part::Words(words), part]);
            rest = behind;
        }
        parts.push(Part::Words(rest));
        Some(Self(parts))
    }

    /// The text with the values of names and of columns; nothing if one of them has no text.
    pub(super) fn fill(&self, name: impl Fn(&str) -> Option<Value>, row: Option<&Value>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            let value;
            let words = match part {
                Part::Words(words) => words,
                Part::Name(of) => {
                    value = name(of)?;
                    value.as_str()?
                }
                Part::Column(column) => {
                    value = row?.get_attr(column).ok()?;
                    value.as_str()?
                }
            };
            if text.len() + words.len() > bounds::LONGEST {
                return None;
            }
            text.push_str(words);
        }
        Some(text)
    }

    /// The columns that stand among words and are empty in a row, each with how often its name begins a column before it.
    pub(super) fn holes(&self, row: &Value) -> Vec<(&'t str, usize)> {
        let has_words = self.0.iter().any(|part| matches!(part, Part::Words(words) if !words.trim().is_empty()));
        let is_empty = |column: &str| {
            row.get_attr(column).is_ok_and(|cell| cell.as_str().is_some_and(|text| text.trim().is_empty()))
        };
        let (mut holes, mut before): (Vec<(&str, usize)>, Vec<&str>) = (Vec::new(), Vec::new());
        for (at, part) in self.0.iter().enumerate().filter(|_| has_words) {
            let Part::Column(column) = part else { continue };
            let is_told = holes.iter().any(|(told, _)| told == column);
            if is_empty(column) && !is_told && !self.stands_apart(at) {
                holes.push((*column, before.iter().filter(|earlier| earlier.starts_with(*column)).count()));
            }
            before.push(*column);
        }
        holes
    }

    /// Whether a name comes last, behind a sentence that has ended: what it adds may be left out.
    fn stands_apart(&self, at: usize) -> bool {
        // Before and behind each name are words, be they none.
        let words =
            |at: usize| if let Some(Part::Words(words)) = self.0.get(at) { words.trim_matches(' ') } else { "" };
        words(at - 1).ends_with(['.', '!', '?', '…', '。']) && words(at + 1).is_empty() && at + 2 == self.0.len()
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::manifest::template::engine::{Scope, Templates, Text};

    fn piece() -> impl Strategy<Value = String> {
        let names = [
            "row.a",
            "row.b c",
            "row.missing",
            "row",
            "id",
            "axis",
            "brand",
            "number",
            "true",
            "none",
            "today",
            "loop",
            "self",
            "if",
            "row.if",
        ];
        let name = prop::sample::select(names.map(str::to_owned).to_vec());
        prop_oneof![
            3 => name.clone().prop_map(|name| format!("{{{{ {name} }}}}")),
            1 => (name, "[-+ \n\t]{0,2}", "( \\| upper)?[-+ \n]{0,2}").prop_map(|(name, before, behind)| format!("{{{{{before}{name}{behind}}}}}")),
            3 => "[a {}%#é\n\r-]{0,4}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// What is filled in without the engine is what the engine makes of it.
        #[test]
        fn the_engine_makes_the_same(pieces in prop::collection::vec(piece(), 0..5), has_row in any::<bool>()) {
            let source = pieces.concat();
            let vars = [("brand".to_owned(), "Łódź".into()), ("number".to_owned(), 7.into())];
            let templates = Templates::new(vars, "2026-01-01", []);
            let row = Value::from_pairs([("a", Value::from("<A>")), ("b c", Value::from("x")), ("if", Value::from(3))]);
            let scope = Arc::new(Scope {
                row: has_row.then_some(row),
                fields: vec![("id", Value::from("j1"))],
                matrix: ["axis", "true", "none", "loop", "self", "number"].map(|name| (name.to_owned(), Value::from(name))).to_vec(),
                ..Scope::default()
            });
            let Ok(Text::Template(mut compiled)) = templates.compile(&source) else { return Ok(()) };
            let Some(named) = compiled.named.take() else { return Ok(()) };
            let Some(filled) = named.fill(|name| scope.value(name), scope.row.as_ref()) else { return Ok(()) };
            let by_engine = templates.render(&Text::Template(compiled), &scope).map_err(|error| error.message);
            prop_assert_eq!(by_engine, Ok(filled), "{}", source);
        }
    }

    #[test]
    fn a_hole_is_an_empty_cell_among_words() {
        let row = Value::from_pairs([
            ("a", Value::from("x")),
            ("b", Value::from(" ")),
            ("c", Value::from("")),
            ("n", Value::from(0)),
        ]);
        let holes = |source| Named::of(source).expect("words and names").holes(&row);
        for hole in [
            "a {{ row.b }} mug",
            "{{ row.a }} of {{row.b}}",
            "{{ row.b }}: a mug, {{ row.b }}",
            "A mug. {{ row.b }} at dawn",
        ] {
            assert_eq!(holes(hole), [("b", 0)], "{hole}");
        }
        assert_eq!(holes("a {{ row.c }} mug of {{ row.b }} and {{ row.a }}"), [("c", 0), ("b", 0)]);
        assert_eq!(holes("{{ row.both }} and {{ row.b }} as {{ row.b }}"), [("b", 1)]);
        assert_eq!(holes("Turns slowly.\n{{ row.b }}\nat dawn"), [("b", 0)], "it may be what turns");
        for whole in [
            "{{ row.b }}",
            "{{ row.a }}{{ row.b }}",
            "a {{ row.a }} mug",
            "{{ row.n }} mugs",
            "a {{ b }} mug",
            "A mug. {{ row.b }}",
        ] {
            assert!(holes(whole).is_empty(), "{whole}");
        }
    }

    #[test]
    fn words_and_names_need_no_engine() {
        let value = |name: &str| (name == "colour").then(|| Value::from("red"));
        let row = Value::from_pairs([("id", "a")]);
        let fill = |source| Named::of(source).and_then(|named| named.fill(value, Some(&row)));
        assert_eq!(fill("{{ row.id }}: a mug in {{colour}}\n").as_deref(), Some("a: a mug in red"));
        for other in [
            "{{ colour | upper }}",
            "{{- colour }}",
            "{{ row['id'] }}",
            "{% if colour %}{{ colour }}{% endif %}",
            "{{ size }}",
            "{{ row.sku }}",
        ] {
            assert_eq!(fill(other), None, "{other}");
        }
    }
}
