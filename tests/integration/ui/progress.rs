//! The progress of a run on a terminal, event by event, with times from the test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use shotlist::domain::{
    Charge, Charging, History, Job, JobId, Labels, Purchase, Request, Spec, TaskId, TaskNames, Usd,
};
use shotlist::engine::RunEvent;
use shotlist::ui::ProgressState;

use crate::support::fake::plan_of;

fn job(id: &str, model: &str, typical_s: (u32, u32), price: &str) -> Arc<Job> {
    let spec = Spec { model: model.into(), prompt: Some(id.into()), ..Spec::default() };
    Arc::new(Job {
        purchase: Purchase {
            job: JobId::new(id).expect("an id"),
            request: Request::new(&spec),
            model: spec.model.clone(),
            price: price.parse().expect("money"),
            charging: Charging::AtSubmission,
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
}

fn task() -> TaskNames {
    TaskId::new("t").expect("an id").into()
}

fn submitted(job: &Job) -> RunEvent {
    RunEvent::Submitted { job: job.id().clone(), task: task(), price: job.purchase.price }
}

/// Two minutes and a half into a campaign of forty jobs.
fn campaign() -> (ProgressState, Instant) {
    let hero = (0..10).map(|n| job(&format!("hero-{n}"), "alpha-2", (60, 180), "0.90"));
    let spins = (0..30).map(|n| job(&format!("spin-{n}"), "beta-2.0-lite", (30, 120), "3.75"));
    let jobs: Vec<Arc<Job>> = hero.chain(spins).collect();
    let plan = plan_of(&jobs, &History::default());
    let start = Instant::now();
    let mut picture = ProgressState::new(start).with_tasks(&plan, 1.0, start);
    let mut tell = |second: u64, event: RunEvent| picture.note(&event, start + Duration::from_secs(second));
    tell(0, RunEvent::Started { submit: 40, resume: 0, planned: plan.totals().cost_usd, fetch: 0 });
    for (number, job) in jobs.iter().enumerate().take(20) {
        let begun = if number < 8 { 0 } else { 70 + number as u64 };
        tell(begun, submitted(job));
        match number {
            0..8 => tell(90, RunEvent::Completed { job: job.id().clone(), task: task() }),
            8 => tell(
                140,
                RunEvent::Failed {
                    job: job.id().clone(),
                    task: task(),
                    message: "the prompt was refused by moderation".into(),
                    charge: Charge::Unknown,
                },
            ),
            9..12 => tell(145, RunEvent::Completed { job: job.id().clone(), task: task() }),
            _ => tell(
                148,
                RunEvent::Progressed {
                    job: job.id().clone(),
                    percent: Some(u8::try_from(100 - 4 * number).expect("small")),
                },
            ),
        }
    }
    tell(149, RunEvent::InDoubt { job: jobs[20].id().clone(), message: "lost".into(), price: jobs[20].purchase.price });
    tell(149, RunEvent::ToFetch { job: jobs[11].id().clone() });
    (picture, start + Duration::from_secs(150))
}

#[test]
fn reference_shows_a_run_as_the_terminal_does() {
    let (picture, now) = campaign();
    let shown = picture.lines(79, 24, now).join("\n");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/reference/reports.md"))
        .expect("the reference");
    assert!(page.contains(&shown), "reports.md lacks the progress as it is now:\n```text\n{shown}\n```");
}

#[test]
fn narrow_terminal_shows_the_most_important_first() {
    let (picture, now) = campaign();
    insta::assert_snapshot!(picture.lines(60, 24, now).join("\n"), @r"
    █████████░░░░░░░░░░░░░░░░░░░░░ 11/40 done · about 6 min left
    $50.25 of $121.50 reserved · 8 running · 1 failed · 1 in do…
      spin-2                52 %     for 68 s
      spin-3                48 %     for 67 s
      spin-10               in doubt, $3.75 at risk
      hero-8                failed: the prompt was refused by m…
    ");
    insta::assert_snapshot!(picture.lines(39, 6, now).join("\n"), @r"
    ██░░░░░░░ 11/40 done · about 6 min left
    $50.25 of $121.50 reserved · 8 running…
      spin-2                52 %     for 6…
    ");
}

#[test]
fn time_left_is_learned_from_finished_jobs() {
    let jobs: Vec<Arc<Job>> = (0..9).map(|n| job(&format!("j{n}"), "alpha-2", (60, 180), "0.90")).collect();
    let plan = plan_of(&jobs, &History::default());
    let start = Instant::now();
    let at = |second: u64| start + Duration::from_secs(second);
    let mut picture = ProgressState::new(start).with_tasks(&plan, 1.0, start);
    picture.note(&RunEvent::Started { submit: 9, resume: 0, planned: Usd::ZERO, fetch: 0 }, start);
    // By the plan: nine times two minutes in five slots.
    insta::assert_snapshot!(picture.sentence(start), @"0/9 done, $0.00 of $0.00 reserved, about 4 min left");
    for (number, job) in (0..).zip(&jobs[..8]) {
        picture.note(&submitted(job), at(number * 10));
        picture.note(&RunEvent::Completed { job: job.id().clone(), task: task() }, at(number * 10 + 10));
    }
    // Eight took ten seconds each.
    insta::assert_snapshot!(picture.sentence(at(80)), @"8/9 done, $7.20 of $0.00 reserved, about 10 s left");
}

#[test]
fn ten_thousand_tasks_are_drawn_in_no_time() {
    let jobs: Vec<Arc<Job>> = (0..10_000).map(|n| job(&format!("j{n}"), "alpha-2", (60, 180), "0.90")).collect();
    let plan = plan_of(&jobs, &History::default());
    let start = Instant::now();
    let mut picture = ProgressState::new(start).with_tasks(&plan, 1.0, start);
    // Processor time of this thread: other tests may use the cores.
    let noting = processor_time();
    for job in &jobs {
        picture.note(&submitted(job), start);
    }
    let noted = processor_time().saturating_sub(noting);
    let fastest = (0..8)
        .map(|_| {
            let drawing = processor_time();
            assert_eq!(picture.lines(100, 30, start + Duration::from_secs(9)).len(), 4);
            processor_time().saturating_sub(drawing)
        })
        .min()
        .expect("eight drawings");
    // A ratio: the drawings of a second cost at most as much as the events of ten thousand jobs, each with a request.
    assert!(fastest * 8 < noted * 20, "{fastest:?} for a drawing, {noted:?} for ten thousand events");
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a clock that runs forward")
}
