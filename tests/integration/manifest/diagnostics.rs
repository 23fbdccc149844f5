//! Everything that can be wrong with a manifest, as a user sees it.

use serde_json::Value;

use crate::support::{Workspace, has_code, line_of};

/// The stderr of a plan of this manifest, which must be refused without a written file.
#[track_caller]
fn refused(manifest: &str) -> String {
    refused_in(&Workspace::with_manifest(manifest))
}

#[track_caller]
fn refused_in(here: &Workspace) -> String {
    let files = here.files();
    let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    assert_eq!(ended.stdout, "");
    assert_eq!(here.files(), files, "a refused manifest wrote something");
    ended.stderr
}

/// A manifest with these jobs.
fn jobs(jobs: &str) -> String {
    format!("version: 1\njobs:\n{jobs}")
}

#[test]
fn all_diagnostics_are_reported() {
    insta::assert_snapshot!(refused(
        r#"version: 1
defaults: { model: beta-2.0-lite, duration: 5 }
jobs:
  - id: too-long
    duration: 12
    prompt: A paper crane unfolds into a city at dawn
  - id: wrong-family
    model: alpha-2
    size: 1280x720
    aspect_ratio: "1:1"
    duration: 10
  - id: image
    prompt: x
    image: first.png
  - id: blank
    prompt: "  "
  - id: unknown
    model: beta-2.0-light
    prompt: x
  - id: bad/id
    prompt: x
"#
    ));
}

#[test]
fn unknown_keys_get_a_suggestion() {
    insta::assert_snapshot!(refused(
        "version: 1\nbugdet: { run: 5 }\njobs:\n  - { id: a, model: alpha-2, promt: x }\n  - { id: b, modle: alpha-2, zebra: 1 }\n"
    ));
}

#[test]
fn wrong_type_names_the_expected_one() {
    insta::assert_snapshot!(refused(
        r#"version: 1
budget: { run: lots }
jobs:
  - id: [a]
    model: alpha-2
    prompt: x
  - id: b
    model: alpha-2
    prompt: {{ brand }}
  - id: c
    model: beta-2.0-lite
    duration: "7"
    prompt: yes it is
  - id: d
    model: alpha-2
    prompt: true
  - just a text
"#
    ));
}

#[test]
fn templates_are_strict_and_name_their_scope() {
    insta::assert_snapshot!(refused(
        r#"version: 1
vars: { brand: Acme, nothing: , list: [a, b] }
defaults: { model: alpha-2 }
jobs:
  - { id: a, prompt: "A {{ brnad }} mug" }
  - { id: b, prompt: "{{ row.name }}" }
  - { id: "c-{{ row.n }}", for_each: [{ n: 1, name: x }], prompt: "{{ row.nmae }}" }
  - { id: d, prompt: "{{ env.SEASON }}" }
  - { id: f, prompt: "{{ brand" }
  - { id: "g-{{ prompt }}", prompt: "{{ id }}" }
  - { id: i, prompt: "{{ nothing }} {{ list }}" }
  - { id: h, prompt: "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}" }
"#
    ));
}

#[test]
fn error_in_many_rows_is_reported_once_with_the_lines() {
    let mut csv = String::from("sku,name\n");
    for number in 0..500 {
        csv.push_str(&format!("s{number},\"{}\"\n", if number % 2 == 0 { "fine" } else { "" }));
    }
    let manifest = jobs(
        "  - id: \"{{ row.sku }}\"\n    for_each: p.csv\n    model: beta-2.0-lite\n    prompt: \"{{ row.name }}\"\n",
    );
    let here = Workspace::with_manifest(&manifest).file("p.csv", csv);
    insta::assert_snapshot!(refused_in(&here));
}

#[test]
fn default_out_of_range_is_reported_once_at_its_place() {
    insta::assert_snapshot!(refused(
        "version: 1\ndefaults: { duration: 99 }\njobs:\n  - { id: a, model: beta-2.0-lite, prompt: x }\n  - { id: b, model: beta-2.0-lite, prompt: x }\n  - { id: c, model: alpha-2, prompt: x }\n"
    ));
}

