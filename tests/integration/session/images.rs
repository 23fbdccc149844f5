//! Local images: the content is in the fingerprint, the asset command returns the URL, and a job without a URL is not sent.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Program, Service, Workspace, codes, has_code, kill, output_of, wait_until};

const LOOKS: &str = "version: 1
defaults: { model: alpha-2, prompt: Walk }
jobs:
  - { id: \"walk-{{ row.look }}\", for_each: looks.csv, image_file: \"frames/{{ row.look }}.png\" }
  - { id: hero }
";

fn png(word: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", word.as_bytes()].concat()
}

/// Three jobs with an image each, and an asset command that logs its arguments.
fn looks() -> Workspace {
    let mut here = Workspace::with_manifest(LOOKS).file("looks.csv", "look\nred\ngreen\nblue\n");
    for look in ["red", "green", "blue"] {
        here = here.file(&format!("frames/{look}.png"), png(look));
    }
    upload(&here, "echo \"https://cdn.example/$name?signed=$$\"");
    here
}

/// Writes the asset command, which logs its argument and then runs the script.
fn upload(here: &Workspace, script: &str) {
    here.write("upload", format!("#!/bin/sh\nname=$(basename \"$1\")\necho \"$1\" >> asked\n{script}\n"));
    std::fs::set_permissions(here.path("upload"), PermissionsExt::from_mode(0o755)).expect("made a program");
}

fn run(here: &Workspace, service: &Service, args: &[&str]) -> Program {
    here.run(service, &[&["--asset-command", "./upload"], args].concat())
}

fn asked(here: &Workspace) -> Vec<String> {
    let text = std::fs::read_to_string(here.path("asked")).unwrap_or_default();
    text.lines().map(|line| line.rsplit('/').next().unwrap_or(line).to_owned()).collect()
}

fn images(service: &Service) -> Vec<String> {
    let body = |post: &String| serde_json::from_str::<Value>(post).expect("JSON");
    let mut images: Vec<String> =
        service.posts().iter().filter_map(|post| Some(body(post)["image"].as_str()?.to_owned())).collect();
    images.sort();
    images
}

/// With the address of then, the request of every one of them differs from today's.
#[test]
fn image_job_with_other_spaces_is_not_bought_again() {
    let (here, service) = (looks(), Service::well());
    run(&here, &service, &[]).ends_with(0);
    here.write("m.yaml", LOOKS.replace("prompt: Walk", "prompt: 'Walk '"));
    let refused = run(&here, &service, &[]).ends_with(3).stderr;
    assert!(has_code(&refused, "already-paid"), "{refused}");
    assert_eq!(service.posts().len(), 4);
    // Another image is another wish.
    here.write("frames/red.png", png("other"));
    run(&here, &service, &["--select", "walk-red"]).ends_with(0);
    assert_eq!(service.posts().len(), 5);
}

#[test]
fn image_content_is_in_the_fingerprint_and_its_url_is_not() {
    let (here, service) = (looks(), Service::well());
    assert!(codes(&here.plan(&[])).contains(&"local-images"));
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(
            &run(&here, &service, &[&["--plan", "--format", "json"], args].concat()).ends_with(0).stdout,
        )
        .expect("JSON")
    };
    let before = json(&[]);
    let sha256 = crate::support::sha256(&png("red"));
    assert_eq!(before["jobs"][0]["request"]["image"], serde_json::json!({ "sha256": sha256 }));
    assert_eq!(asked(&here), [""; 0], "a plan starts nothing");

    run(&here, &service, &[]).ends_with(0);
    let names = |images: &[String]| -> Vec<String> {
        images.iter().map(|image| image.split('?').next().unwrap_or(image).to_owned()).collect()
    };
    let sent = names(&images(&service));
    assert_eq!(sent, ["https://cdn.example/blue.png", "https://cdn.example/green.png", "https://cdn.example/red.png"]);
    assert_eq!(asked(&here).len(), 3);
    // With other URLs and another file name, nothing is due, and the command does not run.
    std::fs::rename(here.path("frames/red.png"), here.path("frames/rot.png")).expect("renamed");
    here.write(
        "m.yaml",
        LOOKS.replace("frames/{{ row.look }}.png", "frames/{{ row.look | replace('red', 'rot') }}.png"),
    );
    run(&here, &service, &[]).ends_with(0);
    assert_eq!((service.posts().len(), asked(&here).len()), (4, 3));
    // Another image under the same name is another video.
    here.write("frames/rot.png", png("crimson"));
    let changed = json(&[]);
    assert_eq!(changed["jobs"][0]["reason"], "image_file changed since it was submitted; costs again");
    // Another prompt is no other image.
    here.write("frames/rot.png", png("red"));
    let text = std::fs::read_to_string(here.path("m.yaml")).expect("the manifest");
    here.write("m.yaml", text.replace("Walk", "Run"));
    assert_eq!(json(&[])["jobs"][0]["reason"], "prompt changed since it was submitted; costs again");
}

