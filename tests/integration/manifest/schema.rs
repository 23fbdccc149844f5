//! The schemas in a real validator: they accept the program's output, and the same manifests as the program.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Service, Workspace};

fn validator(of: &str) -> jsonschema::Validator {
    let schema = Workspace::new().shotlist(&["schema", of]).ends_with(0).stdout;
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    jsonschema::validator_for(&schema).expect("a schema")
}

#[track_caller]
fn assert_fits(validator: &jsonschema::Validator, value: &Value, what: &str) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(errors, [""; 0], "{what}");
}

fn yaml(text: &str) -> Value {
    let mut value: serde_yaml::Value = serde_yaml::from_str(text).expect("YAML");
    value.apply_merge().expect("merge keys");
    serde_json::to_value(value).expect("JSON")
}

#[test]
fn every_example_and_the_starter_fit_the_schema() {
    let validator = validator("manifest");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut seen = 0;
    let spring = fs::read_dir(examples.join("spring")).expect("the example");
    for entry in fs::read_dir(&examples).expect("the examples").chain(spring) {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            assert_fits(&validator, &yaml(&fs::read_to_string(&path).expect("a file")), &path.display().to_string());
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen} examples");
    let here = Workspace::new();
    here.shotlist(&["init"]).ends_with(0);
    assert_fits(&validator, &yaml(&fs::read_to_string(here.path("shotlist.yaml")).expect("a file")), "the starter");
    here.shotlist(&["run", "shotlist.yaml", "--plan"]).ends_with(0);
}

#[test]
fn schema_and_program_agree_about_manifests() {
    let validator = validator("manifest");
    let job = |fields: &str| format!("version: 1\nfaces: {{ anna: {{ review: approved }} }}\njobs: [{{ {fields} }}]\n");
    let good = [
        job("id: a, model: alpha-2, prompt: x"),
        job("id: a, model: alpha-2, image: [\"https://a/1\"], aspect_ratio: \"9:16\", duration: 12"),
        job("id: 7, model: beta-2.0-lite, prompt: x, size: 1280x720, duration: 10, face: anna, takes: 3, tags: new"),
        job("id: \"a-{{ model }}\", matrix: { model: [alpha-2, beta-2.0-lite] }, prompt: x"),
        job("id: \"a{{ row.n }}\", for_each: [{ n: 5 }], model: beta-2.0-lite, prompt: x, duration: \"{{ row.n }}\""),
        job("id: a, model: alpha-2, prompt: x, size: null, extra: { seed: 1 }, file: \"b/{{ id }}.mp4\""),
        "version: 1\nbudget: { run: 1.5, day: \"2\" }\ntimezone: UTC\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"
            .to_owned(),
    ];
    for text in good {
        assert_fits(&validator, &yaml(&text), &text);
        Workspace::with_manifest(&text).shotlist(&["run", "m.yaml", "--plan", "-q"]).ends();
    }
    let bad = [
        "version: 2\njobs: [{ id: a, model: alpha-2, prompt: x }]\n".to_owned(),
        "jobs: [{ id: a, model: alpha-2, prompt: x }]\n".to_owned(),
        "version: 1\n".to_owned(),
        "version: 1\njob: [{ id: a, model: alpha-2, prompt: x }]\n".to_owned(),
        "version: 1\nfaces: { anna: { review: maybe } }\njobs: [{ id: a, model: alpha-2, prompt: x }]\n".to_owned(),
        job("model: alpha-2, prompt: x"),
        job("id: a, model: alpha-3, prompt: x"),
        job("id: a, model: alpha-2, prompt: x, durration: 12"),
        job("id: a, model: alpha-2, prompt: x, duration: 11"),
        job("id: a, model: alpha-2, prompt: x, size: 1280x720"),
        job("id: a, model: alpha-2, prompt: x, aspect_ratio: \"1:1\""),
        job("id: a, model: alpha-2, prompt: x, face: anna"),
        job("id: a, model: beta-2.0-lite, prompt: x, aspect_ratio: \"16:9\""),
        job("id: a, model: beta-2.0-lite, prompt: x, duration: 11"),
        job("id: a, model: beta-2.0-lite, prompt: x, duration: \"5\""),
        job("id: a, model: beta-2.0-lite, prompt: x, image: \"https://a/1\""),
        job("id: a, model: beta-2.0-lite, prompt: x, size: big"),
        job(&format!("id: a, model: beta-2.0-lite, prompt: {}", "x".repeat(1501))),
        job("id: a, model: alpha-2, prompt: [x]"),
        job("id: a, model: alpha-2, prompt: x, takes: 0"),
        job("id: a, model: alpha-2, prompt: x, matrix: { lang: de }"),
        job("id: a, model: alpha-2, prompt: x, matrix: { lang: [] }"),
        job("id: a, model: alpha-2, prompt: x, extra: [seed]"),
    ];
    for text in bad {
        assert!(!validator.is_valid(&yaml(&text)), "an editor takes {text}");
        Workspace::with_manifest(&text).shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    }
}

#[test]
fn output_matches_its_schemas() {
    let manifest = "version: 1\nfaces: { b: { review: pending } }\nbudget: { run: 50 }\njobs:\n  - { id: a, model: alpha-2, prompt: x, tags: [t] }\n  - { id: b, model: beta-2.0-lite, prompt: y, face: b }\n  - { id: c, model: alpha-2, prompt: bad }\n";
    let here = Workspace::with_manifest(manifest);
    let service = Service::scripted(|asked| {
        if asked.submits("bad") {
            crate::support::json(500, &serde_json::json!({}))
        } else {
            crate::support::Answer::Well
        }
    });
    let plan = || here.shotlist(&["run", "m.yaml", "--plan", "--format", "json", "-q"]).ends_with(0).stdout;
    let plans = validator("plan");
    assert_fits(&plans, &serde_json::from_str(&plan()).expect("JSON"), "the plan before");
    here.run(&service, &[]).ends_with(7);
    assert_fits(&plans, &serde_json::from_str(&plan()).expect("JSON"), "the plan after");
    assert_fits(&validator("report"), &here.report(), "the report");
    let json = |args: &[&str], code: i32| -> Value {
        serde_json::from_str(&here.shotlist(args).ends_with(code).stdout).expect("JSON")
    };
    assert_fits(&validator("report"), &json(&["status", "m.yaml", "--format", "json"], 0), "the status");
    assert_fits(&validator("spend"), &json(&["spend", "--format", "json"], 0), "the books");
    here.write("rows.csv", "id,d\na,x\n");
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: \"{{ row.id }}\", for_each: rows.csv, model: alpha-2, duration: \"{{ row.d }}\" }]\n",
    );
    assert_fits(
        &validator("diagnostics"),
        &json(&["run", "m.yaml", "--plan", "--format", "json"], 2),
        "the diagnostics",
    );
}
