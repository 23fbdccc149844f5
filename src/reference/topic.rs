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
pub const TOPICS: [Topic; 8] = [
    Topic { name: "manifest", section: '5', text: include_str!("manifest.md") },
    Topic { name: "money", section: '7', text: include_str!("money.md") },
    Topic { name: "exit-codes", section: '7', text: include_str!("exit-codes.md") },
    Topic { name: "reports", section: '7', text: include_str!("reports.md") },
    Topic { name: "cron", section: '7', text: include_str!("cron.md") },
    Topic { name: "videos", section: '7', text: include_str!("videos.md") },
    Topic { name: "programs", section: '7', text: include_str!("programs.md") },
    Topic { name: "service", section: '7', text: include_str!("service.md") },
];

impl Topic {
    /// The topic of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TOPICS.into_iter().find(|topic| topic.name == name)
    }

    /// What it is called.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The topic as text of at most so many columns.
    #[must_use]
    pub fn in_columns(self, columns: usize) -> String {
        terminal::text(&blocks::of(self.text), columns)
    }

    /// The topic as a man page: `shotlist-NAME.SECTION`.
    #[must_use]
    pub fn man_page(self) -> String {
        man::page(self, &blocks::of(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_can_be_shown_and_loses_no_word() {
        let words = |text: &str| {
            let is_of_a_word = |c: char| c.is_alphanumeric();
            text.split(|c: char| !is_of_a_word(c))
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for topic in TOPICS {
            let shown: std::collections::HashSet<String> = words(&topic.in_columns(80)).into_iter().collect();
            let page: std::collections::HashSet<String> = words(&topic.man_page()).into_iter().collect();
            for word in words(topic.text) {
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
