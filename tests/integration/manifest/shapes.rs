//! `shape` for any family, lengths as people write them, and the images of a directory.

use std::fs;

use serde_json::{Value, json};

use crate::support::Workspace;

/// The requests of a plan, by job.
fn requests(here: &Workspace) -> Vec<Value> {
    let plan = here.plan(&[]);
    plan["jobs"].as_array().expect("jobs").iter().map(|job| job["request"].clone()).collect()
}

fn refused(here: &Workspace) -> String {
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).stderr
}

#[test]
fn shape_is_the_field_of_each_family() {
    let manifest = |shape: &str| {
        format!(
            "version: 1\ndefaults: {{ prompt: x{shape} }}\njobs:\n  - {{ id: '{{{{ model }}}}', matrix: {{ model: [alpha-2, beta-2.0-lite] }} }}\n  - {{ id: own, model: beta-2.0-lite, size: 1280x720 }}\n"
        )
    };
    let here = Workspace::with_manifest(&manifest(", shape: '9:16'"));
    let shaped = requests(&here);
    assert_eq!(
        (&shaped[0]["aspect_ratio"], &shaped[0]["size"], &shaped[1]["size"], &shaped[2]["size"]),
        (&json!("9:16"), &Value::Null, &json!("720x1280"), &json!("1280x720")),
        "a job's own size comes before a default shape"
    );
    here.write("m.yaml", manifest(", aspect_ratio: '9:16', size: 720x1280"));
    assert_eq!(requests(&here), shaped, "the same requests, so nothing is bought again");
    here.write("m.yaml", "version: 1\ndefaults: { model: alpha-2, prompt: x, aspect_ratio: '9:16' }\njobs:\n  - { id: 'a-{{ shape }}', matrix: { shape: [landscape] } }\n");
    let jobs = here.plan(&[])["jobs"].clone();
    assert_eq!((&jobs[0]["id"], &jobs[0]["request"]["aspect_ratio"]), (&json!("a-landscape"), &json!("16:9")));
}

#[test]
fn cells_of_shapes_and_lengths_are_understood() {
    let shapes = [
        ("16x9", "1280x720"),
        ("9/16", "720x1280"),
        ("9 by 16", "720x1280"),
        ("16:9 (landscape)", "1280x720"),
        ("1080x1920", "720x1280"),
        ("Portrait", "720x1280"),
        ("vertical", "720x1280"),
        ("Reel", "720x1280"),
        ("竖屏", "720x1280"),
        ("横屏", "1280x720"),
        ("Hochformat", "720x1280"),
        ("", "1280x720"),
    ];
    let lengths =
        [("0:05", 5), ("00:00:05", 5), ("5 s", 5), ("8 seconds", 8), ("5,0", 5), ("6.0", 6), ("7s", 7), ("", 5)];
    let mut csv = "shape,length\n".to_owned();
    for at in 0..shapes.len() {
        csv += &format!("\"{}\",\"{}\"\n", shapes[at].0, lengths[at % lengths.len()].0);
    }
    let here = Workspace::with_manifest("version: 1\njobs:\n  - { id: 'a{{ row_number }}', for_each: rows.csv, model: beta-2.0-lite, prompt: x, shape: '{{ row.shape }}', duration: '{{ row.length }}' }\n").file("rows.csv", csv);
    for (at, request) in requests(&here).iter().enumerate() {
        let wanted = (json!(shapes[at].1), json!(lengths[at % lengths.len()].1));
        assert_eq!((request["size"].clone(), request["duration"].clone()), wanted, "{:?}", shapes[at].0);
    }
    for (shape, length) in [
        ("square", "5"),
        ("1.78", "5"),
        ("Both", "5"),
        ("16:9 + 9:16", "5"),
        ("9:16 (landscape)", "5"),
        ("16:9", "1:60"),
        ("16:9", "5 cm"),
        ("16:9", "0:05:00"),
    ] {
        here.write("rows.csv", format!("shape,length\n{shape},{length}\n"));
        let (told, place) = (refused(&here), "rows.csv line 2");
        assert!(told.contains(place), "{shape}, {length}: {told}");
    }
}

#[test]
fn shape_beside_its_synonym_is_an_error() {
    let here = Workspace::with_manifest(
        "version: 1
defaults: { model: alpha-2, prompt: x }
jobs:
  - { id: a, shape: '9:16', aspect_ratio: '9:16' }
  - { id: b, model: beta-2.0-lite, shape: '9:16', size: 720x1280 }
  - { id: c, shape: square }
  - { id: 'd-{{ shape }}', matrix: { shape: [portrait] }, aspect_ratio: '16:9' }
  - { id: e, shape: '' }
",
    );
    insta::assert_snapshot!(refused(&here));
}

fn png(word: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", word.as_bytes()].concat()
}

