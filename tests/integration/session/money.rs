//! Limits of a run, a day, and a month; paid retries and retakes; the ledger; accounts; resolved doubts.

use serde_json::{Value, json};

use crate::support::{Answer, LEFT_AFTER, Service, TWO_JOBS, Workspace, codes, has_code, json as answer, line_of};

fn with_budget(budget: &str) -> String {
    TWO_JOBS.replace("version: 1\n", &format!("version: 1\nbudget: {budget}\n"))
}

/// A service that closes the connection of the first submission with this text.
fn losing(text: &'static str) -> Service {
    Service::scripted(move |asked| {
        let lost = asked.method == "POST" && asked.body.contains(text);
        if lost { Answer::Hangup } else { Answer::Well }
    })
}

#[test]
fn day_and_month_count_every_batch_of_the_ledger() {
    for limit in ["day", "month"] {
        // Two jobs of $3.75 and $7.50: the second batch would pass $20.
        let here = Workspace::with_manifest(&with_budget(&format!("{{ {limit}: 20 }}")));
        let service = Service::well();
        here.run(&service, &["--batch", "a"]).ends_with(0);
        let plan = here.plan(&["--batch", "b"]);
        let used = &plan["budget"]["limits"][0];
        assert_eq!((&used["source"], &used["used_usd"]), (&json!(format!("budget.{limit}")), &json!("11.25")));
        assert!(codes(&plan).contains(&"over-limit"), "{plan}");
        let ended = here.run(&service, &["--batch", "b"]).ends_with(3);
        assert!(has_code(&ended.stderr, "over-limit"), "{}", ended.stderr);
        assert_eq!(service.posts().len(), 2);
        // Jobs within the limit are submitted.
        here.run(&service, &["--batch", "b", "--select", "two"]).ends_with(0);
        let ended = here.run(&service, &["--batch", "c", "--select", "one", "--sample", "1"]).ends_with(3);
        assert_eq!(service.posts().len(), 3);
        let look = "`shotlist run m.yaml --plan --batch c --select one --sample 1` shows what it would buy";
        assert!(ended.stderr.contains(look), "{}", ended.stderr);
    }
}

#[test]
fn doubt_counts_in_full_against_every_limit() {
    for limit in ["day", "month"] {
        let here = Workspace::with_manifest(&with_budget(&format!("{{ {limit}: 11.25 }}")));
        let service = losing("a cat");
        here.run(&service, &["--select", "one"]).ends_with(7);
        here.write("m.yaml", with_budget(&format!("{{ {limit}: 11 }}")));
        here.run(&service, &["--select", "two"]).ends_with(3);
        assert_eq!(service.posts().len(), 1);
    }
}

#[test]
fn two_runs_of_one_ledger_cannot_overshoot_together() {
    // Each alone fits its plan. When the second one has submitted its job, the ledger has no room for the last job of the first.
    let here = Workspace::with_manifest(&with_budget("{ day: 11.25 }"));
    let (service, release) = Service::holding("");
    let first = here.run(&service, &["--batch", "a", "--concurrency", "1"]).starts();
    crate::support::wait_until("the first is submitting", || !service.posts().is_empty());
    let second = here.run(&service, &["--batch", "b", "--select", "two"]).starts();
    crate::support::wait_until("the second is submitting", || service.posts().len() == 2);
    release.store(true, std::sync::atomic::Ordering::SeqCst);
    let codes = [crate::support::Ended::wait_for(first).code, crate::support::Ended::wait_for(second).code];
    assert_eq!(codes, [Some(3), Some(0)]);
    let spent = here.ledger("SELECT sum(price_micros) FROM attempt WHERE state NOT IN ('void', 'rejected')");
    assert!(spent[0][0].parse::<i64>().expect("a sum") <= 11_250_000, "{spent:?}");
}

