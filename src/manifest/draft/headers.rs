//! Words of the headers of spreadsheets, by what a column means, from `headers.yaml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// The words.
pub(super) static HEADERS: LazyLock<Headers> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("headers.yaml")).unwrap_or_default());

/// Lists of words, the likelier ones first.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Headers {
    pub lasting_ids: Vec<String>,
    pub counted_ids: Vec<String>,
    pub names: Vec<String>,
    pub sure_prompts: Vec<String>,
    pub prompts: Vec<String>,
    pub durations: Vec<String>,
    pub lengths: Vec<String>,
    pub of_videos: Vec<String>,
    pub models: Vec<String>,
    pub shapes: Vec<String>,
    pub images: Vec<String>,
    pub tags: Vec<String>,
    pub takes: Vec<String>,
    pub labels: Vec<String>,
    pub aside: Vec<String>,
    pub left_out: Vec<String>,
}

impl Headers {
    /// The names of IDs: those that stay with their row, those that may be counted anew, and names.
    pub(super) fn ids(&self) -> [&[String]; 3] {
        [&self.lasting_ids, &self.counted_ids, &self.names]
    }

    /// Every word that is the name of a column, or a part of one.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let Self { prompts, durations, models, shapes, tags, takes, labels, aside, .. } = self;
        let others = [prompts, durations, models, shapes, tags, takes, labels, aside].into_iter().flatten();
        self.ids().into_iter().flatten().chain(others).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_can_be_read_and_are_in_lower_case() {
        let read: Headers = serde_yaml::from_str(include_str!("headers.yaml")).expect("lists of words");
        assert!(read.all().count() > 150);
        for word in read.all() {
            assert!(!word.contains(char::is_whitespace) && word == word.to_lowercase(), "{word}");
        }
    }
}
