//! The next step in a summary, a status, a plan, and a tip.

use crate::support::{Answer, LEFT_AFTER, Service, Workspace, numbered_jobs};

/// The first submission is lost.
fn losing_the_first() -> Service {
    Service::scripted(|asked| match (&*asked.method, asked.earlier) {
        ("POST", 0) => Answer::Hangup,
        _ => Answer::Well,
    })
}

#[test]
fn summary_of_a_sample_names_the_jobs_left_on_purpose() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(3)), Service::well());
    let said = here.run(&service, &["--sample", "1"]).ends_with(0).stdout;
    insta::assert_snapshot!(said, @"
    3 jobs: 1 completed, 2 pending
    $0.90 spent, $1.80 to submit
    videos: 1 in shotlist-out/m, with report.csv, report.json
    left for another run: j0, j2; `shotlist run m.yaml --plan` shows them
    to look at it: xdg-open shotlist-out/m/report.html
    ");
    let (here, (slow, _)) = (Workspace::with_manifest(&numbered_jobs(2)), Service::slow());
    let said = here.run(&slow, &["--deadline", LEFT_AFTER]).ends_with(1).stdout;
    insta::assert_snapshot!(said, @"
    2 jobs: 2 in progress
    $1.80 spent
    active: j0, j1; the next run polls them
    reports: shotlist-out/m/report.csv, shotlist-out/m/report.json
    to look at it: xdg-open shotlist-out/m/report.html
    ");
}

#[test]
fn exceeded_limits_are_named() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(3)), Service::well());
    here.run(&service, &["--sample", "2"]).ends_with(0);
    here.shotlist(&["limit", "set", "--month", "1"]).ends_with(0);
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--select", "j2"]).ends_with(0).stdout;
    insta::assert_snapshot!(plan, @"
    m: 1 job

      1 completed, nothing to do

    nothing to buy
    OVER the limit of $1.00 (ledger.month) already: $1.80 used
    ");
    // A refusal names each limit.
    here.shotlist(&["limit", "set", "--day", "2"]).ends_with(0);
    let refused = here.run(&service, &[]).fails_with("over-limit", 3).stderr;
    insta::assert_snapshot!(refused, @"
    error[over-limit]: the run costs $0.90, but the limit is $2.00 (ledger.day), $1.80 of it used; the run costs $0.90, but the limit is $1.00 (ledger.month), $1.80 of it used
      note: nothing was submitted; nothing was spent
      help: raise the limit with `shotlist limit set`, or choose fewer jobs with `--select` or `--tag`; `shotlist run m.yaml --plan` shows what it would buy
    ");
}

#[test]
fn doubt_is_one_sentence_and_its_hints_have_the_manifest() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(1)), losing_the_first());
    let ended = here.run(&service, &[]).ends_with(7).lacks(&["MANIFEST"]);
    insta::assert_snapshot!(ended.line("error[in-doubt]"), @"error[in-doubt]: j0 is in doubt: the connection broke before the response came");
    for args in
        [&["run", "m.yaml", "--plan"][..], &["resolve", "m.yaml"], &["resolve", "m.yaml", "other", "--never-created"]]
    {
        here.shotlist(args).ends().lacks(&["MANIFEST"]);
    }
}

#[test]
fn quiet_run_names_a_doubt_of_another_batch() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(1)), losing_the_first());
    here.run(&service, &["--batch", "mon"]).ends_with(7);
    let ended = here.run(&service, &["--batch", "tue", "-q"]).ends_with(7);
    insta::assert_snapshot!(format!("{}{}", ended.stdout, ended.stderr), @"
    1 job: 1 completed
    $0.90 spent
    videos: 1 in shotlist-out/m/tue, with report.csv, report.json
    to look at it: xdg-open shotlist-out/m/tue/report.html
    another batch, `mon`, has 1 submission in doubt ($0.90 at risk): `shotlist resolve m.yaml --batch mon` lists them
    ");
}

#[test]
fn status_of_a_found_task_shows_its_video() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(1)), losing_the_first());
    here.run(&service, &[]).ends_with(7);
    let resolve = here.shotlist(&["resolve", "m.yaml", "j0", "--task", "t9", "--anyway"]);
    resolve.with_service(&service.url()).ends_with(0);
    here.run(&service, &[]).ends_with(0);
    let status = here.shotlist(&["status", "m.yaml", "-v"]).ends_with(0).lacks(&["declared"]);
    insta::assert_snapshot!(status.line("j0.mp4"), @"completed  j0   alpha-2  $0.90  j0.mp4");
}

#[test]
fn tip_for_a_command_of_other_tools_comes_alone() {
    let here = Workspace::new();
    for (word, tip) in [("plan", "`shotlist run MANIFEST --plan`"), ("open", "`shotlist report MANIFEST`")] {
        let said = here.shotlist(&[word]).ends_with(2).lacks(&["similar subcommand"]).stderr;
        assert!(said.contains(tip), "{said}");
    }
}
