//! Unfinished tasks of earlier batches of the same name: every run finishes them, and no exit code hides them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::support::{Answer, Ended, Service, Workspace, codes, has_code, json as answer, kill, line_of, wait_until};

/// A service that completes its first tasks, up to the returned count.
fn finishing() -> (Service, Arc<AtomicUsize>) {
    let finished = Arc::new(AtomicUsize::new(0));
    let switch = Arc::clone(&finished);
    let service = Service::scripted(move |asked| {
        let number = asked.path.rsplit_once("/t").and_then(|(_, number)| number.parse::<usize>().ok());
        match number {
            Some(number) if number >= finished.load(Ordering::SeqCst) => {
                answer(200, &json!({ "id": format!("t{number}"), "status": "in_progress", "progress": 10 }))
            }
            _ => Answer::Well,
        }
    });
    (service, switch)
}

/// The example for cron, with a limit for three days.
fn daily() -> Workspace {
    let example = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/daily.yaml")).expect("the example");
    Workspace::with_manifest(&example.replace("day: 5.00", "day: 50.00"))
}

/// A day's run, terminated once each job is submitted and only active tasks are left.
fn day(here: &Workspace, (service, finished): &(Service, Arc<AtomicUsize>), batch: &str, arguments: &[&str]) -> Ended {
    let (before, jobs) = (service.posts().len(), if arguments.contains(&"--select") { 1 } else { 2 });
    let is_open = |task: usize| task >= finished.load(Ordering::SeqCst);
    let run = here.run(service, &[&["--batch", batch], arguments].concat());
    run.ends_by_timeout(|| {
        let (posts, videos) =
            (service.posts().len(), here.ledger_if_any("SELECT task FROM attempt WHERE file IS NOT NULL"));
        let has_video = |task: usize| videos.contains(&format!("t{task}"));
        // Recorded: a response that arrived before the end may not be in the ledger yet.
        let started = here.ledger_if_any("SELECT task FROM attempt WHERE state = 'in_progress'");
        let is_left = |task: usize| (task < before || started.contains(&format!("t{task}"))) && is_open(task);
        let is_left_only = (0..posts).all(|task| has_video(task) || is_left(task)) && (before..posts).any(is_open);
        posts == before + jobs && is_left_only
    })
}

fn report(here: &Workspace, batch: &str) -> Vec<String> {
    let report = here.json(&format!("shotlist-out/daily/{batch}/report.json"));
    assert_eq!(report["batch"], batch);
    let jobs = report["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| {
        format!("{} {} {}", job["id"].as_str().expect("an id"), job["state"].as_str().expect("a state"), job["file"])
    })
    .collect()
}

