//! The topics, by their names.

use super::{blocks, man, terminal};

/// Something that the reference has a page about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Topic {
    /// Its name, by which it is asked for.
    pub name: &'static str,
    /// The section of the manual that its man page is in.
    pub section: char,
    text: &'static str,
}

/// All topics, in the order in which they are best read.
pub const TOPICS: [Topic; 12] = [
    Topic { name: "manifest", section: '5', text: include_str!("manifest.md") },
    Topic { name: "money", section: '7', text: include_str!("money.md") },
    Topic { name: "again", section: '7', text: include_str!("again.md") },
    Topic { name: "exit-codes", section: '7', text: include_str!("exit-codes.md") },
    Topic { name: "reports", section: '7', text: include_str!("reports.md") },
    Topic { name: "cron", section: '7', text: include_str!("cron.md") },
    Topic { name: "machines", section: '7', text: include_str!("machines.md") },
    Topic { name: "videos", section: '7', text: include_str!("videos.md") },
    Topic { name: "programs", section: '7', text: include_str!("programs.md") },
    Topic { name: "service", section: '7', text: include_str!("service.md") },
    Topic { name: "editors", section: '7', text: include_str!("editors.md") },
    Topic { name: "words", section: '7', text: include_str!("words.md") },
];

impl Topic {
    /// The topic of this name.
    pub fn named(name: &str) -> Option<Self> {
        TOPICS.into_iter().find(|topic| topic.name == name)
    }

    /// The title.
    pub fn title(self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The topic as text of at most so many columns.
    pub fn in_columns(self, columns: usize) -> String {
        terminal::text(&blocks::of(self.text), columns)
    }

    /// The topic as a man page: `shotlist-NAME.SECTION`.
    pub fn man_page(self) -> String {
        let others = TOPICS.iter().filter(|other| **other != self);
        let others: Vec<String> = others.map(|other| format!("shotlist-{}({})", other.name, other.section)).collect();
        let see_also = format!("shotlist(1), {}", others.join(", "));
        man::page((self.name, self.section), self.title(), &blocks::of(self.text), &see_also)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_topic_can_be_shown_and_loses_no_word() {
        // Headings are in capitals there.
        let words = |text: &str| -> HashSet<String> {
            let plain = text.replace("\\*(Aq", "'").replace("\\fB", "").replace("\\fR", "").to_lowercase();
            plain.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
        };
        for topic in TOPICS {
            let (shown, page) = (words(&topic.in_columns(80)), words(&topic.man_page()));
            assert!(shown.len() > 50, "{}", topic.name);
            // A table with one column needs no header.
            let is_head =
                |next: Option<&&str>| next.is_some_and(|next| next.starts_with("---|") || next.starts_with("|---"));
            let lines: Vec<&str> = topic.text.lines().collect();
            let prose =
                lines.iter().enumerate().filter(|(at, line)| !is_head(lines.get(at + 1)) && !line.starts_with("```"));
            for word in words(&prose.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")) {
                assert!(shown.contains(&word), "{} lacks `{word}` on a terminal", topic.name);
                assert!(page.contains(&word) || !word.is_ascii(), "{} lacks `{word}` as a man page", topic.name);
            }
        }
    }

    #[test]
    fn a_topic_is_known_by_its_name() {
        assert_eq!(Topic::named("exit-codes").map(Topic::title), Some("Exit codes"));
        assert_eq!(Topic::named("exit codes"), None);
    }
}