#[test]
fn several_local_images_are_sent_as_a_list_of_their_urls() {
    let here = Workspace::with_manifest(
        "version: 1\ndefaults: { model: alpha-2 }\njobs:\n  - { id: \"{{ row.n }}\", prompt: P, for_each: [{ n: a, end: b.png }, { n: c, end: '' }], image_file: [a.png, \"{{ row.end }}\"] }\n",
    );
    here.write("a.png", png("a"));
    here.write("b.png", png("b"));
    upload(&here, "echo \"https://cdn.example/$name\"");
    let service = Service::well();
    run(&here, &service, &[]).ends_with(0);
    let mut images: Vec<Value> = service
        .posts()
        .iter()
        .map(|body| serde_json::from_str::<Value>(body).expect("JSON")["image"].clone())
        .collect();
    images.sort_by_key(Value::is_array);
    assert_eq!(
        images,
        [json!("https://cdn.example/a.png"), json!(["https://cdn.example/a.png", "https://cdn.example/b.png"])]
    );
    // Each is uploaded once, and nothing is due on the next day; another second image is another request.
    assert_eq!(asked(&here).len(), 2);
    assert_eq!(here.planned(&[]).0, 0);
    here.write("b.png", png("other"));
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["jobs"][0]["reason"], "image_file changed since it was submitted; costs again");
}

#[test]
fn image_of_several_jobs_is_uploaded_once_per_run() {
    let here = Workspace::with_manifest(
        "version: 1\ndefaults: { model: alpha-2, image_file: a.png }\njobs: [{ id: a, takes: 4 }, { id: b, prompt: Other }, { id: c, image_file: copy.png, prompt: More }]\n",
    );
    here.write("a.png", png("a"));
    here.write("copy.png", png("a"));
    upload(&here, "sleep 0.2; echo \"https://cdn.example/$name\"");
    let service = Service::well();
    run(&here, &service, &[]).ends_with(0);
    assert_eq!((asked(&here).len(), service.posts().len()), (1, 6));
    run(&here, &service, &["--retake", "b"]).ends_with(0);
    assert_eq!((asked(&here).len(), service.posts().len()), (2, 7));
}

#[test]
fn job_without_an_image_url_waits_for_the_next_run() {
    for (script, told) in [
        (
            "[ $name = blue.png ] && { echo working; echo 'no such bucket' >&2; exit 3; }",
            "exit status: 3: no such bucket",
        ),
        ("[ $name = blue.png ] && { echo https://x/1; echo https://x/2; exit 0; }", "printed 2 lines"),
        ("[ $name = blue.png ] && { echo file:///etc/passwd; exit 0; }", "`file:///etc/passwd`"),
        ("[ $name = blue.png ] && exit 0", "printed nothing"),
        ("[ $name = blue.png ] && sleep 600", "it took longer than 2s, and was killed"),
        ("[ $name = blue.png ] && printf '\\211PNG\\r\\n\\032\\nother' > \"$1\"", "it changed during the run"),
    ] {
        let (here, service) = (looks(), Service::well());
        upload(&here, &format!("{script}\necho \"https://cdn.example/$name\""));
        let ended = run(&here, &service, &["--program-timeout", "2s"]).ends_with(1);
        let ended = ended.shows("not-sent");
        assert!(ended.stderr.contains(told), "{script}: {}", ended.stderr);
        // Every later report has the reason.
        let told_by = [
            ended.stdout,
            here.shotlist(&["status", "m.yaml", "-v"]).ends_with(0).stdout,
            here.report()["jobs"][2]["error_message"].to_string(),
            std::fs::read_to_string(here.path("shotlist-out/m/report.html")).expect("the page"),
        ];
        let reason = "its image has no URL";
        assert!(told_by.iter().all(|text| text.contains(reason)), "{script}: {told_by:?}");
        assert_eq!(
            (service.posts().len(), here.ledger("SELECT count(*) FROM attempt")),
            (3, vec![vec!["3".to_owned()]])
        );
        upload(&here, "echo \"https://cdn.example/$name\"");
        run(&here, &service, &[]).ends_with(0);
        assert_eq!((service.posts().len(), images(&service).len()), (4, 3), "{script}");
        assert_eq!(here.report()["jobs"][2]["error_message"], Value::Null);
        assert_eq!(here.ledger("SELECT count(*) FROM unsent"), [["0"]]);
    }
}

