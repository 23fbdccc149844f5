//! Profiles: settings for an account, below the environment and the command line.

use crate::support::{Program, Service, Workspace};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

/// A workspace whose user has these profiles.
fn with_profiles(text: &str) -> Workspace {
    let here = Workspace::with_manifest(ONE_JOB).file("config/shotlist/profiles.toml", text);
    protect(&here, 0o600);
    here
}

fn protect(here: &Workspace, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = here.path("config/shotlist/profiles.toml");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

fn shotlist(here: &Workspace, args: &[&str]) -> Program {
    here.shotlist(args).env("XDG_CONFIG_HOME", &here.path("config").to_string_lossy())
}

#[test]
fn profile_has_less_say_than_environment_and_options() {
    let services = [Service::well(), Service::well(), Service::well()];
    let [of_profile, of_environment, of_option] = &services;
    let here = with_profiles(&format!(
        "[acme]\nbase_url = \"{}\"\napi_key_command = \"echo key-of-acme\"\nledger = \"acme.db\"\nmax_cost = 5\nheader = [\"X-Team=content\"]\n",
        of_profile.url()
    ));
    let quick = ["run", "m.yaml", "--first-poll", "0s", "--poll-interval", "50ms", "--no-download"];
    let run = |args: &[&str]| shotlist(&here, &[&quick, args].concat());
    let ended = run(&["--profile", "acme"]).ends_with(0);
    assert!(ended.stdout.contains("profile: acme"), "{}", ended.stdout);
    let asked = of_profile.asked();
    assert!(
        asked.iter().all(|asked| asked.headers["authorization"] == "Bearer key-of-acme"),
        "the command's first line"
    );
    assert!(here.path("acme.db").exists() && asked.iter().all(|asked| asked.headers["x-team"] == "content"));

    let again = ["--buy-again", "a", "--batch", "b", "--yes"];
    run(&again)
        .env("SHOTLIST_PROFILE", "acme")
        .env("SHOTLIST_BASE_URL", &of_environment.url())
        .env("SHOTLIST_API_KEY", "own")
        .ends_with(0);
    assert_eq!((of_environment.posts().len(), of_profile.posts().len()), (1, 1));
    assert!(of_environment.asked().iter().all(|asked| asked.headers["authorization"] == "Bearer own"));

    let again = ["--buy-again", "a", "--batch", "c", "--yes", "--profile", "acme", "--base-url", &of_option.url()];
    run(&again).env("SHOTLIST_BASE_URL", &of_environment.url()).ends_with(0);
    assert_eq!((of_option.posts().len(), of_environment.posts().len()), (1, 1));

    let plan = run(&["--plan", "--profile", "acme", "--batch", "d"]).ends_with(0).stdout;
    assert!(plan.contains("profile: acme") && plan.contains("--profile acme"), "{plan}");
}

#[test]
fn shown_profile_says_what_overrides_it_and_keeps_secrets() {
    let here = with_profiles(
        "[acme]\nbase_url = \"https://api.example\"\nheader = [\"X-Key=secret\"]\nledger = \"postgres://u:secret@db.example/books\"\n",
    );
    let show = || shotlist(&here, &["profile", "show", "--profile", "acme"]);
    let shown = show().env("SHOTLIST_BASE_URL", "https://other.example").ends_with(0).stdout;
    assert!(shown.contains("base_url: https://api.example (overridden by SHOTLIST_BASE_URL)"), "{shown}");
    assert!(shown.contains("header: X-Key=*** (from the profile)"), "{shown}");
    assert!(shown.contains("ledger: postgres://u@db.example/books") && !shown.contains("secret"), "{shown}");
    shotlist(&here, &["profile", "show"]).fails_with("option-invalid", 2);
}

#[test]
fn unusable_profiles_are_refused() {
    let here = with_profiles("[acme]\nbase_url = \"https://api.example\"\n");
    let plan = |name: &str| shotlist(&here, &["run", "m.yaml", "--plan", "--profile", name]);
    plan("acme").ends_with(0);
    let refused = plan("acne").ends_with(2).stderr;
    assert!(refused.contains("found no profile `acne`") && refused.contains("found: acme"), "{refused}");
    protect(&here, 0o666);
    let refused = plan("acme").ends_with(2).stderr;
    assert!(refused.contains("other users can write"), "{refused}");
    for (text, words) in [
        ("[acme]\nbase_uri = \"x\"\n", "unknown setting `base_uri`"),
        ("[acme\n", "can't read profiles"),
        ("[acme]\nmax_cost = \"much\"\n", "--max-cost"),
    ] {
        here.write("config/shotlist/profiles.toml", text);
        protect(&here, 0o600);
        let refused = plan("acme").ends_with(2).stderr;
        assert!(refused.contains(words), "{refused}");
    }
    std::fs::remove_file(here.path("config/shotlist/profiles.toml")).expect("a file");
    let refused = plan("acme").ends_with(2).stderr;
    assert!(refused.contains("can't read profiles in"), "{refused}");
}

#[test]
fn key_command_that_fails_is_named_and_its_key_is_not() {
    let service = Service::well();
    let here = Workspace::with_manifest(ONE_JOB);
    let run = |command: &str| {
        let args = ["run", "m.yaml", "--yes", "--base-url", &service.url(), "--api-key-command", command];
        here.shotlist(&args).fails_with("key-invalid", 2).stderr
    };
    assert!(run("false").contains("`--api-key-command`: it ended with"));
    assert!(run("no-such-program").contains("can't start it"));
    assert!(run("").contains("it names no program"));
    let odd = run("printf 'secret\\twith a tab'");
    assert!(odd.contains("the output of `--api-key-command`") && !odd.contains("secret"), "{odd}");
    assert!(service.asked().is_empty());
}
