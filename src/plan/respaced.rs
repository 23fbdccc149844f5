//! Due jobs whose prompt has other blanks, ends of lines or Unicode forms than the one that was paid, and the same words.
//!
//! A spreadsheet that another program has saved, or the same one on another system, differs so in cell after cell, and nobody sees it.

use unicode_normalization::UnicodeNormalization as _;

use super::decide::{Action, changed_fields};
use super::planned::Planned;
use super::repurchase::{Before, Repurchase};
use crate::domain::{Charge, History};

/// The jobs of which nothing else was changed, each with what was paid.
pub(super) fn respaced<'p>(jobs: &'p [Planned], history: &'p History) -> impl Iterator<Item = Repurchase> + use<'p> {
    jobs.iter().filter(|planned| planned.action == Action::Changed).filter_map(|planned| {
        let job = &planned.job;
        let paid = history.of(&job.id).find(|attempt| Some(attempt.id) == planned.attempt)?;
        let is_respaced = paid.charge() != Charge::None
            && changed_fields(&paid.request, job.request.body()) == ["prompt"]
            && words_of(&paid.request) == words_of(job.request.body());
        is_respaced.then(|| Repurchase::of(job, Before::Respaced, paid))
    })
}

/// The words of a request's prompt, with each letter in one piece: an accent may be a character of its own.
fn words_of(request: &str) -> Vec<String> {
    let request: serde_json::Value = serde_json::from_str(request).unwrap_or_default();
    request["prompt"].as_str().unwrap_or_default().split_whitespace().map(|word| word.nfc().collect()).collect()
}
