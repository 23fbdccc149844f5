//! Small phrases that several views share.

use std::time::Duration;

/// A prompt that is shorter, in bytes, is a word that means nothing, and may stand anywhere.
const MIN_PROMPT: usize = 4;

/// `1 job`, `2 jobs`.
pub(super) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A duration as people say it: `45 s`, `4 min`, `2 h 5 min`.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A length of a file, for the user: `512 B`, `1.4 MB`.
pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// The first names of a list, and how many more there are; nothing of one without a name.
pub(super) fn first_few(mut names: impl Iterator<Item = String>, most: usize) -> Option<String> {
    let first: Vec<String> = names.by_ref().take(most).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}

/// A text of the service without the prompt, where that is in it.
pub(super) fn without_prompt(text: &str, prompt: Option<&str>) -> String {
    match prompt.map(str::trim).filter(|prompt| prompt.len() >= MIN_PROMPT) {
        Some(prompt) if text.contains(prompt) => text.replace(prompt, "[the prompt]"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let said = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [said(0), said(45), said(100), said(240), said(7500)],
            ["0 s", "45 s", "2 min", "4 min", "2 h 5 min"]
        );
    }

    #[test]
    fn a_length_has_the_unit_that_a_person_reads() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1449, "1.4 kB"), (12_000_000, "12.0 MB"), (3 << 30, "3.2 GB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
