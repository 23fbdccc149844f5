//! The contact sheet in a real browser: play, filter, pick, print, and hostile texts.

use std::fs;
use std::sync::OnceLock;

use serde_json::json;

use crate::browser::{Browser, kept};
use crate::support::{Answer, Service, Workspace, json as answer};

const MANIFEST: &str = "
version: 1
name: sheet
jobs:
  - { id: hero, model: alpha-2, prompt: A paper crane unfolds, tags: [launch, paper] }
  - { id: hero-upright, model: alpha-2, aspect_ratio: '9:16', prompt: A paper crane unfolds, tags: [launch] }
  - { id: waves, model: beta-2.0-lite, duration: 6, prompt: Slow waves over black sand, file: 'sea/slow waves #1.mp4' }
  - { id: mug, model: beta-2.0-lite-fast, prompt: A blue mug turns }
";
const REPORT: &str = "shotlist-sandbox/sheet/report.html";

/// A finished run against the simulator, the same for all tests here: it takes seconds.
fn finished() -> &'static Workspace {
    static FINISHED: OnceLock<Workspace> = OnceLock::new();
    FINISHED.get_or_init(|| rehearsed(kept("finished")))
}

fn rehearsed(here: Workspace) -> Workspace {
    here.write("m.yaml", MANIFEST);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    here
}

fn open(here: &Workspace, report: &str, width: u32, height: u32) -> Browser {
    Browser::open(&format!("file://{}", here.path(report).display()), width, height)
}

/// The ids of the cards that are shown.
const SHOWN: &str =
    "[...document.querySelectorAll('.card')].filter((card) => card.checkVisibility()).map((card) => card.dataset.id)";

/// As in a mail, or in the preview of a file store.
#[test]
fn page_without_scripts_says_so_and_has_no_dead_button() {
    let mut page = open(finished(), REPORT, 1440, 1000);
    let dead = "[...document.querySelectorAll('button, input, select, textarea, summary')].filter((it) => \
                it.checkVisibility() && !it.disabled).map((it) => it.outerHTML)";
    let told = "document.getElementById('static').checkVisibility()";
    assert_eq!(page.eval(told), false);
    page.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    page.reload();
    page.wait_for(told);
    assert_eq!(page.eval(dead), json!([]));
    // The videos are links.
    let links = "[...document.querySelectorAll('.more a')].filter((link) => link.checkVisibility()).length";
    assert!(page.eval(links).as_u64() >= Some(4));
    assert_eq!(page.eval(SHOWN), json!(["hero", "hero-upright", "waves", "mug"]));
}

