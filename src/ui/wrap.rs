//! Texts broken at words, for a terminal: no word is cut in two, and a command is on a line of its own, whole, so that it can be
//! copied.

use unicode_width::UnicodeWidthStr as _;

/// The beginning of a command in a text.
const COMMAND: &str = "`shotlist ";
/// The fewest columns that are worth breaking a text for.
const MIN_COLUMNS: usize = 20;

/// A text in lines of at most so many columns; all but the first begin with so many blanks. A word that is longer stays whole.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let blank = " ".repeat(indent);
    let room = width.saturating_sub(indent).max(MIN_COLUMNS);
    let (mut lines, mut line): (Vec<String>, String) = (Vec::new(), String::new());
    for piece in pieces(text) {
        match piece {
            Piece::Command(command) => {
                lines.extend(Some(std::mem::take(&mut line)).filter(|line| !line.is_empty()));
                lines.push(format!("  {command}"));
            }
            Piece::Word(word) => {
                // A new line follows a command, so a mark right after it is dropped.
                let is_after_a_command = line.is_empty() && lines.last().is_some_and(|last| last.starts_with("  "));
                let word = if is_after_a_command { word.trim_start_matches([':', ';', ',', '.']) } else { word };
                if word.is_empty() {
                    continue;
                }
                if !line.is_empty() && line.width() + 1 + word.width() > room {
                    lines.push(std::mem::take(&mut line));
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines.join(&format!("\n{blank}"))
}

enum Piece<'t> {
    Word(&'t str),
    Command(&'t str),
}

/// The words of a text, and the commands between them without their quotes.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once(COMMAND) {
        let Some(end) = after.find('`') else { break };
        found.extend(before.split_whitespace().map(Piece::Word));
        // The quote in front and what it begins with are a part of it.
        let start = before.len() + 1;
        found.push(Piece::Command(&rest[start..start + COMMAND.len() - 1 + end]));
        rest = &after[end + 1..];
    }
    // Without quotes, a command is the rest of its line.
    let (words, command) = match rest.find(": shotlist ") {
        Some(at) => (&rest[..=at], Some(&rest[at + 2..])),
        None if rest.trim_start().starts_with("shotlist ") => ("", Some(rest.trim_start())),
        None => (rest, None),
    };
    found.extend(words.split_whitespace().map(Piece::Word));
    found.extend(command.map(Piece::Command));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_commands_stand_alone() {
        let text = "hero is in doubt: `shotlist resolve 'my list.yaml' hero --never-created` settles it, or `shotlist status m.yaml -v`.";
        insta::assert_snapshot!(wrapped(text, 30, 2), @r"
        hero is in doubt:
            shotlist resolve 'my list.yaml' hero --never-created
          settles it, or
            shotlist status m.yaml -v
        ");
        assert_eq!(wrapped("one two three four five six", 20, 0), "one two three four\nfive six");
        assert_eq!(wrapped("a `code` stays", 80, 4), "a `code` stays");
        let command = "to buy exactly this: shotlist run m.yaml --approved 0f07fc8b96f5dae5 --batch b80";
        assert_eq!(
            wrapped(command, 40, 0),
            "to buy exactly this:\n  shotlist run m.yaml --approved 0f07fc8b96f5dae5 --batch b80"
        );
        let long = "x".repeat(50);
        assert_eq!(wrapped(&format!("see {long} there"), 20, 1), format!("see\n {long}\n there"));
        assert_eq!(wrapped("日本語の 文章です これは", 20, 0), "日本語の 文章です\nこれは");
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_wide(words in proptest::collection::vec("[a-zé日]{1,12}", 0..40), width in 24_usize..100) {
            let text = words.join(" ");
            let lines = wrapped(&text, width, 3);
            proptest::prop_assert_eq!(lines.split_whitespace().collect::<Vec<_>>(), words);
            for line in lines.lines() {
                proptest::prop_assert!(line.width() <= width.max(MIN_COLUMNS + 3) || !line.trim().contains(' '), "{}", line);
            }
        }
    }
}
