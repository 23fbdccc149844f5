//! Requests that are already paid for: after a change of the manifest's name or of an ID, and without the earlier ledger.

use std::fs;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::support::{Ended, Program, Service, TWO_JOBS, Workspace, has_code, wait_until};

/// `shotlist run` of a manifest, with every cost confirmed.
fn run(here: &Workspace, service: &Service, manifest: &str, args: &[&str]) -> Program {
    here.shotlist(&[&["run", manifest, "--yes"], args].concat()).with_service(&service.url())
}

fn plan(here: &Workspace, manifest: &str) -> Value {
    let plan = here.shotlist(&["run", manifest, "--plan", "--format", "json"]).ends_with(0).stdout;
    serde_json::from_str(&plan).expect("JSON")
}

#[test]
fn renamed_manifest_buys_nothing_again() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    fs::rename(here.path("m.yaml"), here.path("campaign.yaml")).expect("renamed");
    for args in [[].as_slice(), &["-q"], &["--max-cost", "100"]] {
        let refused = run(&here, &service, "campaign.yaml", args).fails_with("already-paid", 3);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.line("one has the request"), @r#"one has the request of one of `m` (completed, $3.75; its video: shotlist-out/m/one.mp4): if the manifest was renamed, write `name: "m"`"#);
        }
    }
    assert_eq!(service.posts().len(), 2);
    let before = &plan(&here, "campaign.yaml")["bought_before"];
    assert_eq!(before.as_array().map(Vec::len), Some(2));
    let expected = json!({ "job": "one", "known_from": "other_name", "name": "m", "batch": "", "id": "one", "state": "completed",
        "price_usd": "3.75", "task_id": "t0", "video": "shotlist-out/m/one.mp4" });
    assert_eq!(before[0], expected);
    let text = here.shotlist(&["run", "campaign.yaml", "--plan"]).ends_with(0).stdout;
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("2 jobs are")).take(3).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    2 jobs are already paid for; `--buy-again '{one,two}'` buys again for $11.25
      one has the request of one of `m` (completed, $3.75; its video: shotlist-out/m/one.mp4): if the manifest was renamed, write `name: "m"`
      two has the request of two of `m` (completed, $7.50; its video: shotlist-out/m/two.mp4): if the manifest was renamed, write `name: "m"`
    "#);
    // The printed `name` keeps the purchases.
    let named = format!("{TWO_JOBS}name: m\n");
    here.write("campaign.yaml", &named);
    run(&here, &service, "campaign.yaml", &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    // `--buy-again` buys once.
    here.write("campaign.yaml", named.replace("name: m", "name: other"));
    run(&here, &service, "campaign.yaml", &["--buy-again", "*"]).ends_with(0);
    run(&here, &service, "campaign.yaml", &[]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}

/// `--buy-again` confirms the shown purchases. A later purchase of the request refuses the intent.
#[test]
fn consent_covers_no_later_purchase() {
    let (service, release) = Service::holding("hold me");
    let here = Workspace::new();
    let manifest = |jobs: &str| format!("version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}");
    let job = "  - { id: x, prompt: x }\n";
    here.write("first.yaml", manifest(job));
    here.write("second.yaml", manifest(&format!("  - {{ id: a, prompt: hold me }}\n{job}")));
    here.write("third.yaml", manifest(job));
    run(&here, &service, "first.yaml", &[]).ends_with(0);
    let second = run(&here, &service, "second.yaml", &["--buy-again", "*", "--concurrency", "1"]).starts();
    wait_until("the first job is held", || service.posts().len() == 2);
    run(&here, &service, "third.yaml", &["--buy-again", "*"]).ends_with(0);
    release.store(true, Ordering::SeqCst);
    let ended = Ended::wait_for(second);
    assert_eq!((ended.code, service.posts().len()), (Some(3), 3), "{}", ended.stderr);
}

/// Another program saved the table, with invisible changes: line breaks in cells, a trailing space, and a combining accent.
#[test]
fn resaved_table_buys_nothing_again() {
    let manifest =
        "version: 1\njobs: [{ for_each: rows.csv, id: \"{{ row.n }}\", model: alpha-2, prompt: \"{{ row.p }}\" }]\n";
    let table = "n,p\na,\"One\nby the sea\"\nb,Two\nc,Three\nd,Caf\u{e9} four\n";
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest).file("rows.csv", table));
    here.run(&service, &[]).ends_with(0);
    here.write("rows.csv", table.replace('\n', "\r\n").replace("Two", "Two ").replace('\u{e9}', "e\u{301}"));
    let ended = here.run(&service, &[]).fails_with("already-paid", 3);
    insta::assert_snapshot!(ended.stderr, @"
    3 jobs are already paid for; `--buy-again '{a,b,d}'` buys again for $2.70
      a is paid for in another form: only whitespace, case, quotes, dashes, or Unicode forms differ (completed, $0.90; its video: a.mp4): restore the prompt, or exclude the job with `--exclude a`
      b is paid for in another form: only whitespace, case, quotes, dashes, or Unicode forms differ (completed, $0.90; its video: b.mp4): restore the prompt, or exclude the job with `--exclude b`
      d is paid for in another form: only whitespace, case, quotes, dashes, or Unicode forms differ (completed, $0.90; its video: d.mp4): restore the prompt, or exclude the job with `--exclude d`

    error[already-paid]: 3 jobs are already paid for
      note: nothing was submitted; nothing was spent
      help: follow the hint for each job above, or leave it out with `--exclude`; `--buy-again GLOB` pays a second time for the jobs that match; `shotlist run m.yaml --plan` shows what it would buy
    ");
    let plan = plan(&here, "m.yaml");
    let known: Vec<_> = plan["bought_before"].as_array().expect("a list").iter().map(|it| &it["known_from"]).collect();
    assert_eq!(known, ["respelled", "respelled", "respelled"]);
    assert_eq!(service.posts().len(), 4);
    // `--exclude` leaves the shown rows out. Another word or accent is another request, and `--buy-again` buys a shown row.
    here.run(&service, &["--exclude", "a", "--exclude", "b", "--exclude", "d"]).ends_with(0);
    here.write("rows.csv", table.replace("Two", "Two dogs").replace('\u{e9}', "e"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 6);
    here.write("rows.csv", table.replace("Two", "Two  dogs").replace('\u{e9}', "e"));
    here.run(&service, &["--buy-again", "*"]).ends_with(0);
    assert_eq!(service.posts().len(), 7);
}

/// Every paid prompt counts, also with another image URL.
#[test]
fn prompts_are_compared_without_spaces_to_all_purchases() {
    let manifest = "version: 1\nvars: { day: mon, p: One two }\njobs:\n  \
        - { id: a, model: alpha-2, prompt: '{{ p }}', image: 'https://cdn.example/a.png?signed={{ day }}', image_key: a }\n";
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest));
    let with = |prompt: &str, args: &[&str]| {
        here.run(&service, &[&["--set", "day=tue", "--set", &format!("p={prompt}")], args].concat())
    };
    here.run(&service, &[]).ends_with(0);
    with("Other words", &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    with("One  two", &[]).fails_with("already-paid", 3);
    assert_eq!(service.posts().len(), 2);
    with("One  two", &["--retake", "a"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

/// IDs from row numbers: a new first row gives each ID the prompt of its neighbor.
#[test]
fn moved_rows_with_counted_ids_buy_nothing_again() {
    let manifest = "version: 1\njobs: [{ for_each: rows.csv, id: \"s-{{ row_number }}\", model: alpha-2, prompt: \"{{ row.p }}\" }]\n";
    let (service, here) = (Service::well(), Workspace::with_manifest(manifest).file("rows.csv", "n,p\na,One\nb,Two\n"));
    here.run(&service, &[]).ends_with(0);
    here.write("rows.csv", "n,p\nz,New\na,One\nb,Two\n");
    let refused = here.run(&service, &[]).fails_with("already-paid", 3).stderr;
    insta::assert_snapshot!(refused, @"
    2 jobs are already paid for; `--buy-again '{s-2,s-3}'` buys again for $1.80
      s-2 has the earlier request of s-1, which has changed (completed, $0.90; its video: s-1.mp4): if rows have moved, write a lasting ID for each, and the new ID of s-1 under `moved`
      s-3 has the earlier request of s-2, which has changed (completed, $0.90; its video: s-2.mp4): if rows have moved, write a lasting ID for each, and the new ID of s-2 under `moved`

    error[already-paid]: 2 jobs are already paid for
      note: nothing was submitted; nothing was spent
      help: follow the hint for each job above, or leave it out with `--exclude`; `--buy-again GLOB` pays a second time for the jobs that match; `shotlist run m.yaml --plan` shows what it would buy
    ");
    let before = &plan(&here, "m.yaml")["bought_before"];
    assert_eq!((&before[0]["known_from"], &before[0]["id"]), (&json!("changed"), &json!("s-1")));
    // Also for a selection.
    here.run(&service, &["--select", "s-3", "--select", "s-2"]).ends_with(3);
    assert_eq!(service.posts().len(), 2);
    // IDs from a column and `moved` keep the purchases.
    let lasting = manifest.replace("s-{{ row_number }}", "{{ row.n }}");
    here.write("m.yaml", format!("{lasting}moved: [{{ from: s-1, to: a }}, {{ from: s-2, to: b }}]\n"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
    // A new prompt is not already paid for.
    here.write("rows.csv", "n,p\nz,New\na,One more\nb,Two\n");
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}

#[test]
fn of_many_takes_as_many_were_bought_before_as_were_bought() {
    let manifest =
        |takes: u32| format!("version: 1\njobs: [{{ id: hero, model: alpha-2, prompt: A crane, takes: {takes} }}]\n");
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest(3)));
    here.run(&service, &[]).ends_with(0);
    fs::rename(here.path("m.yaml"), here.path("other.yaml")).expect("renamed");
    here.write("other.yaml", manifest(40));
    let ended = run(&here, &service, "other.yaml", &[]).ends_with(3);
    insta::assert_snapshot!(ended.stderr, @r#"
    3 jobs are already paid for; `--buy-again '{hero,hero.2,hero.3}'` buys again for $2.70
      hero, hero.2, hero.3 have the request of hero.3 of `m` (completed, $0.90; its video: shotlist-out/m/hero.3.mp4): if the manifest was renamed, write `name: "m"`

    error[already-paid]: 3 jobs are already paid for
      note: nothing was submitted; nothing was spent
      help: follow the hint for each job above, or leave it out with `--exclude`; `--buy-again GLOB` pays a second time for the jobs that match; `shotlist run other.yaml --plan` shows what it would buy
    "#);
    assert_eq!(plan(&here, "other.yaml")["bought_before"].as_array().map(Vec::len), Some(3));
}

#[test]
fn free_attempt_under_another_name_is_no_purchase() {
    let service = Service::scripted(|asked| match (asked.method.as_str(), asked.earlier) {
        ("POST", 0 | 1) => crate::support::json(422, &json!({ "message": "no" })),
        _ => crate::support::Answer::Well,
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &[]).ends_with(1);
    fs::rename(here.path("m.yaml"), here.path("other.yaml")).expect("renamed");
    run(&here, &service, "other.yaml", &[]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}

#[test]
fn missing_ledger_is_noticed_by_its_report() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    fs::remove_dir_all(here.path(".shotlist")).expect("removed");
    let before = &plan(&here, "m.yaml")["bought_before"];
    assert_eq!((&before[0]["known_from"], &before[0]["task_id"]), (&json!("report"), &json!("t0")));
    assert_eq!(before[1]["video"], "shotlist-out/m/two.mp4");
    // No option replaces the report: it may be the only record.
    for args in [&[][..], &["--buy-again", "*"], &["--select", "one"]] {
        let refused = here.run(&service, args).fails_with("report-unknown", 3);
        refused.line("`shotlist import m.yaml shotlist-out/m/report.json`");
    }
    here.shotlist(&["report", "m.yaml"]).fails_with("report-unknown", 3);
    let import = here.shotlist(&["import", "m.yaml", "shotlist-out/m/report.json"]);
    import.with_service(&service.url()).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn rejection_in_an_old_ledger_does_not_hide_the_task() {
    let service = Service::scripted(|asked| match (asked.method.as_str(), asked.earlier) {
        ("POST", 0) => crate::support::json(422, &json!({ "message": "no" })),
        _ => crate::support::Answer::Well,
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &["--select", "one"]).ends_with(1);
    fs::copy(here.path(".shotlist/ledger.db"), here.path("old.db")).expect("a copy");
    here.run(&service, &["--select", "one"]).ends_with(0);
    // The older ledger by its path, without a commit counter.
    let ended = here.run(&service, &["--select", "one", "--ledger", "old.db"]).fails_with("report-unknown", 3);
    insta::assert_snapshot!(ended.stderr, @"
    error[commit-counter]: ledger `old.db` has no readable commit counter: if it is an older copy, what was bought since is bought again
    error[report-unknown]: `shotlist-out/m/report.json` has 1 purchase that the ledger doesn't have
      note: nothing was submitted; nothing was spent
      help: restore the directory `.shotlist`, or record them at no cost: `shotlist import m.yaml --ledger old.db shotlist-out/m/report.json`; move the report away only if it is not yours, because without it they are bought again; `shotlist run m.yaml --plan --ledger old.db --select one` shows what it would buy
    ");
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn report_of_another_manifest_is_ignored() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--out", "shared"]).ends_with(0);
    here.write("other.yaml", TWO_JOBS.replace("a cat", "a cow").replace("a dog", "a pig"));
    run(&here, &service, "other.yaml", &["--out", "shared", "--ledger", "other.db"]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}

#[test]
fn doubt_in_a_lost_ledger_is_noticed_unless_settled() {
    let lossy = |asked: &crate::support::Asked| match (asked.method.as_str(), asked.earlier) {
        ("POST", 0) => crate::support::Answer::Hangup,
        _ => crate::support::Answer::Well,
    };
    let (service, here) = (Service::scripted(lossy), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(7);
    here.shotlist(&["resolve", "m.yaml", "one", "--never-created"]).ends_with(0);
    here.run(&service, &["--select", "one"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);

    let (service, here) = (Service::scripted(lossy), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(7);
    fs::remove_dir_all(here.path(".shotlist")).expect("removed");
    here.run(&service, &["--select", "one"]).fails_with("report-unknown", 3);
    assert_eq!(plan(&here, "m.yaml")["bought_before"][0]["price_usd"], Value::Null);
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn changed_id_buys_nothing_again() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", TWO_JOBS.replace("id: two", "id: second"));
    let before = plan(&here, "m.yaml")["bought_before"][0].clone();
    assert_eq!([&before["job"], &before["id"], &before["known_from"]], ["second", "two", "gone"]);
    let ended = here.run(&service, &[]).ends_with(3);
    assert!(has_code(&ended.stderr, "already-paid"), "{}", ended.stderr);
    assert_eq!(service.posts().len(), 2);
    here.run(&service, &["--buy-again", "*"]).ends_with(0);
    assert_eq!(service.posts().len(), 3);
}

/// A purchase belongs to the job with the same request. A copy of that job under a new ID is a further video, not a repeated purchase.
#[test]
fn purchase_belongs_to_a_job_with_the_same_request() {
    let job = |id: &str, prompt: &str| format!("  - {{ id: {id}, model: alpha-2, prompt: {prompt} }}\n");
    let manifest = |jobs: &[String]| format!("version: 1\njobs:\n{}", jobs.concat());
    let first = [job("a", "waves"), job("b", "dunes")];
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest(&first)));
    here.run(&service, &[]).ends_with(0);
    let known = |jobs: &[String]| {
        here.write("m.yaml", manifest(jobs));
        let plan = plan(&here, "m.yaml");
        let guarded = plan["bought_before"].as_array().expect("a list").iter();
        guarded.map(|it| format!("{} {} {}", it["job"], it["known_from"], it["id"])).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(known(&[job("a", "waves"), job("copy", "waves"), job("b", "dunes")]), "");
    assert_eq!(known(&[job("copy", "waves"), job("b", "dunes")]), "\"copy\" \"gone\" \"a\"");
    let swapped = [job("a", "dunes"), job("b", "hills")];
    assert_eq!(known(&swapped), "\"a\" \"changed\" \"b\"");
}

#[test]
fn sandbox_buys_again_without_a_question() {
    let here = Workspace::with_manifest(TWO_JOBS);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    assert_eq!(here.json("shotlist-sandbox/m/report.json")["simulated"], true);
    assert!(!here.path(".shotlist/ledger.db").exists(), "it has a ledger of its own");
    assert_eq!(here.planned(&[]), (2, "11.25".to_owned()));
    fs::rename(here.path("m.yaml"), here.path("other.yaml")).expect("renamed");
    here.shotlist(&["run", "other.yaml", "--sandbox"]).ends_with(0);
    // A simulated purchase does not count for a real run.
    let service = Service::well();
    run(&here, &service, "other.yaml", &["--out", "shotlist-sandbox/other"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
}
