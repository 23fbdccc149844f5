//! Deliveries, compared with their requests: duration, shape, model, and cost.

use std::fs;

use serde_json::json;

use crate::support::{
    Answer, Asked, Ended, Service, Workspace, clip, codes, has_code, json as answer, line_of, raw, wait_until,
};

/// The video of a task; later tasks get the last one.
fn clip_of(videos: &[(u32, u32, u32)], file: &str) -> Answer {
    let number = file.trim_start_matches('t').trim_end_matches(".mp4");
    let number: usize = number.parse().expect("the number of a task");
    let (seconds, width, height) = videos[number.min(videos.len() - 1)];
    raw(200, &[], clip(seconds, width, height, file))
}

/// A service with one of these videos for each task, and the last one for later tasks.
fn giving(videos: &'static [(u32, u32, u32)]) -> Service {
    Service::scripted_wholly(move |asked: &Asked| match asked.path.strip_prefix("/videos/") {
        Some(file) => clip_of(videos, file),
        None => Answer::Well,
    })
}

const BATCH: &str = "version: 1
defaults: { model: beta-2.0-lite, duration: 10, size: 1280x720 }
jobs:
  - { id: one, prompt: a cat }
  - { id: other, prompt: a lake, model: beta-2.0-lite-fast }
  - { id: more, prompt: a dog, takes: 40 }
";
const JOBS: usize = 42;

fn warnings(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.starts_with("warning")).collect()
}

/// Warnings without the ID of their job: concurrent downloads have no order, so any job of a model may be its first.
fn of_any_job(warnings: &str) -> String {
    let parts = warnings.split("the video of ").enumerate();
    parts
        .map(|(nth, part)| {
            if nth == 0 {
                part.to_owned()
            } else {
                format!("the video of JOB {}", part.split_once(' ').expect("words").1)
            }
        })
        .collect()
}

