//! The examples for cron and clusters are valid there, and list the exit codes of the reference.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Service, Workspace, json, line_of};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    std::fs::read_to_string(path).expect("an example")
}

/// The variables of the crontab, and the commands of its entries: the run, and the metrics.
fn crontab(replaced: &[(&str, String)]) -> (BTreeMap<String, String>, [String; 2]) {
    let mut text = example("cron/crontab");
    for (old, new) in replaced {
        assert!(text.contains(old), "{old} is not in the crontab");
        text = text.replace(old, new);
    }
    let (mut settings, mut entries) = (BTreeMap::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once('=').filter(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')) {
            Some((name, value)) => drop(settings.insert(name.to_owned(), value.to_owned())),
            // The first five fields are the schedule, and a `%` would end the command.
            None => entries.push(line.splitn(6, [' ', '\t']).last().expect("a command").trim_start().to_owned()),
        }
    }
    assert!(!entries.concat().contains('%'), "{entries:?}");
    (settings, entries.try_into().expect("two entries"))
}

#[test]
fn crontab_pings_with_each_exit_code() {
    let here = Workspace::new().file("daily.yaml", example("daily.yaml")).file("etc/key", "k\n");
    let at = |path: &str| here.path(path).to_string_lossy().into_owned();
    let install = |name: &str, script: &str| {
        here.write(name, script);
        std::fs::set_permissions(here.path(name), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    };
    // Records the URL, which is its last argument.
    install("bin/curl", &format!("#!/bin/sh\nfor url; do :; done\necho \"$url\" >>'{}'\n", at("pings")));
    let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_shotlist"));
    install("bin/shotlist", &program);
    let refusing = Service::scripted(|_| json(400, &serde_json::json!({ "error": { "message": "not today" } })));
    let other_prompt =
        example("daily.yaml").replace("The sky over", "The gulls over").replace("day: 5.00", "day: 9.00");
    let settings_at = |service: &Service| {
        crontab(&[
            ("/usr/local/bin", at("bin")),
            ("/srv/videos", at("")),
            ("/etc/shotlist/key", at("etc/key")),
            ("/var/lib/node_exporter", at("")),
            ("https://video.example.com", service.url()),
        ])
    };
    let cron = |service: &Service, entry: usize| {
        let (settings, commands) = settings_at(service);
        assert!(settings["MAILTO"].contains('@') && settings["PATH"].ends_with(":/usr/bin:/bin"), "{settings:?}");
        let mut cron = std::process::Command::new("/bin/sh");
        cron.args(["-c", &commands[entry]]).env_clear().envs(&settings).env_remove("MAILTO").current_dir("/");
        cron.envs([("HOME", &*at("")), ("LOGNAME", "videos"), ("SHELL", "/bin/sh")]);
        // The test has no minutes.
        cron.envs([("SHOTLIST_FIRST_POLL", "0s"), ("SHOTLIST_POLL_FLOOR", "5ms")]);
        let output = cron.stdin(std::process::Stdio::null()).output().expect("sh runs");
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8"))
    };
    let well = Service::well();
    for _ in 0..2 {
        assert_eq!(cron(&well, 0), (Some(0), String::new()), "a success is silent");
    }
    here.write("daily.yaml", other_prompt);
    let (code, mail) = cron(&refusing, 0);
    assert_eq!(code, Some(1), "{mail}");
    insta::assert_snapshot!(line_of(&mail, "warning[rejected]"), @"warning[rejected]: sky was rejected, and costs nothing: the service rejected the submission (HTTP 400): not today");
    assert_eq!(cron(&well, 1), (Some(0), String::new()), "metrics");
    let metrics = std::fs::read_to_string(here.path("shotlist.prom")).expect("metrics");
    let completed = line_of(&metrics, "state=\"completed\"");
    assert!(completed.starts_with("shotlist_jobs{name=\"daily\",") && completed.ends_with(" 1"), "{completed}");
    here.write("daily.yaml", "jobs: nope");
    assert_eq!(cron(&well, 0).0, Some(2));
    install("bin/shotlist", "#!/bin/sh\nkill -KILL $$\n");
    assert_eq!(cron(&well, 0).0, Some(137));
    let pings = std::fs::read_to_string(here.path("pings")).expect("pings");
    let codes: Vec<&str> =
        pings.lines().filter_map(|url| url.strip_prefix("https://hc-ping.example.com/your-uuid/")).collect();
    assert_eq!(codes, ["0", "0", "1", "2", "137"]);
}

/// The exit codes in the table of the reference, each with its reaction.
fn documented() -> BTreeMap<u8, String> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reference/exit-codes.md"))
        .expect("the reference");
    let table = page.split_once("Code | Meaning | What to do").expect("the table").1;
    let rows = table.lines().skip(2).take_while(|line| line.split(" | ").count() > 1);
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows = cells.flat_map(|cells| {
        let codes: Vec<u8> = cells[0].split(", ").map(|code| code.parse().expect("a code")).collect();
        codes.into_iter().map(move |code| (code, cells[2].to_owned())).collect::<Vec<_>>()
    });
    rows.collect()
}

