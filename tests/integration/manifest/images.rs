//! Images of requests: the name of their field, and keys for changing URLs.

use serde_json::Value;

use crate::support::{Service, Workspace};

#[test]
fn catalog_names_the_undocumented_field_of_an_image() {
    let manifest =
        "version: 1\njobs: [{ id: a, model: beta-2.0-lite, prompt: x, image: 'https://example.com/a.png' }]\n";
    let here = Workspace::with_manifest(manifest);
    let refused = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).stderr;
    let help = "put the URL under `extra`, where the field name is up to you, or set `image.sent_as` with `--catalog`";
    assert!(refused.contains(help), "{refused}");
    let catalog = "version: 1\nprices_taken_on: 2027-01-01\nfamilies: { beta: { fields: { image: { sent_as: first_frame } } } }\n";
    here.write("catalog.yaml", catalog);
    let service = Service::well();
    here.run(&service, &["--catalog", "catalog.yaml"]).ends_with(0);
    let body: Value = serde_json::from_str(&service.posts()[0]).expect("JSON");
    assert_eq!((&body["first_frame"], &body["image"]), (&"https://example.com/a.png".into(), &Value::Null));
    // The same field can't be set twice.
    here.write("m.yaml", manifest.replace(" }]", ", extra: { first_frame: x } }]"));
    let refused = here.shotlist(&["run", "m.yaml", "--plan", "--catalog", "catalog.yaml"]).ends_with(2);
    insta::assert_snapshot!(refused.line("error[extra-contradicts]"), @"error[extra-contradicts]: `extra` can't say `first_frame`: the interface or the catalog documents that field");
}

#[test]
fn image_key_replaces_urls_under_extra() {
    let manifest = |day: &str, key: &str| {
        format!(
            "version: 1\njobs: [{{ id: a, model: beta-2.0-lite, prompt: x{key}, extra: {{ frames: [{{ url: 'https://example.com/a.png?{day}' }}], seed: 7 }} }}]\n"
        )
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest("mon", ", image_key: a-1")));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", manifest("tue", ", image_key: a-1"));
    assert_eq!(here.planned(&[]).0, 0, "the same picture");
    for other in [
        manifest("tue", ", image_key: a-2"),
        manifest("tue", ""),
        manifest("tue", ", image_key: a-1").replace("seed: 7", "seed: 8"),
    ] {
        here.write("m.yaml", &other);
        assert_eq!(here.planned(&["--buy-again", "*"]).0, 1, "{other}");
    }
    insta::assert_snapshot!(service.posts()[0], @r#"{"duration":5,"frames":[{"url":"https://example.com/a.png?mon"}],"model":"beta-2.0-lite","prompt":"x","seed":7,"size":"1280x720"}"#);
}

#[test]
fn image_key_replaces_a_url_with_a_new_signature() {
    let manifest = |day: &str, key: &str| {
        format!(
            "version: 1\njobs:\n  - {{ id: a, model: alpha-2, prompt: x, image: \"https://c.example/a?s={day}\"{key} }}\n"
        )
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest("mon", ", image_key: a-1")));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", manifest("tue", ", image_key: a-1"));
    assert_eq!(here.plan(&[])["jobs"][0]["action"], "done");
    here.write("m.yaml", manifest("tue", ", image_key: a-2"));
    assert_eq!(here.plan(&[])["jobs"][0]["action"], "changed");
    insta::assert_snapshot!(service.posts()[0], @r#"{"aspect_ratio":"16:9","duration":12,"image":"https://c.example/a?s=mon","model":"alpha-2","prompt":"x"}"#);
}
