//! Profiles: settings for an account, below the environment and the command line.

use crate::support::{Answer, Program, Service, Workspace, json as answer};

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
fn environment_and_options_override_a_profile() {
    let services = [Service::well(), Service::well(), Service::well()];
    let [of_profile, of_environment, of_option] = &services;
    let here = with_profiles(&format!(
        "[acme]\nbase_url = \"{}\"\napi_key_command = \"echo key-of-acme\"\nledger = \"LEDGER\"\nheaders = [\"X-Team=content\"]\n",
        of_profile.url()
    ));
    let ledger = here.path("acme.db").to_string_lossy().into_owned();
    let file = here.path("config/shotlist/profiles.toml");
    std::fs::write(&file, std::fs::read_to_string(&file).expect("a file").replace("LEDGER", &ledger)).expect("a file");
    let quick = ["run", "m.yaml", "--first-poll", "0s", "--poll-interval", "50ms", "--no-download"];
    let run = |args: &[&str]| shotlist(&here, &[&quick, args].concat());
    run(&["--profile", "acme"]).fails_with("no-consent", 3);
    let ended = run(&["--profile", "acme", "--yes"]).ends_with(0);
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
    assert!(
        of_environment.asked().iter().all(|asked| !asked.headers.contains_key("x-team")),
        "a header of the account"
    );

    let again = ["--buy-again", "a", "--batch", "c", "--yes", "--profile", "acme", "--base-url", &of_option.url()];
    run(&again).env("SHOTLIST_BASE_URL", &of_environment.url()).env("SHOTLIST_API_KEY", "own").ends_with(0);
    assert_eq!((of_option.posts().len(), of_environment.posts().len()), (1, 1));

    let plan = run(&["--plan", "--profile", "acme", "--batch", "d"]).ends_with(0).stdout;
    assert!(plan.contains("profile: acme") && plan.contains("--profile acme"), "{plan}");
    // The URL of one account never gets the key of another.
    for (variable, value) in [("SHOTLIST_BASE_URL", &*of_option.url()), ("SHOTLIST_API_KEY", "own")] {
        let refused = run(&["--profile", "acme", "--yes", "--batch", "e"]).env(variable, value).ends_with(2).stderr;
        assert!(refused.contains("must be of one account"), "{refused}");
    }
    let asked = of_profile.asked().len();
    // The simulator keeps away from the ledger of real money.
    run(&["--profile", "acme", "--sandbox"]).ends_with(0);
    assert!(here.path(".shotlist/sandbox.db").exists() && of_profile.asked().len() == asked);
    assert_eq!(of_option.posts().len(), 1);
}

