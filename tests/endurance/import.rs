//! A lost ledger of many jobs, made again from its report.

use crate::support::{Service, Workspace, numbered_jobs};

#[test]
fn report_of_946_jobs_restores_a_lost_ledger() {
    const JOBS: usize = 946;
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(JOBS)));
    here.run(&service, &["--concurrency", "64"]).ends_with(0);
    let (before, videos) = (here.report(), service.fetched().len());
    std::fs::remove_dir_all(here.path(".shotlist")).expect("a lost ledger");
    std::fs::copy(here.path("shotlist-out/m/report.json"), here.path("before.json")).expect("a copy");
    let import = here.shotlist(&["import", "m.yaml", "before.json"]);
    let stdout = import.with_service(&service.url()).ends_with(0).stdout;
    assert_eq!(stdout, "imported 946 tasks; nothing was submitted or spent\n");
    assert_eq!(here.planned(&[]), (0, "0.00".to_owned()));
    here.run(&service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), service.fetched().len()), (JOBS, videos), "its videos are here");
    assert_eq!(before["totals"]["spent_usd"], here.report()["totals"]["spent_usd"]);
}