/// The reaction of a cluster job to each exit code.
fn actions(spec: &serde_yaml::Value) -> BTreeMap<u8, String> {
    let rules = spec["podFailurePolicy"]["rules"].as_sequence().expect("rules").clone();
    let mut actions = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule["onExitCodes"].is_mapping()) {
        assert_eq!(rule["onExitCodes"]["operator"], "In");
        for code in rule["onExitCodes"]["values"].as_sequence().expect("codes") {
            let code = u8::try_from(code.as_u64().expect("a number")).expect("a code");
            let action = rule["action"].as_str().expect("an action").to_owned();
            assert!(actions.insert(code, action).is_none(), "{code} twice");
        }
    }
    actions
}

#[test]
fn cluster_reacts_to_each_exit_code_like_the_table() {
    let yaml = |name: &str| serde_yaml::from_str::<serde_yaml::Value>(&example(name)).expect("YAML");
    let one = yaml("cron/kubernetes.yml")["spec"]["jobTemplate"]["spec"].clone();
    let several = yaml("machines/kubernetes.yml")["spec"].clone();
    for (spec, fails) in [(one, "FailJob"), (several, "FailIndex")] {
        let expected = documented().into_iter().filter(|(code, _)| *code != 0).map(|(code, what)| {
            let action = match what.split(':').next() {
                Some("retry") => "Count",
                Some("ignore") if code > 128 => "Ignore",
                // Another start would not help: the user must act, or nothing is wrong.
                Some("alert" | "ignore") => fails,
                other => panic!("{code}: {other:?}"),
            };
            (code, action.to_owned())
        });
        assert_eq!(actions(&spec), expected.collect());
    }
    let codes: Vec<u8> = documented().into_keys().collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 74, 75, 129, 130, 143]);
}

/// The words of the examples for several machines are those of the program: each plans.
#[test]
fn example_for_several_machines_is_a_valid_command() {
    let words = |list: &serde_yaml::Value| -> Vec<String> {
        list.as_sequence().expect("a list").iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
    };
    let yaml = |name: &str| serde_yaml::from_str::<serde_yaml::Value>(&example(name)).expect("YAML");
    let job = yaml("machines/kubernetes.yml");
    assert_eq!((&job["spec"]["completions"], &job["spec"]["completionMode"]), (&3.into(), &"Indexed".into()));
    let in_a_cluster = words(&job["spec"]["template"]["spec"]["containers"][0]["args"]);
    let composed = words(&yaml("machines/compose.yml")["services"]["runner"]["command"]);
    let unit = example("machines/shotlist@.service").replace("%i", "daily").replace("${CREDENTIALS_DIRECTORY}", "/run");
    let unit =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/shotlist ")).expect("a command");
    let unit = unit.split(' ').map(str::to_owned).collect();
    for command in [in_a_cluster, composed, unit] {
        let here = Workspace::new().file("daily.yaml", example("daily.yaml"));
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--plan"]).collect();
        here.shotlist(&words).ends_with(0);
    }
}

#[test]
fn spending_is_reported_from_any_directory() {
    let (service, here) = (Service::well(), Workspace::with_manifest(crate::support::TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    let manifest = here.path("m.yaml");
    let elsewhere = Workspace::new();
    let manifest = manifest.to_string_lossy();
    let ledger = here.path(".shotlist/ledger.db");
    for args in [["spend", &*manifest].as_slice(), &["spend", "--ledger", &ledger.to_string_lossy()]] {
        for by in ["day", "batch", "model"] {
            let books = elsewhere.shotlist(&[args, &["--by", by, "--format", "json"]].concat()).ends_with(0).stdout;
            let books: serde_json::Value = serde_json::from_str(&books).expect("JSON");
            assert_eq!(books["totals"]["spent_usd"], "11.25", "{by}: {books}");
        }
    }
    elsewhere.shotlist(&["spend"]).fails_with("ledger-missing", 2);
}
