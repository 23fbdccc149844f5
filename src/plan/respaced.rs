//! Due jobs whose prompt has other blanks, ends of lines or Unicode forms than the one that was paid, and the same words.
//!
//! A spreadsheet that another program has saved, or the same one on another system, differs so in cell after cell, and nobody sees it.

use unicode_normalization::UnicodeNormalization as _;

use super::decide::Action;
use super::planned::Planned;
use super::repurchase::{Before, Repurchase};
use super::retake::Retakes;
use crate::domain::{Attempt, Charge, History, Job, Request, Spec};

/// The jobs of which nothing else was changed since something was paid for them, each with that; but for what somebody asked for once more.
pub(super) fn respaced<'p>(
    jobs: &'p [Planned],
    history: &'p History,
    retakes: &'p Retakes,
) -> impl Iterator<Item = Repurchase> + use<'p> {
    jobs.iter().filter(|planned| planned.action == Action::Changed).filter_map(move |planned| {
        let job = &planned.job;
        let paid = history.of(&job.id).rev().find(|paid| paid.charge() != Charge::None && is_respaced(job, paid))?;
        let is_wanted = retakes.of(&job.id).is_about(paid);
        (!is_wanted).then(|| Repurchase::of(job, Before::Respaced, paid))
    })
}

/// Whether a job asks for what was paid, but for the blanks of its prompt: in the words of then, it is the same request.
fn is_respaced(job: &Job, paid: &Attempt) -> bool {
    let sent: serde_json::Value = serde_json::from_str(&paid.request).unwrap_or_default();
    let (Some(before), Some(now)) = (sent["prompt"].as_str(), &job.spec.prompt) else { return false };
    let in_the_words_of_then = || Request::new(&Spec { prompt: Some(before.to_owned()), ..job.spec.clone() });
    words_of(before) == words_of(now) && *in_the_words_of_then().fingerprint() == paid.fingerprint
}

/// The words of a prompt, with each letter in one piece: an accent may be a character of its own.
fn words_of(prompt: &str) -> Vec<String> {
    prompt.split_whitespace().map(|word| word.nfc().collect()).collect()
}
