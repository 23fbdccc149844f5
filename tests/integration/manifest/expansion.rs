//! The jobs of a manifest: combinations, takes, prompts in files, files, faces. And what an edit of it buys: exactly the
//! jobs that are new.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shotlist::catalog::Catalog;
use shotlist::domain::{
    Account, Attempt, AttemptId, AttemptState, Field, Fingerprint, History, Job, JobId, Request, TaskId,
};
use shotlist::manifest::{Options, load};

use crate::support::fake::plan_of;
use crate::support::{Service, Simulator, Workspace, has_code};

/// The plan of a manifest as data.
fn plan(here: &Workspace) -> Value {
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json", "-q"]).ends_with(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

fn ids(plan: &Value) -> Vec<String> {
    let jobs = plan["jobs"].as_array().expect("jobs");
    jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn rows_matrix_and_takes_multiply_and_prompts_stand_in_files() {
    let manifest = "
version: 1
vars: { brand: Acme, greetings: { de: Hallo, en: Hello } }
defaults: { model: beta-2.0-lite, takes: 1 }
jobs:
  - id: \"{{ row.sku }}-{{ lang }}-{{ duration }}\"
    for_each: [{ sku: mug }, { sku: lamp }]
    matrix:
      lang: [de, en]
      duration: [5, 10]
      exclude: [{ lang: en, duration: 10 }]
    prompt_file: \"prompts/{{ row.sku }}.txt\"
    takes: 2
";
    let here = Workspace::with_manifest(manifest);
    std::fs::create_dir(here.path("prompts")).expect("a directory");
    here.write("prompts/mug.txt", "{{ greetings[lang] }} from {{ brand }}, {{ duration }} s\n");
    here.write("prompts/lamp.txt", "A lamp\n");
    let plan = plan(&here);
    assert_eq!(
        ids(&plan),
        [
            "mug-de-5",
            "mug-de-5.2",
            "mug-de-10",
            "mug-de-10.2",
            "mug-en-5",
            "mug-en-5.2",
            "lamp-de-5",
            "lamp-de-5.2",
            "lamp-de-10",
            "lamp-de-10.2",
            "lamp-en-5",
            "lamp-en-5.2",
        ]
    );
    assert_eq!(plan["jobs"][2]["request"]["prompt"], "Hallo from Acme, 10 s");
    assert_eq!(plan["jobs"][2]["request"], plan["jobs"][3]["request"], "takes ask for the same");
    assert_eq!(plan["jobs"][4]["request"]["prompt"], "Hello from Acme, 5 s");
    assert_eq!(plan["jobs"][6]["request"]["prompt"], "A lamp");
    assert_eq!(plan["totals"]["cost_usd"], "60.00");
}

const FACES: &str = "
version: 1
faces: { anna: { review: approved }, ben: { review: pending } }
defaults: { model: beta-2.0-lite, face: ben }
jobs:
  - { id: a, face: anna, prompt: Anna waves }
  - { id: b1, prompt: Ben waves }
  - { id: b2, prompt: Ben walks }
  - { id: plain, model: alpha-2, prompt: A crane }
";

#[test]
fn job_is_held_until_its_face_is_approved() {
    let (service, here) = (Service::well(), Workspace::with_manifest(FACES));
    let before = plan(&here);
    let actions: Vec<&str> =
        before["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["action"].as_str()).collect();
    assert_eq!(actions, ["submit", "hold", "hold", "submit"], "alpha-2 has no faces, so the default is passed over");
    assert_eq!((&before["totals"]["held"], &before["totals"]["face_reviews_usd"]), (&2.into(), &"0.20".into()));
    assert_eq!(before["totals"]["cost_usd"], "4.65", "what is held is not bought");

    here.run(&service, &[]).ends_with(5);
    assert_eq!(here.states(), ["completed", "held", "held", "completed"]);
    here.run(&service, &[]).ends_with(5);
    assert_eq!(service.posts().len(), 2);
    here.write("m.yaml", FACES.replace("pending", "approved"));
    here.run(&service, &[]).ends_with(0);
    assert_eq!((here.states(), service.posts().len()), (vec!["completed".to_owned(); 4], 4));
}

/// A manifest as a team thinks of it: entries with a matrix, rows and takes.
#[derive(Clone, Debug)]
struct Team {
    entries: Vec<Entry>,
    style: Style,
}

#[derive(Clone, Debug)]
struct Entry {
    name: char,
    langs: Vec<u8>,
    rows: Vec<u8>,
    takes: u8,
    tag: u8,
}

/// Facts outside a purchase.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each a choice of its own")]
struct Style {
    flow: bool,
    comments: bool,
    quotes: bool,
    reversed: bool,
    files: bool,
}

impl Team {
    fn yaml(&self) -> String {
        let mut text = String::from("version: 1\nname: team\ndefaults: { model: alpha-2 }\njobs:\n");
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        if self.style.reversed {
            entries.reverse();
        }
        for entry in entries {
            let list = |numbers: &[u8]| numbers.iter().map(|n| format!("l{n}")).collect::<Vec<_>>().join(", ");
            let rows: Vec<String> = entry.rows.iter().map(|n| format!("{{ n: r{n} }}")).collect();
            let id = format!("\"{}-{{{{ lang }}}}-{{{{ row.n }}}}\"", entry.name);
            let prompt = format!("{} in {{{{ lang }}}} for {{{{ row.n }}}}", entry.name);
            let prompt = if self.style.quotes { format!("'{prompt}'") } else { format!("\"{prompt}\"") };
            let fields = [
                format!("id: {id}"),
                format!("matrix: {{ lang: [{}] }}", list(&entry.langs)),
                format!("for_each: [{}]", rows.join(", ")),
                format!("takes: {}", entry.takes),
                format!("tags: [t{}]", entry.tag),
                format!("prompt: {prompt}"),
            ];
            let mut fields = fields.to_vec();
            if self.style.files {
                fields.push("file: \"all/{{ id }}.mp4\"".to_owned());
            }
            if self.style.comments {
                text.push_str("  # what this is\n");
            }
            if self.style.flow {
                let _infallible = writeln!(text, "  - {{ {} }}", fields.join(", "));
            } else {
                let _infallible = writeln!(text, "  - {}", fields.join("\n    "));
            }
        }
        text
    }

    fn jobs(&self) -> Vec<Arc<Job>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("m.yaml");
        std::fs::write(&path, self.yaml()).expect("a manifest");
        let options =
            Options { path: &path, set: &[], batch: None, now: Timestamp::UNIX_EPOCH, root: None, secret: None };
        let loaded = load(&options, Catalog::embedded());
        assert_eq!(loaded.diagnostics, [], "{}", self.yaml());
        loaded.manifest.expect("a manifest").jobs
    }
}

/// The history of a batch with only completed jobs.
fn completed(jobs: &[Arc<Job>]) -> History {
    let account = Account { service: "s".into(), key: "k".into() };
    let attempt = |(number, job): (i64, &Arc<Job>)| {
        let normalized = Request::normalized(&job.spec);
        let (id, at) = (AttemptId(number), Timestamp::UNIX_EPOCH);
        Attempt {
            state: AttemptState::Completed,
            task: TaskId::new(format!("t{number}")).map(Into::into),
            video_url: Some("https://v.example/x.mp4".into()),
            ..Attempt::new(id, job.purchase.clone(), normalized, account.clone(), at)
        }
    };
    History::new((0..).zip(jobs).map(attempt).collect())
}

/// The ids that a run would pay for, in the light of this history.
fn bought(jobs: &[Arc<Job>], history: &History) -> BTreeSet<String> {
    let plan = plan_of(jobs, history);
    let bought = plan.jobs.iter().filter(|planned| planned.action.buys());
    bought.map(|planned| planned.job.id().to_string()).collect()
}

fn style() -> impl Strategy<Value = Style> {
    any::<(bool, bool, bool, bool, bool)>().prop_map(|(flow, comments, quotes, reversed, files)| Style {
        flow,
        comments,
        quotes,
        reversed,
        files,
    })
}

fn team() -> impl Strategy<Value = Team> {
    let numbers = || prop::collection::btree_set(0..6_u8, 1..4).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    let entry = (numbers(), numbers(), 1..4_u8, 0..3_u8);
    (prop::collection::vec(entry, 1..4), style()).prop_map(|(entries, style)| Team {
        entries: ('a'..)
            .zip(entries)
            .map(|(name, (langs, rows, takes, tag))| Entry { name, langs, rows, takes, tag })
            .collect(),
        style,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// More takes, added values and rows, another order, new tags, comments, quotes, layout, and file names in one edit: only jobs
    /// with a new ID are bought.
    #[test]
    fn edit_buys_exactly_the_new_jobs(
        before in team(),
        (which, takes, lang, row, tag) in (0..3_usize, 0..3_u8, prop::option::of(6..9_u8), prop::option::of(6..9_u8), 0..3_u8),
        style in style(),
    ) {
        let mut after = before.clone();
        after.style = style;
        let index = which % after.entries.len();
        let entry = &mut after.entries[index];
        entry.takes += takes;
        entry.langs.extend(lang);
        entry.langs.reverse();
        entry.rows.extend(row);
        entry.rows.reverse();
        entry.tag = tag;
        let (old, new) = (before.jobs(), after.jobs());
        let ids = |jobs: &[Arc<Job>]| jobs.iter().map(|job| job.id().to_string()).collect::<BTreeSet<_>>();
        let expected: BTreeSet<String> = ids(&new).difference(&ids(&old)).cloned().collect();
        prop_assert_eq!(bought(&new, &completed(&old)), expected);
        // Taking things away buys nothing, and bringing them back neither.
        prop_assert_eq!(bought(&old, &completed(&new)), BTreeSet::new());
    }

    /// Another prompt for one job pays for that job again, and for no other.
    #[test]
    fn edited_prompt_buys_its_job_again(team in team(), which in any::<prop::sample::Index>()) {
        let jobs = team.jobs();
        let edited: &JobId = jobs[which.index(jobs.len())].id();
        // As if it had been another request when it was bought.
        let attempts = completed(&jobs).attempts().cloned().map(|mut attempt| {
            if *attempt.job() == *edited {
                attempt.purchase.request = Request::stored("{}".into(), Fingerprint::stored("other".into()));
            }
            attempt
        }).collect();
        prop_assert_eq!(bought(&jobs, &History::new(attempts)), BTreeSet::from([edited.to_string()]));
    }
}

#[test]
fn default_of_each_family_is_known_to_templates() {
    let here = Workspace::with_manifest(
        "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: '{{ aspect_ratio }} {{ duration }}' }\n  - { id: b, model: beta-2.0-lite, prompt: '{{ size }} {{ duration }}' }\n",
    );
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let prompts = [0, 1].map(|job| plan["jobs"][job]["request"]["prompt"].as_str().expect("a prompt").to_owned());
    assert_eq!(prompts, ["16:9 12", "1280x720 5"]);
}

#[test]
fn catalog_adds_models_and_changes_prices() {
    let catalog = "version: 1
prices_taken_on: 2027-01-01
models:
  alpha-2: { family: alpha, price: { per: request, usd: '1.10' } }
  alpha-3: { family: alpha, price: { per: request, usd: '2.00' } }
";
    let manifest =
        "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: x }\n  - { id: b, model: alpha-3, prompt: x }\n";
    let here = Workspace::with_manifest(manifest).file("c.yaml", catalog);
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json", "--catalog", "c.yaml"]).ends_with(0);
    let plan: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(plan["totals"]["cost_usd"], "3.10");
    let simulator = Simulator::start(&here, &["--speed", "10000", "--catalog", "c.yaml"]);
    let run = ["run", "m.yaml", "--yes", "--catalog", "c.yaml"];
    here.shotlist(&run).with_service(simulator.url()).ends_with(0);
    assert_eq!(simulator.ledger()["total_usd"], "3.10");
    here.write("c.yaml", "version: 1\n");
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--catalog", "c.yaml"]).ends_with(2);
    assert!(has_code(&ended.stderr, "catalog-invalid"), "{}", ended.stderr);
}

#[test]
fn manifest_reads_its_plain_files_and_never_the_key() {
    let prompt = |path: &str| format!("version: 1\njobs: [{{ id: a, model: alpha-2, prompt_file: \"{path}\" }}]\n");
    let rows = |path: &str| {
        format!("version: 1\njobs: [{{ id: a, for_each: \"{path}\", model: alpha-2, prompt: \"{{{{ row }}}}\" }}]\n")
    };
    let (outside, here) = (Workspace::new().file("x.txt", "elsewhere"), Workspace::new().file("key.txt", "secret-key"));
    std::os::unix::fs::symlink(outside.path("x.txt"), here.path("link.txt")).expect("a link");
    let elsewhere = outside.path("x.txt").display().to_string();
    let refused = |manifest: &str| {
        here.write("m.yaml", manifest);
        let run = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]);
        let run = run.env("SHOTLIST_API_KEY", "secret-key").env("SHOTLIST_API_KEY_FILE", "key.txt");
        let ended = run.ends_with(2).lacks(&["secret-key"]);
        ended.stdout + &ended.stderr
    };
    std::fs::hard_link(here.path("key.txt"), here.path("other.txt")).expect("a link");
    for path in ["/proc/self/environ", "/dev/stdin", "key.txt", "other.txt"] {
        assert!(has_code(&refused(&prompt(path)), "unreadable"), "{path}");
        assert!(has_code(&refused(&rows(path)), "unreadable"), "{path}");
    }
    for path in [elsewhere.as_str(), "link.txt"] {
        assert!(has_code(&refused(&prompt(path)), "unreadable"), "{path}");
    }
}

#[test]
fn empty_cell_means_the_default_everywhere() {
    let manifest = "
version: 1
faces: { anna: { review: approved } }
defaults: { model: beta-2.0-lite }
jobs:
  - id: \"{{ row.id }}\"
    for_each: [{ id: a, n: null, f: \"\", m: \"\", s: null }, { id: b, n: 6, f: x/b.mp4, m: beta-2.0-lite-fast, s: 720x1280 }]
    model: \"{{ row.m }}\"
    size: \"{{ row.s }}\"
    duration: \"{{ row.n }}\"
    takes: \"{{ row.n }}\"
    face: \"{{ row.f and 'anna' }}\"
    file: \"{{ row.f and row.f ~ take }}\"
    prompt: x
";
    let plan = plan(&Workspace::with_manifest(manifest));
    assert_eq!(ids(&plan), ["a", "b", "b.2", "b.3", "b.4", "b.5", "b.6"]);
    let request = |job: usize| plan["jobs"][job]["request"].to_string();
    assert_eq!(request(0), r#"{"duration":5,"model":"beta-2.0-lite","prompt":"x","size":"1280x720"}"#);
    let other = r#"{"duration":6,"model":"beta-2.0-lite-fast","prompt":"x","size":"720x1280"}"#;
    assert_eq!(request(1), other);
}

/// A field that is accepted and not sent would be bought as something else.
#[test]
fn field_reaches_request_from_every_source() {
    let cases = [
        ("model", json!("alpha-2"), json!({ "prompt": "x" })),
        ("prompt", json!("a cat"), json!({ "model": "alpha-2" })),
        ("duration", json!(6), json!({ "model": "beta-2.0-lite", "prompt": "x" })),
        ("aspect_ratio", json!("9:16"), json!({ "model": "alpha-2", "prompt": "x" })),
        ("size", json!("720x1280"), json!({ "model": "beta-2.0-lite", "prompt": "x" })),
        ("image", json!("https://pictures.example/a.png"), json!({ "model": "alpha-2", "prompt": "x" })),
    ];
    let with = |job: &Value, field: &str, value: Value| {
        let mut job = job.clone();
        job["id"] = "a".into();
        job[field] = value;
        job
    };
    for (field, value, job) in &cases {
        let plain = json!({ "jobs": [with(job, field, value.clone())] });
        let default = json!({ "defaults": { *field: value }, "jobs": [with(job, "id", "a".into())] });
        let template = json!({ "vars": { "v": value }, "jobs": [with(job, field, "{{ v }}".into())] });
        let mut row = with(job, field, "{{ row.v }}".into());
        row["for_each"] = json!([{ "v": value }]);
        let mut matrix = with(job, "matrix", json!({ *field: [value] }));
        matrix["id"] = "a".into();
        let mut sources = vec![plain, default, template, json!({ "jobs": [row] })];
        // A list of images is not an axis.
        sources.extend((*field != "image").then(|| json!({ "jobs": [matrix] })));
        for mut manifest in sources {
            manifest["version"] = 1.into();
            let plan = plan(&Workspace::with_manifest(&manifest.to_string()));
            assert_eq!(&plan["jobs"][0]["request"][*field], value, "{manifest}");
        }
    }
    let tried: Vec<&str> = cases.iter().map(|(field, ..)| *field).collect();
    // `uses_likeness` is only for the user, and is not sent.
    let all: Vec<&str> = Field::ALL.iter().filter(|field| **field != Field::Face).map(|field| field.name()).collect();
    assert_eq!(tried, all);
}

/// A plan needs no key, so it does not matter whether the file of the key can be read.
#[test]
fn unreadable_key_file_stops_no_plan() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = Workspace::with_manifest("version: 1\njobs: [{ id: a, model: alpha-2, prompt_file: p.txt }]\n")
        .file("p.txt", "A dog")
        .file("key.txt", "secret-key");
    std::fs::set_permissions(here.path("key.txt"), std::fs::Permissions::from_mode(0o000)).expect("no permission");
    here.shotlist(&["run", "m.yaml", "--plan"]).env("SHOTLIST_API_KEY_FILE", "key.txt").ends_with(0);
}

/// A key that is left out would change what is bought.
#[test]
fn nested_keys_of_extra_are_sent_or_refused() {
    let manifest = |extra: &str| {
        Workspace::with_manifest(&format!(
            "version: 1\njobs: [{{ id: a, model: alpha-2, prompt: x, extra: {{ tone: {extra} }} }}]\n"
        ))
    };
    let sent = plan(&manifest("{ true: b, 1: c, d: ['{{ id }}', !mark '{{ id }}', null] }"));
    let tone = sent["jobs"][0]["request"]["tone"].to_string();
    assert_eq!(tone, r#"{"1":"c","d":["a",{"!mark":"a"},null],"true":"b"}"#);
    for extra in [
        "{ null: b, c: d }",
        "{ [a]: b }",
        "{ e: { ? { a: b } : c } }",
        "{ .inf: a }",
        "!mark .nan",
        "{ 1: a, '1': b }",
    ] {
        manifest(extra).shotlist(&["run", "m.yaml", "--plan"]).fails_with("extra-not-json", 2);
    }
}
