//! Killed processes, and the conclusions of the next start.

use std::sync::atomic::Ordering;

use crate::support::{Ended, Service, TWO_JOBS, Workspace, has_code, kill, wait_until};

#[test]
fn active_tasks_are_polled_after_a_kill() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(TWO_JOBS));
    let child = here.run(&service, &[]).starts();
    wait_until("both tasks are in progress", || here.states_in_ledger() == ["in_progress", "in_progress"]);
    kill(&child, "-KILL");
    assert_eq!(Ended::wait_for(child).code, None, "it was not killed");
    // The reports of the killed run are whole.
    assert_eq!(here.report()["totals"]["jobs"], 2);

    done.store(true, Ordering::SeqCst);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 2, "a task was paid for twice");
    assert_eq!(here.states(), ["completed", "completed"]);
}

#[test]
fn kill_before_the_response_leaves_a_doubt() {
    let (service, release) = Service::holding("a dog");
    let here = Workspace::with_manifest(TWO_JOBS);
    let child = here.run(&service, &[]).starts();
    wait_until("the first job is completed", || here.states_in_ledger().contains(&"completed".to_owned()));
    wait_until("the second is sent", || service.posts().len() == 2);
    assert!(here.states_in_ledger().contains(&"intended".to_owned()), "{:?}", here.states_in_ledger());
    kill(&child, "-KILL");
    assert_eq!(Ended::wait_for(child).code, None, "it was not killed");
    release.store(true, Ordering::SeqCst);

    let ended = here.run(&service, &[]).ends_with(7);
    assert!(has_code(&ended.stderr, "recovered"), "{}", ended.stderr);
    assert_eq!(here.states(), ["completed", "in_doubt"]);
    assert_eq!(service.posts().len(), 2, "a doubtful job was sent again");
    assert_eq!(here.report()["totals"]["at_risk_usd"], "7.50");
}

#[test]
fn killed_sandbox_run_resumes() {
    let here = Workspace::with_manifest(TWO_JOBS);
    let run = || here.shotlist(&["run", "m.yaml", "--sandbox", "--ledger", ".shotlist/ledger.db"]);
    let child = run().starts();
    here.waits_for_active_tasks(2);
    kill(&child, "-KILL");
    assert_eq!(Ended::wait_for(child).code, None, "it was not killed");
    run().ends_with(0);
    assert_eq!(here.states_in_ledger(), ["completed", "completed"]);
}

#[test]
fn one_runner_for_a_batch_at_a_time() {
    let ((service, done), here) = (Service::slow(), Workspace::with_manifest(TWO_JOBS));
    let child = here.run(&service, &[]).starts();
    wait_until("both tasks are accepted", || service.posts().len() == 2);
    let ended = here.run(&service, &[]).fails_with("batch-locked", 75).lacks(&["--batch"]);
    assert!(ended.stderr.contains(&format!("process {}", child.id())), "{}", ended.stderr);
    // Another batch of the same ledger is another matter.
    done.store(true, Ordering::SeqCst);
    here.run(&service, &["--batch", "other"]).ends_with(0);
    assert_eq!(Ended::wait_for(child).code, Some(0));
    assert_eq!(service.posts().len(), 4);
}
