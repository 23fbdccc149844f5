//! Empty cells that leave a gap in a prompt, in templates of only words and names, as in `a mug in {{ row.color }}`.

use minijinja::Value;

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

    /// The columns that stand among words and are empty in a row, each with how often its name begins a column before it.
    pub(super) fn holes(&self, row: &Value) -> Vec<(&'t str, usize)> {
        let has_words = self.0.iter().any(|part| matches!(part, Part::Words(words) if !words.trim().is_empty()));
        let is_empty = |column: &str| {
            row.get_attr(column).is_ok_and(|cell| cell.as_str().is_some_and(|text| text.trim().is_empty()))
        };
        let (mut holes, mut before): (Vec<(&str, usize)>, Vec<&str>) = (Vec::new(), Vec::new());
        for (at, part) in self.0.iter().enumerate().filter(|_| has_words) {
            let Part::Column(column) = part else { continue };
            let is_told = holes.iter().any(|(shown, _)| shown == column);
            if is_empty(column) && !is_told && !self.stands_apart(at) {
                holes.push((*column, before.iter().filter(|earlier| earlier.starts_with(*column)).count()));
            }
            before.push(*column);
        }
        holes
    }

    /// Returns whether a name comes last, after a finished sentence: its text is optional.
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
    use super::*;

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
}