#[test]
fn missing_image_url_replaces_the_rejection_of_a_job() {
    let refusal = serde_json::json!({ "error": { "message": "too dark", "code": "moderation" } });
    let refusing = Service::scripted(move |asked| {
        if asked.body.contains("blue.png") {
            return crate::support::json(400, &refusal);
        }
        crate::support::Answer::Well
    });
    let here = looks();
    run(&here, &refusing, &[]).ends_with(1);
    let job = || here.report()["jobs"][2].clone();
    assert_eq!((&job()["state"], &job()["error_code"]), (&"rejected".into(), &"moderation".into()));
    upload(&here, "echo 'no such bucket' >&2; exit 3");
    run(&here, &refusing, &[]).ends_with(1);
    insta::assert_snapshot!(job()["error_message"].as_str().expect("a reason"), @"not sent: its image has no URL: `--asset-command`: exit status: 3: no such bucket");
    assert_eq!((&job()["error_code"], &job()["error"]), (&Value::Null, &Value::Null));
}

#[test]
fn broken_asset_command_is_not_started_for_every_image() {
    let here = Workspace::with_manifest(
        "version: 1
defaults: { model: alpha-2 }
jobs:
  - { id: \"j{{ row.n }}\", for_each: n.csv, image_file: \"p{{ row.n }}.png\" }
  - { id: plain, prompt: P }
",
    );
    let numbers: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    for n in &numbers {
        here.write(&format!("p{n}.png"), png(n));
    }
    here.write("n.csv", format!("n\n{}\n", numbers.join("\n")));
    upload(&here, "exit 1");
    let service = Service::well();
    let ended = run(&here, &service, &[]).ends_with(1);
    drop(ended.shows("not-sent"));
    assert!((3..=7).contains(&asked(&here).len()), "{:?}", asked(&here));
    // Jobs without an image are not affected.
    assert_eq!(service.posts().len(), 1);
    for option in ["--asset-command", "--exec"] {
        for (program, told) in [
            ("./no-such-thing", "no program is there that may be started"),
            ("./n.csv", "no program is there that may be started"),
            ("nowhere", "it is not on the PATH"),
        ] {
            let refused = here.run(&service, &[option, program]).fails_with("program-invalid", 2).stderr;
            assert!(refused.contains(told), "{refused}");
        }
    }
    assert_eq!(service.posts().len(), 1);
    // A plan starts nothing, and may be made where the program is not.
    here.run(&service, &["--plan", "--asset-command", "./no-such-thing"]).ends_with(0);
}

#[test]
fn local_image_without_a_command_is_not_sent() {
    let (here, service) = (looks(), Service::well());
    here.run(&service, &[]).fails_with("no-asset-command", 2);
    assert_eq!(service.posts().len(), 0);
    let unclosed = here.run(&service, &["--asset-command", "it's"]).ends_with(2).stderr;
    assert!(has_code(&unclosed, "program-invalid"), "{unclosed}");
    // An invalid image is an error before the price.
    here.write("notes.png", "no image");
    std::fs::create_dir(here.path("directory.png")).expect("a directory");
    let large = std::fs::File::create(here.path("large.png")).expect("a file");
    large.set_len(2 << 30).expect("two GB of nothing");
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("secret.png"), png("secret")).expect("written");
    std::os::unix::fs::symlink(outside.path().join("secret.png"), here.path("link.png")).expect("a link");
    for (file, told) in [
        ("notes.png", "`notes.png`"),
        ("nothing.png", "No such file"),
        ("directory.png", "directory"),
        ("large.png", "64 MiB"),
        ("link.png", "`--root DIR`"),
        ("../secret.png", "No such file"),
        ("/dev/zero", "plain files only"),
    ] {
        here.write("one.yaml", format!("version: 1\njobs: [{{ id: a, model: alpha-2, image_file: {file} }}]\n"));
        let refused = here.shotlist(&["run", "one.yaml", "--plan"]).ends_with(2).stderr;
        assert!(refused.contains(told), "{file}: {refused}");
    }
    for (fields, told) in [
        ("model: alpha-2, image: \"https://x/a.png\", image_file: frames/red.png", "image-conflict"),
        ("model: alpha-2, image_key: k, image_file: frames/red.png", "image-key-alone"),
        ("model: beta-2.0-lite, prompt: P, image_file: frames/red.png", "field-not-of-family"),
    ] {
        here.write("one.yaml", format!("version: 1\njobs: [{{ id: a, {fields} }}]\n"));
        here.shotlist(&["run", "one.yaml", "--plan"]).ends_with(2).shows(told);
    }
}

