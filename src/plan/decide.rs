//! The action for one job, from its history alone.
//!
//! The rule about money: [`Action::buys`] is never true while an attempt of the job is in doubt, or while a task for
//! the same request is active or completed. A property test walks through every history.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::retake::{Retake, SpentChoice};
use crate::domain::{Attempt, AttemptId, AttemptState, Job, JobChoice, Takes, named, wishes};

named! {
    /// The planned action for a job.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Action {
        /// Submitted, for the first time or after a submission that made no task.
        Submit = "submit",
        /// Submitted again, because the request has changed since the purchase.
        Changed = "changed",
        /// Submitted again after the service failed.
        Retry = "retry",
        /// Submitted again although it is completed, as the user wishes.
        Retake = "retake",
        /// Polled: its task is active.
        Resume = "resume",
        /// No action: the job is completed.
        Done = "done",
        /// No action: the job is completed, and its image changed since.
        Stale = "stale",
        /// Downloaded: it is completed, and its video is missing here. Free of charge.
        Fetch = "fetch",
        /// No action for now: the job waits for a face review, or for an image.
        Hold = "hold",
        /// No action: the task failed, and may have been charged.
        Failed = "failed",
        /// No action: a charge is unknown.
        InDoubt = "in_doubt",
    }
}

impl Action {
    /// Returns whether this action submits the job, and so may cost money.
    pub fn buys(self) -> bool {
        matches!(self, Self::Submit | Self::Changed) || self.repeats()
    }

    /// Returns whether the user requested another submission of the same request.
    pub fn repeats(self) -> bool {
        matches!(self, Self::Retry | Self::Retake)
    }
}

/// The action for a job, with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    /// The action.
    pub action: Action,
    /// The reason, for the user.
    pub reason: Cow<'static, str>,
    /// The attempt that the action is about: the one to poll, the one that is done, the one in doubt.
    pub attempt: Option<AttemptId>,
    /// The reason to skip a retake of it, if one is skipped.
    pub spent_choice: Option<SpentChoice>,
}

impl Decision {
    fn for_attempt(attempt: &Attempt, action: Action, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { action, reason: reason.into(), attempt: Some(attempt.id), spent_choice: None }
    }
}

/// Requests of the user beyond the due jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Redo<'r> {
    /// Failed jobs are due again.
    pub retry_failed: bool,
    /// The retake of a completed job.
    pub retake: Retake<'r>,
    /// True if no take until a kept one is left. Recorded choices buy no more.
    pub has_all_takes: bool,
}

/// Decides about one job. `attempts` has all attempts of the job, oldest first. A purchase waits for a pending face review or a missing image.
pub(super) fn decide<'a>(
    job: &Job,
    attempts: impl DoubleEndedIterator<Item = &'a Attempt> + Clone,
    redo: Redo<'_>,
) -> Decision {
    let decision = regardless_of_waits(job, attempts, redo);
    match job.waits_for() {
        Some(what) if decision.action.buys() => {
            Decision { action: Action::Hold, reason: format!("waits for {what}").into(), ..decision }
        }
        _ => decision,
    }
}