#[test]
fn failed_jobs_are_retried_only_on_request() {
    let failing = || {
        Service::scripted(|asked| {
            let first = asked.method == "GET" && (asked.path.ends_with("/t0") || asked.path.ends_with("/t1"));
            let error = json!({ "message": format!("no {}", asked.path), "code": 3 });
            if first { answer(200, &json!({ "status": "failed", "error": error })) } else { Answer::Well }
        })
    };
    let one = "version: 1\njobs: [{ id: one, model: alpha-2, prompt: a cat }]\n";
    let (service, here) = (failing(), Workspace::with_manifest(one));
    here.run(&service, &[]).ends_with(1);
    here.run(&service, &[]).ends_with(1);
    assert_eq!(service.posts().len(), 1, "a failed job was paid for again unasked");
    assert_eq!(here.planned(&["--retry-failed"]), (1, "0.90".to_owned()));
    here.run(&service, &["--retry-failed"]).ends_with(1);
    here.run(&service, &["--retry-failed"]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["attempts"], 3);
    assert_eq!(here.report()["jobs"][0]["cost_usd"], "2.70");
    assert_eq!(here.report()["superseded"].as_array().expect("a list").len(), 2);

    let (service, here) = (failing(), Workspace::with_manifest(one));
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--retries", "2", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!((&plan["totals"]["cost_usd"], &plan["totals"]["worst_case_usd"]), (&json!("0.90"), &json!("2.70")));
    // The worst case within a limit is at least the cost of the plan.
    let worst_within =
        |limit: &str| here.shotlist(&["run", "m.yaml", "--plan", "--retries", "2", "--max-cost", limit]).ends();
    insta::assert_snapshot!(worst_within("1.00").line("paid retry"), @"at most $1.00 with every paid retry; retries stop at the limit");
    worst_within("0.50").lacks(&["paid retry"]);
    here.run(&service, &["--retries", "2"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    assert_eq!(here.report()["totals"]["spent_usd"], "2.70");
}

#[test]
fn failed_retake_is_no_success() {
    let service = Service::scripted(|asked| {
        let retake = asked.method == "GET" && asked.path.ends_with("/t2");
        if retake { answer(200, &json!({ "status": "failed" })) } else { Answer::Well }
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &[]).ends_with(0);
    here.run(&service, &["--retake", "one"]).ends_with(1);
    // The video that was paid for before is still the one that the report shows.
    let row = &here.report()["jobs"][0];
    assert!(row["state"] == "completed" && row["task_id"] != "t2", "{row}");
    here.run(&service, &[]).ends_with(0);
}

#[test]
fn response_about_another_task_is_ignored() {
    let service = Service::scripted(|asked| {
        let mixed_up = asked.method == "GET" && asked.earlier < 2;
        let other = json!({ "id": "other", "status": "completed", "video_url": "https://v.example/other.mp4" });
        if mixed_up { answer(200, &other) } else { Answer::Well }
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &["--select", "one"]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["video_url"], format!("{}/videos/t0.mp4", service.url()));
}

#[test]
fn missing_ledger_is_not_taken_for_a_new_one() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    std::fs::remove_file(here.path(".shotlist/ledger.db")).expect("it was there");
    for args in [["run", "m.yaml", "--plan"].as_slice(), &["status", "m.yaml"]] {
        here.shotlist(args).fails_with("ledger-unavailable", 74);
    }
    here.run(&service, &[]).ends_with(74);
    here.shotlist(&["resolve", "m.yaml", "one", "--never-created"]).ends_with(74);
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn spending_is_grouped_by_day_batch_and_model() {
    let here = Workspace::with_manifest(TWO_JOBS);
    here.shotlist(&["spend"]).ends_with(2);
    let service = losing("a dog");
    here.run(&service, &["--batch", "x"]).ends_with(7);
    let text = here.shotlist(&["spend"]).ends_with(0).stdout;
    assert!(text.ends_with("spent: $3.75, at risk: $7.50, unknown: $0.00\n"), "{text}");
    let json = here.shotlist(&["spend", "--format", "json"]).ends_with(0).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["lines"][0]["batch"], "x");
    assert_eq!(json["lines"][0]["model"], "beta-2.0-lite");
    assert_eq!(
        json["totals"],
        json!({
            "attempts": 2, "spent_usd": "3.75", "at_risk_usd": "7.50", "unknown_usd": "0.00", "kept": 0, "kept_s": 0.0, "usd_per_kept_s": null
        })
    );
    let later = here.shotlist(&["spend", "--since", "2999-01-01"]).ends_with(0).stdout;
    assert!(later.ends_with("spent: $0.00, at risk: $0.00, unknown: $0.00\n"), "{later}");
}

#[test]
fn other_account_polls_tasks_only_with_same_account() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let polls = service.polls();
    let refused = here.run(&service, &[]).env("SHOTLIST_API_KEY", "rotated").fails_with("other-account", 2);
    refused.lacks(&["rotated"]).line("--same-account");
    let elsewhere = Service::well();
    here.run(&elsewhere, &[]).ends_with(2);
    assert_eq!((service.polls(), elsewhere.asked().len()), (polls, 0));
    here.run(&service, &["--same-account"]).env("SHOTLIST_API_KEY", "rotated").ends_with(0);
    assert_eq!(here.states(), ["completed", "completed"]);
    let counted = |job: usize| here.report()["jobs"][job]["polls"].as_u64().expect("a number");
    assert_eq!(counted(0) + counted(1), service.polls() as u64, "of both runs");
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn sandbox_and_service_never_share_a_ledger() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(0);
    let rehearsal = here.shotlist(&["run", "m.yaml", "--sandbox"]).env("SHOTLIST_LEDGER", ".shotlist/ledger.db");
    let ended = rehearsal.ends_with(74);
    assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).env("SHOTLIST_OUT", "shotlist-out/m").ends_with(0);
    let books = |args: &[&str]| here.shotlist(&[&["spend"], args].concat()).ends_with(0).stdout;
    insta::assert_snapshot!(line_of(&books(&["--sandbox"]), "at risk"), @"spent: $11.25 (simulated), at risk: $0.00, unknown: $0.00");
    insta::assert_snapshot!(line_of(&books(&["--sandbox", "--format", "json"]), "simulated"), @r#""simulated": true,"#);
    insta::assert_snapshot!(line_of(&books(&["--format", "json"]), "simulated"), @r#""simulated": false,"#);
    assert_eq!(here.report()["simulated"], false);
    let ended = here.run(&service, &["--ledger", ".shotlist/sandbox.db"]).ends_with(74);
    assert!(has_code(&ended.stderr, "ledger-unavailable"), "{}", ended.stderr);
}

#[test]
fn user_settles_a_doubt() {
    let service = losing("a cat");
    let here = Workspace::with_manifest(TWO_JOBS);
    let resolve = |args: &[&str]| {
        let program = here.shotlist(&[&["resolve", "m.yaml"], args].concat());
        program.with_service(&service.url())
    };
    resolve(&["one", "--never-created"]).ends_with(2);
    here.run(&service, &[]).ends_with(7);
    resolve(&["two", "--never-created"]).ends_with(2);
    resolve(&["one"]).ends_with(2);
    // The only task that the service knows by that id belongs to the other job.
    for task in ["t0", " t0 "] {
        let ended = resolve(&["one", "--task", task]).ends_with(2);
        assert!(has_code(&ended.stderr, "task-taken"), "{}", ended.stderr);
    }
    resolve(&["one", "--task", "found"]).env("SHOTLIST_API_KEY", "other").ends_with(2);
    // A wrong guess with --same-account must not hand the tasks over to a wrong account.
    let elsewhere = Service::scripted(|_| answer(404, &json!({})));
    let args = ["one", "--task", "found", "--same-account", "--base-url", &elsewhere.url()];
    resolve(&args).env("SHOTLIST_API_KEY", "other").ends_with(2);
    resolve(&["one", "--task", "found", "--log-format", "json"]).ends_with(0).shows("resolved");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["task_id"], "found");
    assert_eq!(service.posts().len(), 2);

    let service = losing("a cat");
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &[]).ends_with(7);
    here.shotlist(&["resolve", "m.yaml", "one", "--never-created"]).ends_with(0);
    assert_eq!(here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout.matches("pending").count(), 2);
    here.run(&Service::well(), &[]).ends_with(0);
}

#[test]
fn named_task_needs_a_response_of_the_service() {
    let here = Workspace::with_manifest(TWO_JOBS);
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => Answer::Hangup,
        _ if asked.path.ends_with("/unknown") => answer(404, &json!({})),
        _ if asked.path.ends_with("/forbidden") => answer(403, &json!({})),
        _ if asked.path.ends_with("/empty") => answer(200, &json!({})),
        _ => answer(500, &json!({})),
    });
    here.run(&service, &["--select", "one"]).ends_with(7);
    for (task, code) in [("unknown", 2), ("forbidden", 4), ("any", 6), (" ", 2), ("empty", 6)] {
        let program = here.shotlist(&["resolve", "m.yaml", "one", "--task", task]);
        program.with_service(&service.url()).ends_with(code);
    }
    assert_eq!(here.ledger("SELECT state FROM attempt"), [["in_doubt"]]);
}

