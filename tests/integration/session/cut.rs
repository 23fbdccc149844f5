//! The timeline of the videos for an editing program, and the cost of a kept second.

use serde_json::{Value, json};

use crate::support::{Answer, Asked, Service, Workspace, clip, has_code, json as json_answer, numbered_jobs, raw};

const SPOTS: &str = "version: 1
defaults: { model: alpha-2, labels: { language: de } }
jobs:
  - { id: lake, prompt: a lake, file: \"the lake/{{ id }}.mp4\" }
  - { id: dune, prompt: a dune, labels: { language: fr } }
  - { id: pier, prompt: a pier }
  - { id: road, prompt: a road, labels: { language: '' } }
";

/// Records choices about the newest videos, each with a note.
fn choose(here: &Workspace, keep: &[&str], retake: &[&str], notes: &Value) {
    let report = here.report();
    let tasks: serde_json::Map<String, Value> = report["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| (job["id"].as_str().expect("an ID").to_owned(), job["task_id"].clone()))
        // A task without a choice would be a withdrawal.
        .filter(|(id, _)| keep.contains(&&**id) || retake.contains(&&**id))
        .collect();
    let choices = json!({ "name": "m", "batch": "", "reviewer": "anna", "keep": keep, "retake": retake, "tasks": tasks, "notes": notes });
    here.write("choices.json", choices.to_string());
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
}

fn cut(here: &Workspace, file: &str, args: &[&str]) -> Value {
    here.shotlist(&[&["report", "m.yaml", "--report", file], args].concat()).ends_with(0);
    serde_json::from_str(&std::fs::read_to_string(here.path(file)).expect("a timeline")).expect("JSON")
}

fn tracks(timeline: &Value) -> &Vec<Value> {
    timeline["tracks"]["children"].as_array().expect("tracks")
}

#[test]
fn cut_has_a_clip_for_each_video() {
    let (service, here) = (Service::well(), Workspace::with_manifest(SPOTS));
    here.run(&service, &[]).ends_with(0);
    choose(&here, &["pier"], &["lake"], &json!({ "pier": "crop at 0:07\nsound at 9:99" }));
    here.run(&service, &["--retake", "@ledger"]).ends_with(0);
    here.run(&service, &["--retake", "pier"]).ends_with(0);
    let timeline = cut(&here, "cut/spots.otio", &["--track", "label.language"]);
    let names: Vec<&Value> = tracks(&timeline).iter().map(|track| &track["name"]).collect();
    assert_eq!(names, ["de", "fr", "(none)"]);
    let of_track = |nth: usize| tracks(&timeline)[nth]["children"].as_array().expect("clips").clone();
    let [lake, pier] = &of_track(0)[..] else { panic!("{timeline}") };
    assert_eq!(
        (&lake["name"], &of_track(1)[0]["name"], &of_track(2)[0]["name"]),
        (&json!("lake"), &json!("dune"), &json!("road"))
    );
    let target = |reference: &Value| reference["target_url"].as_str().expect("a URL").to_owned();
    let media = |clip: &Value| clip["media_references"].as_object().expect("references").clone();
    assert_eq!(target(&media(lake)["DEFAULT_MEDIA"]), "../shotlist-out/m/the%20lake/lake.mp4");
    // The kept take comes first, and the newer one is another.
    let others = media(pier);
    let others: Vec<(&str, String)> = others.iter().map(|(key, reference)| (key.as_str(), target(reference))).collect();
    assert_eq!(
        others,
        [("DEFAULT_MEDIA", "../shotlist-out/m/pier.mp4".to_owned()), ("t5", "../shotlist-out/m/pier~1.mp4".to_owned())]
    );
    let whole = json!({
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": { "OTIO_SCHEMA": "RationalTime.1", "rate": 25.0, "value": 0.0 },
        "duration": { "OTIO_SCHEMA": "RationalTime.1", "rate": 25.0, "value": 300.0 },
    });
    assert_eq!(pier["source_range"], whole);
    let markers: Vec<(&Value, &Value)> = pier["markers"]
        .as_array()
        .expect("markers")
        .iter()
        .map(|marker| (&marker["comment"], &marker["marked_range"]["start_time"]["value"]))
        .collect();
    assert_eq!(markers, [(&json!("crop at 0:07"), &json!(175.0)), (&json!("sound at 9:99"), &json!(0.0))]);
    assert_eq!(pier["metadata"]["shotlist"]["prompt"], "a pier");
    // Without a label, there is one track, named as the manifest. An archived video keeps its place and its length.
    here.shotlist(&["archive", "m.yaml", "dune", "--to", "shelf"]).ends_with(0);
    let timeline = cut(&here, "cut/spots.otio", &[]);
    assert_eq!((tracks(&timeline).len(), &tracks(&timeline)[0]["name"]), (1, &json!("m")));
    let dune = &tracks(&timeline)[0]["children"][1];
    let media = &dune["media_references"]["DEFAULT_MEDIA"];
    assert_eq!((&dune["name"], &media["OTIO_SCHEMA"]), (&json!("dune"), &json!("MissingReference.1")));
    assert_eq!((&dune["source_range"], media.get("target_url")), (&whole, None));
    let wrong = here.shotlist(&["report", "m.yaml", "--report", "a.otio", "--track", "language"]).ends_with(2).stderr;
    insta::assert_snapshot!(wrong, @"
    error: invalid value 'language' for '--track <label.NAME>': write `label.NAME` with the name of a label

    For more information, try '--help'.
    ");
}

#[test]
fn cut_refuses_a_second_frame_rate() {
    let words = |words: [u32; 4]| words.map(u32::to_be_bytes).concat();
    let service = Service::scripted_wholly(move |asked: &Asked| {
        let Some(name) = asked.path.strip_prefix("/videos/") else { return Answer::Well };
        let mut video = clip(12, 1280, 720, name);
        if name == "t1.mp4" {
            // Twenty frames a second.
            let at = video.windows(16).position(|part| part == words([0, 1, 300, 40])).expect("its times");
            video[at..at + 16].copy_from_slice(&words([0, 1, 240, 50]));
        }
        raw(200, &[], video)
    });
    let here = Workspace::with_manifest(&numbered_jobs(2));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    let refused = here.shotlist(&["report", "m.yaml", "--report", "cut.otio"]).ends_with(74).stderr;
    insta::assert_snapshot!(refused, @"
    error[not-writable]: can't write report `cut.otio`: the videos must have one frame rate, found 25 and, in `shotlist-out/m/j1.mp4`, 20
      help: convert the videos to one frame rate, or import them without a timeline
    ");
}

/// An editing program keeps our metadata when it saves its own changes.
#[test]
fn edited_cut_is_not_replaced() {
    let (service, here) = (Service::well(), Workspace::with_manifest(SPOTS));
    here.run(&service, &[]).ends_with(0);
    let mut timeline = cut(&here, "cut.otio", &[]);
    timeline["name"] = json!("edited by hand");
    // OpenTimelineIO indents by four spaces; others don't indent.
    let indented = timeline.to_string().replacen("{\"OTIO_SCHEMA\"", "{\n    \"OTIO_SCHEMA\"", 1);
    for foreign in [timeline.to_string(), indented, "a letter".to_owned()] {
        here.write("cut.otio", &foreign);
        let refused = here.shotlist(&["report", "m.yaml", "--report", "cut.otio"]).ends_with(2).stderr;
        assert!(has_code(&refused, "not-a-report"), "{refused}");
        assert_eq!(std::fs::read_to_string(here.path("cut.otio")).expect("the file"), foreign);
    }
}

/// The same sums as over the rows of the reports.
#[test]
fn spend_has_the_cost_of_a_kept_second() {
    let manifest =
        format!("{}  - {{ id: light, model: beta-2.0-lite, duration: 5, prompt: a lamp }}\n", numbered_jobs(12));
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &[]).ends_with(0);
    let by_model = || here.shotlist(&["spend", "--by", "model", "--format", "csv"]).ends_with(0).stdout;
    let text = here.shotlist(&["spend", "--by", "model"]).ends_with(0).stdout;
    assert_eq!(
        text.lines().next().map(str::trim_end),
        Some(" MODEL          TASKS   SPENT  AT RISK  UNKNOWN"),
        "nobody has chosen"
    );
    choose(&here, &["j0", "j1", "j2", "light"], &["j3", "j4", "j5", "j6", "j7", "j8"], &json!({}));
    let of_few = "model,attempts,spent_usd,at_risk_usd,unknown_usd,kept,kept_s,usd_per_kept_s\nalpha-2,12,10.80,0.00,0.00,3,36,\nbeta-2.0-lite,1,3.75,0.00,0.00,1,5,\n";
    assert_eq!(by_model(), of_few);
    // The retakes belong to the cost of their jobs, once these are decided again.
    here.run(&service, &["--retake", "@ledger"]).ends_with(0);
    choose(&here, &["j3", "j4", "j5", "j6", "j7", "j8"], &["j9"], &json!({}));
    let sums: Vec<String> = by_model().lines().map(str::to_owned).collect();
    assert_eq!(sums[1..], ["alpha-2,18,16.20,0.00,0.00,9,108,0.1333", "beta-2.0-lite,1,3.75,0.00,0.00,1,5,"]);
    here.shotlist(&["report", "m.yaml"]).ends_with(0);
    let (mut usd, mut kept_s) = (0.0, 0.0);
    for job in here.report()["jobs"].as_array().expect("jobs") {
        let is_decided = job["choice"].is_string() && job["model"] == "alpha-2";
        usd += job["cost_usd"].as_str().filter(|_| is_decided).map_or(0.0, |usd| usd.parse().expect("a sum"));
        kept_s += job["delivered_s"].as_f64().filter(|_| is_decided && job["choice"] == "keep").unwrap_or(0.0);
    }
    assert_eq!(format!("{:.4}", usd / kept_s), "0.1333");
    insta::assert_snapshot!(here.shotlist(&["spend", "--by", "model"]).ends_with(0).stdout, @"
     MODEL          TASKS   SPENT  AT RISK  UNKNOWN  KEPT  KEPT S  $ PER KEPT S
     alpha-2           18  $16.20    $0.00    $0.00     9     108       $0.1333
     beta-2.0-lite      1   $3.75    $0.00    $0.00     1       5

    spent: $19.95, at risk: $0.00, unknown: $0.00
    kept: 10 of 11 decided videos, $0.1606 per kept second
    ");
}

/// A failed task of family B may have been charged: a price without this charge would be too low.
#[test]
fn price_of_kept_second_needs_known_charges() {
    let service = Service::scripted(|asked: &Asked| {
        let fails = asked.method == "GET" && asked.path.ends_with("/t10");
        if fails { json_answer(200, &json!({ "status": "failed" })) } else { Answer::Well }
    });
    let alpha = numbered_jobs(10).replacen("model: alpha-2", "model: alpha-2, labels: { client: acme }", 1);
    let beta = "  - { id: light, model: beta-2.0-lite, duration: 5, prompt: a lamp, labels: { client: '' } }\n";
    let here = Workspace::with_manifest(&format!("{alpha}{beta}"));
    here.run(&service, &["--concurrency", "1"]).ends_with(1);
    here.run(&service, &["--retry-failed"]).ends_with(0);
    let alpha: Vec<String> = (0..10).map(|number| format!("j{number}")).collect();
    choose(&here, &alpha.iter().map(String::as_str).chain(["light"]).collect::<Vec<_>>(), &[], &json!({}));
    let spend = |by: &str, format: &str| here.shotlist(&["spend", "--by", by, "--format", format]).ends_with(0).stdout;
    let sums = "attempts,spent_usd,at_risk_usd,unknown_usd,kept,kept_s,usd_per_kept_s";
    let [acme, others] = ["10,9.00,0.00,0.00,10,120,0.075", "2,3.75,0.00,3.75,1,5,"];
    assert_eq!(spend("client", "csv"), format!("client,{sums}\n,{others}\nacme,{acme}\n"));
    assert_eq!(spend("model", "csv"), format!("model,{sums}\nalpha-2,{acme}\nbeta-2.0-lite,{others}\n"));
    assert_eq!(spend("batch", "csv"), format!("name,batch,{sums}\nm,,12,12.75,0.00,3.75,11,125,\n"));
    insta::assert_snapshot!(spend("batch", "text"), @"
     BATCH  TASKS   SPENT  AT RISK  UNKNOWN  KEPT  KEPT S  $ PER KEPT S
     m         12  $12.75    $0.00    $3.75    11     125

    spent: $12.75, at risk: $0.00, unknown: $3.75
    kept: 11 of 11 decided videos; no price of a second, because $3.75 of their charges is unknown
    ");
}
