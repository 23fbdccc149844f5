//! Fees of face reviews: paid outside the interface, and counted in spending, limits, reports, and bills.

use serde_json::Value;

use crate::support::{Service, Workspace, codes};

/// A manifest with a reviewed face and one job of $3.75.
fn manifest(faces: &str, more: &str) -> String {
    format!(
        "version: 1\ntimezone: UTC\nfaces: {{ {faces} }}\n{more}\njobs: [{{ id: a, model: beta-2.0-lite, prompt: Walk, face: anna }}]\n"
    )
}

const PAID: &str = "anna: { review: approved, paid_on: 2026-11-02 }";

fn spent(here: &Workspace) -> Value {
    let spent = here.shotlist(&["spend", "--since", "2026-11-01", "--format", "json"]).ends_with(0).stdout;
    serde_json::from_str(&spent).expect("JSON")
}

#[test]
fn fee_counts_once_on_its_day_whichever_manifests_name_it() {
    let (here, service) = (Workspace::with_manifest(&manifest(PAID, "")), Service::well());
    here.run(&service, &[]).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    here.write("other.yaml", manifest(PAID, "").replace("Walk", "Run").replace("UTC", "Asia/Tokyo"));
    here.shotlist(&["run", "other.yaml", "--yes", "--first-poll", "0s"])
        .env("SHOTLIST_BASE_URL", &service.url())
        .env("SHOTLIST_API_KEY", "k")
        .ends_with(0);
    let fees =
        here.ledger("SELECT model, state, charge, price_micros, intended_us FROM attempt WHERE model = 'face-review'");
    assert_eq!(fees, [["face-review", "completed", "charged", "200000", "1793620800000000"]]);
    let by_model = here.shotlist(&["spend", "--since", "2026-11-01", "--by", "model"]).ends_with(0).stdout;
    assert!(by_model.lines().any(|line| line.contains("face-review") && line.contains("0.20")), "{by_model}");
    assert!(spent(&here).to_string().contains("\"7.70\""), "{:#}", spent(&here));
    let totals = &here.report()["totals"];
    assert_eq!((&totals["face_reviews_usd"], &totals["spent_usd"]), (&"0.20".into(), &"3.75".into()));
    here.shotlist(&["ledger", "check"]).ends_with(0);
    // A later review of the same face has a fee of its own.
    here.write("m.yaml", manifest(&PAID.replace("11-02", "11-03"), ""));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.ledger("SELECT id FROM attempt WHERE model = 'face-review'").len(), 2);
}

#[test]
fn fee_without_a_day_and_the_simulator_record_nothing() {
    let (here, service) = (Workspace::with_manifest(&manifest("anna: { review: approved }", "")), Service::well());
    let ended = here.run(&service, &[]).ends_with(0).shows("review-paid-on");
    assert!(ended.stderr.contains("`paid_on` is missing"), "{}", ended.stderr);
    assert_eq!(here.ledger("SELECT id FROM attempt WHERE model = 'face-review'").len(), 0);
    here.write("m.yaml", manifest(PAID, ""));
    let sandbox = here.shotlist(&["run", "m.yaml", "--sandbox", "--no-download"]).ends_with(0);
    assert!(!sandbox.stderr.contains("face"), "{}", sandbox.stderr);
    let spent = here.shotlist(&["spend", "m.yaml", "--sandbox", "--by", "model"]).ends_with(0).stdout;
    assert!(!spent.contains("face-review"), "{spent}");
}

#[test]
fn limits_count_a_fee_before_the_run_records_it_and_after() {
    let today = jiff::Timestamp::now().strftime("%F").to_string();
    let paid = PAID.replace("2026-11-02", &today);
    let (here, service) = (Workspace::with_manifest(&manifest(&paid, "budget: { day: 3.90 }")), Service::well());
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends().stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert!(codes(&plan).contains(&"over-limit"), "{plan:#}");
    here.run(&service, &[]).ends_with(3);
    assert_eq!(service.posts().len(), 0);
    // Paid is paid, also beyond a limit of the ledger.
    here.shotlist(&["limit", "set", "--day", "0.10"]).ends_with(0);
    here.write(
        "m.yaml",
        manifest(&paid, "")
            .replace("face: anna", "face: bob")
            .replace("faces: {", "faces: { bob: { review: pending },"),
    );
    here.run(&service, &["--no-download"]).ends();
    assert_eq!(here.ledger("SELECT state FROM attempt WHERE model = 'face-review'"), [["completed"]]);
    here.shotlist(&["limit", "set", "--day", "none"]).ends_with(0);
    here.write("m.yaml", manifest(&paid, "budget: { day: 3.90 }"));
    here.run(&service, &[]).ends_with(3);
    here.write("m.yaml", manifest(&paid, "budget: { day: 3.95 }"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn killed_at_any_write_a_fee_is_recorded_once() {
    let service = Service::well();
    let mut kills = 0;
    for place in ["before-commit", "after-commit"] {
        for commit in 1..8 {
            let here = Workspace::with_manifest(&manifest(PAID, ""));
            let ended = here.run(&service, &[]).dies_at(&format!("{place}:{commit}"));
            kills += usize::from(ended.code.is_none());
            here.run(&service, &[]).ends();
            let fees = here.ledger("SELECT state, charge, needs_download FROM attempt WHERE model = 'face-review'");
            assert_eq!(fees, [["completed", "charged", "0"]], "{place}:{commit}");
            here.shotlist(&["ledger", "check"]).ends_with(0);
        }
    }
    assert!(kills >= 10, "only {kills} kills happened");
}

#[test]
fn bill_with_the_fee_agrees() {
    let (here, service) = (Workspace::with_manifest(&manifest(PAID, "")), Service::well());
    here.run(&service, &[]).ends_with(0);
    let task = here.ledger("SELECT task FROM attempt WHERE model = 'beta-2.0-lite'")[0][0].clone();
    let reconcile = || {
        here.shotlist(&[
            "reconcile",
            "bill.csv",
            "--task-column",
            "task",
            "--usd-column",
            "usd",
            "--time-column",
            "day",
        ])
        .ends()
    };
    for (fee, agrees) in [
        (",0.20,2026-11-02", true),
        ("review-0815,0.20,2026-11-02", true),
        (",0.30,2026-11-02", false),
        (",0.20,2026-10-02", false),
        (",0.20,2026-11-02\n,0.20,2026-11-02", false),
    ] {
        here.write("bill.csv", format!("task,usd,day\n{task},3.75,2026-11-26\n{fee}\n"));
        let ended = reconcile();
        assert_eq!(ended.code, Some(i32::from(!agrees)), "{fee}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(
            ended.stdout.contains("face reviews: 1"),
            !fee.contains("0.30") && !fee.contains("10-02"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn day_that_is_none_or_in_the_future_is_refused() {
    for day in ["soon", "2999-01-01", "2026-13-01"] {
        let here = Workspace::with_manifest(&manifest(&PAID.replace("2026-11-02", day), ""));
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).shows("review-paid-on");
    }
}
