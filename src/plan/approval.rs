//! What somebody approves of a plan.
//!
//! An approval is consent to a plan and to no other. Its digest is over all that the plan would buy: name and batch, and for each
//! job the request, its price and the submissions that came before; and how often a failed one may be bought again. The order
//! of the jobs, their tags, labels and files are no part of it. What was bought under an approval is written down with it, so that a run that died half-way
//! may go on with the same one: such submissions did not come before it.

use std::fmt;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};
use std::thread;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::domain::{Attempt, BatchKey, Digest, Job, Usd};

/// The fewest digits that name a plan.
const FEWEST_DIGITS: usize = 16;
/// All of them.
const DIGITS: usize = 64;

/// A plan that somebody approved: its digest or the beginning of it, and the plan itself where it was saved.
#[derive(Clone, Debug)]
pub struct Approved {
    digits: String,
    pub(super) saved: Option<SavedPlan>,
}

impl Approved {
    /// Takes at least 16 digits of a digest; nothing if the text is none.
    #[must_use]
    pub fn by_digest(text: &str) -> Option<Self> {
        let is_one =
            (FEWEST_DIGITS..=DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self { digits: text.to_ascii_lowercase(), saved: None })
    }

    /// Takes a plan that was saved as JSON.
    pub fn saved(json: &str) -> Result<Self, serde_json::Error> {
        let saved: SavedPlan = serde_json::from_str(json)?;
        Ok(Self { digits: saved.digest.clone(), saved: Some(saved) })
    }

    /// Whether it is about a plan with this digest.
    #[must_use]
    pub fn is(&self, digest: &Digest) -> bool {
        digest.as_str().starts_with(&self.digits)
    }

    /// Whether an attempt is a part of it.
    pub(super) fn covers(&self, attempt: &Attempt) -> bool {
        attempt.particulars.approval.as_ref().is_some_and(|digest| self.is(digest))
    }

    /// The digits that were given.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.digits
    }
}

/// A plan as it was saved, as far as an approval is about it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SavedPlan {
    pub name: String,
    pub batch: String,
    digest: String,
    pub retries: u32,
    pub jobs: Vec<SavedJob>,
}

/// One job of a saved plan.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SavedJob {
    pub id: String,
    action: String,
    #[serde(deserialize_with = "usd")]
    pub cost_usd: Usd,
    pub request: Value,
    pub earlier: usize,
}

fn usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

impl SavedJob {
    pub(super) fn buys(&self) -> bool {
        matches!(self.action.as_str(), "submit" | "changed" | "retry")
    }
}

/// From so many jobs on, the digest of a plan is made aside.
const MANY: usize = 1000;

/// What stands for all that a plan would buy. Of many jobs it takes a while, so it is made aside, and waited for where it is looked at.
#[derive(Clone)]
pub(super) struct PlanDigest(Arc<LazyLock<Digest, Box<dyn FnOnce() -> Digest + Send>>>);

impl PlanDigest {
    /// Of each job that is bought, with the times of the submissions that came before, in microseconds.
    pub(super) fn of(key: BatchKey, retries: u32, bought: Vec<Bought>) -> Self {
        let is_made_aside = bought.len() >= MANY;
        let whole = Arc::new((key, retries, bought));
        let aside = is_made_aside.then(|| {
            let whole = Arc::clone(&whole);
            thread::Builder::new().name("digest".to_owned()).spawn(move || digest(&whole))
        });
        let made: Box<dyn FnOnce() -> Digest + Send> = match aside {
            Some(Ok(aside)) => Box::new(move || aside.join().unwrap_or_else(|panic| resume_unwind(panic))),
            // Where no thread can be had, it takes its time where it is looked at.
            Some(Err(_)) | None => Box::new(move || digest(&whole)),
        };
        Self(Arc::new(LazyLock::new(made)))
    }
}

impl Deref for PlanDigest {
    type Target = Digest;

    fn deref(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Debug for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A job, and what of it came before.
pub(super) type Bought = (Arc<Job>, Vec<i64>);

fn digest((key, retries, bought): &(BatchKey, u32, Vec<Bought>)) -> Digest {
    let mut jobs: Vec<(&str, &str, i64, &[i64])> = bought
        .iter()
        // What is sent, and not what identifies it: a stand-in for an image is no image.
        .map(|(job, before)| (job.id.as_str(), job.request.body(), job.price.micros(), &**before))
        .collect();
    jobs.sort_unstable();
    Digest::of_json(&("shotlist plan 1", &key.name, &key.batch, retries, jobs)).expect("texts and numbers are JSON")
}
