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
    assert!(said.contains("left for another run: j0, j2; `shotlist run m.yaml --plan` shows them"), "{said}");
    assert!(!said.contains("active: ") && !said.contains("not submitted: "), "{said}");
    let (here, (slow, _)) = (Workspace::with_manifest(&numbered_jobs(2)), Service::slow());
    let said = here.run(&slow, &["--deadline", LEFT_AFTER]).ends_with(1).stdout;
    assert!(said.contains("active: j0, j1; the next run polls them"), "{said}");
    assert!(!said.contains("left for another run"), "{said}");
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
    let ended = here.run(&service, &[]).ends_with(7);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("the connection broke before the response came"), "{said}");
    assert!(!said.contains("SendRequest") && !said.contains("os error"), "{said}");
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    let resolve = here.shotlist(&["resolve", "m.yaml"]).ends_with(0);
    let unknown = here.shotlist(&["resolve", "m.yaml", "other", "--never-created"]).ends();
    for text in [said, plan, resolve.stdout, resolve.stderr, unknown.stderr] {
        assert!(!text.contains("MANIFEST"), "{text}");
    }
}

#[test]
fn quiet_run_names_a_doubt_of_another_batch() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(1)), losing_the_first());
    here.run(&service, &["--batch", "mon"]).ends_with(7);
    let ended = here.run(&service, &["--batch", "tue", "-q"]).ends_with(7);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("`shotlist resolve m.yaml --batch mon`") && said.contains("1 completed"), "{said}");
}

#[test]
fn status_of_a_found_task_shows_its_video() {
    let (here, service) = (Workspace::with_manifest(&numbered_jobs(1)), losing_the_first());
    here.run(&service, &[]).ends_with(7);
    let resolve = here.shotlist(&["resolve", "m.yaml", "j0", "--task", "t9", "--anyway"]);
    resolve.env("SHOTLIST_BASE_URL", &service.url()).env("SHOTLIST_API_KEY", "k").ends_with(0);
    here.run(&service, &[]).ends_with(0);
    let status = here.shotlist(&["status", "m.yaml", "-v"]).ends_with(0).stdout;
    assert!(status.contains("j0.mp4") && !status.contains("declared"), "{status}");
}

#[test]
fn tip_for_a_command_of_other_tools_comes_alone() {
    let here = Workspace::new();
    for (word, tip) in [("plan", "`shotlist run MANIFEST --plan`"), ("open", "`shotlist report MANIFEST`")] {
        let said = here.shotlist(&[word]).ends_with(2).stderr;
        assert!(said.contains(tip) && !said.contains("similar subcommand"), "{said}");
    }
}