fn regardless_of_waits<'a>(
    job: &Job,
    mut attempts: impl DoubleEndedIterator<Item = &'a Attempt> + Clone,
    redo: Redo<'_>,
) -> Decision {
    // A doubt comes first, also about an earlier request: it may be paid, and only the user can tell.
    if let Some(doubtful) = attempts.clone().find(|attempt| attempt.state.is_doubtful()) {
        let why = doubtful.error.as_ref().map_or("the run ended before the response", |error| error.message.as_str());
        let reason = format!("may be charged: {why}");
        return Decision::for_attempt(doubtful, Action::InDoubt, reason);
    }
    let fingerprint = job.fingerprint_among(attempts.clone());
    let same = |attempt: &&Attempt| *attempt.purchase.fingerprint() == fingerprint;
    let in_state =
        |wanted: fn(AttemptState) -> bool| attempts.clone().rev().filter(same).find(|attempt| wanted(attempt.state));
    // An active task comes before a completed one: an interrupted retake continues.
    if let Some(active) = in_state(AttemptState::is_active) {
        return Decision::for_attempt(active, Action::Resume, "has an active task");
    }
    if let Some(takes) = Takes::for_job(job, attempts.clone()) {
        let completed = takes.video;
        let spent_choice = spent_choice(takes, attempts.clone(), redo);
        if redo.retake.is_about(completed, takes.choice) && spent_choice.is_none() {
            let takes = attempts.filter(same).filter(|attempt| attempt.state == AttemptState::Completed).count();
            let before = if takes > 1 { ", was retaken before" } else { "" };
            let reason = format!("is completed{before}; the retake costs again");
            return Decision::for_attempt(completed, Action::Retake, reason);
        }
        let reason: Cow<'static, str> = match spent_choice {
            Some(SpentChoice::NotTheLastTake) => "is completed, and the choice is about an earlier take".into(),
            Some(SpentChoice::AlreadyRetaken) => "is completed, and the interrupted run bought the retake".into(),
            Some(SpentChoice::RetakeFailed) => {
                "is completed, and its retake failed; `--retry-failed` retries it".into()
            }
            Some(SpentChoice::Disputed) => wishes(job, attempts).into(),
            Some(SpentChoice::AllTakes) => "is completed; all its takes are bought, and none is kept".into(),
            None => "is completed".into(),
        };
        if job.is_stale(&fingerprint) {
            let reason = format!("{reason}; its image changed since (`--retake` buys it again)");
            return Decision { spent_choice, ..Decision::for_attempt(completed, Action::Stale, reason) };
        }
        return Decision { spent_choice, ..Decision::for_attempt(completed, Action::Done, reason) };
    }
    if let Some(failed) = in_state(|state| state == AttemptState::Failed) {
        let message = failed.error.as_ref().map_or("", |error| error.message.as_str());
        return if redo.retry_failed {
            Decision::for_attempt(failed, Action::Retry, format!("failed; the retry costs again: {message}"))
        } else {
            Decision::for_attempt(failed, Action::Failed, format!("failed, and `--retry-failed` retries it: {message}"))
        };
    }
    let paid = attempts.clone().rev().find(|attempt| attempt.state.is_active() || is_final(attempt.state));
    if let Some(paid) = paid {
        return changed(job, paid);
    }
    let reason = match attempts.next_back().map(|attempt| (attempt.state, attempt.particulars.declared)) {
        Some((AttemptState::Rejected, _)) => "was rejected, free of charge".into(),
        Some((_, Some(declared))) => declared.to_string().into(),
        Some(_) => "was not bought, and nothing was charged".into(),
        None => "is new".into(),
    };
    Decision { action: Action::Submit, reason, attempt: None, spent_choice: None }
}

/// The action for a job whose request has changed since the purchase.
fn changed(job: &Job, paid: &Attempt) -> Decision {
    let changes = changes(paid.purchase.request.body(), job.purchase.request.body());
    let mut fields: Vec<String> = changes.into_iter().map(|(field, ..)| field).collect();
    // The same images were sent with URLs, and have none yet.
    let images = &job.purchase.local_images;
    if images.is_some() && *images == paid.purchase.local_images {
        fields.retain(|field| field != IMAGE_FILE);
    }
    if fields.is_empty() {
        // Only the digest of a local image is part of the identity and not of the request.
        fields.push("image_key".to_owned());
    }
    let fields = fields.join(", ");
    Decision::for_attempt(paid, Action::Changed, format!("{fields} changed since it was submitted; costs again"))
}