#[test]
fn task_of_a_changed_or_removed_job_is_finished() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(1);
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    here.write("m.yaml", "version: 1\njobs:\n  - { id: one, model: beta-2.0-lite, prompt: a bird }\n");
    let plan = here.plan(&[]);
    assert_eq!(plan["jobs"][0]["action"], "changed");
    assert!(codes(&plan).contains(&"active-tasks"), "{plan}");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    let report = here.report();
    let superseded: Vec<_> = report["superseded"].as_array().expect("a list").iter().collect();
    assert_eq!(superseded.len(), 2);
    assert!(superseded.iter().all(|task| task["state"] == "completed" && task["video_url"].is_string()));
    // 3.75 and 7.50 for the superseded tasks, 3.75 for the new prompt.
    assert_eq!(report["totals"]["spent_usd"], "15.00");
    for (name, task) in [("one.mp4", "t2"), ("one~1.mp4", "t0")] {
        let video = std::fs::read(here.path("shotlist-out/m").join(name)).expect(name);
        assert!(video.ends_with(format!("/videos/{task}.mp4").as_bytes()), "paid work is kept beside: {name}");
    }
}

#[test]
fn free_server_errors_are_retried_with_a_catalog() {
    for status in [500, 502, 503, 504] {
        let here = Workspace::with_manifest("version: 1\njobs: [{ id: one, model: alpha-2, prompt: a cat }]\n");
        let service = Service::scripted(move |asked| {
            let first = asked.method == "POST" && asked.earlier == 0;
            if first { crate::support::raw(status, &[("retry-after", "0")], "") } else { Answer::Well }
        });
        here.write("catalog.yaml", "version: 1\nprices_taken_on: 9999-01-01\nretry_server_errors: true\n");
        here.run(&service, &["--catalog", "catalog.yaml"]).ends_with(0);
        assert_eq!(service.posts().len(), 2, "{status}");
        assert_eq!(here.report()["jobs"][0]["attempts"], 1);
    }
}

#[test]
fn unmatched_glob_buys_nothing() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    for option in ["--retake", "--exclude"] {
        here.run(&service, &[option, "typo*"]).fails_with("no-match", 2);
    }
    assert_eq!(service.asked().len(), 0);
}
