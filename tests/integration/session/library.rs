//! The crate as a library: the examples run, and the steps of a session refuse unsafe uses.

use std::path::Path;

use shotlist::catalog::Catalog;
use shotlist::domain::{Attempt, AttemptState, TaskId, Usd};
use shotlist::ledger::{HoldError, LedgerLimit, Span};
use shotlist::manifest::{self, Manifest};
use shotlist::service::{ApiKey, Credentials, Endpoint};
use shotlist::session::{
    BatchView, Confirmation, Connection, ConnectionOptions, DefaultPaths, LedgerLimits, Options, Refusal, Resolution,
    ResolveError, RunEvent, Session, Stop, Verdict,
};

use serde_json::json;

use crate::support::{Answer, Service, Workspace, json as answer, numbered_jobs};

#[path = "../../../examples/library.rs"]
#[expect(dead_code, reason = "a test calls what `main` calls")]
mod example;

#[path = "../../../examples/service.rs"]
#[expect(dead_code, reason = "a test calls what `main` calls")]
mod service_example;

fn sound(path: &Path) -> Manifest {
    manifest::load(&manifest::Options::new(path), Catalog::embedded()).sound().expect("a sound manifest")
}

/// A session with real money, against the scripted service.
fn session(here: &Workspace) -> Session {
    let path = here.path("m.yaml");
    let (manifest, home) = (sound(&path), DefaultPaths::new(&path));
    let ledger = home.ledger().expect("a ledger");
    let options = Options::for_batch(home, &manifest.key).expect("a directory");
    let settings = shotlist::engine::Settings {
        first_poll: Some(std::time::Duration::ZERO),
        poll_floor: Some(std::time::Duration::from_millis(5)),
        ..options.settings.clone()
    };
    Session::new(manifest, ledger, Options { settings, ..options })
}

fn connection(service: &Service) -> Connection {
    let endpoint = Endpoint::parse(&service.url(), true).expect("an address");
    let credentials = Credentials::new(ApiKey::new("k").expect("a key"), Vec::new());
    Connection::to(endpoint, credentials, ConnectionOptions::default()).expect("a client")
}

