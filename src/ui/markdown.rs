//! Untrusted text in Markdown, and the line for jobs that are omitted.

use crate::domain::count;
use crate::domain::text::one_line;

/// A text that can't break out of its table cell, or become markup or a mention.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '@' => safe.push_str("&#64;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A text inside a comment of HTML, which it can't end.
pub(super) fn hidden(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || " /._".contains(c);
    text.chars().map(|c| if harmless(c) { c.to_string() } else { format!("%{:X}", u32::from(c)) }).collect()
}

/// The line for omitted jobs.
pub(super) fn no_room(jobs: usize) -> String {
    format!("{} more, which have no room here.", count(jobs, "job"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_stays_text() {
        assert_eq!(escaped("\u{1b}[2J\u{202e}"), "\u{fffd}\\[2J\u{fffd}");
        assert_eq!(escaped("a|b\n<img> @all [x](y)"), "a\\|b &lt;img&gt; &#64;all \\[x\\](y)");
    }
}
