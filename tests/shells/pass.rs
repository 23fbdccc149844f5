//! The API key from `pass`, the password manager of many Unix users, which keeps it encrypted by `GnuPG`.

use std::process::Command;

use crate::support::{Service, Workspace};

#[test]
fn key_comes_from_a_password_manager() {
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n");
    let home = here.root().to_string_lossy().into_owned();
    let script = "set -e; gpg --batch --quiet --passphrase '' --quick-generate-key shotlist-test default default never
        pass init shotlist-test >/dev/null; printf 'key-of-acme\\nuser: content\\n' | pass insert --multiline video/acme >/dev/null";
    let made = Command::new("sh").args(["-c", script]).env("HOME", &home).output().expect("sh runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let service = Service::well();
    let run = ["run", "m.yaml", "--yes", "--no-download", "--base-url", &service.url()];
    let key = ("SHOTLIST_API_KEY_COMMAND", "pass show video/acme");
    here.shotlist(&run).env("HOME", &home).env(key.0, key.1).ends_with(0);
    assert!(service.asked().iter().all(|asked| asked.headers["authorization"] == "Bearer key-of-acme"));
    let stopped = Command::new("gpgconf").args(["--kill", "all"]).env("HOME", &home).status().expect("gpgconf runs");
    assert!(stopped.success());
}
