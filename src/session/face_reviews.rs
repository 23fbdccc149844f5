//! The fees of face reviews, as attempts in a ledger.
//!
//! # Guarantees
//!
//! - A fee counts once in a ledger, by its face and its day, whichever manifests name it.
//! - A fee is recorded whatever the limits say: it is paid. Nothing is submitted for it.
//! - Each step starts where a killed run ended.

use std::time::Duration;

use jiff::Timestamp;

use super::refusal::Refusal;
use super::start::Session;
use crate::domain::{
    Account, AttemptState, Charging, Fingerprint, Labels, PaidReview, ServiceError, TaskId, TaskNames, Usd,
};
use crate::ledger::{Event, HoldError, Intent, LedgerError, LockedBatch};

/// The tries to lock the batch of the fees, and the wait between two: another run has it for moments.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// The account of fees, which customer support takes.
const SUPPORT: &str = "customer support";
/// The model of fees in `spend`.
const MODEL: &str = "face-review";

/// The paid reviews of the manifest that the ledger does not have. None in a ledger of the simulator, where nothing is paid.
pub(super) async fn unrecorded(session: &Session) -> Result<Vec<PaidReview>, Refusal> {
    let paid = &session.manifest.paid_reviews;
    if paid.is_empty() || session.ledger.is_simulated() {
        return Ok(Vec::new());
    }
    let history = session.ledger.history(&PaidReview::batch()).await?;
    let is_recorded = |review: &PaidReview| {
        let recorded = review.id().and_then(|id| history.of(&id).next_back());
        recorded.is_some_and(|attempt| attempt.particulars.released.is_some())
    };
    Ok(paid.iter().filter(|review| !is_recorded(review)).cloned().collect())
}

/// The paid reviews of which the ledger has no attempt yet: sums over the ledger lack them.
pub(super) async fn uncounted(session: &Session) -> Result<Vec<PaidReview>, Refusal> {
    let unrecorded = unrecorded(session).await?;
    if unrecorded.is_empty() {
        return Ok(unrecorded);
    }
    let history = session.ledger.history(&PaidReview::batch()).await?;
    let is_counted = |review: &PaidReview| review.id().is_some_and(|id| history.of(&id).next().is_some());
    Ok(unrecorded.into_iter().filter(|review| !is_counted(review)).collect())
}

/// The fees of some reviews that were paid since a time.
pub(super) fn paid_since(reviews: &[PaidReview], since: Timestamp) -> Usd {
    reviews.iter().filter(|review| review.paid_at >= since).map(|review| review.fee).sum()
}

/// Records the fees that the ledger does not have.
pub(super) async fn record(session: &Session) -> Result<(), Refusal> {
    if unrecorded(session).await?.is_empty() {
        return Ok(());
    }
    let mut tries = 0;
    let batch = loop {
        match session.ledger.lock(&PaidReview::batch()).await {
            Err(HoldError::Busy { .. }) if tries < TRIES => tries += 1,
            locked => break locked?,
        }
        tokio::time::sleep(PAUSE).await;
    };
    // Another run may have recorded some meanwhile.
    for review in unrecorded(session).await? {
        match record_one(session, &batch, &review).await {
            // Another runner of a shared ledger is at it.
            Ok(()) | Err(Refusal::Write(LedgerError::Claimed(_) | LedgerError::Illegal(_))) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(())
}

/// Records a fee as a completed attempt without a video.
async fn record_one(session: &Session, batch: &LockedBatch, review: &PaidReview) -> Result<(), Refusal> {
    let Some(id) = review.id() else { return Ok(()) };
    let Some(task) = TaskId::new(id.to_string()) else { return Ok(()) };
    let history = session.ledger.history(&PaidReview::batch()).await?;
    let (attempt, state) = match history.of(&id).next_back() {
        Some(begun) => (begun.id, begun.state),
        None => (batch.intend(intent(review, &id)).await?, AttemptState::Intended),
    };
    let (at, usd) = (review.paid_at, review.fee);
    let steps = [
        (AttemptState::Intended, Event::Doubted(ServiceError::plain(&format!("a fee of ${usd}"), "face_review"))),
        (AttemptState::InDoubt, Event::Settled(TaskNames::from(task))),
        (AttemptState::Queued, Event::Completed { video_url: String::new(), ended_at: at, polls: 0 }),
        (AttemptState::Completed, Event::Released { to: None }),
    ];
    for (_, step) in steps.into_iter().skip_while(|(from, _)| *from != state) {
        batch.record(attempt, step).await?;
    }
    Ok(())
}

fn intent(review: &PaidReview, id: &crate::domain::JobId) -> Intent {
    let identity = Fingerprint::stored(id.to_string());
    Intent {
        job: id.clone(),
        fingerprint: identity.clone(),
        normalized: identity,
        request: serde_json::json!({ "face": review.face }).to_string(),
        model: MODEL.to_owned(),
        price: review.fee,
        charging: Charging::AtSubmission,
        typical_s: (1, 1),
        account: Account { service: SUPPORT.into(), key: "".into() },
        known: None,
        limits: Vec::new(),
        labels: Labels::new(),
        output: None,
        approval: None,
        idempotency: None,
        local_images: None,
        adopted_at: Some(review.paid_at),
        run_limit: None,
        paid_elsewhere: None,
    }
}
