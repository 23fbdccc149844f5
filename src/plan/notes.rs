//! Facts of a plan besides its jobs: each once, in one order, for every output. A plan is compared with an approval, and with other batches of the same
//! name.

use std::collections::{BTreeMap, HashSet};

use jiff::civil::Date;
use serde_json::Value;

use super::approval::{Approved, SavedJob, SavedPlan};
use super::build::Plan;
use super::decide::Action;
use super::input::{Limit, OtherDirectory, Planned};
use super::retake::SpentChoice;
use crate::domain::{AttemptId, Freeze, JobId, NoticeCode, OpenElsewhere, Reviewed, UnfinishedRetake, Usd};

/// The age of old prices, in days.
pub(crate) const PRICES_AGE: i32 = 30;

/// One fact about a whole plan. Each output renders all facts.
#[derive(Clone, Debug)]
pub enum PlanNote<'p> {
    /// The simulator plays the service.
    Simulated,
    /// Purchases are frozen.
    Frozen(&'p Freeze),
    /// The number of due jobs with a local image.
    LocalImages(usize),
    /// The number of due jobs that are left for another run.
    LeftOut(usize),
    /// Jobs with a skipped retake, with the reason.
    ChoiceSpent(SpentChoice, Vec<(&'p JobId, &'p str)>),
    /// The recorded choices that reviews of this run replace, each with its job.
    ReplacesChoices(&'p [(JobId, Reviewed)]),
    /// Jobs whose next take waits for a choice, and the price of all takes that later runs may buy until one of each job is kept.
    UntilKept(Vec<&'p JobId>, Usd),
    /// Models that begin with one job in flight, each with the fault of its newest delivery.
    OnTrial(&'p [(String, String)]),
    /// An unfinished retake of an earlier run.
    RetakeUnfinished(&'p UnfinishedRetake),
    /// The number of active tasks that the run polls.
    ActiveTasks(usize),
    /// Jobs that wait for a face review, and the one-time fees of the reviews.
    Held(usize, Usd),
    /// The number of jobs that wait for an image.
    WaitsForImages(usize),
    /// The number of jobs with a changed image since their purchase.
    Stale(usize),
    /// Jobs in doubt, and the sum at risk.
    InDoubt(usize, Usd),
    /// The day of the prices of due jobs, and their age in days, if they are old.
    OldPrices(Date, i32),
    /// The maximum cost of the run with its retries, and whether a limit stops them earlier.
    WorstCase(Usd, bool),
    /// A spend limit, and the part that the plan uses.
    Limit(&'p Limit, Usd),
    /// Rows of a file that became no jobs, as a sentence.
    RowsLeftOut(&'p str),
    /// Files that the manifest reads.
    Reads(&'p [String]),
    /// Active tasks, videos to download, or jobs in doubt of another batch of the name.
    OtherBatch(&'p OpenElsewhere),
    /// Due jobs that are already paid for.
    AlreadyPaid(&'p Plan),
    /// The number of paid videos to download.
    ToFetch(usize),
}

impl PlanNote<'_> {
    /// The code, for scripts.
    pub fn code(&self) -> NoticeCode {
        match self {
            Self::Simulated => NoticeCode::Simulated,
            Self::Frozen(_) => NoticeCode::PurchasesFrozen,
            Self::LocalImages(_) => NoticeCode::LocalImages,
            Self::LeftOut(_) => NoticeCode::LeftOut,
            Self::ChoiceSpent(..) => NoticeCode::ChoiceSpent,
            Self::ReplacesChoices(_) => NoticeCode::ReplacesChoices,
            Self::UntilKept(..) => NoticeCode::UntilKept,
            Self::OnTrial(_) => NoticeCode::ModelOnTrial,
            Self::RetakeUnfinished(_) => NoticeCode::RetakeUnfinished,
            Self::ActiveTasks(_) => NoticeCode::ActiveTasks,
            Self::Held(..) => NoticeCode::Held,
            Self::WaitsForImages(_) => NoticeCode::WaitsForImages,
            Self::Stale(_) => NoticeCode::Stale,
            Self::InDoubt(..) => NoticeCode::InDoubt,
            Self::OldPrices(..) => NoticeCode::OldPrices,
            Self::WorstCase(..) => NoticeCode::WorstCase,
            Self::Limit(limit, cost) if *cost > limit.left() || limit.used > limit.usd => NoticeCode::OverLimit,
            Self::Limit(limit, cost) if limit.is_near(*cost) => NoticeCode::NearLimit,
            Self::Limit(..) => NoticeCode::WithinLimit,
            Self::RowsLeftOut(_) => NoticeCode::RowsLeftOut,
            Self::Reads(..) => NoticeCode::Reads,
            Self::OtherBatch(other) if other.doubtful > 0 => NoticeCode::InDoubtElsewhere,
            Self::OtherBatch(_) => NoticeCode::OtherBatch,
            Self::AlreadyPaid(..) => NoticeCode::AlreadyPaid,
            Self::ToFetch(_) => NoticeCode::ToFetch,
        }
    }

    /// Returns whether a reviewer of the plan has to see it.
    pub fn is_urgent(&self) -> bool {
        matches!(self, Self::Simulated | Self::Frozen(_) | Self::InDoubt(..) | Self::AlreadyPaid(..))
            || self.code() == NoticeCode::OverLimit
    }
}

/// The facts about a plan.
pub fn notes(plan: &Plan) -> Vec<PlanNote<'_>> {
    let totals = plan.totals();
    let some = |number: usize, note: PlanNote<'static>| (number > 0).then_some(note);
    let number = |is: fn(&Planned) -> bool| plan.jobs.iter().filter(|planned| is(planned)).count();
    let mut notes = Vec::new();
    notes.extend(plan.is_simulated.then_some(PlanNote::Simulated));
    notes.extend(plan.frozen.as_ref().map(PlanNote::Frozen));
    let local = plan.local_images();
    notes.extend(some(local, PlanNote::LocalImages(local)));
    notes.extend(some(plan.left_out.len(), PlanNote::LeftOut(plan.left_out.len())));
    let mut spent: BTreeMap<SpentChoice, Vec<(&JobId, &str)>> = BTreeMap::new();
    for planned in &plan.jobs {
        if let Some(why) = planned.spent_choice {
            spent.entry(why).or_default().push((planned.job.id(), &*planned.reason));
        }
    }
    notes.extend(spent.into_iter().map(|(why, jobs)| PlanNote::ChoiceSpent(why, jobs)));
    let (waiting, later) = plan.until_kept();
    notes.extend((!later.is_zero()).then_some(PlanNote::UntilKept(waiting, later)));
    let replaced = &plan.replaced_choices;
    notes.extend((!replaced.is_empty()).then_some(PlanNote::ReplacesChoices(replaced)));
    notes.extend((!plan.on_trial.is_empty()).then_some(PlanNote::OnTrial(&plan.on_trial)));
    notes.extend(plan.unfinished_retake.as_ref().map(PlanNote::RetakeUnfinished));
    let active = plan.active_tasks().count();
    notes.extend(some(active, PlanNote::ActiveTasks(active)));
    let reviews = number(|planned| planned.action == Action::Hold && planned.job.review.is_some());
    notes.extend(some(reviews, PlanNote::Held(reviews, totals.face_reviews_usd)));
    notes.extend(some(totals.held - reviews, PlanNote::WaitsForImages(totals.held - reviews)));
    let stale = number(|planned| planned.action == Action::Stale);
    notes.extend(some(stale, PlanNote::Stale(stale)));
    notes.extend(some(totals.in_doubt, PlanNote::InDoubt(totals.in_doubt, totals.at_risk_usd)));
    let (day, age) = plan.prices;
    notes.extend((age > PRICES_AGE && totals.submit > 0).then_some(PlanNote::OldPrices(day, age)));
    let (most, worst) = (plan.most(), totals.worst_case_usd);
    let has_retries = plan.retries > 0 && worst > totals.cost_usd && most >= totals.cost_usd;
    notes.extend(has_retries.then_some(PlanNote::WorstCase(most, most < worst)));
    notes.extend(plan.every_limit().map(|limit| PlanNote::Limit(limit, plan.cost_under(limit))));
    notes.extend(plan.rows_left_out.iter().map(|sentence| PlanNote::RowsLeftOut(sentence)));
    notes.extend((!plan.inputs.is_empty()).then_some(PlanNote::Reads(&plan.inputs)));
    notes.extend(plan.elsewhere.iter().map(PlanNote::OtherBatch));
    notes.extend((!plan.already_paid.is_empty()).then_some(PlanNote::AlreadyPaid(plan)));
    notes.extend(some(totals.fetch, PlanNote::ToFetch(totals.fetch)));
    notes
}

impl Plan {
    /// Returns whether an approval covers the plan. A saved plan must also list its jobs.
    pub fn is_approved_by(&self, approved: &Approved) -> bool {
        approved.digest() == self.digest() && approved.saved.as_ref().is_none_or(|saved| saved.shows(self))
    }
}

impl SavedPlan {
    /// Returns whether the saved plan lists the submitted jobs. An edited file, or one with the digest of another plan, approves nothing.
    fn shows(&self, plan: &Plan) -> bool {
        let mut shown: Vec<_> = self.jobs.iter().filter(|job| job.action.buys()).collect();
        let mut planned: Vec<_> = plan.jobs.iter().filter(|planned| planned.is_to_be_approved).collect();
        shown.sort_unstable_by_key(|job| &job.id);
        planned.sort_unstable_by_key(|planned| planned.job.id());
        let sum: Usd = self.jobs.iter().map(|job| job.cost_usd).sum();
        (&self.name, &self.batch, self.retries) == (&plan.key.name, &plan.key.batch, plan.retries)
            && (!self.simulated || plan.is_simulated)
            && self.totals.cost_usd == sum
            && shown.len() == planned.len()
            && shown.into_iter().zip(planned).all(|(saved, planned)| saved.shows(planned))
    }
}

impl SavedJob {
    fn shows(&self, planned: &Planned) -> bool {
        let job = &planned.job;
        self.id == job.id().as_str()
            && self.cost_usd == job.purchase.price
            && self.labels == job.purchase.labels
            && self.earlier == planned.earlier
            && serde_json::from_str::<Value>(job.purchase.request.body()).is_ok_and(|request| request == self.request)
    }
}

impl Plan {
    /// Active tasks of an earlier request of planned jobs.
    pub fn superseded(&self) -> HashSet<AttemptId> {
        let planned: HashSet<&JobId> = self.jobs.iter().map(|planned| planned.job.id()).collect();
        let own = self.collect.iter().filter(|attempt| !self.others.contains(&attempt.id));
        own.filter(|attempt| planned.contains(attempt.job())).map(|attempt| attempt.id).collect()
    }

    /// Keeps only the download of missing videos.
    pub fn only_fetch(&mut self) {
        self.jobs.retain(|planned| !planned.action.buys());
        (self.resume, self.collect) = (Vec::new(), Vec::new());
        self.already_paid = Vec::new();
    }

    /// Adds the tasks and videos of another batch. `other` is its plan; purchases of that plan are left out.
    pub fn look_after(&mut self, other: Self, directory: &OtherDirectory) {
        self.others.extend(other.active_tasks().map(|attempt| attempt.id));
        self.collect.extend(other.resume);
        self.collect.extend(other.collect);
        if let (Some(own), Some(theirs)) = (&mut self.downloads, other.downloads) {
            own.add(theirs, directory);
        }
    }
}
