//! The owner's limits, in a ledger of one machine.

use crate::support::{Service, TWO_JOBS, Workspace};

#[test]
fn ledger_limit_is_never_exceeded() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let shown = here.shotlist(&["limit", "show"]).ends_with(0).stdout;
    assert_eq!(shown, "no limit is set\n");
    let set =
        here.shotlist(&["limit", "set", "--month", "5", "--day", "20", "--timezone", "Europe/Berlin"]).ends_with(0);
    assert_eq!(
        set.stdout,
        "ledger.day: $20.00 (Europe/Berlin), $0.00 used, $20.00 left\n\
         ledger.month: $5.00 (Europe/Berlin), $0.00 used, $5.00 left\n"
    );
    // In a wrong directory, the limit would have no effect.
    insta::assert_snapshot!(set.stderr, @"created ledger `.shotlist/ledger.db`; the limits apply to runs that use it");
    let refused = here.run(&service, &[]).fails_with("over-limit", 3).stderr;
    insta::assert_snapshot!(refused, @"
    error[over-limit]: the run costs $11.25, but the limit is $5.00 (ledger.month)
      note: nothing was submitted; nothing was spent
      help: raise the limit with `shotlist limit set`, or choose fewer jobs with `--select` or `--tag`; `shotlist run m.yaml --plan` shows what it would buy
    ");
    // No manifest raises it, and one may tighten it.
    here.write("m.yaml", TWO_JOBS.replace("jobs:", "budget: { month: 100.00 }\njobs:"));
    here.run(&service, &[]).ends_with(3);
    assert!(service.posts().is_empty());
    assert_eq!(here.shotlist(&["limit", "set", "--month", "none"]).ends_with(0).stderr, "");
    here.write("m.yaml", TWO_JOBS);
    here.run(&service, &[]).ends_with(0);
    let shown = here.shotlist(&["limit", "show"]).ends_with(0).stdout;
    assert_eq!(shown, "ledger.day: $20.00 (Europe/Berlin), $11.25 used, $8.75 left\n");
}

#[test]
fn plan_warns_from_four_fifths_of_a_limit_on() {
    let here = Workspace::with_manifest(TWO_JOBS);
    let limit = |args: &[&str]| here.shotlist(&[&["limit"], args].concat()).ends_with(0).stdout;
    limit(&["set", "--month", "9", "--label", "client=acme"]);
    limit(&["set", "--day", "8.50", "--timezone", "UTC"]);
    let note = |usd: &str| {
        limit(&["set", "--day", usd]);
        let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        let codes = plan["warnings"].as_array().expect("a list").iter().map(|warning| warning["code"].clone());
        codes.filter(|code| code.as_str().is_some_and(|code| code.ends_with("-limit"))).collect::<Vec<_>>()
    };
    // Two jobs for $11.25, and none with the label.
    assert_eq!(note("14.07"), ["within-limit", "within-limit"]);
    assert_eq!(note("14.06"), ["near-limit", "within-limit"]);
}

#[test]
fn invalid_limit_is_reported() {
    let here = Workspace::new();
    for (words, told) in [
        (&["limit", "set"][..], "--day"),
        (&["limit", "set", "--month", "lots"], "lots"),
        (&["limit", "set", "--month", "5", "--label", "acme"], "NAME=VALUE"),
        (&["limit", "set", "--month", "5", "--timezone", "Mars"], "Europe/Berlin"),
        (&["limit", "set", "--slots", "0"], "from 1"),
        (&["limit", "set", "--freeze", "--label", "client=acme"], "--day"),
        (&["limit", "set", "--month", "5", "--slots", "5"], "PostgreSQL"),
        (&["limit", "set", "--unfreeze", "--freeze"], "cannot be used with"),
    ] {
        let stderr = here.shotlist(words).ends_with(2).stderr;
        assert!(stderr.contains(told), "{words:?}: {stderr}");
    }
    assert!(here.files().is_empty(), "{:?}", here.files());
}

/// With UTC instead of the time zone, the day would start at another hour.
#[test]
fn time_zone_without_name_or_meaning_is_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.write("bill.csv", "task_id,usd\n");
    let ends = |zone: &str, words: &[&str]| {
        let stderr = here.shotlist(words).env("TZ", zone).ends_with(2).stderr;
        stderr.lines().next().unwrap_or_default().split_once("]: ").unwrap_or_default().1.to_owned()
    };
    let limit = ["limit", "set", "--day", "5"];
    assert_eq!(ends("CST-8", &limit), "the time zone of this machine has no name: `TZ` is `CST-8`");
    let named = ["limit", "set", "--day", "5", "--timezone", "Asia/Shanghai"];
    here.shotlist(&named).env("TZ", "CST-8").ends_with(0);
    let bill = [
        "reconcile",
        "bill.csv",
        "--task-column=task_id",
        "--usd-column=usd",
        "--since=2026-11-01",
        "--until=2026-11-30",
    ];
    for words in [&limit[..], &["spend"], &["run", "m.yaml", "--plan"], &bill] {
        let unknown = ends("Mars/Olympus", words);
        assert_eq!(unknown, "the time zone of this machine is unknown: `TZ` is `Mars/Olympus`", "{words:?}");
    }
    here.shotlist(&["limit", "set", "--day", "none"]).env("TZ", "CST-8").ends_with(0);
    // Where no name is needed, the rules are enough.
    here.shotlist(&["run", "m.yaml", "--plan"]).env("TZ", "CST-8").ends_with(0);
    assert!(service.posts().is_empty());
}

/// On one machine, missing videos are fetched, and nothing is bought.
#[test]
fn missing_videos_are_fetched_for_free() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &["--select", "one"]).ends_with(0);
    let videos = || here.videos().len();
    assert_eq!((videos(), service.posts().len()), (1, 1));
    std::fs::remove_file(here.path("shotlist-out/m/one.mp4")).expect("it was there");
    let fetch = || here.shotlist(&["fetch", "m.yaml"]).with_service(&service.url());
    fetch().ends_with(0);
    assert_eq!((videos(), service.posts().len()), (1, 1), "what is due stays due");
    // Without missing videos, there is no request.
    here.shotlist(&["fetch", "m.yaml"]).ends_with(0);
}
