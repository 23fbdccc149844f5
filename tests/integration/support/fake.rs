//! A service in memory, and a ledger that takes no time, for the engine on a paused clock.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use shotlist::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Charging, History, Job, JobId, Labels, Purchase, Request,
    SendBy, Spec, TaskId,
};
use shotlist::download::Downloads;
use shotlist::engine::{Engine, Outcome, RunEvent, Settings, Stop};
use shotlist::ledger::{Intent, Ledger, LockedBatch};
use shotlist::plan::{Plan, PlanInput, Retakes};
use shotlist::service::{Echo, PollAnswer, Status, Submission, SubmitResult, TaskReport, TryAgain, VideoService};
use tempfile::TempDir;
use tokio::time::Instant;

/// The wait for a submission, by the number of active tasks.
type IsFull = Box<dyn Fn(usize) -> Option<Option<Duration>> + Send + Sync>;

/// A service in simulated time.
pub struct FakeService {
    /// How long a task takes, by the order of submission.
    pub takes: Box<dyn Fn(usize) -> Duration + Send + Sync>,
    /// The failures of submissions, by their order.
    pub refuses: Box<dyn Fn(usize) -> Option<SubmitResult> + Send + Sync>,
    /// The failures of polls, by their order.
    pub denies: Box<dyn Fn(usize) -> Option<PollAnswer> + Send + Sync>,
    /// Refuses submissions that are one too many.
    pub is_full: Option<IsFull>,
    /// How long a submission takes, and a poll by its order.
    pub submit_latency: Duration,
    pub poll_latency: Box<dyn Fn(usize) -> Duration + Send + Sync>,
    /// The progress of a task, by its order, from the share of its life that is over; nothing for none.
    pub progress: Box<dyn Fn(usize, f64) -> Option<u8> + Send + Sync>,
    /// The speed that it reports.
    pub speed: f64,
    /// Every task: when it was made and how long it takes.
    pub tasks: Mutex<HashMap<TaskId, (Instant, Duration)>>,
    /// By task, how long after its end the run first heard of it.
    pub lags: Mutex<HashMap<TaskId, Duration>>,
    submissions: Mutex<Vec<(Instant, String)>>,
    polls: Mutex<Vec<(Instant, TaskId)>>,
}

impl FakeService {
    /// A service without failures, with the duration of each task by the order of submission.
    pub fn taking(takes: impl Fn(usize) -> Duration + Send + Sync + 'static) -> Self {
        Self {
            takes: Box::new(takes),
            refuses: Box::new(|_| None),
            denies: Box::new(|_| None),
            progress: Box::new(|_, _| None),
            is_full: None,
            submit_latency: Duration::from_millis(100),
            poll_latency: Box::new(|_| Duration::from_millis(50)),
            speed: 1.0,
            tasks: Mutex::default(),
            lags: Mutex::default(),
            submissions: Mutex::default(),
            polls: Mutex::default(),
        }
    }

    /// How many tasks are active at a moment.
    pub fn active_at(&self, at: Instant) -> usize {
        let tasks = self.tasks.lock().expect("no panic");
        tasks.values().filter(|(start, takes)| *start <= at && at < *start + *takes).count()
    }

    /// Every poll so far.
    pub fn polls(&self) -> Vec<(Instant, TaskId)> {
        self.polls.lock().expect("no panic").clone()
    }

    /// Every submission so far.
    pub fn submissions(&self) -> Vec<(Instant, String)> {
        self.submissions.lock().expect("no panic").clone()
    }
}

impl VideoService for FakeService {
    async fn submit(&self, request: &Request, _: Option<SendBy>) -> SubmitResult {
        tokio::time::sleep(self.submit_latency).await;
        let mut submissions = self.submissions.lock().expect("no panic");
        let number = submissions.len();
        submissions.push((Instant::now(), request.body().to_owned()));
        if let Some(refusal) = (self.refuses)(number) {
            return refusal;
        }
        let is_full = self.is_full.as_ref();
        if let Some(wait) = is_full.and_then(|is_full| is_full(self.active_at(Instant::now()))) {
            return Err(TryAgain::Wait(wait, "full".into()));
        }
        let task = TaskId::new(format!("t{number}")).expect("an id");
        self.tasks.lock().expect("no panic").insert(task.clone(), (Instant::now(), (self.takes)(number)));
        Ok(Submission::Accepted(task.into(), Echo::default()))
    }