#[test]
fn short_first_video_stops_its_model() {
    let (service, here) = (giving(&[(5, 1280, 720), (10, 1280, 720)]), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(1);
    insta::assert_snapshot!(warnings(&ended.stderr).join("\n"), @"warning[delivery-mismatch]: the video of one has 5 s, requested 10 s; no further beta-2.0-lite jobs are submitted, unless `--accept-mismatch` is given");
    // One more submission may be in flight before the video arrives.
    assert_eq!((&*here.states()[1], here.states().last().map(String::as_str)), ("completed", Some("pending")));
    assert!(service.posts().len() < JOBS / 2, "{}", service.posts().len());
    let told = "1 video does not match its request (one): 5 s, requested 10 s\n  $7.50 paid; `mismatches.csv` has the differences\n";
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    let job = &here.report()["jobs"][0];
    let facts = ["delivered_s", "width", "height", "fps", "audio", "mismatch"].map(|field| job[field].clone());
    let expected = json!([5.0, 1280, 720, 25.0, false, "5 s, requested 10 s"]);
    assert_eq!(json!(facts), expected);
    let claims = fs::read_to_string(here.path("shotlist-out/m/mismatches.csv")).expect("claims");
    let line = claims.lines().nth(1).expect("a claim");
    assert!(line.starts_with("t0,one,beta-2.0-lite,\"5 s, requested 10 s\",5,1280,720,7.50,charged,"), "{line}");
    assert_eq!(claims.lines().count(), 2);
    let page = fs::read_to_string(here.path("shotlist-out/m/report.html")).expect("a page");
    insta::assert_snapshot!(line_of(&page, "mismatch: 5 s"), @r#"<p class="exec"><i class="failed"></i>mismatch: 5 s, requested 10 s</p>"#);
    insta::assert_snapshot!(line_of(&page, "does not match its request"), @r#"<button type="button" class="chip pill" data-state="mismatch" aria-pressed="false" disabled><i class="failed"></i>1 video does not match its request: $7.50 paid</button>"#);
    // A later mismatch does not stop the model.
    let ended = here.run(&service, &[]).ends_with(0);
    assert_eq!((warnings(&ended.stderr).len(), service.posts().len()), (0, JOBS), "{}", ended.stderr);
}

#[test]
fn accepted_differences_are_reported_and_bought() {
    let (service, here) = (giving(&[(5, 720, 1280)]), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1", "--accept-mismatch"]).ends_with(0);
    // One for each of two models.
    insta::assert_snapshot!(of_any_job(&warnings(&ended.stderr).join("\n")), @r"
    warning[delivery-mismatch]: the video of JOB has 5 s, requested 10 s, and 720x1280, requested 1280x720
    warning[delivery-mismatch]: the video of JOB has 5 s, requested 10 s, and 720x1280, requested 1280x720
    ");
    assert_eq!(service.posts().len(), JOBS);
    let claims = fs::read_to_string(here.path("shotlist-out/m/mismatches.csv")).expect("claims");
    assert_eq!(claims.lines().count(), 1 + JOBS);
    // A page links to the list from any directory.
    here.shotlist(&["report", "m.yaml", "--report", "a b/c.html"]).ends_with(0);
    let links = |page: &str| {
        page.split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'))
            .map(|(link, _)| link.to_owned())
            .filter(|link| link.ends_with("mismatches.csv"))
            .collect::<Vec<String>>()
    };
    for (page, link) in
        [("shotlist-out/m/report.html", "mismatches.csv"), ("a b/c.html", "../shotlist-out/m/mismatches.csv")]
    {
        assert_eq!(links(&fs::read_to_string(here.path(page)).expect("a page")), [link]);
        assert!(here.path(page).with_file_name(link).is_file(), "{page}");
    }
}

#[test]
fn mismatch_after_a_good_video_ends_with_1_also_with_quiet() {
    let here = Workspace::with_manifest(BATCH);
    let earlier = ["one.mp4", "more.mp4"].map(|file| here.path("shotlist-out/m").join(file));
    let service = Service::scripted_wholly(move |asked: &Asked| match asked.path.rsplit('/').next() {
        Some(file) if asked.path.starts_with("/videos/") => clip_of(&[(10, 854, 480), (5, 1280, 720)], file),
        // Each task ends after the earlier videos are here: concurrent downloads have no order.
        Some(task)
            if asked.method == "GET"
                && (0..).zip(&earlier).any(|(n, file)| task > format!("t{n}").as_str() && !file.exists()) =>
        {
            answer(200, &json!({ "id": task, "status": "in_progress" }))
        }
        _ => Answer::Well,
    });
    let ended = here.run(&service, &["--concurrency", "1", "--exclude", "other", "-q"]).ends_with(1);
    insta::assert_snapshot!(warnings(&ended.stderr).join("\n"), @r"
    warning[delivery-mismatch]: the video of one has 480 pixels on the short side, requested 720
    warning[delivery-mismatch]: the video of more has 5 s, requested 10 s
    ");
    assert_eq!(service.posts().len(), JOBS - 1, "the model is not stopped");
}

#[test]
fn video_of_an_earlier_run_stops_no_model() {
    // The first run leaves a sound video at the service, or a short one.
    for (first, rest, posts) in [((10, 1280, 720), (5, 1280, 720), JOBS / 2), ((5, 1280, 720), (10, 1280, 720), JOBS)] {
        let service = giving(Box::leak(Box::new([first, rest])));
        let here = Workspace::with_manifest(BATCH);
        here.run(&service, &["--select", "one", "--no-download"]).ends_with(0);
        let ended = here.run(&service, &["--concurrency", "1", "--exclude", "other"]).ends();
        if posts == JOBS {
            // The short one is reported, and stops nothing.
            assert_eq!((ended.code, service.posts().len()), (Some(1), JOBS - 1), "{}", ended.stderr);
            assert_eq!(warnings(&ended.stderr).len(), 1, "{}", ended.stderr);
        } else {
            assert_eq!(ended.code, Some(1), "{}", ended.stderr);
            assert!(service.posts().len() < posts, "{} posts", service.posts().len());
        }
    }
}

#[test]
fn reported_wrong_duration_stops_the_model_without_a_file() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "GET" => {
            let url = format!("http://{}/v.mp4", asked.headers["host"]);
            answer(200, &json!({ "status": "completed", "video_url": url, "duration": 20 }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(BATCH);
    let ended = here.run(&service, &["--concurrency", "1", "--exclude", "other", "--no-download"]).ends_with(1);
    insta::assert_snapshot!(warnings(&ended.stderr).join("\n"), @"warning[echo-mismatch]: the service reports for beta-2.0-lite: 20 s, requested 10 s; no further beta-2.0-lite jobs are submitted, unless `--accept-mismatch` is given");
    assert!(service.posts().len() <= 2, "{}", service.posts().len());
}

#[test]
fn stopped_retake_continues_and_buys_nothing_twice() {
    let jobs =
        "version: 1\ndefaults: { model: beta-2.0-lite, duration: 10 }\njobs: [{ id: j, prompt: a, takes: 12 }]\n";
    // The first retake is task 12, too short by its response.
    let service = Service::scripted(|asked| match asked.path.rsplit('/').next() {
        Some(task) if asked.method == "GET" && task.starts_with('t') => {
            let url = format!("http://{}/videos/{task}.mp4", asked.headers["host"]);
            let seconds = if task == "t12" { 5 } else { 10 };
            answer(200, &json!({ "status": "completed", "video_url": url, "duration": seconds }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(jobs);
    here.run(&service, &[]).ends_with(0);
    let retake = ["--retake", "*", "--concurrency", "1"];
    let ended = here.run(&service, &retake).ends_with(1);
    assert!(has_code(&ended.stderr, "not-bought-again"), "{}", ended.stderr);
    assert_eq!(service.posts().len(), 12 + 1);
    here.run(&service, &retake).ends_with(0);
    assert_eq!(service.posts().len(), 24);
}

#[test]
fn another_model_of_the_catalog_stops_the_requested_one() {
    let reporting = |model: &'static str| {
        Service::scripted(move |asked| match asked.method.as_str() {
            "POST" if !asked.is_of("beta-2.0-lite-fast") => {
                answer(200, &json!({ "id": format!("x{}", asked.earlier), "model": model }))
            }
            _ => Answer::Well,
        })
    };
    let (service, here) = (reporting("beta-2.0-lite-fast"), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(1);
    insta::assert_snapshot!(warnings(&ended.stderr).join("\n"), @"warning[model-mismatch]: the service reports the model beta-2.0-lite-fast ($6.50), requested beta-2.0-lite ($7.50); if both are one, name it under `model_aliases` in a `--catalog`; no further beta-2.0-lite jobs are submitted, unless `--accept-mismatch` is given");
    assert_eq!(here.states()[..3], ["completed", "completed", "pending"]);
    assert_eq!(service.posts().len(), 2);
    // An unknown name may be a dearer model, unless the catalog has it as an alias.
    let (service, here) = (reporting("vendor/beta"), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(1);
    assert!(has_code(&ended.stderr, "model-mismatch"), "{}", ended.stderr);
    assert_eq!(service.posts().len(), 2);
    here.write(
        "aliases.yaml",
        "version: 1\nprices_taken_on: 2026-11-20\nterminal_states: { model_aliases: { vendor/beta: beta-2.0-lite } }\n",
    );
    here.run(&service, &["--catalog", "aliases.yaml", "--sample", "1"]).ends_with(0);
}

/// The next submission waits for the comparison of the first response.
#[test]
fn first_response_of_another_model_stops_the_model() {
    for said in [json!({ "id": "t", "model": "beta-2.0-lite" }), json!({ "id": "t", "usage": { "cost": 9.99 } })] {
        let service = Service::scripted(move |asked| match asked.method.as_str() {
            "POST" => answer(200, &said),
            _ => Answer::Well,
        });
        let here = Workspace::with_manifest(&crate::support::numbered_jobs(30));
        let ended = here.run(&service, &["--quiet", "--no-download"]).ends_with(1);
        assert_eq!(service.posts().len(), 1);
        ended.line("no further alpha-2 jobs are submitted");
        assert_eq!(here.ledger("SELECT count(*) FROM attempt"), [["1"]], "the others have no intent");
    }
}

/// The model stops while the intents of two more jobs are durable and not yet acknowledged.
#[test]
fn stopped_model_withdraws_unsent_intents() {
    let here = Workspace::with_manifest(&crate::support::numbered_jobs(3));
    let halted = here.path("halted");
    let (seen, differs) = (
        halted.clone(),
        json!({ "id": "t0", "status": "completed", "model": "beta-2.0-lite", "video_url": "http://127.0.0.1:9/v.mp4" }),
    );
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "GET" if seen.exists() => answer(200, &differs),
        "GET" => answer(200, &json!({ "id": "t0", "status": "queued" })),
        _ => Answer::Well,
    });
    let run = here.script(&service, "\"$0\" run m.yaml --yes --deadline 3s 2>told");
    let run = run.env("SHOTLIST_HALT_AT", "after-intent:2").env("SHOTLIST_HALT_FILE", &halted.to_string_lossy());
    let child = run.starts();
    let told = || fs::read_to_string(here.path("told")).unwrap_or_default();
    wait_until("the model stops", || has_code(&told(), "model-mismatch"));
    fs::remove_file(&halted).expect("the ledger goes on");
    Ended::wait_for(child);
    assert_eq!(service.posts().len(), 1);
    assert_eq!(here.ledger("SELECT state FROM attempt ORDER BY id")[1..], [["void"], ["void"]]);
}

#[test]
fn refused_download_is_kept_and_named() {
    let service = Service::scripted_wholly(|asked| match asked.path.strip_prefix("/videos/") {
        Some(_) => raw(200, &[("content-type", "video/mp4")], b"\x1a\x45\xdf\xa3 a video of another kind"),
        None if asked.path.ends_with("/content") => answer(404, &json!({})),
        None => Answer::Well,
    });
    let here = Workspace::with_manifest(BATCH);
    let ended = here.run(&service, &["--select", "one"]).ends_with(1);
    let said = "it is WebM or Matroska; it is kept as `one.mp4.refused`";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let kept = fs::read(here.path("shotlist-out/m/one.mp4.refused")).expect("the bytes");
    assert!(kept.ends_with(b"a video of another kind"));
}

#[test]
fn reported_cost_above_the_price_stops_the_model() {
    let reporting = |usage: serde_json::Value| {
        Service::scripted(move |asked| match asked.method.as_str() {
            "POST" if asked.is_of("beta-2.0-lite-fast") => Answer::Well,
            "POST" => answer(200, &json!({ "id": format!("x{}", asked.earlier), "usage": usage })),
            _ => Answer::Well,
        })
    };
    let (service, here) = (reporting(json!({ "cost": 8.25 })), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(1);
    insta::assert_snapshot!(warnings(&ended.stderr).join("\n"), @"warning[price-mismatch]: the service reports a cost of $8.25 for a video by beta-2.0-lite, priced at $7.50; no further beta-2.0-lite jobs are submitted, unless `--accept-mismatch` is given");
    assert_eq!((here.states()[..3].join(" "), service.posts().len()), ("completed completed pending".to_owned(), 2));
    let job = &here.report()["jobs"][0];
    assert_eq!(
        (&job["reported_usd"], &job["cost_usd"], &job["charge"]),
        (&json!("8.25"), &json!("8.25"), &json!("charged"))
    );
    // Limits and `spend` count the reported cost.
    let limited = fs::read_to_string(here.path("m.yaml")).expect("the manifest");
    here.write("m.yaml", limited.replace("version: 1\n", "version: 1\nbudget: { day: 21.75 }\n"));
    let next = ["--accept-mismatch", "--select", "more*", "--sample", "1"];
    here.run(&service, &next).fails_with("over-limit", 3);
    let spent = here.shotlist(&["spend", "m.yaml", "--format", "json"]).ends_with(0).stdout;
    let spent: serde_json::Value = serde_json::from_str(&spent).expect("JSON");
    assert_eq!((&spent["totals"]["spent_usd"], service.posts().len()), (&json!("14.75"), 2));
    // Also from a header.
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => raw(200, &[("x-litellm-response-cost", "8.25")], json!({ "id": "x" }).to_string()),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(BATCH);
    here.run(&service, &["--select", "one"]).ends_with(1);
    assert_eq!(here.report()["totals"]["spent_usd"], "8.25");
    // Credits of a gateway are not dollars: they stop the model, and count nowhere.
    let (service, here) = (reporting(json!({ "cost": 1e300 })), Workspace::with_manifest(BATCH));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(1);
    assert!(has_code(&ended.stderr, "price-mismatch"), "{}", ended.stderr);
    assert_eq!((&here.report()["totals"]["spent_usd"], service.posts().len()), (&json!("14.00"), 2));
    // Placeholders, and costs up to the price, do not stop the model.
    for usage in [
        json!({ "cost": 0 }),
        json!({ "cost": -1 }),
        json!({ "cost": 7.5 }),
        json!({ "cost": "7.500001e0" }),
        json!("x"),
    ] {
        let (service, here) = (reporting(usage.clone()), Workspace::with_manifest(BATCH));
        let is_dearer = usage["cost"] == "7.500001e0";
        let ended = here.run(&service, &["--select", "one"]).ends_with(i32::from(is_dearer));
        assert_eq!(has_code(&ended.stderr, "price-mismatch"), is_dearer, "{usage}: {}", ended.stderr);
    }
}

#[test]
fn plan_has_the_age_of_its_prices() {
    let here = Workspace::with_manifest(BATCH);
    let plan =
        |day: &str| here.shotlist(&["run", "m.yaml", "--plan"]).env("SHOTLIST_PRICES_TAKEN_ON", day).ends_with(0);
    let before = |days: i64| jiff::Zoned::now().date().saturating_sub(jiff::Span::new().days(days)).to_string();
    plan(&before(29)).lacks(&["prices of"]);
    let old = plan(&before(40)).stdout;
    let (day, age) = (before(40), ["39 days old", "40 days old", "41 days old"]);
    assert!(old.contains(&format!("prices of {day}, ")) && age.iter().any(|age| old.contains(age)), "{old}");
    // Another catalog has its own date.
    here.write("prices.yaml", format!("version: 1\nprices_taken_on: {day}\nmodels: {{}}\n"));
    let json = here.plan(&["--catalog", "prices.yaml"]);
    assert!(codes(&json).contains(&"old-prices"), "{json}");
    here.write("prices.yaml", "version: 1\nprices_taken_on: soon\n");
    here.shotlist(&["run", "m.yaml", "--plan", "--catalog", "prices.yaml"]).fails_with("catalog-invalid", 2);
}

/// After a mismatch, the next runs of any batch submit the model one job at a time, until a video matches.
#[test]
fn model_on_trial_begins_with_one_job_in_flight() {
    let trusted = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_trusted = std::sync::Arc::clone(&trusted);
    let service = Service::scripted_wholly(move |asked: &Asked| {
        if !asked.path.starts_with("/videos/t") {
            return Answer::Well;
        }
        let seconds = if is_trusted.load(std::sync::atomic::Ordering::SeqCst) { 10 } else { 5 };
        raw(200, &[], clip(seconds, 1280, 720, &asked.path))
    });
    let here = Workspace::with_manifest(BATCH);
    let night = |number: &str| {
        let before = service.posts().len();
        let args = ["--exclude", "other", "--concurrency", "20", "--buy-again", "*", "--batch", number];
        let ended = here.run(&service, &args).ends();
        (ended.code, service.posts().len() - before)
    };
    let (code, bought) = night("1");
    assert!(code == Some(1) && bought > 1, "a first run begins with several: {bought}");
    let plan = here.plan(&["--batch", "2", "--exclude", "other"]);
    assert!(codes(&plan).contains(&"model-on-trial"), "{plan}");
    assert_eq!([night("2"), night("3")], [(Some(1), 1), (Some(1), 1)]);
    trusted.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(night("4"), (Some(0), JOBS - 1));
    assert!(!codes(&here.plan(&["--batch", "5", "--exclude", "other"])).contains(&"model-on-trial"));
    // The user may accept it.
    trusted.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(night("5").0, Some(1));
    let accepted = ["--accept-mismatch", "--batch", "6", "--exclude", "other", "--buy-again", "*"];
    assert!(!codes(&here.plan(&accepted)).contains(&"model-on-trial"));
}

/// The trial job needs a slot for its retry, and a missing video is no result.
#[test]
fn trial_outlasts_a_retry_and_a_missing_video() {
    let unjudged = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&unjudged);
    let service = Service::scripted_wholly(move |asked: &Asked| {
        let last = asked.path.rsplit('/').next().unwrap_or_default();
        match (asked.method.as_str(), last.trim_end_matches(".mp4")) {
            ("GET", "t1") => answer(200, &json!({ "id": "t1", "status": "failed", "error": { "message": "a fault" } })),
            ("GET", "t2") if asked.path.starts_with("/videos/") => {
                seen.lock().push(asked.path.clone());
                answer(404, &json!({ "message": "it is gone" }))
            }
            ("GET", task) if asked.path.starts_with("/videos/") => {
                raw(200, &[], clip(if task == "t0" { 5 } else { 10 }, 1280, 720, task))
            }
            _ => Answer::Well,
        }
    });
    let here = Workspace::with_manifest(BATCH);
    here.run(&service, &["--select", "one"]).ends_with(1);
    let args = ["--exclude", "other", "--batch", "2", "--buy-again", "*", "--retries", "1", "--concurrency", "2"];
    here.run(&service, &args).ends_with(1);
    assert_eq!(service.posts().len(), 1 + JOBS, "one of them twice");
    assert!(!unjudged.lock().is_empty());
}

/// An unreadable video counts as a mismatch.
#[test]
fn unreadable_video_is_a_mismatch() {
    let bare = b"\0\0\0\x08ftyp\0\0\0\x3cmoov\0\0\0\x34trak\0\0\0\x2cmdia\0\0\0\x14hdlr\0\0\0\0\0\0\0\0vide\0\0\0\x10minf\0\0\0\x08stbl\0\0\0\x09mdatx";
    let service =
        Service::scripted_wholly(
            move |asked: &Asked| {
                if asked.path.starts_with("/videos/") { raw(200, &[], bare) } else { Answer::Well }
            },
        );
    let here = Workspace::with_manifest(BATCH);
    let ended = here.run(&service, &["--concurrency", "1", "--exclude", "other"]).ends_with(1);
    insta::assert_snapshot!(of_any_job(warnings(&ended.stderr)[0]), @"warning[delivery-mismatch]: the video of JOB has an unknown duration, requested 10 s, and an unknown shape, requested 1280x720; no further beta-2.0-lite jobs are submitted, unless `--accept-mismatch` is given");
    // Submissions in flight may continue until the video arrives.
    assert!(service.posts().len() < JOBS / 2, "{}", service.posts().len());
    let listed = fs::read_to_string(here.path("shotlist-out/m/mismatches.csv")).expect("a list");
    let columns = csv::Reader::from_reader(listed.as_bytes()).records().next().expect("a video").expect("a row");
    assert_eq!(&columns[3], "an unknown duration, requested 10 s; an unknown shape, requested 1280x720");
}