#[test]
fn no_manifest_names_a_program_and_no_program_sees_the_key() {
    let (here, service) = (looks(), Service::well());
    here.write("one.yaml", format!("asset_command: ./upload\n{LOOKS}"));
    here.shotlist(&["run", "one.yaml", "--plan"]).ends_with(2);
    upload(&here, "env > seen; echo \"https://cdn.example/$name\"");
    run(&here, &service, &[]).env("SHOTLIST_HEADER", "x-secret=1").env("BUCKET", "mine").ends_with(0);
    let seen = std::fs::read_to_string(here.path("seen")).expect("what it saw");
    assert!(seen.lines().any(|line| line == "BUCKET=mine"), "{seen}");
    assert!(!seen.lines().any(|line| line.starts_with("SHOTLIST_")), "{seen}");
}

#[test]
fn killed_upload_of_an_image_bought_nothing() {
    let (here, service) = (looks(), Service::well());
    upload(&here, "[ -e killed ] || { : > started; sleep 30; }\necho \"https://cdn.example/$name\"");
    let child = run(&here, &service, &["--exclude", "hero"]).starts();
    wait_until("an upload began", || here.path("started").exists());
    kill(&child, "-KILL");
    output_of(child);
    let sent = images(&service).len();
    assert_eq!(sent, 0);
    here.write("killed", "");
    run(&here, &service, &[]).ends_with(0);
    assert_eq!((images(&service).len(), service.posts().len()), (3, 4));
    // A first signal ends an upload: nothing is lost by that.
    here.write("m.yaml", LOOKS.replace("Walk", "Run"));
    std::fs::remove_file(here.path("killed")).expect("removed");
    std::fs::remove_file(here.path("started")).expect("removed");
    let child = run(&here, &service, &["--exclude", "hero"]).starts();
    wait_until("an upload began", || here.path("started").exists());
    kill(&child, "-INT");
    assert_eq!(output_of(child).status.code(), Some(130));
    assert_eq!(service.posts().len(), 4);
}

#[test]
fn image_key_applies_to_urls_only() {
    let here = Workspace::with_manifest(
        "version: 1
vars: { day: mon }
defaults: { model: alpha-2, image: \"https://cdn.example/a.png?sig={{ day }}\", image_key: first }
jobs: [{ id: v, prompt: Walk, for_each: [{ pic: '' }], image_file: \"{{ row.pic }}\" }]
",
    );
    let service = Service::well();
    here.run(&service, &[]).ends_with(0);
    // A blank name leaves the default's URL, with its `image_key`.
    assert_eq!(here.planned(&["--set", "day=tue"]).0, 0);
    // A blank URL leaves the default's local image, without the `image_key`.
    here.write(
        "m.yaml",
        "version: 1
defaults: { model: alpha-2, image_file: a.png, image_key: first }
jobs: [{ id: w, prompt: Walk, for_each: [{ url: '' }], image: \"{{ row.url }}\" }]
",
    );
    here.write("a.png", png("one"));
    upload(&here, "echo https://cdn.example/$name");
    run(&here, &service, &[]).ends_with(0);
    here.write("a.png", png("two"));
    let plan = here.plan(&[]);
    assert!(plan["jobs"][0]["reason"].as_str().is_some_and(|reason| reason.starts_with("image_file ")), "{plan}");
}

#[test]
fn printed_command_of_a_plan_can_be_pasted() {
    let (here, service) = (looks(), Service::well());
    let plan = run(&here, &service, &["--plan"]).ends_with(0).stdout;
    let (_, command) = plan.split_once("to buy exactly this: shotlist run m.yaml ").expect("a command");
    let args: Vec<&str> = command.lines().next().expect("a line").split(' ').collect();
    assert!(args.contains(&"--asset-command"), "{args:?}");
    here.run(&service, &args).ends_with(0);
    assert_eq!(service.posts().len(), 4);
}