    fn speed(&self) -> f64 {
        self.speed
    }

    async fn poll(&self, task: &TaskId) -> PollAnswer {
        let number = {
            let mut polls = self.polls.lock().expect("no panic");
            polls.push((Instant::now(), task.clone()));
            polls.len() - 1
        };
        tokio::time::sleep((self.poll_latency)(number)).await;
        if let Some(denial) = (self.denies)(number) {
            return denial;
        }
        let tasks = self.tasks.lock().expect("no panic");
        let Some((start, takes)) = tasks.get(task) else {
            return PollAnswer::Missing("it is not known (HTTP 404)".into());
        };
        if let Some(lag) = start.elapsed().checked_sub(*takes) {
            self.lags.lock().expect("no panic").entry(task.clone()).or_insert(lag);
            return PollAnswer::Report(report(Status::Completed));
        }
        let number = task.as_str().trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        let progress = (self.progress)(number, start.elapsed().as_secs_f64() / takes.as_secs_f64());
        PollAnswer::Report(TaskReport { progress, ..report(Status::InProgress) })
    }

    fn content_url(&self, task: &TaskId) -> String {
        format!("content/{task}")
    }
}

/// The service's report of a task in this state.
pub fn report(status: Status) -> TaskReport {
    let video_url = (status == Status::Completed).then(|| "https://v.example/x.mp4".to_owned());
    let names_video_url = true;
    TaskReport {
        has_state: true,
        only_link: None,
        names: None,
        status,
        progress: None,
        video_url,
        names_video_url,
        completed_at: None,
        error: None,
        echo: Box::default(),
    }
}

/// A locked batch of a ledger in a new file, with writes that take no time of the paused clock.
pub struct OwnBatch {
    pub ledger: Ledger,
    pub batch: LockedBatch,
    directory: TempDir,
}

impl Default for OwnBatch {
    fn default() -> Self {
        Self::observed_by(|_| ())
    }
}

impl OwnBatch {
    /// One that calls this after each commit with its file.
    pub fn observed_by(observe: impl Fn(&Path) + Send + Sync + 'static) -> Self {
        // In memory, where a commit need not wait for a disk.
        let shared_memory = Path::new("/dev/shm");
        let parent = if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(parent).expect("a directory");
        let path = directory.path().join("ledger.db");
        let own = path.clone();
        let ledger = Ledger::in_place(path, move || observe(&own));
        let batch = ledger.lock(&key()).now_or_never().expect("it never waits").expect("a batch");
        Self { ledger, batch, directory }
    }

    /// A ledger that fails at each commit of an attempt.
    pub fn failing_at(change: &str) -> Self {
        let own = Self::default();
        let connection = rusqlite::Connection::open(own.directory.path().join("ledger.db")).expect("the file");
        let fail = format!("CREATE TRIGGER fail BEFORE {change} ON attempt BEGIN SELECT RAISE(ABORT, 'failed'); END");
        connection.execute_batch(&fail).expect("a trigger");
        own
    }

    /// Records a task that an earlier run submitted, and returns its attempt's ID.
    pub fn accepted(&self, job: &Job, task: &str) -> AttemptId {
        let task = TaskId::new(task).expect("an id");
        let record = async {
            let attempt = self.batch.intend(Intent::new(job, account())).await.expect("an intent");
            self.batch.accept(attempt, task.into()).await.expect("recorded");
            attempt
        };
        record.now_or_never().expect("it never waits")
    }

    /// The job of each attempt, oldest first.
    pub fn jobs(&self) -> Vec<String> {
        self.attempts().map(|attempt| attempt.job().to_string()).collect()
    }

