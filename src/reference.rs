//! The reference: topics about more than one option. `shotlist help TOPIC` prints the Markdown of a topic, wrapped. Imports no other module.

use unicode_width::UnicodeWidthStr as _;

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

    /// The Markdown in lines of at most `columns` columns. Code and longer words stay whole.
    pub(crate) fn wrapped(self, columns: usize) -> String {
        let (mut wrapped, mut is_code) = (String::new(), false);
        for line in self.text.lines() {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            if is_code || is_fence || line.width() <= columns {
                wrapped += line;
            } else {
                wrapped += &wrap(line, columns, if line.starts_with("- ") { "  " } else { "" });
            }
            wrapped.push('\n');
        }
        wrapped
    }
}

/// Breaks a line at spaces. All lines but the first begin with `indent`.
fn wrap(text: &str, columns: usize, indent: &str) -> String {
    let (mut wrapped, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.width() > columns {
            wrapped += &format!("\n{indent}");
            width = indent.width();
        } else if width > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped += word;
        width += word.width();
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_no_word() {
        for topic in TOPICS {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&topic.wrapped(40)), words(topic.text), "{}", topic.name);
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
