//! Whom a job is for: kept with every attempt, reported by every report, summed up, and limited.

use serde_json::{Value, json};

use crate::support::{Answer, Service, Workspace, json as answer};

const CLIENTS: &str = "version: 1
vars: { house: Zoë & Co }
defaults: { model: alpha-2, labels: { client: acme, country: de } }
jobs:
  - { id: one, prompt: a lake }
  - { id: two, prompt: a dune, labels: { client: \"{{ house }}\", order: 7 } }
  - { id: three, prompt: a pier, labels: { client: '', country: fr } }
";

fn read(here: &Workspace, name: &str) -> String {
    std::fs::read_to_string(here.path(&format!("shotlist-out/m/{name}"))).expect("a report")
}

fn books(here: &Workspace, arguments: &[&str]) -> Value {
    let printed = here.shotlist(&[&["spend", "--format", "json"], arguments].concat()).ends_with(0).stdout;
    serde_json::from_str(&printed).expect("JSON")
}

#[test]
fn labels_are_stored_with_purchases_and_reported() {
    let (service, here) = (Service::well(), Workspace::with_manifest(CLIENTS));
    here.run(&service, &[]).ends_with(0);
    // They are nobody's concern at the service.
    let sent = service.posts().concat();
    assert!(!["labels", "acme"].iter().any(|word| sent.contains(word)), "{sent}");
    let kept = here.ledger("SELECT job, labels FROM attempt ORDER BY id");
    assert_eq!(
        kept,
        [
            ["one", "{\"client\":\"acme\",\"country\":\"de\"}"],
            ["two", "{\"client\":\"Zoë & Co\",\"country\":\"de\",\"order\":\"7\"}"],
            ["three", "{\"country\":\"fr\"}"]
        ]
    );
    let report = here.report();
    assert_eq!(report["jobs"][1]["labels"], json!({ "client": "Zoë & Co", "country": "de", "order": "7" }));
    let csv = read(&here, "report.csv");
    let mut rows = csv.trim_start_matches('\u{feff}').lines();
    assert!(
        rows.next().is_some_and(|head| {
            head.ends_with(",audio,mismatch,reported_usd,label.client,label.country,label.order")
        })
    );
    assert!(rows.next().is_some_and(|row| row.ends_with(",a lake,0.90,0.00,,,,12,1280,720,25,no,,,acme,de,")));
    let shown = "<bdi>client Zoë &#38; Co</bdi>";
    assert!(read(&here, "report.html").contains(shown));
    // A purchase keeps its labels after the manifest changes, and costs nothing again.
    here.write("m.yaml", CLIENTS.replace("acme", "brand-new"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    let lines = &books(&here, &["--by", "client"])["lines"];
    let told: Vec<(&str, &str)> = lines
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (line["label"].as_str().expect("a value"), line["spent_usd"].as_str().expect("a sum")))
        .collect();
    assert_eq!(told, [("", "0.90"), ("Zoë & Co", "0.90"), ("acme", "0.90")]);
}

#[test]
fn spending_is_grouped_by_label() {
    let (service, here) = (Service::well(), Workspace::with_manifest(CLIENTS));
    here.run(&service, &["--batch", "x"]).ends_with(0);
    here.run(&service, &["--batch", "y", "--select", "one"]).ends_with(0);
    let said = |by: &str| here.shotlist(&["spend", "--by", by]).ends_with(0).stdout;
    insta::assert_snapshot!(said("client"), @r"
     CLIENT    TASKS  SPENT  AT RISK  UNKNOWN
     (none)        1  $0.90    $0.00    $0.00
     Zoë & Co      1  $0.90    $0.00    $0.00
     acme          2  $1.80    $0.00    $0.00

    spent: $3.60, at risk: $0.00, unknown: $0.00
    ");
    insta::assert_snapshot!(said("batch"), @r"
     BATCH  TASKS  SPENT  AT RISK  UNKNOWN
     m / x      3  $2.70    $0.00    $0.00
     m / y      1  $0.90    $0.00    $0.00

    spent: $3.60, at risk: $0.00, unknown: $0.00
    ");
    let csv = here.shotlist(&["spend", "--by", "client", "--format", "csv"]).ends_with(0).stdout;
    assert_eq!(
        csv,
        "client,attempts,spent_usd,at_risk_usd,unknown_usd,kept,kept_s,usd_per_kept_s\n,1,0.90,0.00,0.00,0,0,\nZoë & Co,1,0.90,0.00,0.00,0,0,\nacme,2,1.80,0.00,0.00,0,0,\n"
    );
    let csv = here.shotlist(&["spend", "--format", "csv"]).ends_with(0).stdout;
    assert!(csv.starts_with("day,name,batch,model,attempts,"), "{csv}");
    assert_eq!(
        books(&here, &["--by", "model"])["lines"],
        json!([
            { "model": "alpha-2", "attempts": 4, "spent_usd": "3.60", "at_risk_usd": "0.00", "unknown_usd": "0.00",
              "kept": 0, "kept_s": 0.0, "usd_per_kept_s": null }
        ])
    );
    let slip = here.shotlist(&["spend", "--by", "clinet"]).ends_with(2).stderr;
    insta::assert_snapshot!(slip, @"
    error[label-unknown]: `--by clinet`: no submitted job has this label
      help: pass `day`, `batch`, `model`, or one of the labels: client, country, order
    ");
}

/// The plan enforces the limit, the ledger enforces it between two runs, and other labels continue.
#[test]
fn limit_of_a_label_applies_to_its_jobs_only() {
    let limited =
        format!("{CLIENTS}budget: {{ labels: {{ client: {{ acme: {{ month: 1.00 }}, nobody: {{ day: 0 }} }} }} }}\n");
    let (service, here) = (Service::well(), Workspace::with_manifest(&limited));
    here.run(&service, &["--batch", "x"]).ends_with(0);
    let planned = here.run(&service, &["--batch", "y", "--plan"]).ends_with(3);
    insta::assert_snapshot!(planned.line("OVER the limit"), @"OVER the limit of $1.00 (budget.labels.client.acme.month), of which $0.90 is used, with $0.90 to submit");
    let refused = here.run(&service, &["--batch", "y"]).ends_with(3);
    insta::assert_snapshot!(refused.line("error[over-limit]"), @"error[over-limit]: the run costs $0.90 for client acme, but the limit is $1.00 (budget.labels.client.acme.month), $0.90 of it used");
    assert_eq!(service.posts().len(), 3);
    here.run(&service, &["--batch", "y", "--exclude", "one"]).ends_with(0);
    assert_eq!(service.posts().len(), 5);
}

/// A retry uses only the money of the label that its other jobs leave.
#[test]
fn retries_of_one_client_leave_the_money_of_the_others_alone() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "GET" if !asked.path.ends_with("content") => {
            answer(200, &json!({ "status": "failed", "error": { "message": format!("no {}", asked.path) } }))
        }
        _ => Answer::Well,
    });
    let limited = format!("{CLIENTS}budget: {{ labels: {{ client: {{ acme: {{ day: 1.80 }} }} }} }}\n");
    let here = Workspace::with_manifest(&limited);
    here.run(&service, &["--retries", "3", "--select", "{one,two}", "--concurrency", "1"]).ends_with(1);
    let bought = |prompt: &str| service.posts().iter().filter(|post| post.contains(prompt)).count();
    assert_eq!((bought("a lake"), bought("a dune")), (2, 4));
}
