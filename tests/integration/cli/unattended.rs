//! Unattended runs: metrics, summaries, and the wait for another run.

#![cfg(unix)]

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{
    Answer, Ended, LEFT_AFTER, Service, TWO_JOBS, Workspace, json, line_of, numbered_jobs, wait_until,
};

#[test]
fn metrics_have_states_sums_and_the_freeze() {
    let service = Service::losing("a dog");
    let here = Workspace::with_manifest(&format!("{TWO_JOBS}name: \"da\\\"ily\"\n"));
    let metrics = |args: &[&str]| {
        let text = here.shotlist(&[&["status", "m.yaml", "--format", "prometheus"], args].concat()).ends_with(0).stdout;
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    };
    // No job is completed.
    here.shotlist(&["status", "m.yaml", "--format", "prometheus"]).ends_with(0).lacks(&["last_completion"]);
    here.run(&service, &[]).ends_with(7);
    here.shotlist(&["limit", "set", "--freeze", "--month", "50", "--timezone", "UTC"]).ends_with(0);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d{10}\.\d{3}", "TIME");
    settings.bind(|| {
        insta::assert_snapshot!(metrics(&[]), @r#"
        shotlist_jobs{name="da\"ily",batch="",state="completed"} 1
        shotlist_jobs{name="da\"ily",batch="",state="in_progress"} 0
        shotlist_jobs{name="da\"ily",batch="",state="queued"} 0
        shotlist_jobs{name="da\"ily",batch="",state="pending"} 0
        shotlist_jobs{name="da\"ily",batch="",state="held"} 0
        shotlist_jobs{name="da\"ily",batch="",state="rejected"} 0
        shotlist_jobs{name="da\"ily",batch="",state="failed"} 0
        shotlist_jobs{name="da\"ily",batch="",state="in_doubt"} 1
        shotlist_spent_usd{name="da\"ily",batch=""} 3.75
        shotlist_at_risk_usd{name="da\"ily",batch=""} 7.50
        shotlist_unknown_usd{name="da\"ily",batch=""} 0.00
        shotlist_last_completion_timestamp_seconds{name="da\"ily",batch=""} TIME
        shotlist_ledger_frozen{name="da\"ily",batch=""} 1
        shotlist_limit_usd{name="da\"ily",batch="",limit="ledger.month"} 50.00
        shotlist_limit_left_usd{name="da\"ily",batch="",limit="ledger.month"} 38.75
        "#);
    });
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    insta::assert_snapshot!(line_of(&metrics(&["--sandbox"]), "spent_usd"), @r#"shotlist_spent_usd{name="da\"ily",batch="",simulated="true"} 11.25"#);
}

#[test]
fn markdown_status_marks_its_batch_and_hides_prompts() {
    let refusal = format!("no number 7: {}", "no | such <img> thing ".repeat(40));
    let service = Service::scripted(move |asked| {
        if asked.submits("number 7") {
            return json(400, &serde_json::json!({ "error": { "message": refusal } }));
        }
        Answer::Well
    });
    let here = Workspace::with_manifest(&numbered_jobs(12));
    here.run(&service, &["--batch", "a --> b"]).ends_with(1);
    let status = ["status", "m.yaml", "--batch", "a --> b", "--format", "markdown"];
    let text = here.shotlist(&status).ends_with(0).lacks(&["<img>", "number 7"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "<!-- shotlist status: m / a %2D%2D%3E b -->");
    assert!(lines.contains(&"12 jobs: 11 completed, 1 rejected."), "{text}");
    let first = lines.iter().position(|line| line.starts_with("|---|---|---|---:|")).expect("a table") + 1;
    assert!(lines[first].starts_with("| rejected | `j7` | alpha-2 | $0.00 |"), "{text}");
}

#[test]
fn lock_wait_ends_with_the_other_run_or_with_75() {
    let well = std::sync::Arc::new(AtomicBool::new(false));
    let switch = std::sync::Arc::clone(&well);
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "GET" if !switch.load(Ordering::SeqCst) => {
            json(200, &serde_json::json!({ "id": "t0", "status": "in_progress" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let first = here.run(&service, &[]).starts();
    wait_until("it has submitted", || !service.posts().is_empty());
    let busy = here.run(&service, &["--lock-wait", LEFT_AFTER, "--log-format", "json"]).ends_with(75);
    busy.shows("waiting-for-lock").lacks(&["--batch"]);
    // A longer wait finds every job completed, and buys nothing.
    let second = here.run(&service, &["--lock-wait", "5m"]).starts();
    well.store(true, Ordering::SeqCst);
    assert_eq!((Ended::wait_for(first).code, Ended::wait_for(second).code), (Some(0), Some(0)));
    assert_eq!(service.posts().len(), 1);
}
