//! Fees of face reviews: paid outside the interface, shown from the manifest, and in no ledger.

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Service, Workspace, has_code, json as answer};

/// A manifest with these faces, and two jobs of $3.75 with the face `anna`.
fn manifest(faces: &str) -> String {
    format!(
        "version: 1\ntimezone: UTC\nfaces: {{ {faces} }}\ndefaults: {{ model: beta-2.0-lite, face: anna }}\njobs: [{{ id: a, prompt: Walk }}, {{ id: b, prompt: Run }}]\n"
    )
}

const PAID: &str = "anna: { review: approved, paid_on: 2026-11-02 }";

fn spend(here: &Workspace, args: &[&str]) -> Value {
    let json = here.shotlist(&[&["spend", "m.yaml", "--format", "json"], args].concat()).ends_with(0).stdout;
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn fee_counts_once_per_face_and_not_in_the_ledger() {
    let service = Service::well();
    // The limit has room for the jobs only.
    let limited = |faces: &str| format!("{}budget: {{ day: 7.50 }}\n", manifest(faces));
    let here = Workspace::with_manifest(&limited(PAID));
    let corrected = "anna: { review: approved, paid_on: 2026-11-03 }";
    let undated = "anna: { review: approved }";
    for faces in [PAID, corrected, undated] {
        here.write("m.yaml", limited(faces));
        here.run(&service, &[]).ends_with(0).lacks(&["paid_on"]);
        let totals = &here.report()["totals"];
        assert_eq!((&totals["face_reviews_usd"], &totals["spent_usd"]), (&"0.20".into(), &"7.50".into()), "{faces}");
        let spent = spend(&here, &[]);
        let sums = (&spent["face_reviews_usd"], &spent["totals"]["spent_usd"]);
        assert_eq!(sums, (&"0.20".into(), &"7.50".into()), "{faces}");
    }
    assert_eq!(here.ledger("SELECT count(*) FROM attempt"), [["2"]]);
    let two = format!("{PAID}, bob: {{ review: approved }}, mia: {{ review: pending }}");
    here.write("m.yaml", manifest(&two));
    assert_eq!(spend(&here, &[])["face_reviews_usd"], "0.40");
    // A fee without a day may be of any day.
    assert_eq!(spend(&here, &["--since", "2026-11-03"])["face_reviews_usd"], "0.20");
    insta::assert_snapshot!(here.shotlist(&["spend", "m.yaml"]).ends_with(0).line("face reviews"), @"face reviews of the manifest: $0.40, paid outside the service");
}

/// Unknown fees are not zero.
#[test]
fn fees_of_wrong_faces_are_unknown() {
    let (service, here) =
        (Service::well(), Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"));
    here.run(&service, &[]).ends_with(0);
    for faces in ["[anna]", "{ anna: { review: maybe } }", "{ anna: { review: approved, paid_on: soon } }"] {
        here.write("m.yaml", format!("version: 1\nfaces: {faces}\njobs: [{{ id: a, model: alpha-2, prompt: x }}]\n"));
        let spent = here.shotlist(&["spend", "m.yaml"]).ends_with(0);
        assert!(has_code(&spent.stderr, "faces-not-read"), "{faces}: {}", spent.stderr);
    }
}

#[test]
fn simulator_has_no_fees() {
    let here = Workspace::with_manifest(&manifest(PAID));
    here.shotlist(&["run", "m.yaml", "--sandbox", "--no-download"]).ends_with(0);
    assert_eq!(here.json("shotlist-sandbox/m/report.json")["totals"]["face_reviews_usd"], "0.00");
    here.shotlist(&["spend", "m.yaml", "--sandbox"]).ends_with(0).lacks(&["face"]);
}

#[test]
fn spend_survives_a_broken_manifest() {
    let (here, service) = (Workspace::with_manifest(&manifest(PAID)), Service::well());
    here.run(&service, &["--no-download"]).ends_with(0);
    here.write("m.yaml", "faces: [");
    let ended = here.shotlist(&["spend", "m.yaml"]).ends_with(0).shows("faces-not-read");
    insta::assert_snapshot!(ended.line("spent: "), @"spent: $7.50, at risk: $0.00, unknown: $0.00");
}

#[test]
fn invalid_or_future_day_is_an_error() {
    for day in ["soon", "2999-01-01", "2026-13-01"] {
        let here = Workspace::with_manifest(&manifest(&PAID.replace("2026-11-02", day)));
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).shows("review-paid-on");
    }
}

#[test]
fn held_job_hides_no_failure() {
    let refusing = |status: u16| {
        move |asked: &Asked| match asked.method.as_str() {
            "POST" => answer(status, &json!({ "detail": "no" })),
            _ => Answer::Well,
        }
    };
    let failing = |asked: &Asked| match asked.method.as_str() {
        "POST" => Answer::Well,
        _ => answer(200, &json!({ "status": "failed", "error": { "message": "no" } })),
    };
    let faults: [(&str, Service, i32); 6] = [
        ("none", Service::well(), 5),
        ("failed tasks", Service::scripted(failing), 1),
        ("rejected jobs", Service::scripted(refusing(422)), 1),
        ("no funds", Service::scripted(refusing(402)), 1),
        ("a refused key", Service::scripted(refusing(401)), 4),
        ("lost responses", Service::scripted(refusing(500)), 7),
    ];
    let jobs = "jobs: [{ id: a, model: alpha-2, prompt: one }, { id: b, model: alpha-2, prompt: two }";
    let held = "{ id: c, model: beta-2.0-lite, prompt: three, face: bob }";
    let manifest = format!("version: 1\nfaces: {{ bob: {{ review: pending }} }}\n{jobs}, {held}]\n");
    for (fault, service, expected) in faults {
        let ended = Workspace::with_manifest(&manifest).run(&service, &[]).ends();
        assert_eq!(ended.code, Some(expected), "{fault}: {}", ended.stderr);
    }
}
