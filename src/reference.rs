//! The reference: topics about more than one option, in Markdown. `shotlist help TOPIC` prints a topic as text. Imports no other module.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use unicode_width::UnicodeWidthStr;

/// A page of the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Topic {
    /// The name.
    pub name: &'static str,
    /// Other words for it.
    aliases: &'static [&'static str],
    text: &'static str,
}

const fn topic(name: &'static str, aliases: &'static [&'static str], text: &'static str) -> Topic {
    Topic { name, aliases, text }
}

/// All topics, in reading order.
pub(crate) const TOPICS: [Topic; 12] = [
    topic(
        "manifest",
        &["face", "faces", "template", "spreadsheet", "sheet", "excel"],
        include_str!("reference/manifest.md"),
    ),
    topic("money", &["confirmation", "budget", "limit", "doubt", "cost"], include_str!("reference/money.md")),
    topic("again", &["takes", "retry", "retake"], include_str!("reference/again.md")),
    topic("exit-codes", &[], include_str!("reference/exit-codes.md")),
    topic("reports", &[], include_str!("reference/reports.md")),
    topic("cron", &[], include_str!("reference/cron.md")),
    topic("machines", &[], include_str!("reference/machines.md")),
    topic("videos", &[], include_str!("reference/videos.md")),
    topic("hooks", &[], include_str!("reference/hooks.md")),
    topic("service", &["proxy", "gateway"], include_str!("reference/service.md")),
    topic("editors", &[], include_str!("reference/editors.md")),
    topic("words", &["glossary"], include_str!("reference/words.md")),
];

impl Topic {
    /// The topic with this name or alias.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TOPICS.into_iter().find(|topic| topic.name == name || topic.aliases.contains(&name))
    }

    /// The text for a terminal, in lines of at most `columns` columns. Code and longer words stay whole.
    pub(crate) fn page(self, columns: u16) -> String {
        let (mut page, mut is_code, mut lines) = (String::new(), false, self.text.lines().peekable());
        while let Some(line) = lines.next() {
            if line.starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                page += &format!("    {line}\n");
            } else if line.starts_with('#') {
                page += &format!("{}\n", line.trim_start_matches(['#', ' ']).to_uppercase());
            } else if lines.next_if(|next| next.starts_with("---|")).is_some() {
                let rows = std::iter::from_fn(|| lines.next_if(|next| !next.is_empty()).map(str::to_owned));
                let rows: Vec<String> = std::iter::once(line.to_uppercase()).chain(rows).collect();
                page += &table(&rows, " | ", 2, columns);
            } else if let Some(item) = line.strip_prefix("- ") {
                page += &table(&[format!("-\t{}", item.replace("**", ""))], "\t", 1, columns);
            } else {
                page += &table(&[line.to_owned()], "\n", 0, columns);
            }
        }
        page
    }
}

/// Rows of cells, with a gap between columns. No word is broken.
fn table(rows: &[String], separator: &str, gap: u16, columns: u16) -> String {
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(separator).collect()).collect();
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(columns).add_rows(&rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let words = rows.iter().filter_map(|row| row.get(index)).flat_map(|cell| cell.split(' '));
        let longest = words.map(UnicodeWidthStr::width).max().and_then(|width| u16::try_from(width).ok());
        let least = Width::Fixed(longest.unwrap_or_default() + gap);
        column.set_padding((0, gap)).set_constraint(ColumnConstraint::LowerBoundary(least));
    }
    table.lines().flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_every_word_of_its_topic() {
        for topic in TOPICS {
            let words = |text: &str| {
                let is_markup = |word: &str| {
                    matches!(word, "|" | "#" | "##") || word.starts_with("---|") || word.starts_with("```")
                };
                let text = text.replace("**", "").to_lowercase();
                let mut words: Vec<String> =
                    text.split_whitespace().filter(|word| !is_markup(word)).map(str::to_owned).collect();
                words.sort_unstable();
                words
            };
            for columns in [80, 100] {
                let page = topic.page(columns);
                assert!(words(&page) == words(topic.text), "{}: {page}", topic.name);
                assert!(page.lines().all(|line| line.width() <= columns.into() || line.starts_with("    ")), "{page}");
            }
        }
    }

    #[test]
    fn each_topic_has_names_of_its_own() {
        let names: Vec<&str> =
            TOPICS.iter().flat_map(|topic| topic.aliases.iter().chain([&topic.name])).copied().collect();
        let unique: std::collections::HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len());
        assert_eq!(Topic::named("glossary").map(|topic| topic.name), Some("words"));
        assert_eq!(Topic::named("exit codes"), None);
    }
}
