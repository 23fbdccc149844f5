//! The contact sheet before the run: what the user sees before anything is paid, and what hostile texts can't.

use serde_json::json;

use crate::browser::Browser;
use crate::looks::assert_accessible;
use crate::support::{Workspace, numbered_jobs};

/// The page of a plan, opened from a file.
fn opened(here: &Workspace, args: &[&str], width: u32) -> Browser {
    let page = here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "html"], args].concat()).ends_with(0).stdout;
    here.write("plan.html", page);
    Browser::open(&format!("file://{}", here.path("plan.html").display()), width, 900)
}

#[test]
fn every_job_is_a_card_with_its_finished_prompt_price_shape_image_and_warnings() {
    let here = Workspace::with_manifest(
        "version: 1
vars: { brand: Acme }
budget: { run: 20.00 }
faces: { bob: { review: pending } }
jobs:
  - { id: mug, model: alpha-2, image_file: mug.png, prompt: '{{ brand }} mug', tags: [kitchen] }
  - { id: mug-tall, model: alpha-2, image_file: mug.png, aspect_ratio: '9:16', prompt: '{{ brand }} mug' }
  - { id: slip, model: beta-2.0-lite, prompt: 'A {brand} lamp' }
  - { id: bob, model: beta-2.0-lite, prompt: Bob, face: bob }
",
    );
    let picture = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/spring/pictures/mug.png"));
    here.write("mug.png", picture.expect("a picture"));
    let mut page = opened(&here, &[], 1440);
    let text = |page: &mut Browser, selector: &str| {
        page.eval(&format!("document.querySelector({selector:?}).innerText")).as_str().expect("a text").to_owned()
    };
    assert_eq!(page.eval("document.title"), "m — plan");
    assert_eq!(text(&mut page, "#job-mug .prompt"), "Acme mug");
    let facts = text(&mut page, "#job-mug .facts");
    assert!(["$0.90", "alpha-2", "12 s", "16:9"].iter().all(|fact| facts.contains(fact)), "{facts}");
    // One image for both, held once, and drawn by the page's own policy.
    page.wait_for(
        "[...document.querySelectorAll('.frame img')].filter((img) => img.naturalWidth === 640).length === 2",
    );
    assert_eq!(page.eval("Object.keys(JSON.parse(document.querySelector('#local_images').textContent)).length"), 1);
    assert!(text(&mut page, "#job-slip .exec").contains("{brand}"), "the slip stands on its card");
    assert!(text(&mut page, "#job-bob .frame").contains("waits for the review of `bob`"));
    let told = text(&mut page, ".problems");
    assert!(told.contains("within the limit of $20.00") && told.contains("shotlist run m.yaml --approved"), "{told}");
    page.click(".chip[data-state=hold]");
    assert_eq!(text(&mut page, "#count"), "1 of 4 jobs");
    page.click(".chip[data-state=hold]");
    page.click("#job-slip .pick");
    assert_eq!(page.eval("document.querySelector('#picked [data-do=keep]').checkVisibility()"), false);
    page.click("[data-copy='--select']");
    page.wait_for("document.querySelector('#copied').value === '--select slip'");
    assert_accessible(&mut page, "a plan");
    assert_eq!(page.complaints(), Vec::<String>::new());
    // Nothing else was written or sent.
    assert_eq!(here.files().iter().filter(|file| file.contains("shotlist")).count(), 0, "{:?}", here.files());
}

#[test]
fn texts_in_a_plan_stay_texts() {
    let evil = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>";
    let job = |id: &str, prompt: &str| json!({ "id": id, "model": "alpha-2", "prompt": format!("{{% raw %}}{prompt}{{% endraw %}}"), "tags": [evil], "labels": { "client": evil } });
    let mut jobs = vec![job("a", evil), job("b", "c\u{202e}gpj")];
    jobs[1]["image"] = json!("https://pictures.invalid/a.png\"onerror=alert(1)");
    let manifest = json!({ "version": 1, "name": "<b>evil</b>", "jobs": jobs });
    let here = Workspace::with_manifest(&manifest.to_string());
    let mut page = opened(&here, &[], 1000);
    assert_eq!(page.eval("document.querySelector('#job-a .prompt').textContent"), evil);
    assert_eq!(page.eval("document.querySelector('#job-b .prompt').textContent"), "c\u{fffd}gpj");
    assert_eq!(page.eval("document.querySelector('h1 bdi').textContent"), "<b>evil</b>");
    page.eval("for (const it of document.querySelectorAll('*')) { it.focus?.(); it.dispatchEvent(new MouseEvent('mouseover', { bubbles: true })); }");
    page.eval("new Promise((done) => setTimeout(done, 100))");
    assert_eq!(page.eval("window.hacked ?? null"), json!(null));
}

#[test]
fn a_plan_of_very_many_jobs_is_bounded_and_says_so() {
    let here = Workspace::with_manifest(&numbered_jobs(5200));
    let mut page = opened(&here, &[], 1440);
    assert_eq!(page.eval("document.querySelectorAll('.card').length"), 5000);
    let told = page.eval("document.querySelector('.problems').innerText");
    assert!(told.as_str().is_some_and(|told| told.contains("200 more jobs are not drawn")), "{told}");
}