    /// The state of each attempt, oldest first.
    pub fn states(&self) -> Vec<AttemptState> {
        self.attempts().map(|attempt| attempt.state).collect()
    }

    fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let submitted = self.ledger.submissions(|_| true).now_or_never();
        let submitted = submitted.expect("it never waits").expect("read");
        submitted.into_iter().map(|(_, attempt)| attempt)
    }
}

/// The batch of all jobs here.
pub fn key() -> BatchKey {
    BatchKey { name: "n".into(), batch: String::new() }
}

/// Jobs on beta-2.0-lite, of $3.75 and 30 to 120 seconds each.
pub fn jobs(count: usize) -> Vec<Arc<Job>> {
    jobs_of(count, (30, 120))
}

/// Jobs on beta-2.0-lite, of $3.75 each, with these shortest and longest times.
pub fn jobs_of(count: usize, typical_s: (u32, u32)) -> Vec<Arc<Job>> {
    let job = |number: usize| {
        let spec = Spec { model: "beta-2.0-lite".into(), prompt: Some(format!("p{number}")), ..Spec::default() };
        Arc::new(Job {
            purchase: Purchase {
                job: JobId::new(format!("j{number}")).expect("an id"),
                request: Request::new(&spec),
                model: spec.model.clone(),
                price: "3.75".parse().expect("money"),
                charging: Charging::Undocumented,
                typical_s,
                labels: Labels::new(),
                output: None,
                local_images: None,
            },
            spec,
            take: 1,
            tags: Vec::new(),
            row: None,
            matrix: None,
            review: None,
            has_no_review: false,
            up_to: None,
        })
    };
    (0..count).map(job).collect()
}

/// The account of the tasks.
pub fn account() -> Account {
    Account { service: "fake".into(), key: "k".into() }
}

/// The input of a plan of a whole manifest in the light of a history, with no limit and no wish.
pub fn input_of<'g>(jobs: &'g [Arc<Job>], history: &'g History) -> PlanInput<'g> {
    static NO_RETAKES: LazyLock<Retakes> = LazyLock::new(Retakes::default);
    PlanInput {
        key: key(),
        is_simulated: false,
        manifest: jobs,
        is_in_manifest: &|_| true,
        history,
        run_limit: None,
        limits: Vec::new(),
        concurrency: 8,
        retries: 0,
        retry_failed: false,
        retake: &NO_RETAKES,
        approved: None,
        sample: None,
        is_here: None,
    }
}

/// The plan of all of them.
pub fn plan_of(jobs: &[Arc<Job>], history: &History) -> Plan {
    let is_in_manifest = |id: &JobId| jobs.iter().any(|job| *job.id() == *id);
    Plan::new(jobs, PlanInput { is_in_manifest: &is_in_manifest, ..input_of(jobs, history) })
}

/// Runs a plan to its end, and how it ended with every event.
pub async fn run(
    service: &FakeService,
    ledger: &OwnBatch,
    settings: &Settings,
    stop: &Stop,
    plan: &Plan,
) -> (Outcome, Vec<RunEvent>) {
    run_with_downloads(service, ledger, settings, stop, plan, None).await
}

/// Runs a plan to its end, and downloads its videos.
pub async fn run_with_downloads(
    service: &FakeService,
    ledger: &OwnBatch,
    settings: &Settings,
    stop: &Stop,
    plan: &Plan,
    downloads: Option<&dyn Downloads>,
) -> (Outcome, Vec<RunEvent>) {
    let events = Mutex::new(Vec::new());
    let emit = |event: RunEvent| events.lock().expect("no panic").push(event);
    let engine = Engine {
        prices: &|_, _, _| None,
        service,
        account: &account(),
        limits: &[],
        approval: None,
        ledger: &ledger.batch,
        clock_offset: jiff::SignedDuration::ZERO,
        settings,
        stop,
        downloads,
        assets: None,
        emit: &emit,
    };
    let outcome = engine.run(plan).await;
    (outcome, events.into_inner().expect("no panic"))
}