/// The reason to skip a retake of a completed job: it was submitted again after the video, also with another request.
fn spent_choice<'a>(
    takes: Takes<'_>,
    attempts: impl DoubleEndedIterator<Item = &'a Attempt>,
    redo: Redo<'_>,
) -> Option<SpentChoice> {
    let last = attempts.rev().find(|attempt| !attempt.state.made_no_task())?;
    // A choice is recorded, also by the run that reads it from a file. Only a pattern passes the bound.
    if redo.has_all_takes && takes.choice == Some(JobChoice::Retake) && !matches!(redo.retake, Retake::Any(_)) {
        return Some(SpentChoice::AllTakes);
    }
    match redo.retake {
        Retake::Of(_) | Retake::Recorded if takes.choice == Some(JobChoice::Conflict) => {
            return Some(SpentChoice::Disputed);
        }
        // The lead of a team kept the video after the choices in the file.
        Retake::Of(_) if takes.choice == Some(JobChoice::Keep) => return Some(SpentChoice::Disputed),
        Retake::Recorded if !redo.retake.is_about(takes.video, takes.choice) => return None,
        Retake::Of(_) | Retake::Recorded => {}
        Retake::Any(Some(after)) if last.id > after => return Some(SpentChoice::AlreadyRetaken),
        _ => return None,
    }
    match last.state {
        _ if !redo.retake.is_about(takes.video, takes.choice) => Some(SpentChoice::NotTheLastTake),
        _ if last.id == takes.video.id => None,
        AttemptState::Failed => (!redo.retry_failed).then_some(SpentChoice::RetakeFailed),
        _ => Some(SpentChoice::NotTheLastTake),
    }
}

fn is_final(state: AttemptState) -> bool {
    matches!(state, AttemptState::Completed | AttemptState::Failed)
}

/// The manifest's field of a local image.
const IMAGE_FILE: &str = "image_file";

