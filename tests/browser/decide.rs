//! Decisions on the contact sheet by mouse, keys, and touch.

use serde_json::{Value, json};

use crate::browser::{Browser, VIEWER_HAS_CLOSED};
use crate::support::Workspace;

const MANIFEST: &str = "
version: 1
name: sheet
jobs:
  - { id: hero, model: alpha-2, prompt: 'A paper crane unfolds, and the camera follows each fold until a city of paper is where the sheet was, in the light of an early morning' }
  - { id: waves, model: beta-2.0-lite, duration: 6, prompt: Slow waves over black sand }
  - { id: mug, model: beta-2.0-lite-fast, prompt: A blue mug turns }
";

fn opened(width: u32) -> (Workspace, Browser) {
    let here = Workspace::with_manifest(MANIFEST);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    let mut page =
        Browser::open(&format!("file://{}", here.path("shotlist-sandbox/sheet/report.html").display()), width, 900);
    page.eval("localStorage.setItem('shotlist unnamed', 'true'); HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }");
    (here, page)
}

fn text(page: &mut Browser, selector: &str) -> Value {
    page.eval(&format!("document.querySelector({selector:?}).textContent"))
}

/// The choice and the note of a card.
fn decided(page: &mut Browser, id: &str) -> (Value, Value) {
    let card = format!("document.querySelector('#job-{id}')");
    (page.eval(&format!("{card}.dataset.choice")), page.eval(&format!("{card}.querySelector('.note').value")))
}