#[test]
fn library_example_runs_and_is_short() {
    let text = include_str!("../../../examples/library.rs");
    assert!(text.lines().count() <= 40, "{} lines", text.lines().count());
    let here = Workspace::with_manifest(include_str!("../../../examples/quick-start.yaml"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(example::make(&here.path("m.yaml"))).expect("it runs");
    assert!(here.path("shotlist-sandbox/quick-start/hero.mp4").exists());
}

#[tokio::test]
async fn service_example_buys_once_and_shows_a_refused_limit() {
    let (service, here) = (Service::well(), Workspace::new());
    let path = here.path("from-a-program.yaml");
    let quick = || shotlist::engine::Settings {
        first_poll: Some(std::time::Duration::ZERO),
        poll_floor: Some(std::time::Duration::from_millis(5)),
        ..Default::default()
    };
    for _ in 0..2 {
        service_example::make(&service.url(), "k", &path, quick()).await.expect("it runs");
    }
    assert_eq!(service.posts().len(), 1, "the second run finds the video");
    assert!(here.path("shotlist-out/from-a-program/sky.mp4").exists(), "{:?}", here.files());
    let limit = LedgerLimit { label: None, span: Span::Day, usd: Usd::from_micros(1), zone: "UTC".into() };
    let other = Workspace::new();
    let ledger = DefaultPaths::new(&other.path("from-a-program.yaml")).ledger().expect("a ledger");
    ledger.set_limit(limit, true).await.expect("a limit");
    service_example::make(&service.url(), "k", &other.path("from-a-program.yaml"), quick())
        .await
        .expect("a refusal that is matched");
    assert_eq!(service.posts().len(), 1);
}

#[tokio::test]
async fn nothing_is_bought_without_its_confirmation() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let session = session(&here);
    for confirmed in [Usd::ZERO, Usd::from_micros(1_000_000)] {
        let confirmation = if confirmed.is_zero() { Confirmation::default() } else { Confirmation::up_to(confirmed) };
        let held = session.lock().await.expect("the batch");
        let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
        let refusal = ready.run(&confirmation, &Stop::default(), &|_| {}).await.expect_err("no confirmation");
        assert!(matches!(refusal, Refusal::Unconfirmed { confirmed: found, .. } if found == confirmed), "{refusal}");
    }
    assert_eq!(service.asked().len(), 0);
    let held = session.lock().await.expect("the batch");
    let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
    let confirmation = Confirmation::to(ready.plan());
    let outcome = ready.run(&confirmation, &Stop::default(), &|_| {}).await.expect("a run");
    assert_eq!(outcome.reported.as_ref().expect("a report").report.totals.states["completed"], 2);
    assert!(outcome.reported.is_ok_and(|reported| reported.written.is_ok()) && outcome.run.failures == 0);
}

/// A confirmed plan does not cover later purchases.
#[tokio::test]
async fn confirmation_excludes_unshown_purchases() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    let confirmation = Confirmation::to(&session(&here).plan().await.expect("a plan"));
    here.write("other.yaml", numbered_jobs(1));
    let bought = here.shotlist(&["run", "other.yaml", "--yes"]);
    bought.with_service(&service.url()).ends_with(0);
    let session = session(&here);
    let run = async |confirmation: &Confirmation| {
        let held = session.lock().await.expect("the batch");
        let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
        ready.run(confirmation, &Stop::default(), &|_| {}).await.map(|_| ())
    };
    let refusal = run(&confirmation).await.expect_err("bought before");
    assert!(matches!(refusal, Refusal::BoughtBefore { jobs: 1 }), "{refusal}");
    assert_eq!(service.posts().len(), 1);
    // A confirmation of the new plan covers it.
    let seen = Confirmation::to(&session.plan().await.expect("a plan"));
    run(&seen).await.expect("a run");
    assert_eq!(service.posts().len(), 2);
}

/// Every use of a session writes its reports.
#[tokio::test]
async fn session_can_report_again() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    let session = session(&here);
    for _ in 0..2 {
        let held = session.lock().await.expect("the batch");
        let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
        let confirmation = Confirmation::to(ready.plan());
        ready.run(&confirmation, &Stop::default(), &|_| {}).await.expect("a run");
        std::fs::remove_file(here.path("shotlist-out/m/report.csv")).expect("a report");
        session.report().await.expect("reports").written.expect("written");
        assert!(here.path("shotlist-out/m/report.csv").exists(), "it was said to be written");
    }
    assert_eq!(service.posts().len(), 1);
}

#[tokio::test]
async fn session_refuses_before_any_request() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let session = session(&here);
    let held = session.lock().await.expect("the batch");
    assert!(matches!(session.lock().await.map(|_| ()), Err(Refusal::Hold(HoldError::Busy { .. }))), "held twice");
    assert!(matches!(held.ready(None).await.map(|_| ()), Err(Refusal::NoConnection)));
    // Real money at the simulator.
    let held = session.lock().await.expect("the batch");
    let simulator = Connection::to_simulator(ConnectionOptions::default()).await.expect("a simulator");
    let refusal = held.ready(Some(simulator)).await.map(|_| ()).expect_err("two worlds");
    assert!(matches!(refusal, Refusal::OtherKind { ledger_is_simulated: false }), "{refusal}");
    // Real money at the simulator's speed.
    let path = here.path("m.yaml");
    let (manifest, home) = (sound(&path), DefaultPaths::of_sandbox(&path));
    let options = Options::for_batch(home, &manifest.key).expect("a directory");
    let ledger = DefaultPaths::new(&path).ledger().expect("a ledger");
    let refusal = Session::new(manifest, ledger, options).lock().await.map(|_| ()).expect_err("two worlds");
    assert!(matches!(refusal, Refusal::OtherKind { .. }), "{refusal}");
    assert_eq!(service.asked().len(), 0);
    assert!(!here.path("shotlist-out").exists(), "something was written");
}