#[test]
fn three_short_daily_runs_finish_all_paid_tasks() {
    let (remote, here) = (finishing(), daily());
    let (service, finished) = &remote;
    for (batch, number, code) in [("2026-11-19", 1, 143), ("2026-11-20", 3, 143), ("2026-11-21", 6, 0)] {
        finished.store(number, Ordering::SeqCst);
        let ended = day(&here, &remote, batch, &[]);
        assert_eq!(ended.code, Some(code), "{batch}: {}{}", ended.stdout, ended.stderr);
        if number > 1 {
            line_of(&ended.stderr, "1 task");
            ended.line("finished: daily / 2026-11-");
        }
    }
    assert_eq!(service.posts().len(), 6, "each day's jobs once");
    assert_eq!(here.ledger("SELECT DISTINCT state FROM attempt"), [["completed"]]);
    for batch in ["2026-11-19", "2026-11-20", "2026-11-21"] {
        assert_eq!(report(&here, batch), ["sky completed \"sky.mp4\"", "quote completed \"quote.mp4\""]);
        for video in ["sky.mp4", "quote.mp4"] {
            assert!(here.path(&format!("shotlist-out/daily/{batch}/{video}")).exists(), "{batch}: {video}");
        }
    }
    // Nothing is left to finish, and nothing is reported. A removed video is not downloaded again.
    fs::remove_file(here.path("shotlist-out/daily/2026-11-19/sky.mp4")).expect("removed");
    let ended = day(&here, &remote, "2026-11-21", &["--log-format", "json"]).hides("other-batch");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn plan_lists_the_work_of_other_batches() {
    let (remote, here) = (finishing(), daily());
    let service = &remote.0;
    assert_eq!(day(&here, &remote, "a", &[]).code, Some(143));
    let asked = service.asked().len();
    let plan = here.plan(&["--batch", "b"]);
    assert!(codes(&plan).contains(&"other-batch"), "{plan}");
    assert_eq!(service.asked().len(), asked);
    day(&here, &remote, "b", &["--skip-other-batches", "--log-format", "json"]).hides("other-batch");
    let of_earlier = |path: &str| path.ends_with("/t0") || path.ends_with("/t1");
    assert!(!service.asked()[asked..].iter().any(|asked| of_earlier(&asked.path)), "it was told to leave them");
}

/// The report of a day has its unsent, changed, and removed jobs.
#[test]
fn report_of_another_batch_has_its_purchases() {
    let (remote, here) = (finishing(), Workspace::new());
    let (service, finished) = &remote;
    let list = |jobs: &str| format!("version: 1\nname: daily\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}");
    here.write("m.yaml", list("  - { id: gone, prompt: x, labels: { for: a } }\n  - { id: kept, prompt: before, file: k/kept.mp4 }\n  - { id: late, prompt: y }\n"));
    assert_eq!(day(&here, &remote, "a", &["--concurrency", "2"]).code, Some(143));
    assert_eq!(report(&here, "a"), ["gone in_progress null", "kept in_progress null", "late pending null"]);
    here.write(
        "m.yaml",
        list("  - { id: kept, prompt: after }\n  - { id: late, prompt: y }\n  - { id: new, prompt: z }\n"),
    );
    finished.store(9, Ordering::SeqCst);
    assert_eq!(day(&here, &remote, "b", &[]).code, Some(0));
    assert_eq!(
        report(&here, "a"),
        ["kept completed \"k/kept.mp4\"", "late pending null", "gone completed \"gone.mp4\""]
    );
    let of_a = here.json("shotlist-out/daily/a/report.json");
    assert_eq!((&of_a["jobs"][0]["prompt"], &of_a["jobs"][2]["labels"]["for"]), (&json!("before"), &json!("a")));
    assert_eq!(service.posts().len(), 5, "nothing of another batch is bought");
}

/// A manifest with purchases gets a `batch`: the shown commands settle the doubts of the batch without a name.
#[test]
fn doubt_of_the_unnamed_batch_can_be_settled() {
    let service =
        Service::scripted(
            |asked| if asked.earlier == 0 && asked.method == "POST" { Answer::Hangup } else { Answer::Well },
        );
    let manifest = "version: 1\nname: m\ndefaults: { model: alpha-2 }\njobs:\n  - { id: sky, prompt: x }\n";
    let here = Workspace::with_manifest(manifest);
    here.run(&service, &[]).ends_with(7);
    here.write("m.yaml", manifest.replace("name: m", "name: m\nbatch: monday"));
    let told = here.run(&service, &[]).ends_with(7).shows("in-doubt-elsewhere").stderr;
    insta::assert_snapshot!(told, @"
    warning[in-doubt-elsewhere]: the unnamed batch has 1 submission in doubt ($0.90 at risk): `shotlist resolve m.yaml --batch ''` lists them
    1 job to submit for $0.90
    completed sky
    ");
    let listed = here.shotlist(&["resolve", "m.yaml"]).ends_with(0).stdout;
    insta::assert_snapshot!(listed, @"
    no jobs in doubt
    in `m`: 1 submission in doubt, $0.90 at risk: shotlist resolve m.yaml --batch ''
    ");
    let settled_by = "shotlist resolve m.yaml JOB --never-created --batch ''";
    let listed = here.shotlist(&["resolve", "m.yaml", "--batch", ""]).ends_with(0).stdout;
    assert!(listed.contains(settled_by), "{listed}");
    let words = shlex::split(&settled_by.replace("JOB", "sky")).expect("words");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    // An option beats the batch in the environment of cron.
    here.shotlist(&words).env("SHOTLIST_BATCH", "tuesday").ends_with(0);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "each batch once");
}

#[test]
fn batch_of_another_run_is_skipped() {
    let (remote, here) = (finishing(), daily());
    let (service, finished) = &remote;
    let first = here.run(service, &["--batch", "a"]).starts();
    here.waits_for_active_tasks(2);
    assert_eq!(day(&here, &remote, "b", &[]).code, Some(143));
    finished.store(9, Ordering::SeqCst);
    let first = Ended::wait_for(first);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(day(&here, &remote, "b", &[]).code, Some(0));
}

/// With one directory for all batches by `--out`, yesterday's videos replace none of today.
#[test]
fn shared_directory_keeps_the_videos_of_other_batches() {
    let (remote, here) = (finishing(), daily());
    let finished = &remote.1;
    let day = |batch: &str| day(&here, &remote, batch, &["--out", "all", "--select", "sky"]);
    assert_eq!(day("a").code, Some(143));
    finished.store(9, Ordering::SeqCst);
    assert_eq!(day("b").code, Some(0));
    let report = here.json("all/report.json");
    assert_eq!((&report["batch"], &report["jobs"][0]["file"]), (&json!("b"), &json!("sky.mp4")));
    assert!(here.path("all/sky~1.mp4").exists(), "{:?}", here.files());
    assert_eq!(here.ledger("SELECT file FROM attempt ORDER BY id"), [["sky~1.mp4"], ["sky.mp4"]]);
}

/// Another key can't see yesterday's tasks: they wait, and today's jobs run.
#[test]
fn tasks_of_another_account_wait_and_hold_no_one_up() {
    let (remote, here) = (finishing(), daily());
    let (service, finished) = &remote;
    assert_eq!(day(&here, &remote, "a", &[]).code, Some(143));
    finished.store(9, Ordering::SeqCst);
    let run = |arguments: &[&str]| {
        here.run(service, &[&["--batch", "b"], arguments].concat()).env("SHOTLIST_API_KEY", "new").ends()
    };
    let other = run(&[]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    assert!(has_code(&other.stderr, "accounts-left"), "{}", other.stderr);
    assert_eq!(run(&["--same-account"]).code, Some(0));
    assert_eq!(report(&here, "a"), ["sky completed \"sky.mp4\"", "quote completed \"quote.mp4\""]);
}

/// Killed at a commit while it finishes yesterday's batch: nothing is bought twice, and the next run finishes it.
#[test]
fn killed_run_loses_no_work_of_other_batches() {
    for halt in ["after-commit:1", "before-commit:3", "after-commit:4", "before-commit:6", "after-commit:6"] {
        let (remote, here) = (finishing(), daily());
        let (service, finished) = &remote;
        assert_eq!(day(&here, &remote, "a", &["--select", "sky"]).code, Some(143));
        finished.store(9, Ordering::SeqCst);
        let flag = here.path("halted");
        let run = here.run(service, &["--batch", "b", "--select", "sky"]).env("SHOTLIST_HALT_AT", halt);
        let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
        wait_until(halt, || flag.exists());
        kill(&child, "-KILL");
        drop(Ended::wait_for(child));
        let ended = day(&here, &remote, "b", &["--select", "sky"]);
        assert!(matches!(ended.code, Some(0 | 7)), "{halt}: {}", ended.stderr);
        assert_eq!(report(&here, "a"), ["sky completed \"sky.mp4\"", "quote pending null"], "{halt}");
        assert!(service.posts().len() <= 2, "{halt}");
    }
}

/// Two batches have the same IDs: a success in one hides no failure in the other.
#[test]
fn failure_of_one_batch_is_shown_beside_its_id_in_another() {
    for bad in ["/t0", "/t1"] {
        let (remote, here) = (finishing_but(bad), daily());
        let (service, finished) = &remote;
        let day =
            |batch: &str, arguments: &[&str]| day(&here, &remote, batch, &[&["--select", "sky"], arguments].concat());
        assert_eq!(day("a", &[]).code, Some(143));
        finished.store(9, Ordering::SeqCst);
        // A failure of another batch does not stop today's purchases.
        let ended = day("b", &["--max-failures", "1"]);
        assert_eq!((ended.code, service.posts().len()), (Some(1), 2), "{bad}: {}", ended.stderr);
    }
}

/// As [`finishing`], but one task fails.
fn finishing_but(bad: &'static str) -> (Service, Arc<AtomicUsize>) {
    let finished = Arc::new(AtomicUsize::new(0));
    let switch = Arc::clone(&finished);
    let service = Service::scripted(move |asked| {
        let is_open = asked.method == "GET" && finished.load(Ordering::SeqCst) == 0;
        match asked.path.ends_with(bad) {
            _ if is_open => answer(200, &json!({ "status": "in_progress", "progress": 10 })),
            true => answer(200, &json!({ "status": "failed", "error": { "message": "no" } })),
            false => Answer::Well,
        }
    });
    (service, switch)
}

/// A comment on a code host has a length limit.
#[test]
fn markdown_plan_counts_unlisted_batches() {
    let service = Service::scripted(|asked| if asked.method == "POST" { Answer::Hangup } else { Answer::Well });
    let here = Workspace::with_manifest(
        "version: 1\nname: m\njobs: [{ id: sky, model: alpha-2, prompt: \"{{ what }}\" }]\nvars: { what: x }\n",
    );
    let run = |batch: &str| here.run(&service, &["--batch", batch, "--set", &format!("what={batch}")]);
    for number in 10..33 {
        run(&format!("day-{number}")).ends_with(7);
    }
    let asked = ["--batch", "today", "--set", "what=today", "--plan", "--format", "markdown"];
    let plan = here.run(&service, &asked).ends().stdout;
    let listed = (10..33).filter(|number| plan.contains(&format!("day-{number}"))).count();
    assert_eq!(listed, 20, "{plan}");
    insta::assert_snapshot!(line_of(&plan, "not listed"), @"Other batches not listed: 3. The text plan lists them all.");
}

/// A submission of a live run is no doubt, and that of a dead run is one.
#[test]
fn open_submission_of_another_run_is_no_doubt() {
    let (service, release) = Service::holding("sky");
    let here = Workspace::with_manifest(
        "version: 1\nname: daily\njobs: [{ id: sky, model: alpha-2, prompt: \"{{ what }}\" }]\nvars: { what: x }\n",
    );
    let run = |batch: &str, what: &str| here.run(&service, &["--batch", batch, "--set", &format!("what={what}")]);
    let first = run("a", "sky").starts();
    wait_until("it is sending", || !service.posts().is_empty());
    let ended = run("b", "sea").ends();
    assert_eq!(ended.hides("in-doubt-elsewhere").code, Some(0));
    kill(&first, "-KILL");
    drop(Ended::wait_for(first));
    release.store(true, Ordering::SeqCst);
    let ended = run("b", "sea").ends();
    assert_eq!(ended.code, Some(7));
    insta::assert_snapshot!(ended.line("warning[in-doubt-elsewhere]"), @"warning[in-doubt-elsewhere]: another batch, `a`, has 1 submission in doubt ($0.90 at risk): `shotlist resolve m.yaml --set what=sea --batch a` lists them");
}

/// A finished batch is released immediately: its own run does not wait for this one.
#[test]
fn finished_batch_is_unlocked_during_the_run() {
    let (remote, here) = (finishing(), daily());
    let (service, finished) = &remote;
    let run = |batch: &str| here.run(service, &["--batch", batch, "--select", "sky"]);
    assert_eq!(day(&here, &remote, "a", &["--select", "sky"]).code, Some(143));
    finished.store(1, Ordering::SeqCst);
    let today = run("b").starts();
    wait_until("yesterday is here", || here.path("shotlist-out/daily/a/sky.mp4").exists());
    // Today's run goes on until then.
    here.run(service, &["--batch", "a", "--select", "sky", "--lock-wait", "1m"]).ends_with(0);
    assert_eq!(report(&here, "a"), ["sky completed \"sky.mp4\"", "quote pending null"]);
    finished.store(9, Ordering::SeqCst);
    assert_eq!(Ended::wait_for(today).code, Some(0));
}
