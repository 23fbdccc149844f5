//! `run` without failures: requests, files, and a second run at no cost.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Answer, LEFT_AFTER, Service, TWO_JOBS, Workspace, json as answer, numbered_jobs};

#[test]
fn second_run_costs_nothing() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let ended = here.run(&service, &[]).ends_with(0);
    insta::assert_snapshot!(ended.stdout, @"
    2 jobs: 2 completed
    $11.25 spent
    videos: 2 in shotlist-out/m, with report.csv, report.json
    to look at it: xdg-open shotlist-out/m/report.html
    ");
    assert_eq!(here.states(), ["completed", "completed"]);
    assert_eq!(service.posts().len(), 2);
    assert!(!here.path("shotlist-out/m/mismatches.csv").exists(), "all videos are as they were requested");

    here.run(&service, &[]).ends_with(0);
    // Without anything to do, not even a key is needed.
    here.shotlist(&["run", "m.yaml"]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "a finished batch was submitted again");
}

#[test]
fn plan_has_the_exact_requests_of_the_run() {
    let manifest = r#"
version: 1
jobs:
  - id: odd
    model: alpha-2
    prompt: "Zoë says \"hi\" \\ 🐦 \u0007 / </script>"
    image: [https://a.example/1.png, https://a.example/2.png]
    extra: { seed: 42, zeta: { b: 1.50, a: [true, null] } }
  - { id: plain, model: beta-2.0-lite-fast, prompt: x, size: 1280x720 }
"#;
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest));
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    let posts = service.posts();
    assert_eq!(posts.len(), 2);
    for body in posts {
        assert!(plan.contains(&format!("\"request\": {body}")), "{body}\nis not in\n{plan}");
    }
}

#[test]
fn every_request_carries_the_key_and_json() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    for asked in service.asked() {
        assert_eq!(asked.headers["authorization"], "Bearer k");
        if asked.method == "POST" {
            assert_eq!(asked.path, "/v1/videos");
            assert_eq!(asked.headers["content-type"], "application/json");
        }
    }
    // And no written file has it.
    for file in here.files().iter().filter(|file| *file != "m.yaml") {
        let bytes = fs::read(here.path(file)).expect("a file");
        assert!(!bytes.windows(8).any(|window| window == b"Bearer k"), "{file}");
    }
}

#[test]
fn submissions_keep_manifest_order_and_concurrency() {
    let manifest = numbered_jobs(20);
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    let prompts: Vec<Value> = service.posts().iter().map(|body| serde_json::from_str(body).expect("JSON")).collect();
    for (number, body) in prompts.iter().enumerate() {
        assert_eq!(body["prompt"], format!("number {number}"));
    }
    // One slot: after each submission, polls until it is done, and only then the next.
    let methods: Vec<String> = service.asked().into_iter().map(|asked| asked.method).collect();
    assert!(!methods.windows(2).any(|pair| pair[0] == "POST" && pair[1] == "POST"), "{methods:?}");
}

#[test]
fn failed_rejected_and_completed_side_by_side() {
    let manifest = "
version: 1
defaults: { model: alpha-2 }
jobs:
  - { id: good, prompt: good }
  - { id: fails, prompt: fails }
  - { id: refused, prompt: refused }
  - { id: fails-beta, prompt: fails, model: beta-2.0-lite }
";
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" if asked.submits("refused") => {
            crate::support::json(400, &json!({ "error": { "message": "no such thing", "code": 17 } }))
        }
        "POST" if asked.submits("fails") => {
            let id = if asked.is_of("beta-2.0-lite") { "bad-beta" } else { "bad" };
            crate::support::json(200, &json!({ "id": id, "status": "queued" }))
        }
        "GET" if asked.path.starts_with("/v1/videos/bad") => crate::support::json(
            200,
            &json!({ "status": "failed", "error": { "message": "moderated", "code": { "kind": "x" } } }),
        ),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(manifest);
    here.run(&service, &[]).ends_with(1);
    assert_eq!(here.states(), ["completed", "failed", "rejected", "failed"]);
    let report = here.report();
    let column = |name: &str| -> Vec<Value> {
        report["jobs"].as_array().expect("jobs").iter().map(|job| job[name].clone()).collect()
    };
    assert_eq!(column("charge"), ["charged", "charged", "none", "unknown"]);
    assert_eq!(column("cost_usd"), [json!("0.90"), json!("0.90"), json!("0.00"), Value::Null]);
    assert_eq!(column("error")[1], json!({ "message": "moderated", "code": { "kind": "x" } }));
    assert_eq!(column("error_code")[2], json!("17"));
    assert_eq!(report["totals"]["spent_usd"], "1.80");
    assert_eq!((&report["totals"]["at_risk_usd"], &report["totals"]["unknown_usd"]), (&json!("0.00"), &json!("3.75")));

    // A rejected job is due again and a failed one is not.
    let posts = service.posts().len();
    here.run(&service, &[]).ends_with(1);
    let again = service.posts().split_off(posts);
    assert_eq!(again.len(), 1, "{again:?}");
    insta::assert_snapshot!(again[0], @r#"{"aspect_ratio":"16:9","duration":12,"model":"alpha-2","prompt":"refused"}"#);
}