const STILLS: &str = "version: 1\njobs:\n  - { id: '{{ row.stem }}', for_each: stills/*.png, model: alpha-2, image_file: '{{ row.file }}', prompt: '{{ row.text }}' }\n";

#[test]
fn each_image_of_a_directory_is_a_job_in_natural_order() {
    let mut here = Workspace::with_manifest(STILLS).file("stills/a2.txt", "A dog runs\n").file("stills/notes.md", "x");
    for name in ["a10.png", "a2.png", "a1.PNG", ".hidden.png", "deeper/a3.png"] {
        here = here.file(&format!("stills/{name}"), png(name));
    }
    let plan = here.plan(&[]);
    let jobs: Vec<_> =
        plan["jobs"].as_array().expect("jobs").iter().map(|job| (&job["id"], &job["request"]["prompt"])).collect();
    assert_eq!(
        jobs,
        [(&json!("a1"), &Value::Null), (&json!("a2"), &json!("A dog runs")), (&json!("a10"), &Value::Null)]
    );
    let told = |pattern: &str| {
        here.write("m.yaml", STILLS.replace("stills/*.png", pattern));
        refused(&here)
    };
    for (pattern, why) in [
        ("stills/*.webp", "no image matches `stills/*.webp`"),
        ("stills/*.txt", "no image matches"),
        ("none/*.png", "can't read the directory of `none/*.png`"),
        ("../*.png", "it is outside the manifest's directory"),
        ("/etc/*.png", "it is outside the manifest's directory"),
        ("s*/a1.png", "must have its pattern in the file name"),
        ("https://example.com/*.png", "can't read the directory"),
    ] {
        assert!(told(pattern).contains(why), "{pattern}: {}", told(pattern));
    }
    here.write("stills/A2.jpg", png("other"));
    insta::assert_snapshot!(told("stills/*"), @"
    error[no-rows]: `A2.jpg` and `a2.png` have the same name without their endings
     --> m.yaml:3:39
      |
    3 |   - { id: '{{ row.stem }}', for_each: stills/*, model: alpha-2, image_fil...
      |                                       ^^^^^^^^
      |
      = help: rename one, or narrow the pattern, such as `*.png`

    error[manifest-invalid]: `m.yaml` has 1 error
      note: nothing was submitted; nothing was spent
    ");
}

/// A link could lead to a private picture, which would then be uploaded.
#[cfg(unix)]
#[test]
fn links_among_the_images_of_a_directory_are_no_jobs() {
    let outside = Workspace::new().file("secret.png", png("secret"));
    let here = Workspace::with_manifest(STILLS).file("stills/a.png", png("a"));
    std::os::unix::fs::symlink(outside.path("secret.png"), here.path("stills/b.png")).expect("a link");
    assert_eq!(requests(&here).len(), 1);
    here.write("real/c.png", png("c"));
    std::os::unix::fs::symlink(here.path("real/c.png"), here.path("stills/c.png")).expect("a link");
    assert_eq!(requests(&here).len(), 2, "a link that stays inside is a job");
    fs::remove_dir_all(here.path("stills")).expect("removed");
    std::os::unix::fs::symlink(outside.root(), here.path("stills")).expect("a link");
    insta::assert_snapshot!(refused(&here), @"
    error[unreadable]: can't read the directory of `stills/*.png`: it is outside the manifest's directory; `--root DIR` allows more
     --> m.yaml:3:39
      |
    3 |   - { id: '{{ row.stem }}', for_each: stills/*.png, model: alpha-2, image...
      |                                       ^^^^^^^^^^^^
      |
      = help: check the path, which is relative to the manifest's directory, and the permissions

    error[manifest-invalid]: `m.yaml` has 1 error
      note: nothing was submitted; nothing was spent
    ");
}

#[test]
fn file_with_signs_of_a_pattern_in_its_name_is_a_file() {
    let manifest = "version: 1\njobs:\n  - { id: '{{ row.id }}', for_each: 'what?.csv', model: alpha-2, prompt: x }\n";
    let here = Workspace::with_manifest(manifest).file("what?.csv", "id\na\nb\n");
    assert_eq!(requests(&here).len(), 2);
}

#[test]
fn draft_of_a_directory_has_a_job_for_each_image() {
    let here =
        Workspace::new().file("stills/b.png", png("b")).file("stills/a.png", png("a")).file("stills/a.txt", "A dog");
    let wrote = here.shotlist(&["init", "stills"]).ends_with(0).stderr;
    assert!(wrote.starts_with("wrote stills.yaml (2 jobs for $1.80)"), "{wrote}");
    insta::assert_snapshot!(fs::read_to_string(here.path("stills.yaml")).expect("a draft"));
    here.shotlist(&["run", "stills.yaml", "--plan"]).ends_with(0);
}