/// A dropped run leaves the ledger as a kill does: a request without a response is in doubt, and never sent again.
#[tokio::test]
async fn dropped_run_leaves_the_ledger_like_a_kill() {
    let (service, release) = Service::holding("");
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let session = session(&here);
    let held = session.lock().await.expect("the batch");
    let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
    let (confirmation, stop) = (Confirmation::to(ready.plan()), Stop::default());
    let sent = async {
        let mut tries = 0;
        while service.posts().is_empty() {
            tries += 1;
            assert!(tries < 10_000, "nothing was sent");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = ready.run(&confirmation, &stop, &|_: RunEvent| {}) => panic!("it ended"),
        () = sent => {}
    }
    let states = async || {
        let history = session.ledger().history(&session.manifest().key).await.expect("read");
        history.attempts().map(|attempt| attempt.state).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [AttemptState::Intended]);
    let held = session.lock().await.expect("the batch is free again");
    assert_eq!((held.recovered(), states().await), (1, vec![AttemptState::InDoubt]));
    release.store(true, std::sync::atomic::Ordering::SeqCst);
    let ready = held.ready(Some(connection(&service))).await.expect("within its limits");
    let confirmation = Confirmation::to(ready.plan());
    let outcome = ready.run(&confirmation, &stop, &|_| {}).await.expect("a run");
    assert_eq!(outcome.reported.expect("a report").report.totals.states["in_doubt"], 1);
    assert_eq!(service.posts().len(), 2, "the doubtful job was sent again, or the other one was not");
}

#[tokio::test]
async fn program_resolves_jobs_and_limits_a_ledger() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => answer(500, &json!({ "error": "worker crashed" })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.run(&service, &[]).ends_with(7);
    let session = session(&here);
    let batch = BatchView::new(session.manifest(), session.ledger());
    let in_doubt = async || {
        let (history, _) = batch.doubts().await.expect("a ledger");
        history.attempts().filter(|attempt| attempt.state == AttemptState::InDoubt).count()
    };
    assert_eq!(in_doubt().await, 2);

    let (task, connection) = (TaskId::new("task_x").expect("an ID"), connection(&service));
    let verdict = Verdict::Task { task: &task, connection: &connection, is_certain: false };
    let recorded = std::cell::RefCell::new(Vec::new());
    let note =
        |attempt: &Attempt, how: &Resolution| recorded.borrow_mut().push((attempt.job().to_string(), how.clone()));
    let error = batch.resolve("j*", verdict, note).await.expect_err("one task for two jobs");
    assert!(matches!(error, ResolveError::SeveralJobs { .. }), "{error}");
    batch.resolve("j0", verdict, note).await.expect("the service knows the task");
    assert_eq!(*recorded.borrow(), [("j0".to_owned(), Resolution::Task(task.clone().into()))]);
    let error = batch.resolve("j1", verdict, note).await.expect_err("the task of j0");
    assert!(matches!(error, ResolveError::TaskTaken { .. }), "{error}");
    batch.resolve("j1", Verdict::NeverCreated, note).await.expect("in doubt");
    assert_eq!(in_doubt().await, 0);

    let usd = Usd::from_micros(5_000_000);
    let limit = LedgerLimit { label: None, span: Span::Month, usd, zone: "UTC".into() };
    session.ledger().set_limit(limit, true).await.expect("a limit");
    let LedgerLimits { limits, .. } = LedgerLimits::from_ledger(session.ledger()).await.expect("a ledger");
    let [(limit, used)] = &limits[..] else { panic!("{limits:?}") };
    assert_eq!((limit.usd, used.to_string()), (usd, "0.90".to_owned()));
}