/// The fields that differ between two request bodies, with both values, if any.
pub fn changes(before: &str, after: &str) -> Vec<(String, Option<Value>, Option<Value>)> {
    let fields = |body: &str| serde_json::from_str::<Map<String, Value>>(body).unwrap_or_default();
    let (before, after) = (fields(before), fields(after));
    let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| before.get(name) != after.get(name));
    // A local image has another field in the manifest than its URL in the request.
    let is_stand_in = |value: &Value| value.as_array().and_then(|list| list.first()).unwrap_or(value).is_object();
    let is_local = |fields: &Map<String, Value>, name: &str| fields.get(name).is_some_and(is_stand_in);
    let shown = names.into_iter().map(|name| {
        let values = (before.get(&name).cloned(), after.get(&name).cloned());
        let is_file = name == "image" && (is_local(&before, &name) || is_local(&after, &name));
        (if is_file { IMAGE_FILE.to_owned() } else { name }, values.0, values.1)
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::domain::FaceReview;
    use crate::domain::{
        Account, Charging, Choice, JobId, Labels, LocalImage, Purchase, Request, Review, Spec, TaskId, Usd,
    };

    fn job(prompt: &str) -> Job {
        let spec = Spec { model: "beta-2.0-lite".into(), prompt: Some(prompt.into()), ..Spec::default() };
        Job {
            purchase: Purchase {
                job: JobId::new("hero").expect("an id"),
                request: Request::new(&spec),
                model: spec.model.clone(),
                price: Usd::from_micros(3_750_000),
                charging: Charging::Undocumented,
                typical_s: (30, 120),
                labels: Labels::new(),
                output: None,
                local_images: None,
            },
            spec,
            take: 1,
            row: None,
            matrix: None,
            review: None,
            has_no_review: false,
            up_to: None,
            tags: Vec::new(),
        }
    }

    fn attempt(id: i64, prompt: &str, state: AttemptState) -> Attempt {
        let job = job(prompt);
        let account = Account { service: "s".into(), key: "k".into() };
        let normalized = Request::normalized(&job.spec);
        Attempt {
            state,
            task: Some(task(id).into()),
            ..Attempt::new(AttemptId(id), job.purchase, normalized, account, Timestamp::UNIX_EPOCH)
        }
    }

    fn task(id: i64) -> TaskId {
        TaskId::new(format!("t{id}")).expect("a task")
    }

    fn action(history: &[Attempt]) -> Action {
        decide(&job("now"), history.iter(), Redo::default()).action
    }

    #[test]
    fn only_purchases_wait_for_a_face_review() {
        let review = Some(FaceReview { face: "anna".into(), fee: Usd::ZERO });
        let held = Job { review, ..job("now") };
        let action = |history: &[Attempt]| decide(&held, history.iter(), Redo::default()).action;
        assert_eq!(action(&[]), Action::Hold);
        assert_eq!(action(&[attempt(1, "before", AttemptState::Completed)]), Action::Hold);
        assert_eq!(action(&[attempt(1, "now", AttemptState::Completed)]), Action::Done);
        assert_eq!(action(&[attempt(1, "now", AttemptState::Queued)]), Action::Resume);
    }

    #[test]
    fn actions_follow_the_table_of_states() {
        use AttemptState as S;
        for (state, expected) in [
            (S::Completed, Action::Done),
            (S::Failed, Action::Failed),
            (S::Queued, Action::Resume),
            (S::InProgress, Action::Resume),
            (S::Rejected, Action::Submit),
            (S::InDoubt, Action::InDoubt),
            (S::Intended, Action::InDoubt),
            (S::Void, Action::Submit),
        ] {
            assert_eq!(action(&[attempt(1, "now", state)]), expected, "{state:?}");
        }
        assert_eq!(action(&[]), Action::Submit);
        assert_eq!(action(&[attempt(1, "before", S::Completed)]), Action::Changed);
        assert_eq!(action(&[attempt(1, "before", S::Rejected)]), Action::Submit);
    }

    #[test]
    fn changed_prompt_is_named_and_a_reverted_one_is_free() {
        let before = attempt(2, "before", AttemptState::Completed);
        let reason = decide(&job("now"), std::iter::once(&before), Redo::default()).reason;
        assert_eq!(reason, "prompt changed since it was submitted; costs again");
        assert_eq!(action(&[attempt(1, "now", AttemptState::Completed), before]), Action::Done);
    }

    #[test]
    fn changed_local_image_is_named_by_its_digest() {
        let (one, other) = (LocalImage::new("a.png".into(), b"one"), LocalImage::new("a.png".into(), b"two"));
        let with = |prompt: &str, image: &LocalImage| {
            let mut job = job(prompt);
            job.spec.local_images = vec![image.clone()];
            job.purchase.request = Request::new(&job.spec);
            job.purchase.local_images = LocalImage::digests(&job.spec.local_images);
            job
        };
        let sent_with_url = |prompt: &str, image: &LocalImage| {
            let mut paid = attempt(1, prompt, AttemptState::Completed);
            let spec = Spec { image: vec!["https://e.com/a.png".into()], ..job(prompt).spec };
            paid.purchase.request = Request::new(&spec);
            paid.purchase.local_images = with(prompt, image).purchase.local_images;
            paid
        };
        let reason = |job: &Job, paid: Attempt| {
            changed(job, &paid).reason.replace(" changed since it was submitted; costs again", "")
        };
        assert_eq!(reason(&with("now", &one), sent_with_url("before", &one)), "prompt");
        assert_eq!(reason(&with("now", &one), sent_with_url("before", &other)), "image_file, prompt");
        assert_eq!(reason(&with("now", &one), sent_with_url("now", &one)), "image_key");
        let mut undigested = attempt(1, "now", AttemptState::Completed);
        undigested.purchase.request = with("now", &one).purchase.request;
        assert_eq!(reason(&job("now"), undigested), "image_file");
    }

    #[test]
    fn change_of_an_image_is_named_like_the_field_of_the_manifest() {
        let names =
            |before: &str, after: &str| changes(before, after).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        let (url, file, files) =
            (r#"{"image":"https://e.com/a"}"#, r#"{"image":{"sha256":"a"}}"#, r#"{"image":[{"sha256":"b"}]}"#);
        assert_eq!(names(url, r#"{"image":"https://e.com/b"}"#), ["image"]);
        for (before, after) in [(url, file), (files, url), (file, files), ("{}", file)] {
            assert_eq!(names(before, after), ["image_file"], "{before} {after}");
        }
        assert_eq!(names(r#"{"style":{"a":1}}"#, r#"{"style":{"a":2}}"#), ["style"]);
    }

    #[test]
    fn retake_names_earlier_retakes_of_its_request() {
        use AttemptState as S;
        let redo = Redo { retake: Retake::Any(None), ..Redo::default() };
        let (first, another) =
            ("is completed; the retake costs again", "is completed, was retaken before; the retake costs again");
        for (states, expected) in [
            (&[S::Completed][..], first),
            (&[S::Completed, S::Failed, S::Failed], first),
            (&[S::Completed, S::Completed], another),
        ] {
            let history: Vec<Attempt> = (1..).zip(states).map(|(id, state)| attempt(id, "now", *state)).collect();
            assert_eq!(decide(&job("now"), history.iter(), redo).reason, expected, "{states:?}");
        }
        let history = [attempt(1, "before", S::Completed), attempt(2, "now", S::Completed)];
        assert_eq!(decide(&job("now"), history.iter(), redo).reason, first);
    }

    #[test]
    fn interrupted_retake_is_bought_once() {
        use AttemptState as S;
        let redo = Redo { retake: Retake::Any(Some(AttemptId(1))), ..Redo::default() };
        let decided = |history: &[Attempt]| {
            let decision = decide(&job("now"), history.iter(), redo);
            (decision.action, decision.spent_choice)
        };
        let first = attempt(1, "now", S::Completed);
        assert_eq!(decided(std::slice::from_ref(&first)), (Action::Retake, None));
        assert_eq!(decided(&[first.clone(), attempt(2, "now", S::Rejected)]), (Action::Retake, None));
        let bought = (Action::Done, Some(SpentChoice::AlreadyRetaken));
        assert_eq!(decided(&[first.clone(), attempt(2, "now", S::Failed)]), bought);
        assert_eq!(decided(&[first, attempt(2, "before", S::Completed)]), bought);
    }

    #[test]
    fn recorded_retake_stops_at_the_last_take_and_after_a_later_one() {
        use AttemptState as S;
        let again = |ids: &[i64]| {
            with_reviews(ids.iter().map(|id| attempt(*id, "now", S::Completed)).collect(), &[(0, true, true)])
        };
        let spent = |history: &[Attempt], redo: Redo<'_>| decide(&job("now"), history.iter(), redo).spent_choice;
        let tasks = HashSet::from([TaskId::new("t1").expect("an ID")]);
        for retake in [Retake::No, Retake::Recorded, Retake::Of(&tasks)] {
            let redo = Redo { retake, has_all_takes: true, ..Redo::default() };
            assert_eq!(spent(&again(&[1]), redo), Some(SpentChoice::AllTakes));
            assert_eq!(spent(&[attempt(1, "now", S::Completed)], redo), None, "nobody asked for a take");
            assert_eq!(spent(&again(&[1]), Redo { has_all_takes: false, ..redo }), None);
        }
        let redo = Redo { retake: Retake::Recorded, ..Redo::default() };
        let mut history = again(&[1]);
        history.push(attempt(2, "before", S::Completed));
        assert_eq!(spent(&history, redo), Some(SpentChoice::NotTheLastTake));
    }

    #[test]
    fn retake_and_retry_buy_only_ended_jobs_again() {
        use AttemptState as S;
        let redo = Redo { retry_failed: true, retake: Retake::Any(None), ..Redo::default() };
        let wished = |history: &[Attempt]| decide(&job("now"), history.iter(), redo).action;
        assert_eq!(wished(&[attempt(1, "now", S::Failed)]), Action::Retry);
        assert_eq!(wished(&[attempt(1, "now", S::Completed)]), Action::Retake);
        assert_eq!(wished(&[attempt(1, "now", S::Completed), attempt(2, "now", S::Queued)]), Action::Resume);
        assert_eq!(wished(&[attempt(1, "now", S::Completed), attempt(2, "now", S::InDoubt)]), Action::InDoubt);
    }

    #[test]
    fn choice_applies_to_its_video_only() {
        use AttemptState as S;
        let chosen = HashSet::from([task(1)]);
        let redo = Redo { retry_failed: false, retake: Retake::Of(&chosen), ..Redo::default() };
        let asked = |history: &[Attempt]| decide(&job("now"), history.iter(), redo).action;
        let first = attempt(1, "now", S::Completed);
        assert_eq!(asked(std::slice::from_ref(&first)), Action::Retake);
        // Until a retake may have been charged.
        assert_eq!(asked(&[first.clone(), attempt(2, "now", S::Rejected)]), Action::Retake);
        assert_eq!(asked(&[first.clone(), attempt(2, "now", S::Failed)]), Action::Done);
        let retried = Redo { retry_failed: true, ..redo };
        let history = [first.clone(), attempt(2, "now", S::Failed)];
        assert_eq!(decide(&job("now"), history.iter(), retried).action, Action::Retake);
        let history = [attempt(3, "now", S::Completed), attempt(4, "now", S::Failed)];
        assert_eq!(decide(&job("now"), history.iter(), retried).action, Action::Done, "of another video");
        assert_eq!(asked(&[first.clone(), attempt(2, "now", S::InDoubt)]), Action::InDoubt);
        assert_eq!(asked(&[first.clone(), attempt(2, "now", S::InProgress)]), Action::Resume);
        assert_eq!(asked(&[first.clone(), attempt(2, "now", S::Completed)]), Action::Done);
        assert_eq!(asked(&[attempt(3, "now", S::Completed)]), Action::Done);
        // A later attempt for another prompt counts, too, once the former prompt is back.
        assert_eq!(asked(&[first.clone(), attempt(2, "before", S::Completed)]), Action::Done);
        assert_eq!(asked(&[first.clone(), attempt(2, "before", S::Rejected)]), Action::Retake);
        let spent = |history: &[Attempt]| decide(&job("now"), history.iter(), redo).spent_choice;
        assert_eq!(spent(std::slice::from_ref(&first)), None);
        assert_eq!(spent(&[first.clone(), attempt(2, "now", S::Completed)]), Some(SpentChoice::NotTheLastTake));
        assert_eq!(spent(&[first.clone(), attempt(2, "now", S::Failed)]), Some(SpentChoice::RetakeFailed));
    }

    /// The same attempts with reviews: by two people, of a choice each.
    fn with_reviews(mut history: Vec<Attempt>, reviews: &[(usize, bool, bool)]) -> Vec<Attempt> {
        for (second, (attempt, is_anna, is_again)) in (1..).zip(reviews) {
            let by = if *is_anna { "anna" } else { "ben" }.to_owned();
            let choice = Some(if *is_again { Choice::Retake } else { Choice::Keep });
            if let Some(attempt) = history.get_mut(*attempt).filter(|it| it.state == AttemptState::Completed) {
                let at = Timestamp::from_second(second).expect("a time");
                attempt.review(Review { by, choice, note: String::new(), decides: false }, at);
            }
        }
        history
    }

    #[test]
    fn recorded_choice_is_bought_unless_another_reviewer_disagrees() {
        use AttemptState as S;
        let redo = Redo { retry_failed: false, retake: Retake::Recorded, ..Redo::default() };
        let completed = |ids: &[i64]| ids.iter().map(|id| attempt(*id, "now", S::Completed)).collect::<Vec<_>>();
        let decided = |ids: &[i64], reviews: &[(usize, bool, bool)]| {
            let history = with_reviews(completed(ids), reviews);
            let decision = decide(&job("now"), history.iter(), redo);
            (decision.action, decision.attempt.map(|id| id.0), decision.spent_choice)
        };
        let (anna, ben, again, keep) = (true, false, true, false);
        assert_eq!(decided(&[1], &[]), (Action::Done, Some(1), None));
        assert_eq!(decided(&[1], &[(0, anna, again)]), (Action::Retake, Some(1), None));
        assert_eq!(decided(&[1], &[(0, anna, again), (0, ben, again)]), (Action::Retake, Some(1), None));
        let disputed = (Action::Done, Some(1), Some(SpentChoice::Disputed));
        assert_eq!(decided(&[1], &[(0, anna, again), (0, ben, keep)]), disputed);
        assert_eq!(
            decided(&[1], &[(0, anna, keep), (0, anna, again)]),
            (Action::Retake, Some(1), None),
            "the last counts"
        );
        assert_eq!(decided(&[1, 2], &[(0, anna, again)]), (Action::Done, Some(2), None), "it was retaken");
        assert_eq!(decided(&[1, 2], &[(0, anna, keep)]), (Action::Done, Some(1), None), "the kept take is the video");
        assert_eq!(decided(&[1, 2], &[(0, anna, keep), (1, anna, again)]), (Action::Retake, Some(2), None));
        assert_eq!(decided(&[1, 2], &[(0, anna, keep), (1, ben, again)]), disputed, "of different takes, too");
        assert_eq!(
            decided(&[1, 2], &[(0, anna, again), (1, ben, keep)]),
            (Action::Done, Some(2), None),
            "another take since"
        );
    }

    fn any_history() -> impl Strategy<Value = Vec<Attempt>> {
        let state = proptest::sample::select(AttemptState::ALL.to_vec());
        let prompt = proptest::sample::select(vec!["now", "before"]);
        proptest::collection::vec((prompt, state), 0..6)
            .prop_map(|attempts| (1..).zip(attempts).map(|(id, (prompt, state))| attempt(id, prompt, state)).collect())
    }

    proptest! {
        #[test]
        fn nothing_is_bought_while_a_charge_for_it_is_possible(
            history in any_history(),
            retry_failed in any::<bool>(),
            retake in 0..4,
            reviews in proptest::collection::vec((0..6_usize, any::<bool>(), any::<bool>()), 0..5),
        ) {
            let chosen = HashSet::from([task(1)]);
            let retake = match retake {
                0 => Retake::No,
                1 => Retake::Of(&chosen),
                2 => Retake::Recorded,
                _ => Retake::Any(None),
            };
            let unasked = decide(&job("now"), history.iter(), Redo::default()).action;
            let history = with_reviews(history, &reviews);
            prop_assert_eq!(decide(&job("now"), history.iter(), Redo::default()).action, unasked, "reviews alone buy nothing");
            let wished = decide(&job("now"), history.iter(), Redo { retry_failed, retake, ..Redo::default() });
            let open = history.iter().any(|attempt| {
                attempt.state.is_doubtful()
                    || attempt.state.is_active() && *attempt.purchase.fingerprint() == *job("now").purchase.fingerprint()
            });
            prop_assert!(!(open && wished.action.buys()), "{:?}", wished);

            let decision = decide(&job("now"), history.iter(), Redo::default());
            let doubtful = history.iter().any(|attempt| attempt.state.is_doubtful());
            let wanted = job("now").purchase.fingerprint().clone();
            let paid = history.iter().any(|attempt| {
                *attempt.purchase.fingerprint() == wanted
                    && (attempt.state.is_active() || is_final(attempt.state))
            });
            if doubtful || paid {
                prop_assert!(!decision.action.buys(), "{:?}", decision);
            } else {
                prop_assert!(decision.action.buys(), "{:?}", decision);
            }
        }
    }
}