#[test]
fn changed_job_is_submitted_and_its_changes_are_shown() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", TWO_JOBS.replace("a dog", "a fox"));
    let plan = here.plan(&[]);
    let job = &plan["jobs"][1];
    assert!(
        job["action"] == "changed" && job["reason"].as_str().is_some_and(|reason| reason.starts_with("prompt ")),
        "{job}"
    );
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    // Both generations were paid, by the sums, too.
    assert_eq!(here.report()["totals"]["spent_usd"], "18.75");
    assert_eq!(here.report()["jobs"][1]["cost_usd"], "15.00");
}

#[test]
fn new_batch_value_makes_every_job_due() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    for (batch, posts) in [("monday", 2), ("monday", 2), ("tuesday", 4)] {
        here.run(&service, &["--batch", batch]).ends_with(0);
        assert_eq!(service.posts().len(), posts, "{batch}");
    }
    assert_eq!(here.json("shotlist-out/m/tuesday/report.json")["batch"], "tuesday");
}

#[test]
fn only_selected_jobs_are_run_and_all_are_reported() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "t*"]).ends_with(0);
    assert_eq!(here.states(), ["pending", "completed"]);
    here.run(&service, &["--select", "none*"]).ends_with(2);
    here.run(&service, &["--exclude", "two"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    // A job with an error is left out by its ID, as the help of the error advises.
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: one, model: alpha-2, prompt: '' }, { id: two, model: alpha-2, prompt: y }]\n",
    );
    here.run(&service, &["--plan"]).fails_with("prompt-blank", 2);
    here.run(&service, &["--plan", "--exclude", "one"]).ends_with(0);
}

#[test]
fn csv_report_has_the_columns_of_the_contract() {
    let manifest = "
version: 1
jobs:
  - { id: formula, model: alpha-2, prompt: '=1+1 as text', tags: [a, b] }
  - { id: text, model: alpha-2, prompt: \"two\\nlines, \\\"quoted\\\", Zoë\" }
";
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest));
    here.run(&service, &["--report", "more/again.csv"]).ends_with(0);
    let text = fs::read_to_string(here.path("shotlist-out/m/report.csv")).expect("the report");
    let other = fs::read_to_string(here.path("more/again.csv")).expect("one more report");
    // The same, but for the way to its videos.
    assert_eq!(
        text.replace(",formula.mp4,", ",../shotlist-out/m/formula.mp4,")
            .replace(",text.mp4,", ",../shotlist-out/m/text.mp4,"),
        other
    );
    let text = text.strip_prefix('\u{feff}').expect("a byte order mark");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    insta::assert_snapshot!(reader.headers().expect("a header").iter().collect::<Vec<_>>().join(","), @"id,batch,model,state,charge,cost_usd,task_id,video_url,file,sha256,bytes,size,aspect_ratio,duration_s,take,tags,face,attempts,polls,submitted_at,completed_at,generation_s,error_code,error_message,prompt,price_usd,at_risk_usd,choice,reviewer,note,delivered_s,width,height,fps,audio,mismatch,reported_usd");
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("rows");
    assert_eq!(&rows[0][24], "'=1+1 as text");
    assert_eq!((&rows[0][5], &rows[0][15], &rows[0][17]), ("0.90", "a, b", "1"));
    assert_eq!(&rows[1][24], "two\nlines, \"quoted\", Zoë");
    assert_eq!(here.report()["jobs"][0]["prompt"], "=1+1 as text");
    for time in [&rows[0][19], &rows[1][20], here.report()["jobs"][0]["submitted_at"].as_str().expect("a time")] {
        assert_eq!((time.len(), &time[10..11], &time[19..20], &time[23..]), (24, "T", ".", "Z"), "{time}");
    }
}