#[test]
fn ids_are_unique_also_when_case_is_ignored() {
    insta::assert_snapshot!(refused(
        r"version: 1
defaults: { model: alpha-2, prompt: x }
jobs:
  - { id: hero }
  - { id: hero }
  - { id: Hero }
  - { id: same, for_each: [{ n: 1 }, { n: 2 }] }
"
    ));
}

#[test]
fn invalid_yaml_is_reported_with_its_place() {
    let cases = [
        ("tabs", "version: 1\njobs:\n\t- id: a\n"),
        ("duplicate keys", "version: 1\njobs:\n  - id: a\n    prompt: x\n    prompt: y\n"),
        ("an open quote", "version: 1\nname: 'spring\njobs: []\n"),
        ("a colon in a text", "version: 1\njobs:\n  - id: a\n    prompt: note: a cat\n"),
        ("a star", "version: 1\njobs:\n  - id: a\n    prompt: *bold\n"),
        ("two documents", "version: 1\njobs: []\n---\nversion: 1\n"),
        ("a list", "- id: a\n- id: b\n"),
        ("a map for a list", "version: 1\njobs: { id: a }\n"),
        ("nothing", ""),
        ("only comments", "# nothing here\n"),
        ("no jobs", "version: 1\n"),
        ("no version", "jobs: [{ id: a, model: alpha-2, prompt: x }]\n"),
        ("another version", "version: 2\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"),
        ("no time zone", "version: 1\ntimezone: Mars/Olympus\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"),
        (
            "a number beyond all",
            "version: 1\njobs: [{ id: a, model: alpha-2, prompt: x, duration: 99999999999999999999 }]\n",
        ),
        (
            "a number with a zero in front",
            "version: 1\njobs: [{ id: a, model: beta-2.0-lite, prompt: x, duration: 07 }]\n",
        ),
        ("a character that nobody sees", "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: 'x\0y' }\n"),
        (
            "texts that multiply",
            "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: '{{ \"x\" | indent(999999999) }}' }\n  - { id: b, model: alpha-2, prompt: '{% set n = namespace(s=\"x\") %}{{ n.s }}' }\n  - { id: c, model: alpha-2, prompt: '{% macro f(a) %}{{ f(a ~ a) }}{% endmacro %}{{ f(\"x\") }}' }\n  - { id: d, model: alpha-2, prompt: '{{ \"x\" | replace(\"x\", \"y\" * 500000) | replace(\"y\", \"z\" * 500000) }}' }\n",
        ),
        ("a limit without an amount", "version: 1\nbudget: { run: }\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"),
        ("no rows", "version: 1\njobs: [{ id: a, for_each: [], model: alpha-2, prompt: x }]\n"),
        ("a reserved var", "version: 1\nvars: { prompt: x }\njobs: [{ id: a, model: alpha-2, prompt: x }]\n"),
        (
            "extra that contradicts",
            "version: 1\njobs: [{ id: a, model: beta-2.0-lite, prompt: x, extra: { duration: 10 } }]\n",
        ),
    ];
    let told: Vec<String> = cases.iter().map(|(what, manifest)| format!("# {what}\n{}", refused(manifest))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn hostile_sizes_are_refused_not_endured() {
    let mut bomb = String::from("version: 1\nvars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("  a{level}: &a{level} [{inner}]\n"));
    }
    assert!(has_code(&refused(&bomb), "yaml-limit"));
    assert!(has_code(&refused(&"[".repeat(100_000)), "yaml-limit"));
    let here = Workspace::new();
    std::fs::File::create(here.path("m.yaml")).and_then(|file| file.set_len(200 * 1024 * 1024)).expect("a sparse file");
    assert!(has_code(&refused_in(&here), "unreadable"));
    let here = Workspace::new().file("m.yaml", [b"version: 1\nname: ".as_slice(), &[0xff, 0xfe]].concat());
    assert!(has_code(&refused_in(&here), "unreadable"));
}

#[test]
fn spreadsheets_are_read_and_their_faults_reported() {
    let manifest = jobs("  - { id: \"{{ row.sku }}\", for_each: p.csv, model: alpha-2, prompt: \"{{ row.name }}\" }\n");
    let planned = |csv: &str| {
        let here = Workspace::with_manifest(&manifest).file("p.csv", csv);
        let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
        let plan: Value = serde_json::from_str(&plan).expect("JSON");
        let jobs = plan["jobs"].as_array().expect("jobs").clone();
        jobs.iter().map(|job| (job["id"].clone(), job["request"]["prompt"].clone())).collect::<Vec<_>>()
    };
    let expected = vec![("a".into(), "A mug, blue".into()), ("b".into(), "two\nlines".into())];
    for csv in [
        "sku,name\na,\"A mug, blue\"\nb,\"two\nlines\"\n",
        "\u{feff}sku,name\na,\"A mug, blue\"\nb,\"two\nlines\"",
        "sku;name\r\na;A mug, blue\r\nb;\"two\nlines\"\r\n\r\n",
        "sku,name,note\na,\"A mug, blue\",\nb,\"two\nlines\",x\n,,\n",
    ] {
        assert_eq!(planned(csv), expected, "{csv:?}");
    }
    let faults = [
        ("a missing column", "sku,title\na,A mug\n"),
        ("a ragged row", "sku,name\na,A mug, blue\nb\n"),
        ("a duplicate column", "sku,name,name\na,b,c\n"),
        ("no rows", "sku,name\n"),
        ("an open quote", "sku,name\na,\"A mug\nb,A lamp\n"),
        ("nothing", ""),
    ];
    let told = faults.map(|(what, csv)| {
        let here = Workspace::with_manifest(&manifest).file("p.csv", csv);
        format!("# {what}\n{}", refused_in(&here))
    });
    let missing = refused(&manifest);
    insta::assert_snapshot!(format!("{}\n# no file\n{missing}", told.join("\n")));
}

#[test]
fn aspect_ratio_needs_no_quotes() {
    for written in ["9:16", "'9:16'", "\"{{ '9:16' }}\""] {
        let here = Workspace::with_manifest(&jobs(&format!(
            "  - {{ id: a, model: alpha-2, prompt: x, aspect_ratio: {written} }}\n"
        )));
        let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
        let plan: Value = serde_json::from_str(&plan).expect("JSON");
        assert_eq!(plan["jobs"][0]["request"]["aspect_ratio"], "9:16", "{written}");
    }
    let told = refused(&jobs("  - { id: a, model: alpha-2, prompt: x, aspect_ratio: 556 }\n"));
    insta::assert_snapshot!(line_of(&told, "[aspect-ratio-unknown]"), @"error[aspect-ratio-unknown]: the aspect ratio must be 16:9 or 9:16, found 556");
}

#[test]
fn prompt_is_counted_after_templates_in_characters() {
    let manifest = |length: usize| {
        jobs(&format!("  - {{ id: a, model: beta-2.0-lite, prompt: \"{{{{ '🐦' * {length} }}}}\" }}\n"))
    };
    Workspace::with_manifest(&manifest(1500)).shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    let told = refused(&manifest(1501));
    insta::assert_snapshot!(line_of(&told, "[prompt-too-long]"), @"error[prompt-too-long]: the prompt of beta-2.0-lite must have at most 1500 characters, found 1501");
}

#[test]
fn errors_of_unselected_jobs_are_warnings() {
    let manifest =
        jobs("  - { id: good, model: alpha-2, prompt: x }\n  - { id: bad, model: alpha-2, prompt: x, duration: 3 }\n");
    let here = Workspace::with_manifest(&manifest);
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--select", "good"]).ends_with(0);
    assert!(ended.stderr.starts_with("warning[duration-out-of-range]"), "{}", ended.stderr);
    here.shotlist(&["run", "m.yaml", "--plan", "--select", "b*"]).ends_with(2);
}

#[test]
fn findings_can_be_had_as_data() {
    let manifest = jobs("  - id: a\n    model: beta-2.0-lite\n    duration: 11\n    prompt: x\n");
    let here = Workspace::with_manifest(&manifest);
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(2);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn vars_can_be_overridden_and_a_typo_is_reported() {
    let manifest = "version: 1\nvars: { brand: Acme }\njobs: [{ id: a, model: alpha-2, prompt: '{{ brand }}' }]\n";
    let here = Workspace::with_manifest(manifest);
    let plan =
        here.shotlist(&["run", "m.yaml", "--plan", "--format", "json", "--set", "brand=Zeta=1"]).ends_with(0).stdout;
    assert!(plan.contains(r#""prompt":"Zeta=1""#), "{plan}");
    let ended = here.shotlist(&["run", "m.yaml", "--plan", "--set", "brnad=Zeta"]).fails_with("set-unknown", 2);
    insta::assert_snapshot!(ended.line("`brand`"), @"= help: a similar one exists: `brand`");
}

#[test]
fn anchors_merge_keys_and_block_texts_work() {
    let manifest = "
version: 1
vars:
  base: &base { model: alpha-2, aspect_ratio: \"9:16\" }
jobs:
  - <<: *base
    id: a
    prompt: >-
      A paper crane
      unfolds
  - <<: *base
    id: b
    aspect_ratio: \"16:9\"
    prompt: |
      two
      lines
";
    let here = Workspace::with_manifest(manifest);
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["jobs"][0]["request"]["prompt"], "A paper crane unfolds");
    assert_eq!(plan["jobs"][0]["request"]["aspect_ratio"], "9:16");
    assert_eq!(plan["jobs"][1]["request"]["aspect_ratio"], "16:9");
    assert_eq!(plan["jobs"][1]["request"]["prompt"], "two\nlines\n");
}

#[test]
fn default_of_another_family_is_skipped() {
    let manifest = "
version: 1
defaults: { duration: 5, size: 1280x720 }
jobs:
  - { id: a, model: alpha-2, prompt: x }
  - { id: b, model: beta-2.0-lite, prompt: x }
";
    let here = Workspace::with_manifest(manifest);
    let plan =
        |args: &[&str]| here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "json"], args].concat()).ends_with(0);
    assert_eq!(plan(&[]).stderr, "");
    let told = plan(&["-v"]);
    for field in ["duration", "size"] {
        assert!(told.stderr.contains(&format!("`{field}`")), "{}", told.stderr);
    }
    let json: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_eq!(
        json["jobs"][0]["request"].as_object().map(serde_json::Map::len),
        Some(4),
        "{}",
        json["jobs"][0]["request"]
    );
    assert_eq!(json["jobs"][1]["request"]["size"], "1280x720");
}

#[test]
fn faults_of_matrices_takes_faces_and_files_are_reported() {
    insta::assert_snapshot!(refused(
        r#"version: 1
faces: { anna: { review: maybe }, bo: }
defaults: { model: beta-2.0-lite, file: "x/{{ id }}.mp4" }
jobs:
  - { id: a, prompt: x, takes: 0, duration: 99 }
  - { id: b, prompt: x, prompt_file: no.txt }
  - { id: c, prompt_file: no.txt }
  - { id: d, prompt: x, face: ana }
  - { id: e, prompt: x, file: "../{{ id }}.mp4" }
  - { id: f, prompt: x, file: same.mp4, takes: 2 }
  - { id: "g-{{ model }}", model: alpha-2, matrix: { model: [alpha-2, beta-2.0-lit] }, prompt: x }
  - { id: "h-{{ duration }}", matrix: { duration: [5, 11, x] }, prompt: x }
  - { id: "i-{{ lang }}", matrix: { lang: [de], exclude: [{ lang: de }] }, prompt: x }
  - { id: j, matrix: { lang: [de, en] }, prompt: "{{ lng }}" }
  - { id: k, prompt: x, image_key: y }
  - { id: l, prompt: x, extra: { duration: 4, seed: 1 } }
  - { id: "m.2", prompt: x }
  - { id: m, prompt: x, takes: 3 }
  - { id: n, matrix: { row: [1], lang: de, take: [] }, prompt: x }
"#
    ));
}