#[test]
fn limit_of_a_profile_holds_and_is_no_consent() {
    let service = Service::well();
    let here = with_profiles("[acme]\nmax_cost = 0.90\n");
    let two = "version: 1\nbudget: { run: 9 }\ndefaults: { model: alpha-2, prompt: a }\njobs: [{ id: a }, { id: b, extra: { seed: 1 } }]\n";
    here.write("m.yaml", two);
    let run = |args: &[&str]| {
        let quick = ["run", "m.yaml", "--first-poll", "0s", "--poll-interval", "50ms", "--no-download"];
        let program = shotlist(&here, &[&quick, args].concat()).env("SHOTLIST_PROFILE", "acme");
        program.env("SHOTLIST_BASE_URL", &service.url()).env("SHOTLIST_API_KEY", "k")
    };
    let unlimited = two.replace("budget: { run: 9 }\n", "");
    here.write("m.yaml", &unlimited);
    run(&["--first", "1"]).fails_with("no-consent", 3);
    here.write("m.yaml", two);
    let refused = run(&[]).fails_with("over-limit", 3);
    assert!(refused.stderr.contains("profile.max_cost"), "{}", refused.stderr);
    assert!(service.posts().is_empty());
    // One of the manifest that is lower holds.
    here.write("m.yaml", two.replace("run: 9", "run: 0.5"));
    assert!(run(&["--first", "1"]).ends_with(3).stderr.contains("budget.run"));
    here.write("m.yaml", two);
    run(&["--first", "1"]).ends_with(0);
    run(&["--max-cost", "2.00"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn statements_of_a_profile_are_about_its_own_service() {
    let failing = || {
        Service::scripted(|asked| match (asked.method.as_str(), asked.earlier) {
            ("POST", 0) => answer(500, &serde_json::json!({ "error": "busy" })),
            _ => Answer::Well,
        })
    };
    let [own, other] = [failing(), failing()];
    let here = with_profiles(&format!("[acme]\nbase_url = \"{}\"\nretry_server_errors = true\n", own.url()));
    let run = |batch: &str| {
        let quick = ["run", "m.yaml", "--yes", "--first-poll", "0s", "--poll-interval", "50ms", "--no-download"];
        let program = shotlist(&here, &[&quick[..], &["--profile", "acme", "--batch", batch]].concat());
        program.env("SHOTLIST_API_KEY", "k")
    };
    run("a").ends_with(0);
    // The same URL in other words is no other one.
    run("b").env("SHOTLIST_BASE_URL", &format!("{}/", own.url())).ends_with(0);
    let refused = run("c").env("SHOTLIST_BASE_URL", &other.url()).ends_with(2).stderr;
    assert!(refused.contains("is about its own base URL"), "{refused}");
    assert_eq!((own.posts().len(), other.posts().len()), (3, 0));
}

#[test]
fn catalog_of_a_profile_has_models_of_its_gateway() {
    let here = with_profiles("");
    let catalog = here.path("ours.yaml");
    here.write("ours.yaml", "version: 1\nprices_taken_on: 9999-01-01\nmodels: { ours: { family: alpha, price: { per: request, usd: '0.50' } } }\n");
    here.write("config/shotlist/profiles.toml", format!("[acme]\ncatalog = \"{}\"\n", catalog.display()));
    here.write("m.yaml", ONE_JOB.replace("alpha-2", "ours"));
    let plan = |args: &[&str]| shotlist(&here, &[&["run", "m.yaml", "--plan"], args].concat());
    assert!(plan(&["--profile", "acme"]).ends_with(0).stdout.contains("$0.50"));
    plan(&[]).ends_with(2);
    // Nor for another service, also where a printed command names it.
    let own = format!("[acme]\nbase_url = \"https://gw.example\"\ncatalog = \"{}\"\n", catalog.display());
    here.write("config/shotlist/profiles.toml", own);
    for named in [&[][..], &["--catalog", &catalog.to_string_lossy()]] {
        let args = [&["--profile", "acme", "--base-url", "https://other.example"][..], named].concat();
        assert!(plan(&args).ends_with(2).stderr.contains("`catalog` of profile `acme` is about its own base URL"));
    }
}

#[test]
fn shown_profile_says_what_overrides_it_and_keeps_secrets() {
    let here = with_profiles(
        "[acme]\nbase_url = \"https://api.example\"\nheaders = [\"X-Key=hushhush\"]\nledger = \"postgres://u:hushhush@db.example/books\"\n",
    );
    let show = || shotlist(&here, &["profile", "show", "--profile", "acme"]);
    let shown = show().env("SHOTLIST_BASE_URL", "https://other.example").ends_with(0).stdout;
    assert!(shown.contains("base_url: https://api.example (overridden by SHOTLIST_BASE_URL)"), "{shown}");
    assert!(shown.contains("headers: X-Key=*** (overridden by SHOTLIST_BASE_URL)"), "{shown}");
    assert!(shown.contains("ledger: postgres://u@db.example/books") && !shown.contains("hushhush"), "{shown}");
    shotlist(&here, &["profile", "show"]).fails_with("option-invalid", 2);
    for args in [&["run", "--help"][..], &["spend", "-h"], &["ledger", "--help"]] {
        let help = shotlist(&here, args).env("SHOTLIST_PROFILE", "acme").ends_with(0).stdout;
        assert!(!help.contains("hushhush"), "{help}");
    }
}

#[test]
fn unusable_profiles_are_refused() {
    let here = with_profiles("[acme]\nbase_url = \"https://api.example\"\n");
    let plan = |name: &str| shotlist(&here, &["run", "m.yaml", "--plan", "--profile", name]);
    plan("acme").ends_with(0);
    let refused = plan("acne").ends_with(2).stderr;
    assert!(refused.contains("found no profile `acne`") && refused.contains("found: acme"), "{refused}");
    protect(&here, 0o644);
    let refused = plan("acme").ends_with(2).stderr;
    assert!(refused.contains("other users can read or write"), "{refused}");
    // What needs no profile works without it.
    shotlist(&here, &["--version"]).env("SHOTLIST_PROFILE", "acne").ends_with(0);
    shotlist(&here, &["run", "--help"]).env("SHOTLIST_PROFILE", "acne").ends_with(0);
    for (text, words) in [
        ("[acme]\nbase_uri = \"x\"\n", "unknown setting `base_uri`"),
        ("[acme\n", "can't read profiles"),
        ("[acme]\nledger = \"secret\"\nledger = \"secret\"\n", "line 3"),
        ("[acme]\nmax_cost = \"much\"\n", "`max_cost` of profile `acme` must be an amount in USD"),
        ("[acme]\nretry_server_errors = \"yes\"\n", "must be true or false"),
        ("[acme]\ncatalog = \"ours.yaml\"\n", "must be an absolute path"),
        ("[acme]\nreports = \"postgres://u:secret@h/x\"\n", "must be an absolute path"),
        ("[acme]\nheaders = \"X-Key=secret\"\n", "`headers` of profile `acme` requires `base_url` beside it"),
        ("[acme]\nledger = \"acme.db\"\n", "must be an absolute path or a database"),
        ("[acme]\nbase_url = [\"a\", \"b\"]\n", "must be a string"),
    ] {
        here.write("config/shotlist/profiles.toml", text);
        protect(&here, 0o600);
        let refused = plan("acme").ends_with(2).stderr;
        assert!(refused.contains(words) && !refused.contains("secret"), "{refused}");
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