#[test]
fn status_reads_the_ledger_alone() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let money = |status: &Value| ["spent_usd", "to_submit_usd"].map(|sum| status["totals"][sum].clone());
    assert_eq!(money(&here.status(&[])), ["0.00", "11.25"]);
    assert_eq!(here.files(), ["m.yaml"], "status wrote something");
    here.run(&service, &["--select", "one"]).ends_with(0);
    let asked = service.asked().len();
    let after = here.status(&[]);
    assert_eq!(money(&after), ["3.75", "7.50"]);
    assert_eq!(after["jobs"][0]["state"], "completed");
    assert_eq!(service.asked().len(), asked, "status asked the service");
}

#[test]
fn status_gives_each_job_a_line_whole_where_no_terminal_is() {
    let long = "x".repeat(100);
    let manifest = format!(
        "version: 1\ndefaults: {{ model: beta-2.0-lite-fast }}\njobs:\n  - {{ id: short, prompt: x }}\n  - {{ id: {long}, \
         prompt: y }}\n"
    );
    let refusal = "the prompt was refused, 日本語, for reasons that take many words to tell, and then some more";
    let service = Service::scripted(move |asked| {
        let error = json!({ "error": { "message": refusal } });
        if asked.submits("y") { crate::support::json(400, &error) } else { Answer::Well }
    });
    let here = Workspace::with_manifest(&manifest);
    here.run(&service, &[]).ends_with(1);
    let shown = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
    insta::assert_snapshot!(shown, @"
    1 job rejected (xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx): the service rejected the submission (HTTP 400): the prompt was refused, 日本語, for reasons that take many words to tell, and then some more
      nothing was charged; the next run asks again: shotlist run m.yaml
    if a video shows a real person, its face needs a review first: `shotlist help manifest`, `faces`
    m: 2 jobs: 1 completed, 1 rejected
    $3.25 spent, $3.25 to submit
    videos: 1 in shotlist-out/m

       STATE      JOB                                                                                                   MODEL                COST  DETAIL
       completed  short                                                                                                 beta-2.0-lite-fast  $3.25  short.mp4
       rejected   xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  beta-2.0-lite-fast  $0.00  the service rejected the submission (HTTP 400): the prompt was refused, 日本語, for reasons that take many words to tell, and then some more
    ");
    let all = here.shotlist(&["status", "m.yaml", "-v"]).ends_with(0).lacks(&["…"]).stdout;
    assert!(all.contains(refusal), "{all}");
}

/// The task of an earlier prompt fails, but the job is completed with the current prompt.
#[test]
fn failure_of_a_superseded_task_does_not_fail_its_job() {
    let (slow, _) = Service::slow();
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: before }]\n");
    here.run(&slow, &["--deadline", LEFT_AFTER]).ends_with(1);
    here.write("m.yaml", "version: 1\njobs: [{ id: a, model: alpha-2, prompt: now }]\n");
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => answer(200, &json!({ "id": "new", "status": "queued" })),
        _ if asked.path.ends_with("/t0") => answer(200, &json!({ "status": "failed", "error": "gone" })),
        // Later than the other.
        _ if asked.path.ends_with("/new") && asked.earlier < 20 => answer(200, &json!({ "status": "queued" })),
        _ => Answer::Well,
    });
    here.run(&service, &["--same-account"]).ends_with(0).shows("failed");
    assert_eq!(here.states(), ["completed"]);
}

#[test]
fn failed_job_without_a_face_gets_a_hint_about_reviews() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => answer(400, &json!({ "error": { "message": "rejected upstream" } })),
        _ => Answer::Well,
    });
    let hint = "its face needs a review first: `shotlist help manifest`, `faces`\n";
    for (job, has_hint) in
        [("model: beta-2.0-lite", true), ("model: alpha-2", false), ("model: beta-2.0-lite, face: anna", false)]
    {
        let faces = "faces: { anna: { review: approved } }";
        let here = Workspace::with_manifest(&format!("version: 1\n{faces}\njobs: [{{ id: a, prompt: x, {job} }}]\n"));
        assert_eq!(here.run(&service, &[]).ends_with(1).stdout.contains(hint), has_hint, "{job}");
        let status = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
        assert_eq!(status.contains(hint), has_hint, "{job}");
    }
}

#[test]
fn message_of_a_403_names_the_group_of_the_key() {
    let service = Service::scripted(|_| answer(403, &json!({ "error": { "message": "forbidden" } })));
    let here = Workspace::with_manifest(TWO_JOBS);
    let refused = here.run(&service, &[]).ends_with(4);
    insta::assert_snapshot!(refused.line("error[stopping]"), @"error[stopping]: stopped submitting: the service refused the key, which must belong to the vip group (HTTP 403): forbidden");
}