#[test]
fn person_plays_filters_picks_and_copies() {
    let mut page = open(finished(), REPORT, 1440, 1000);
    assert_eq!(page.eval("document.title"), "sheet — contact sheet");
    assert_eq!(page.eval(SHOWN), json!(["hero", "hero-upright", "waves", "mug"]));

    // Each card has a player of its file.
    page.wait_for("[...document.querySelectorAll('video')].filter((video) => video.readyState >= 2).length === 4");
    let sources =
        page.eval("[...document.querySelectorAll('video')].map((video) => decodeURIComponent(video.currentSrc))");
    assert!(
        sources
            .as_array()
            .expect("a list")
            .iter()
            .all(|source| source.as_str().is_some_and(|url| url.starts_with("file://")))
    );
    assert!(sources[2].as_str().is_some_and(|url| url.contains("sea/slow waves #1.mp4")), "{sources}");
    page.click("#job-waves .play");
    page.wait_for("document.querySelector('#job-waves video').currentTime > 0.3");
    let length = page.eval("Math.round(document.querySelector('#job-waves video').duration)");
    assert_eq!(length, 6);

    // Filters.
    page.click("#text");
    for key in ["p", "a", "p", "e", "r"] {
        page.press(key);
    }
    assert_eq!(page.eval(SHOWN), json!(["hero", "hero-upright"]));
    page.press("Escape");
    page.eval("(() => { const model = document.querySelector('#model'); model.value = 'alpha-2'; model.dispatchEvent(new Event('change')); })()");
    page.eval("(() => { const tag = document.querySelector('#tag'); tag.value = 'paper'; tag.dispatchEvent(new Event('change')); })()");
    assert_eq!(page.eval(SHOWN), json!(["hero"]));
    assert_eq!(page.eval("document.querySelector('#count').textContent"), "1 of 4 jobs");
    page.eval("for (const id of ['model', 'tag']) { const it = document.querySelector('#' + id); it.value = ''; it.dispatchEvent(new Event('change')); }");
    page.click(".chip[data-state=completed]");
    assert_eq!(page.eval(SHOWN).as_array().map(Vec::len), Some(4));

    // Keys and the clipboard.
    page.eval("document.activeElement.blur()");
    for key in ["j", "x", "ArrowRight", "ArrowRight", "x"] {
        page.press(key);
    }
    assert_eq!(page.eval("document.querySelector('#how-many').textContent"), "2 picked");
    page.call("Browser.grantPermissions", &json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }));
    let copied = "'{hero,waves}'";
    page.click("#copy");
    page.wait_for(&format!("document.querySelector('#copied').value === \"{copied}\""));
    page.wait_for(&format!("navigator.clipboard.readText().then((text) => text === \"{copied}\")"));

    // Side by side, and large.
    page.press("c");
    page.wait_for(
        "[...document.querySelectorAll('#wall[open] video')].filter((video) => video.currentTime > 0).length === 2",
    );
    page.press("Escape");
    page.eval("document.querySelector('#job-hero').focus()");
    page.press("Enter");
    page.wait_for("document.querySelector('#viewer[open] video')?.readyState >= 2");
    page.press("ArrowRight");
    page.wait_for("document.querySelector('#viewer h2').textContent === 'hero-upright'");
    page.press("Escape");

    // The selection survives a reload.
    page.reload();
    page.wait_for("document.querySelector('#how-many')?.textContent === '2 picked'");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn kept_and_retaken_videos_are_saved() {
    let here = rehearsed(Workspace::new());
    let mut page = open(&here, REPORT, 1440, 1000);
    page.eval("URL.createObjectURL = (blob) => { window.saved = blob; return 'about:blank#'; }");
    page.eval("localStorage.setItem('shotlist unnamed', 'true')");
    assert_eq!(page.eval("document.querySelector('.saving').hidden"), true);
    page.click("#job-hero [data-choose=keep]");
    page.click("#job-waves [data-choose=retake]");
    page.eval("document.querySelector('#job-mug').focus()");
    // By keys: kept, and then rather again; and a choice that is taken back.
    for key in ["1", "2"] {
        page.press(key);
    }
    page.click("#job-hero-upright [data-choose=keep]");
    page.click("#job-hero-upright [data-choose=keep]");
    page.eval("document.querySelector('#job-waves').focus()");
    page.press("n");
    for key in ["d", "a", "r", "k"] {
        page.press(key);
    }
    assert_eq!(page.eval("document.querySelector('#save').textContent"), "Save: 1 keep, 2 retakes for $7.75, 1 noted");
    page.eval("HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }");
    page.click("#save");
    let saved = page.eval("window.saved.text()");
    let mut choices: serde_json::Value = serde_json::from_str(saved.as_str().expect("a text")).expect("JSON");
    choices.as_object_mut().expect("an object").remove("browser");
    let report = here.json(&REPORT.replace(".html", ".json"));
    let task = |id: &str| {
        let mut jobs = report["jobs"].as_array().expect("jobs").iter();
        jobs.find(|job| job["id"] == id).map(|job| job["task_id"].clone()).expect("a job")
    };
    let expected = json!({
        "name": "sheet", "batch": "", "keep": ["hero"], "retake": ["waves", "mug"], "notes": { "waves": "dark" },
        "tasks": { "hero": task("hero"), "waves": task("waves"), "mug": task("mug") },
    });
    assert_eq!(choices, expected);
    assert_eq!(page.eval("window.savedAs"), "choices.json");
    // The next run accepts the saved file.
    here.write("choices.json", saved.as_str().expect("a text"));
    let plan =
        here.shotlist(&["run", "m.yaml", "--sandbox", "--plan", "--retake", "@choices.json"]).ends_with(0).stdout;
    assert!(plan.contains("2 jobs to submit"), "{plan}");
    // It is there when the page is read again.
    let read_again = |page: &mut Browser, choices: &str| {
        page.reload();
        let says = format!("document.querySelector('#save')?.textContent === '{choices}'");
        page.wait_for(&says);
    };
    read_again(&mut page, "Saved: 1 keep, 2 retakes for $7.75, 1 noted");
    // A retake clears the choice of its video, and keeps the note.
    here.shotlist(&["run", "m.yaml", "--sandbox", "--retake", "@choices.json"]).ends_with(0);
    read_again(&mut page, "Save: 1 keep, 1 noted");
    assert_eq!(page.eval("document.querySelector('#job-waves .note').value"), "dark");
    page.click("#job-waves [data-choose=keep]");
    assert_eq!(page.eval("document.querySelector('#save').textContent"), "Save: 2 keep, 1 noted");
    // Accents are no hindrance.
    page.click("#text");
    for key in ["p", "à", "p", "é", "r"] {
        page.press(key);
    }
    assert_eq!(page.eval(SHOWN), json!(["hero", "hero-upright"]));
    page.eval("localStorage.clear()");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn printing_waits_for_the_image() {
    for by_keys in [false, true] {
        let mut page = open(finished(), REPORT, 700, 300);
        let loaded = "[...document.querySelectorAll('video')].filter((video) => video.readyState >= 2).length
            + document.querySelectorAll('.frame > canvas').length";
        page.eval(&format!("window.print = () => {{ window.printedWith = {loaded}; }}"));
        if by_keys {
            page.press("Control+p");
        } else {
            page.click(".menu summary");
            page.click("#print");
        }
        page.wait_for("window.printedWith !== undefined");
        assert_eq!(page.eval("window.printedWith"), 4);
        assert_eq!(page.complaints(), Vec::<String>::new());
    }
}

#[test]
fn it_is_whole_on_a_phone_and_in_the_dark() {
    let mut page = open(finished(), REPORT, 390, 844);
    assert_eq!(page.eval("document.documentElement.scrollWidth"), 390, "it has to be pushed sideways");
    let light = page.eval("getComputedStyle(document.body).backgroundColor");
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    page.call("Emulation.setEmulatedMedia", &dark);
    assert_ne!(page.eval("getComputedStyle(document.body).backgroundColor"), light);
    page.call("Emulation.setEmulatedMedia", &json!({ "media": "print", "features": [] }));
    assert_eq!(page.eval("document.querySelector('.tools').checkVisibility()"), false);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn page_without_files_plays_from_the_service() {
    let (service, here) =
        (Service::well(), Workspace::with_manifest("version: 1\njobs: [{ id: one, model: alpha-2, prompt: x }]\n"));
    here.run(&service, &[]).ends_with(0);
    fs::remove_file(here.path("shotlist-out/m/one.mp4")).expect("gone");
    let fetched = service.fetched().len();
    let mut page = open(&here, "shotlist-out/m/report.html", 1000, 800);
    // The page requests the URL at the service, whose bytes no browser can play, and then explains the missing video.
    page.wait_for("document.querySelector('.frame').textContent === 'not beside this page'");
    let told = page.eval("document.querySelector('#gone').innerText");
    assert!(
        told.as_str().is_some_and(|told| told.starts_with("Videos are missing beside this page: ask for")),
        "{told}"
    );
    assert!(service.fetched().len() > fetched, "the address at the service was not tried");
}

#[test]
fn texts_from_outside_stay_texts() {
    let evil = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\" onfocus=\"window.hacked = 3";
    let long = "Ω".repeat(1500);
    let prompts = [
        evil.to_owned(),
        "a\u{202e}gpj.exe\u{202c} b\u{2066}c \u{200f}שלום".to_owned(),
        "{{ 7 * 7 }} {% raw %} <!-- ".to_owned(),
        long.clone(),
    ];
    let mut manifest = json!({ "version": 1, "name": "<b>evil</b>", "jobs": [] });
    for (number, prompt) in prompts.iter().enumerate() {
        let job = json!({ "id": format!("j{number}"), "model": "beta-2.0-lite", "prompt": prompt, "tags": [evil] });
        manifest["jobs"].as_array_mut().expect("a list").push(job);
    }
    manifest["jobs"][2]["prompt"] = json!("{{ '{{ 7 * 7 }} {% raw %} <!-- ' }}");
    let service = Service::scripted(move |asked| match (asked.method.as_str(), asked.earlier) {
        ("GET", _) if asked.path.ends_with("t0") => {
            let error = json!({ "message": "</p><script>window.hacked = 4</script>\u{0}\u{1b}[31m", "code": "<i>" });
            answer(200, &json!({ "id": "t0", "status": "failed", "error": error }))
        }
        ("GET", _) if asked.path.ends_with("t1") => {
            answer(200, &json!({ "id": "t1", "status": "completed", "video_url": "javascript:window.hacked=5" }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&manifest.to_string());
    here.run(&service, &["--concurrency", "1", "--out", "out", "--accept-warnings"]).ends_with(1);
    let mut page = open(&here, "out/report.html", 1200, 1000);
    page.wait_for("document.querySelectorAll('.card').length === 4");
    // Focus and hover reach each element.
    assert!(
        !fs::read_to_string(here.path("out/report.html")).expect("the page").contains("\"None\""),
        "nothing became a word"
    );
    page.eval("for (const it of document.querySelectorAll('*')) { it.focus?.(); it.dispatchEvent(new MouseEvent('mouseover', { bubbles: true })); }");
    assert_eq!(page.eval("window.hacked ?? null"), json!(null));
    assert_eq!(
        page.eval(
            "document.querySelectorAll('script').length + document.querySelectorAll('main img, main script').length"
        ),
        1
    );
    assert_eq!(page.eval("document.querySelector('#job-j0 .prompt').textContent"), evil);
    assert_eq!(page.eval("document.querySelector('#job-j0 .tag').textContent"), evil);
    assert_eq!(page.eval("document.querySelector('#job-j3 .prompt').textContent"), long);
    assert_eq!(page.eval("document.querySelector('#job-j2 .prompt').textContent"), "{{ 7 * 7 }} {% raw %} <!-- ");
    assert_eq!(
        page.eval("document.querySelector('#job-j1 .prompt').textContent"),
        "a\u{fffd}gpj.exe\u{fffd} b\u{fffd}c \u{200f}שלום"
    );
    assert_eq!(page.eval("document.querySelector('h1 bdi').textContent"), "<b>evil</b>");
    let error = page.eval("document.querySelector('#job-j0 .error').textContent");
    assert_eq!(error, "</p><script>window.hacked = 4</script>\u{fffd}\u{fffd}[31m (<i>)");
    assert_eq!(
        page.eval("[...document.querySelectorAll('a')].filter((link) => link.protocol === 'javascript:').length"),
        0
    );
    // The policy of the page blocks an injected script even if an escape fails.
    page.eval("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 6\">')");
    page.eval("(() => { const script = document.createElement('script'); script.textContent = 'window.hacked = 7'; document.body.append(script); })()");
    page.eval("new Promise((done) => setTimeout(done, 100))");
    assert_eq!(page.eval("window.hacked ?? null"), json!(null));
    // The texts byte for byte are in the other report.
    assert_eq!(here.json("out/report.json")["jobs"][1]["prompt"], prompts[1]);
}

#[test]
fn thousand_cards_have_players_only_in_view() {
    let manifest = crate::support::numbered_jobs(1000);
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    here.run(&service, &["--concurrency", "64", "-q"]).ends_with(0);
    let mut page = open(&here, "shotlist-out/m/report.html", 1440, 1000);
    assert_eq!(page.eval("document.querySelectorAll('.card').length"), 1000);
    let players = "document.querySelectorAll('.frame video, .frame p').length";
    page.wait_for(&format!("{players} > 0"));
    assert!(page.eval(players).as_u64().is_some_and(|count| count < 60), "{}", page.eval(players));
    page.eval("scrollTo(0, document.documentElement.scrollHeight)");
    page.wait_for("document.querySelector('#job-j999 video, #job-j999 .frame p') !== null");
    page.click("#text");
    for key in ["n", "u", "m", "b", "e", "r", " ", "j", "7", "3", "1"] {
        page.press(key);
    }
    assert_eq!(page.eval(SHOWN), json!(["j731"]));
}
