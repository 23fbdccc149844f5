//! Tasks that the ledger lost, or that another program bought: taken in at no cost, and never bought again.

use std::fs;

use serde_json::json;

use crate::support::{Answer, Service, Workspace, json as answer, numbered_jobs};

fn import(here: &Workspace, service: &Service, file: &str) -> crate::support::Program {
    let program = here.shotlist(&["import", "m.yaml", file]);
    program.with_service(&service.url())
}

#[test]
fn tasks_of_a_script_are_adopted_once_the_service_confirms_them() {
    let service = Service::scripted(|asked| match asked.path.rsplit('/').next() {
        Some("lost") => answer(404, &json!({ "error": { "message": "no such task" } })),
        Some("other") => answer(200, &json!({ "id": "other", "status": "in_progress", "model": "beta-2.0-lite" })),
        Some("open") => answer(200, &json!({ "id": "open", "status": "in_progress" })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(5));
    here.write(
        "tasks.csv",
        "\u{feff}id,task_id,submitted_at\nj0,done,2026-11-01T08:00:00Z\nj1,open,\nj2,lost,\nj3,other,\nj9,done2,\nj4,,\nj4,done,\n",
    );
    let stdout = import(&here, &service, "tasks.csv").ends_with(1).stdout;
    insta::assert_snapshot!(stdout, @"
    can't import j2: can't confirm task `lost`: the service does not know the task (HTTP 404): no such task
    can't import j3: task other doesn't match j3: it has model beta-2.0-lite, requested alpha-2
    can't import j9: the manifest has no job `j9`
    can't import j4: task `done` belongs to `j0` of `m`
    imported 2 tasks, 4 refused; nothing was submitted or spent
    a CSV has no requests: the tasks count as those of the manifest's jobs, at its prices
    ");
    assert_eq!(
        here.ledger("SELECT job, state, task FROM attempt ORDER BY id"),
        [["j0", "completed", "done"], ["j1", "queued", "open"]]
    );
    assert_eq!(here.planned(&[]).0, 3, "the others are due");
    assert!(service.posts().is_empty());
    // The money is in the ledger, on the day of the purchase.
    here.shotlist(&["spend", "m.yaml", "--by", "day"]).ends_with(0).line("2026-11-01");
    here.write("bad.csv", "id,price\nj0,1\n");
    let refused = import(&here, &service, "bad.csv").fails_with("import-invalid", 2).stderr;
    insta::assert_snapshot!(refused, @"
    error[import-invalid]: `bad.csv`: found no task ID
      note: nothing was submitted; nothing was spent
      help: name a `report.json` of this batch, or a CSV with the columns `id` and `task_id`
    ");
    here.write("other.json", json!({ "name": "x", "batch": "", "simulated": false, "jobs": [] }).to_string());
    import(&here, &service, "other.json").fails_with("import-invalid", 2);
}

#[test]
fn killed_import_continues() {
    for halt in 1..10 {
        let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
        here.write("tasks.csv", "id,task_id\nj0,a\nj1,b\n");
        import(&here, &service, "tasks.csv").dies_at(&format!("after-commit:{halt}"));
        import(&here, &service, "tasks.csv").ends_with(0);
        here.run(&service, &[]).ends_with(0);
        assert!(service.posts().is_empty(), "after a kill at commit {halt}");
        let tasks = here.ledger("SELECT task FROM attempt WHERE state = 'completed' ORDER BY task");
        assert_eq!(tasks, [["a"], ["b"]], "after a kill at commit {halt}");
    }
}

/// A doubt is another purchase, and a task of a file does not settle it.
#[test]
fn imported_doubt_stays_in_doubt() {
    let service = Service::scripted(|asked| if asked.method == "POST" { Answer::Hangup } else { Answer::Well });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(7);
    here.write("tasks.csv", "id,task_id\nj0,other\n");
    import(&here, &service, "tasks.csv").ends_with(1);
    assert_eq!(here.ledger("SELECT state, task FROM attempt"), [["in_doubt", "NULL"]]);
    here.run(&service, &[]).ends_with(7);
    assert_eq!(service.posts().len(), 1);
}

/// The service loses each second response. The report knows these submissions, and no task of them.
#[test]
fn doubts_of_a_report_are_imported_and_never_bought_again() {
    for jobs in [1, 5] {
        let service = Service::scripted(|asked| match (&*asked.method, asked.earlier % 2) {
            ("POST", 0) => Answer::Hangup,
            _ => Answer::Well,
        });
        let here = Workspace::with_manifest(&numbered_jobs(jobs));
        here.run(&service, &["--max-doubts", "9", "--concurrency", "1"]).ends_with(7);
        let (before, posts) = (here.report(), service.posts().len());
        assert_eq!(posts, jobs);
        let moved = Workspace::with_manifest(&numbered_jobs(jobs));
        fs::copy(here.path("shotlist-out/m/report.json"), moved.path("before.json")).expect("a copy");
        let (done, doubts) = (jobs / 2, jobs.div_ceil(2));
        let stdout = import(&moved, &service, "before.json").ends_with(0).stdout;
        let expected = format!(
            "imported {done} tasks, {doubts} job{} in doubt; nothing was submitted or spent\n\
             no task could be confirmed for a job in doubt: shotlist resolve m.yaml\n",
            if doubts == 1 { "" } else { "s" }
        );
        assert_eq!(stdout, expected);
        let known = import(&moved, &service, "before.json").ends_with(0).stdout;
        assert_eq!(known, format!("imported 0 tasks, {jobs} known already; nothing was submitted or spent\n"));
        moved.run(&service, &[]).ends_with(7);
        assert_eq!(service.posts().len(), posts, "a job in doubt was bought again");
        let after = moved.report();
        for total in ["spent_usd", "at_risk_usd", "unknown_usd"] {
            assert_eq!(before["totals"][total], after["totals"][total], "{total}");
        }
        // Once it is declared, it is due, and stays so.
        moved.shotlist(&["resolve", "m.yaml", "j0", "--never-created"]).ends_with(0);
        import(&moved, &service, "before.json").ends_with(0);
        assert_eq!(moved.planned(&["--select", "j0"]).0, 1);
    }
}

#[test]
fn killed_import_of_doubts_continues() {
    let service = Service::scripted(|asked| match (&*asked.method, asked.earlier % 2) {
        ("POST", 0) => Answer::Hangup,
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(4));
    here.run(&service, &["--max-doubts", "9", "--concurrency", "1"]).ends_with(7);
    fs::copy(here.path("shotlist-out/m/report.json"), here.path("before.json")).expect("a copy");
    let states = "SELECT job, state FROM attempt ORDER BY job";
    let before = here.ledger(states);
    // Each of the two tasks takes five commits, and the doubts come after them.
    for halt in 1..15 {
        fs::remove_dir_all(here.path(".shotlist")).expect("a lost ledger");
        import(&here, &service, "before.json").dies_at(&format!("after-commit:{halt}"));
        import(&here, &service, "before.json").ends_with(0);
        here.run(&service, &[]).ends_with(7);
        assert_eq!((here.ledger(states), service.posts().len()), (before.clone(), 4), "killed at commit {halt}");
    }
}

/// A manifest of three models' jobs, by the prompt of the first.
fn history_manifest(prompt: &str) -> String {
    format!(
        "version: 1\nname: m\njobs:\n  - {{ id: a, model: beta-2.0-lite, duration: 5, prompt: {prompt}, labels: {{ client: acme }} }}\n  \
         - {{ id: b, model: alpha-2, prompt: two }}\n  - {{ id: c, model: beta-2.0-lite, duration: 10, prompt: three }}\n"
    )
}

/// The name of an edit, the edit, the number of purchases, and the exit code.
type ManifestEdit = (&'static str, fn(&str) -> String, usize, i32);

/// An edit of the manifest after the loss, the purchases of a run, and its exit code: 3 if a purchase needs a confirmation.
const EDITS: [ManifestEdit; 7] = [
    ("nothing", ToOwned::to_owned, 0, 0),
    ("another prompt", |text| text.replace("prompt: two", "prompt: another two"), 1, 0),
    ("another duration", |text| text.replace("duration: 10", "duration: 5"), 1, 0),
    (
        "a removed job",
        |text| text.lines().filter(|line| !line.starts_with("  - { id: b")).collect::<Vec<_>>().join("\n"),
        0,
        0,
    ),
    ("a renamed job", |text| text.replace("id: b", "id: b9"), 0, 3),
    ("another prompt in whitespace alone", |text| text.replace("prompt: two", "prompt: '  two '"), 0, 3),
    ("a moved job", |text| text.replace("id: b", "id: b9") + "\nmoved: [{ from: b, to: b9 }]\n", 0, 0),
];

/// The ledger is lost, the manifest is edited, and the report is imported: the sums are the service's, and nothing is bought twice.
#[test]
fn import_restores_each_purchase_of_a_report() {
    let (service, before) = (Service::well(), Workspace::with_manifest(&history_manifest("one")));
    before.run(&service, &[]).ends_with(0);
    before.write("m.yaml", history_manifest("one more"));
    before.run(&service, &["--retake", "c"]).ends_with(0);
    let (keep, notes) = (["b"], json!({ "b": "good" }));
    let tasks = json!({ "b": before.report()["jobs"][1]["task_id"] });
    let choices =
        json!({ "schema_version": 1, "name": "m", "reviewer": "anna", "keep": keep, "notes": notes, "tasks": tasks });
    before.write("choices.json", choices.to_string());
    before.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    before.shotlist(&["archive", "m.yaml", "b", "--to", "nas"]).ends_with(0);
    before.shotlist(&["report", "m.yaml"]).ends_with(0);
    let report = before.report();
    let spent = |here: &Workspace| -> serde_json::Value {
        let spent = here.shotlist(&["spend", "m.yaml", "--by", "client", "--format", "json"]).ends_with(0);
        serde_json::from_str::<serde_json::Value>(&spent.stdout).expect("JSON")["totals"].clone()
    };
    assert_eq!(service.posts().len(), 5);
    for (edit, edited, bought, code) in EDITS {
        let here = Workspace::new();
        for file in before.files().iter().filter(|file| !file.starts_with(".shotlist")) {
            here.write(file, fs::read(before.path(file)).expect("a file"));
        }
        let (posts, videos) = (service.posts().len(), service.fetched().len());
        here.write("m.yaml", edited(&history_manifest("one more")));
        for args in [&[][..], &["--sample", "1"], &["--select", "?9"]] {
            here.run(&service, args).ends();
            assert_eq!(service.posts().len(), posts, "{edit}: {args:?}");
        }
        let imported = import(&here, &service, "shotlist-out/m/report.json").ends_with(0).stdout;
        assert!(imported.starts_with("imported 5 tasks;"), "{edit}: {imported}");
        let is_changed = edit.starts_with("another");
        assert_eq!(imported.lines().count(), 1 + usize::from(is_changed), "{edit}: {imported}");
        assert_eq!(spent(&here), spent(&before), "{edit}");
        here.run(&service, &[]).ends_with(code);
        assert_eq!(service.posts().len(), posts + bought, "{edit}");
        assert_eq!(service.fetched().len(), videos + bought, "{edit}");
        if edit == "nothing" {
            let after = here.report();
            for field in
                ["task_id", "state", "file", "choice", "reviewer", "note", "sha256", "audio", "labels", "cost_usd"]
            {
                for job in [0, 1] {
                    assert_eq!(after["jobs"][job][field], report["jobs"][job][field], "{field}");
                }
            }
            assert!(after["jobs"][1]["archived_at"].is_string());
            assert_eq!(after["totals"]["spent_usd"], "23.40");
            assert_eq!(after["superseded"].as_array().map(Vec::len), Some(2));
        }
    }
}

/// The reported cost of a task is restored, and an edited record does not harm the next task.
#[test]
fn report_guards_its_tasks_without_their_records() {
    let service = Service::scripted_wholly(|asked| match asked.method.as_str() {
        "GET" if asked.path.ends_with("t0") => {
            let video = json!({ "url": "http://127.0.0.1:9/v.mp4" });
            answer(200, &json!({ "id": "t0", "status": "completed", "video": video, "usage": { "cost": 5.25 } }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.run(&service, &["--no-download", "--accept-mismatch"]).ends();
    let (posts, before) = (service.posts().len(), here.report());
    fs::remove_dir_all(here.path(".shotlist")).expect("a lost ledger");
    let mut edited = before.clone();
    edited["jobs"][1]["purchase"]["charging"] = json!("whenever");
    here.write("shotlist-out/m/report.json", edited.to_string());
    // A new job of the same request is not the one that the report has.
    let manifest = numbered_jobs(2);
    here.write("m.yaml", manifest.clone() + &manifest.lines().last().expect("a job").replace("j1", "new") + "\n");
    let plan = here.plan(&[]);
    let before_run = plan["bought_before"].as_array().expect("a list").iter();
    let mut paid: Vec<&str> = before_run.filter_map(|bought| bought["job"].as_str()).collect();
    paid.sort_unstable();
    assert_eq!(paid, ["j0", "j1"], "{plan}");
    here.write("m.yaml", manifest);
    here.run(&service, &[]).ends_with(3);
    import(&here, &service, "shotlist-out/m/report.json").ends_with(0);
    here.run(&service, &["--no-download"]).ends();
    assert_eq!(service.posts().len(), posts);
    let after = here.report();
    assert_eq!(after["totals"]["spent_usd"], before["totals"]["spent_usd"], "{after}");
    assert_eq!(after["jobs"][0]["reported_usd"], "5.25", "{after}");
}

/// A file that names one task twice, two live tasks of a job, and a time that has not come; and a service without a calendar.
#[test]
fn import_takes_each_task_once_and_no_future_time() {
    let service = Service::scripted(|asked| match asked.path.rsplit('/').next() {
        Some(task @ ("one" | "two")) => answer(200, &json!({ "id": task, "status": "in_progress" })),
        Some("odd") => {
            let absurd = 253_402_206_900_000_i64;
            answer(
                200,
                &json!({ "id": "odd", "status": "completed", "video_url": "http://127.0.0.1:9/v.mp4", "completed_at": absurd }),
            )
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.write("future.csv", "id,task_id,submitted_at\nj0,one,2126-01-01T00:00:00Z\n");
    import(&here, &service, "future.csv").fails_with("import-invalid", 2);
    here.write("tasks.csv", "id,task_id\nj0,one\nj0,one\nj0,two\nj1,odd\nj1,odd\n");
    import(&here, &service, "tasks.csv").ends_with(0);
    assert_eq!(
        here.ledger("SELECT job, state, task FROM attempt ORDER BY id"),
        [["j0", "queued", "one"], ["j0", "queued", "two"], ["j1", "completed", "odd"]]
    );
    here.shotlist(&["report", "m.yaml"]).ends_with(0);
    let ended = here.report()["jobs"][1]["completed_at"].as_str().map(str::to_owned).expect("a time");
    assert!(*ended < *"2100", "{ended}");
    assert_eq!(service.polls(), 3, "each task is asked about once");
    assert_eq!(here.planned(&[]), (0, "0.00".to_owned()));
}

/// The second ID of one task is the ID of another line: it belongs to the first job, and the other is due and not in doubt.
#[test]
fn task_of_another_job_leaves_no_doubt() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "GET" => answer(200, &json!({ "id": "second", "status": "in_progress" })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.write("tasks.csv", "id,task_id\nj0,first\nj1,second\n");
    import(&here, &service, "tasks.csv").ends_with(1);
    let states = here.ledger("SELECT job, state, charge FROM attempt ORDER BY id");
    assert_eq!(states, [["j0", "queued", "charged"], ["j1", "void", "none"]]);
    assert_eq!(here.planned(&[]).0, 1);
}

/// The move of a job is recorded with its imported task: two IDs of one job would stop every later command.
#[test]
fn task_is_imported_for_moved_job() {
    let job = |id: &str, moved: &str| {
        format!("version: 1\nname: m\n{moved}jobs: [{{ id: {id}, model: alpha-2, prompt: x }}]\n")
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&job("old", "")));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", job("new", "moved: [{ from: old, to: new }]\n"));
    here.write("tasks.csv", "id,task_id\nnew,t9\n");
    import(&here, &service, "tasks.csv").ends_with(0);
    for words in [["status", "m.yaml"], ["report", "m.yaml"]] {
        here.shotlist(&words).ends_with(0);
    }
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.ledger("SELECT job FROM attempt"), [["new"], ["new"]]);
    assert_eq!(service.posts().len(), 1);
}
