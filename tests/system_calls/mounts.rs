//! Small file systems and one directory under two names, in a mount namespace.

use serde_json::Value;

use super::support::{Ended, Service, Workspace, has_code, numbered_jobs};

/// Runs a script that may mount. `$0` is the program.
fn with_mounts(here: &Workspace, service: &Service, script: &str) -> Ended {
    let inside = script.replace('\'', "'\\''");
    here.script(service, &format!("unshare --mount sh -ec '{inside}' \"$0\"")).ends()
}

/// A full disk ends `ledger copy` with an error, or the copy is whole. Only a whole copy freezes the source.
#[test]
fn copy_to_small_disk_is_whole_or_refused() {
    let (service, here) = (Service::well(), Workspace::new());
    let words = "word ".repeat(250);
    here.write("m.yaml", numbered_jobs(60).replace("prompt: ", &format!("prompt: {words}")));
    here.run(&service, &["--no-download", "--concurrency", "60"]).ends_with(0);
    let size = std::fs::metadata(here.path(".shotlist/ledger.db")).expect("the ledger").len();
    let mut outcomes = [0, 0];
    for percent in (90..=310).step_by(20) {
        let room = size * percent / 100;
        let ended = with_mounts(
            &here,
            &service,
            &format!(
                "mkdir -p small; mount -t tmpfs -o size={room} tmpfs small
                 if \"$0\" ledger copy .shotlist/ledger.db small/new.db; then
                     \"$0\" ledger check --ledger small/new.db; \"$0\" limit set --unfreeze; exit 10
                 fi
                 test ! -e small/new.db"
            ),
        );
        assert!([Some(0), Some(10)].contains(&ended.code), "{percent} %: {ended:?}");
        outcomes[usize::from(ended.code == Some(10))] += 1;
        assert_eq!(here.ledger("SELECT frozen IS NULL FROM ledger"), [["1"]], "{percent} %");
    }
    assert!(outcomes.iter().all(|count| *count > 0), "one kind of outcome is missing: {outcomes:?}");
}

#[test]
fn archive_into_an_alias_of_its_directory_keeps_the_video() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    here.run(&service, &[]).ends_with(0);
    let ended = with_mounts(
        &here,
        &service,
        "mkdir alias; mount --bind shotlist-out/m alias; \"$0\" archive m.yaml j0 --to alias",
    );
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(has_code(&ended.stderr, "not-writable"), "{}", ended.stderr);
    assert!(here.path("shotlist-out/m/j0.mp4").exists());
    here.run(&service, &[]).ends_with(0);
    assert_eq!(here.report()["jobs"][0]["archived_at"], Value::Null);
}