/// The content of the file that the page saved last.
fn saved(page: &mut Browser) -> Value {
    let key = "Object.keys(localStorage).find((key) => key.endsWith(' saved'))";
    let text = page.eval(&format!("JSON.parse(localStorage.getItem({key})).text"));
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

fn write(page: &mut Browser, text: &str) {
    for letter in text.chars() {
        page.press(&letter.to_string());
    }
}

#[test]
fn each_compared_video_is_decided_under_itself() {
    let (_here, mut page) = opened(1440);
    for id in ["hero", "waves"] {
        page.click(&format!("#job-{id} .pick"));
    }
    page.click("#compare");
    page.wait_for("[...document.querySelectorAll('#wall[open] figure video')].filter((video) => video.readyState >= 2).length === 2");
    let figure = text(&mut page, "#wall figure");
    for shown in ["hero", "A paper crane unfolds", "$0.90", "16:9"] {
        assert!(figure.as_str().is_some_and(|text| text.contains(shown)), "{shown}: {figure}");
    }
    // By keys: the first has the focus, and arrows move it.
    page.press("1");
    page.press("ArrowRight");
    page.press("2");
    page.press("n");
    write(&mut page, "1x2");
    page.press("Escape");
    assert_eq!(page.eval("document.querySelector('#wall').open"), true, "Esc left the note, and not the comparison");
    assert_eq!(decided(&mut page, "hero"), (json!("keep"), json!("")));
    assert_eq!(decided(&mut page, "waves"), (json!("retake"), json!("1x2")));
    page.press("1");
    assert_eq!(decided(&mut page, "waves").0, "keep", "keys decide again");
    // By mouse.
    page.click("#wall figure:nth-child(1) [data-choose=retake]");
    assert_eq!(decided(&mut page, "hero").0, "retake");
    assert_eq!(page.eval("document.querySelector('#wall [data-choose=retake]').ariaPressed"), "true");
    page.press("Escape");
    page.wait_for("!document.querySelector('#wall').open");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn large_view_opens_by_click_and_accepts_choice_and_note() {
    let (_here, mut page) = opened(1440);
    for way in ["#job-hero .id", "#job-hero .prompt", "#job-hero .enlarge"] {
        page.click(way);
        page.wait_for("document.querySelector('#viewer[open] h2')?.textContent === 'hero'");
        page.press("Escape");
        page.wait_for(VIEWER_HAS_CLOSED);
    }
    assert_eq!(
        page.eval("document.querySelector('#job-hero .pick').checked"),
        false,
        "a click on the title picks nothing"
    );
    page.click("#job-hero .enlarge");
    page.wait_for("document.querySelector('#viewer video')?.readyState >= 2");
    page.click("#viewer [data-choose=keep]");
    page.press("n");
    write(&mut page, "warm");
    page.press("Control+Enter");
    assert_eq!(page.eval("document.activeElement.matches('.note')"), false);
    page.press("ArrowRight");
    page.wait_for("document.querySelector('#viewer h2').textContent === 'waves'");
    assert_eq!(page.eval("document.querySelector('#viewer .note').value"), "", "each video has its own note");
    page.press("2");
    page.press("Escape");
    page.wait_for(VIEWER_HAS_CLOSED);
    assert_eq!(decided(&mut page, "hero"), (json!("keep"), json!("warm")));
    assert_eq!(decided(&mut page, "waves").0, "retake");
    // In a card, too, Esc leaves the note.
    page.eval("document.querySelector('#job-mug').focus()");
    page.press("n");
    write(&mut page, "x");
    page.press("Escape");
    page.press("1");
    assert_eq!(decided(&mut page, "mug"), (json!("keep"), json!("x")));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn undecided_filter_works_and_save_shows_the_next_command() {
    let (here, mut page) = opened(1440);
    page.click("#job-hero [data-choose=keep]");
    page.click("#job-waves [data-choose=retake]");
    let options = page.eval("[...document.querySelectorAll('#decision option')].map((option) => option.textContent)");
    assert_eq!(options, json!(["every choice", "keep (1)", "retake (1)", "conflict (0)", "undecided (1)"]));
    for (decision, shown) in [("keep", "hero"), ("retake", "waves"), ("none", "mug")] {
        page.eval(&format!("(() => {{ const it = document.querySelector('#decision'); it.value = '{decision}'; it.dispatchEvent(new Event('change')); }})()"));
        let cards = page.eval("[...document.querySelectorAll('.card')].filter((card) => card.checkVisibility()).map((card) => card.dataset.id)");
        assert_eq!(cards, json!([shown]));
    }
    page.eval("(() => { const it = document.querySelector('#decision'); it.value = ''; it.dispatchEvent(new Event('change')); })()");
    assert_eq!(page.eval("document.querySelector('#saved').checkVisibility()"), false);
    page.click("#save");
    assert_eq!(text(&mut page, "#save"), "Saved: 1 keep, 1 retake for $4.50");
    assert_eq!(text(&mut page, "#saved > span"), "Saved choices.json in this browser's download directory.");
    let top = page.eval("document.querySelector('.card').getBoundingClientRect().top + scrollY");
    assert!(top.as_f64().is_some_and(|top| top <= 0.2 * 900.0), "the first card begins at {top}");
    let command = page.eval("document.querySelector('#saved .command').dataset.text");
    assert_eq!(command, "shotlist run m.yaml --retake '@~/Downloads/choices.json' --sandbox");
    page.click("#job-mug [data-choose=retake]");
    assert_eq!(text(&mut page, "#saved > span"), "Changed since choices.json was saved.");
    assert_eq!(text(&mut page, "#save"), "Save: 1 keep, 2 retakes for $7.75");
    assert_eq!(page.eval("document.querySelector('#saved .command').checkVisibility()"), false);
    // A second save writes another file, and the command names it. The first file still has the earlier choices.
    assert_eq!(page.eval("window.savedAs"), "choices.json");
    page.click("#save");
    assert_eq!(page.eval("window.savedAs"), "choices-2.json");
    let command = page.eval("document.querySelector('#saved .command').dataset.text");
    assert_eq!(command, "shotlist run m.yaml --retake '@~/Downloads/choices-2.json' --sandbox");
    assert_eq!(page.eval("document.querySelector('#saved .command code').textContent"), command);
    // The command that is shown works, for a choice of the page and in the home directory.
    page.click("#job-mug [data-choose=retake]");
    page.click("#save");
    here.write("Downloads/choices.json", saved(&mut page).to_string());
    let home = here.root().to_str().expect("a path").to_owned();
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--retake", "@~/Downloads/choices.json", "--sandbox"]);
    let plan = plan.env("HOME", &home).ends_with(0).stdout;
    assert!(plan.contains("1 job to submit"), "{plan}");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn tap_opens_the_whole_prompt_and_decides() {
    let (_here, mut page) = opened(390);
    page.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": true }));
    let tap = |page: &mut Browser, selector: &str| {
        let place = page.eval(&format!("(() => {{ const it = document.querySelector({selector:?}); it.scrollIntoView({{ block: 'center' }}); const {{ x, y, width, height }} = it.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"));
        let points = json!([{ "x": place[0], "y": place[1] }]);
        page.call("Input.dispatchTouchEvent", &json!({ "type": "touchStart", "touchPoints": points }));
        page.call("Input.dispatchTouchEvent", &json!({ "type": "touchEnd", "touchPoints": [] }));
    };
    tap(&mut page, "#job-hero .prompt");
    page.wait_for("document.querySelector('#viewer').open");
    let whole = page.eval("(() => { const it = document.querySelector('#viewer .prompt'); return it.textContent.endsWith('early morning') && it.scrollHeight <= it.clientHeight + 1; })()");
    assert_eq!(whole, true, "the whole prompt is shown");
    page.wait_for("document.querySelector('#viewer video')?.readyState >= 2");
    tap(&mut page, "#viewer [data-choose=keep]");
    page.wait_for("document.querySelector('#job-hero').dataset.choice === 'keep'");
    // Commands are for another machine.
    tap(&mut page, "#viewer [data-do=close]");
    page.wait_for(VIEWER_HAS_CLOSED);
    tap(&mut page, "#save");
    page.wait_for("document.querySelector('#saved').checkVisibility()");
    let next = "[...document.querySelectorAll('#saved .next, #saved .send')].filter((it) => it.checkVisibility()).map((it) => it.className)";
    assert_eq!(page.eval(next), json!(["send"]));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// A retake that is taken back after a save must not be bought: the page may be older than what was recorded.
#[test]
fn saved_choice_can_be_taken_back_on_the_same_page() {
    let (here, mut page) = opened(768);
    page.click("#job-mug [data-choose=retake]");
    page.click("#save");
    here.write("one.json", saved(&mut page).to_string());
    page.click("#job-mug [data-choose=retake]");
    assert_eq!(text(&mut page, "#save"), "Save: 1 withdrawn");
    page.click("#save");
    here.write("two.json", saved(&mut page).to_string());
    let choose = |file: &str| here.shotlist(&["choose", "m.yaml", file, "--sandbox"]).ends_with(0).stdout;
    insta::assert_snapshot!(choose("one.json").lines().nth(2).unwrap_or_default(), @"to retake: mug");
    let withdrawn = choose("two.json");
    assert!(withdrawn.lines().nth(2).is_some_and(|line| line.starts_with("no longer counts: mug (retake by ")));
    assert_eq!(withdrawn.lines().nth(3), None, "nothing is to be retaken");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Who is in a conflict sees it, beside the own choice.
#[test]
fn conflict_is_shown_beside_the_own_choice() {
    let (here, mut page) = opened(1024);
    page.click("#job-mug [data-choose=keep]");
    page.click("#save");
    let anna = saved(&mut page);
    here.write("anna.json", anna.to_string());
    let ben = json!({ "name": "sheet", "reviewer": "Ben", "retake": ["mug"], "tasks": anna["tasks"] });
    here.write("ben.json", ben.to_string());
    // The time of a file has whole seconds for a page.
    page.wait_for("Date.now() % 1000 > 900");
    page.wait_for("Date.now() % 1000 < 500");
    here.shotlist(&["choose", "m.yaml", "anna.json", "ben.json", "--sandbox"]).ends_with(0);
    page.reload();
    page.wait_for("document.querySelector('#job-mug .reviewed') !== null");
    assert_eq!(decided(&mut page, "mug").0, "conflict");
    assert_eq!(text(&mut page, "#decision option[value=conflict]"), "conflict (1)");
    let pressed = "document.querySelector('#job-mug [data-choose=keep]').getAttribute('aria-pressed')";
    assert_eq!(page.eval(pressed), "true", "the own choice");
    assert_eq!(saved(&mut page)["keep"], json!(["mug"]));
    assert_eq!(text(&mut page, "#save"), "Saved: 1 keep");
    page.click("#job-mug .prompt");
    let wishes = text(&mut page, "#viewer .found");
    assert!(wishes.as_str().is_some_and(|it| it.starts_with("in conflict: ") && it.ends_with("Ben retakes take 1")));
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn earlier_take_is_kept_and_recorded_choices_are_shown() {
    let (here, page) = opened(1440);
    drop(page);
    here.shotlist(&["run", "m.yaml", "--sandbox", "--retake", "mug"]).ends_with(0);
    let sheet = format!("file://{}", here.path("shotlist-sandbox/sheet/report.html").display());
    let mut page = Browser::open(&sheet, 1440, 900);
    page.eval("HTMLAnchorElement.prototype.click = function () {}");
    let earlier = "[data-of=mug]";
    let task = page.eval(&format!("document.querySelector('{earlier}').dataset.task"));
    page.click("#job-mug [data-choose=retake]");
    page.click(&format!("{earlier} [data-choose=keep]"));
    page.click(&format!("{earlier} [data-choose=note]"));
    write(&mut page, "softer");
    page.press("Escape");
    assert_eq!(decided(&mut page, "mug").0, "", "a job has one choice");
    assert_eq!(page.eval(&format!("document.querySelector('{earlier}').dataset.choice")), "keep");
    assert_eq!(text(&mut page, "#decision option[value=keep]"), "keep (1)");
    // There is nothing to repeat of an earlier take.
    page.eval(&format!("document.querySelector('{earlier}').focus()"));
    page.press("2");
    assert_eq!(page.eval(&format!("document.querySelector('{earlier}').dataset.choice")), "keep");
    // The first save requests a name.
    page.click("#save");
    page.wait_for("document.querySelector('#who').open");
    write(&mut page, "Anna");
    page.click("#who [value=save]");
    page.wait_for("document.querySelector('#save').dataset.saved === 'true'");
    let mut choices = saved(&mut page);
    assert!(choices["browser"].as_str().is_some_and(|id| id.len() == 16), "{choices}");
    choices.as_object_mut().expect("an object").remove("browser");
    let expected = json!({ "name": "sheet", "batch": "", "reviewer": "Anna", "keep": ["mug"], "retake": [], "tasks": { "mug": task }, "notes": { "mug": "softer" } });
    assert_eq!(choices, expected);
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);

    here.write("choices.json", choices.to_string());
    here.shotlist(&["choose", "m.yaml", "choices.json", "--sandbox"]).ends_with(0);
    here.shotlist(&["report", "m.yaml", "--sandbox"]).ends_with(0);
    let mut page = Browser::open(&sheet, 1440, 900);
    assert_eq!(
        page.eval("document.querySelector('#job-mug').dataset.task"),
        task,
        "the kept take is the video of its job"
    );
    assert_eq!(decided(&mut page, "mug").0, "keep");
    assert_eq!(text(&mut page, "#job-mug .reviewed"), "keep (Anna): softer");
    assert_eq!(page.eval("document.querySelector('.saving').hidden"), true, "nobody signs for another");
    let pressed = "[...document.querySelectorAll('#job-mug [aria-pressed=true]')].map((button) => button.textContent)";
    assert_eq!(page.eval(pressed), json!([]), "a button is pressed by the own choice");
    // Another reviewer notes something, agrees, and takes that back. Anna's choice stays hers.
    page.click("#job-mug [data-choose=note]");
    write(&mut page, "x");
    page.press("Escape");
    assert_eq!((decided(&mut page, "mug").0, text(&mut page, "#save")), (json!("keep"), json!("Save: 1 noted")));
    page.click("#job-mug [data-choose=keep]");
    assert_eq!((page.eval(pressed), text(&mut page, "#save")), (json!(["Keep"]), json!("Save: 1 keep, 1 noted")));
    page.click("#job-mug [data-choose=keep]");
    assert_eq!((decided(&mut page, "mug").0, text(&mut page, "#save")), (json!("keep"), json!("Save: 1 noted")));
    // Anna herself withdraws it.
    page.eval("localStorage.clear(); localStorage.setItem('shotlist reviewer', 'Anna')");
    page.reload();
    page.wait_for("document.querySelector('#by')?.value === 'Anna'");
    page.click("#job-mug [data-choose=keep]");
    assert_eq!((decided(&mut page, "mug").0, text(&mut page, "#save")), (json!(""), json!("Save: 1 withdrawn")));
    assert_eq!(page.complaints(), Vec::<String>::new());
}
