//! Layout of the contact sheet: rows, alignment, fit, contrast, and axe-core.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::browser::{Browser, VIEWER_HAS_CLOSED, kept};
use crate::support::{Answer, Service, Workspace, json as answer};

const MANIFEST: &str = "
version: 1
name: looks
faces: { bob: { review: pending } }
jobs:
  - { id: done, model: alpha-2, prompt: A paper crane, tags: [paper], labels: { client: acme } }
  - { id: tall, model: alpha-2, aspect_ratio: '9:16', prompt: 'One that is so long that it takes more than three lines of its card, with words and words and words and words and words and words and words' }
  - { id: broken, model: alpha-2, prompt: fail }
  - { id: refused, model: alpha-2, prompt: refuse }
  - { id: lost, model: alpha-2, aspect_ratio: '9:16', prompt: lose }
  - { id: takes, model: alpha-2, prompt: Waves, takes: 3 }
  - { id: held, model: beta-2.0-lite, prompt: Bob, face: bob }
";
const REPORT: &str = "shotlist-out/looks/report.html";

/// A run with a job in each state, and one retake.
fn mixed() -> &'static Workspace {
    static MIXED: OnceLock<(Workspace, Service)> = OnceLock::new();
    let (here, _) = MIXED.get_or_init(|| {
        let service = Service::scripted(|asked| {
            let says = |word: &str| asked.method == "POST" && asked.body.contains(word);
            if says("\"lose\"") {
                return Answer::Hangup;
            }
            if says("\"refuse\"") {
                return answer(400, &json!({ "error": { "message": "no such thing is shown", "code": "moderation" } }));
            }
            if says("\"fail\"") {
                return answer(200, &json!({ "id": "failing", "status": "queued" }));
            }
            if asked.path.ends_with("/failing") {
                return answer(
                    200,
                    &json!({ "id": "failing", "status": "failed", "error": { "message": "out of memory" } }),
                );
            }
            Answer::Well
        });
        let here = kept("mixed");
        here.write("m.yaml", MANIFEST);
        here.run(&service, &["--concurrency", "1"]).ends_with(7);
        here.run(&service, &["--retake", "takes.2"]).ends_with(7);
        (here, service)
    });
    here
}

fn open(width: u32, height: u32) -> Browser {
    Browser::open(&format!("file://{}", mixed().path(REPORT).display()), width, height)
}

fn text(page: &mut Browser, selector: &str) -> String {
    page.eval(&format!("document.querySelector({selector:?}).innerText")).as_str().unwrap_or_default().to_owned()
}

/// Asserts that axe-core reports nothing, also by the rule that is off by default.
#[track_caller]
pub fn assert_accessible(page: &mut Browser, what: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/target/axe/package/axe.min.js");
    let axe = std::fs::read_to_string(path).expect("axe-core is needed for this test: .ci/run fetches it");
    page.eval(&axe);
    let found = page.eval(
        "axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } }).then(({ violations }) => violations
           .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} ${target}: ${failureSummary}`)))",
    );
    assert_eq!(found, json!([]), "{what}");
}

#[test]
fn axe_finds_nothing_in_any_state() {
    for (width, height) in [(1440, 900), (1024, 768), (768, 1024), (390, 844)] {
        let mut page = open(width, height);
        for scheme in ["light", "dark"] {
            let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
            page.call("Emulation.setEmulatedMedia", &features);
            // Transitions end first.
            page.eval("Promise.all(document.getAnimations().map((one) => one.finished))");
            assert_accessible(&mut page, &format!("{scheme} at {width}"));
        }
        page.eval("document.querySelector('.menu').open = true");
        assert_accessible(&mut page, &format!("unfolded at {width}"));
        page.eval("document.querySelector('.menu').open = false");
        page.click("#job-done .pick");
        page.click("#job-done [data-choose=note]");
        page.click("#job-done [data-choose=keep]");
        assert_accessible(&mut page, &format!("picked and chosen at {width}"));
        page.eval("document.querySelector('#job-done').focus()");
        page.press("Enter");
        page.wait_for("document.querySelector('#viewer').open");
        page.press("1");
        page.press("n");
        assert_accessible(&mut page, &format!("the large view at {width}"));
        page.press("Escape");
        page.press("Escape");
        page.wait_for(VIEWER_HAS_CLOSED);
        page.eval("document.querySelector('#job-tall').focus()");
        page.press("x");
        page.press("c");
        page.wait_for("document.querySelector('#wall').open");
        page.press("2");
        page.press("n");
        assert_accessible(&mut page, &format!("the comparison at {width}"));
    }
}

#[test]
fn failed_task_takes_a_note_and_no_choice() {
    let service = Service::scripted(|asked| match &*asked.method {
        "POST" => answer(200, &json!({ "id": "failing", "status": "queued" })),
        _ => answer(200, &json!({ "id": "failing", "status": "failed", "error": { "message": "out of memory" } })),
    });
    let here =
        Workspace::with_manifest("version: 1\nname: looks\njobs: [{ id: broken, model: alpha-2, prompt: A cup }]\n");
    here.run(&service, &[]).ends_with(1);
    let sheet = format!("file://{}", here.path(REPORT).display());
    let mut page = Browser::open(&sheet, 1440, 900);
    page.eval("HTMLAnchorElement.prototype.click = () => {}; localStorage.setItem('shotlist reviewer', 'Anna')");
    page.reload();
    page.wait_for("document.querySelector('#by')?.value === 'Anna'");
    page.eval("document.querySelector('#job-broken').focus()");
    page.press("1");
    assert_eq!(page.eval("document.querySelectorAll('#job-broken [data-choose]').length"), 1);
    page.press("n");
    for letter in "shorter".chars() {
        page.press(&letter.to_string());
    }
    page.press("Escape");
    assert_eq!(text(&mut page, "#save"), "Save: 1 noted");
    page.click("#job-broken .pick");
    assert_eq!(page.eval("[...document.querySelectorAll('#picked [data-do]')].every((button) => button.hidden)"), true);
    page.click("#save");
    let key = "Object.keys(localStorage).find((key) => key.endsWith(' saved'))";
    let saved = page.eval(&format!("JSON.parse(localStorage.getItem({key})).text"));
    here.write("choices.json", saved.as_str().expect("a text"));
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    here.shotlist(&["report", "m.yaml"]).ends_with(0);
    let mut page = Browser::open(&sheet, 1440, 900);
    assert_eq!(text(&mut page, "#job-broken .reviewed"), "(Anna): shorter");
    // A choice about it is refused.
    let chosen = saved.as_str().expect("a text").replace("\"keep\": []", "\"keep\": [\"broken\"]");
    here.write("choices.json", chosen);
    let refused = here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(2);
    assert!(refused.stderr.contains("`broken` has no completed video of task `failing`"), "{}", refused.stderr);
}

#[test]
fn videos_come_first_and_everything_fits() {
    for (width, height) in [(1440, 900), (1024, 768), (390, 844)] {
        let mut page = open(width, height);
        // The service of this test has no real videos, and the page says so.
        page.wait_for("!document.querySelector('#gone').hidden");
        page.eval("document.querySelector('#gone').remove()");
        let wide = page.eval("document.documentElement.scrollWidth").as_u64().expect("a number");
        assert!(wide <= u64::from(width), "{wide} wide: it has to be pushed sideways");
        let top = page.eval("document.querySelector('.card').getBoundingClientRect().top").as_f64().expect("a number");
        let share = if width > 1100 {
            0.2
        } else if width < 600 {
            0.3
        } else {
            0.35
        };
        assert!(top < f64::from(height) * share, "the first card begins at {top} of {height}");
        if width > 600 {
            let rows = page.eval("new Set([...document.querySelectorAll('.tools > *')].filter((it) => it.checkVisibility()).map((it) => Math.round((it.getBoundingClientRect().top + it.getBoundingClientRect().bottom) / 16))).size");
            assert_eq!(rows, if width > 1100 { 1 } else { 2 }, "lines of the toolbar at {width}");
        }
        // A longer counter moves nothing.
        let top = "document.querySelector('#sheet').getBoundingClientRect().top + scrollY";
        let before = page.eval(top);
        page.click(".chip[data-state=failed]");
        assert_eq!(text(&mut page, "#count"), "1 of 9 jobs");
        assert_eq!(page.eval(top), before, "at {width}");
    }
}

#[test]
fn missing_image_shows_its_cause_and_command() {
    let mut page = open(1440, 900);
    // Text of a card that is out of sight is not laid out.
    let told = |page: &mut Browser, id: &str| {
        let frame = format!("document.querySelector('#job-{id} .frame').textContent");
        page.eval(&frame).as_str().unwrap_or_default().to_owned()
    };
    for (id, words) in [
        (
            "broken",
            vec![
                "failed, submitted",
                "out of memory",
                "trying again costs $0.90",
                "shotlist run m.yaml --select broken --retry-failed",
            ],
        ),
        (
            "refused",
            vec![
                "rejected",
                "no such thing is shown (moderation)",
                "nothing was charged",
                "shotlist run m.yaml --select refused",
            ],
        ),
        ("lost", vec!["in doubt since", "$0.90 at risk", "look for the task at the service"]),
        ("held", vec!["held", "waits for the review of `bob`"]),
    ] {
        let told = told(&mut page, id);
        assert!(words.iter().all(|word| told.contains(word)), "{id}: {told}");
    }
    page.call("Browser.grantPermissions", &json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }));
    page.click("#job-broken .command");
    page.wait_for(
        "navigator.clipboard.readText().then((text) => text === 'shotlist run m.yaml --select broken --retry-failed')",
    );
    // Narrow cards cut off no word, and a command breaks only between words.
    for (width, media) in [(1440, ""), (1024, ""), (390, ""), (1440, "print")] {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", &size);
        page.call("Emulation.setEmulatedMedia", &json!({ "media": media, "features": [] }));
        page.settle();
        let cut = page.eval(
            "[...document.querySelectorAll('.frame > .none')].filter((none) => { const frame = none.parentElement.getBoundingClientRect(); \
             return [...none.querySelectorAll('*')].some((part) => { const box = part.getBoundingClientRect(); \
             return box.bottom > frame.bottom + 1 || box.right > frame.right + 1; }); }).map((none) => none.textContent)",
        );
        assert_eq!(cut, json!([]), "{width} {media}");
        let shown = page.eval("[...document.querySelectorAll('.none .command code')].map((code) => code.checkVisibility() && code.textContent)");
        assert_eq!(shown.as_array().map(Vec::len), Some(2), "{shown}");
        assert!(
            shown.as_array().is_some_and(|all| all
                .iter()
                .all(|one| one.as_str().is_some_and(|text| text.starts_with("shotlist ")))),
            "{shown}"
        );
        let words = page.eval("[...document.querySelectorAll('.command code span')].filter((word) => word.getClientRects().length > 1).length");
        assert_eq!(words, 0, "{width} {media}");
    }
    page.call("Emulation.setEmulatedMedia", &json!({ "media": "", "features": [] }));
    // The same above all cards, and a way to them.
    let problems = text(&mut page, ".problems");
    assert_eq!(page.eval("document.querySelectorAll('.problems [data-text^=\"shotlist resolve\"]').length"), 1);
    assert!(problems.contains("$0.90 at risk") && problems.contains("1 job failed"), "{problems}");
    page.click("[data-state=failed].chip");
    page.click("[data-state=in_doubt].chip");
    assert_eq!(text(&mut page, "#count"), "2 of 9 jobs");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn takes_and_earlier_videos_follow_each_other_and_say_so() {
    let mut page = open(1440, 900);
    let ids = page.eval("[...document.querySelectorAll('.takes .card')].map((card) => card.dataset.id)");
    assert_eq!(ids, json!(["takes", "takes.2", "takes.3", "takes.2~1.mp4"]));
    let labels = page.eval(
        "[...document.querySelectorAll('.takes .frame')].map((frame) => getComputedStyle(frame, '::after').content)",
    );
    assert_eq!(labels, json!(["\"take 1/3\"", "\"take 2/3\"", "\"take 3/3\"", "\"other take\""]));
    // Any two can be compared, an earlier one and a new one, too; an earlier one is no job.
    page.click(".earlier .pick");
    assert_eq!(page.eval("document.querySelector('#copy').checkVisibility()"), false);
    page.click("[data-id='takes.2'] .pick");
    page.press("c");
    page.wait_for("document.querySelector('#wall').open");
    let compared = page.eval("[...document.querySelectorAll('#wall figcaption')].map((it) => it.textContent)");
    assert_eq!(compared, json!(["takes.2", "takes.2 take 1 of 2"]));
    let seen = page.eval("(() => { const { bottom } = document.querySelector('#wall [data-do=close]').getBoundingClientRect(); return bottom <= innerHeight; })()");
    assert_eq!(seen, true, "the way out is in sight");
    page.press("Escape");
    page.click("#picked [data-do=retake]");
    page.wait_for("document.querySelector('#save').textContent === 'Save: 1 retake for $0.90'");
    // A filter that takes the job away takes its earlier videos, too.
    page.click(".chip[data-state=failed]");
    assert_eq!(page.eval("document.querySelector('.takes').checkVisibility()"), false);
}

#[test]
fn decided_card_leaves_the_filter_for_undecided_ones() {
    let mut page = open(1440, 900);
    page.eval(
        "{ const it = document.querySelector('#decision'); it.value = 'none'; it.dispatchEvent(new Event('change')); }",
    );
    assert_eq!(text(&mut page, "#count"), "5 of 9 jobs");
    page.eval("document.querySelector('#job-done').focus()");
    page.press("1");
    assert_eq!(text(&mut page, "#count"), "4 of 9 jobs");
    assert_eq!(page.eval("document.activeElement.dataset.id"), "tall", "the next card has the keys");
    // In the large view, nothing leaves before it closes.
    page.press("Enter");
    page.wait_for("document.querySelector('#viewer').open");
    page.press("1");
    assert_eq!(text(&mut page, "#count"), "4 of 9 jobs");
    page.press("Escape");
    page.wait_for(VIEWER_HAS_CLOSED);
    assert_eq!(text(&mut page, "#count"), "3 of 9 jobs");
}

/// Justified rows: pictures have one height and their requested shape, and fill the width.
#[test]
fn rows_are_filled_with_pictures_of_one_height() {
    for width in [1440, 1024, 768] {
        let mut page = open(width, 900);
        let rows = page.eval(
            "(() => { const rows = new Map(); for (const card of document.querySelectorAll('.card')) { const frame = card.querySelector('.frame').getBoundingClientRect(); \
             const key = Math.round(frame.top); rows.set(key, [...(rows.get(key) ?? []), [Math.round(frame.height), Math.round(frame.right), Math.round(100 * frame.width / frame.height)]]); } return [...rows.values()]; })()",
        );
        let sheet = page.eval("(() => { const { paddingRight } = getComputedStyle(document.querySelector('#sheet')); return Math.round(document.documentElement.clientWidth - parseFloat(paddingRight)); })()");
        let right = sheet.as_i64().expect("a number");
        let rows = rows.as_array().expect("rows").clone();
        for (number, row) in rows.iter().enumerate() {
            let row = row.as_array().expect("a row");
            let near = |a: &Value, b: i64| (a.as_i64().expect("a number") - b).abs() <= 2;
            assert!(row.iter().all(|card| near(&card[0], row[0][0].as_i64().expect("a height"))), "{width}: {row:?}");
            assert!(row.iter().all(|card| near(&card[2], 178) || near(&card[2], 56)), "the shapes at {width}: {row:?}");
            let is_filled = near(&row.last().expect("a card")[1], right);
            let is_alone = row.len() == 1 && width > 900;
            assert!(is_filled || is_alone || number + 1 == rows.len(), "{width}, row {number}: {row:?} of {right}");
        }
    }
}

#[test]
fn cards_of_a_row_have_their_words_in_line() {
    let mut page = open(1440, 900);
    for what in [".frame", ".prompt", ".facts"] {
        let places = page.eval(&format!("['done', 'tall'].map((id) => {{ const it = document.querySelector('#job-' + id + ' {what}').getBoundingClientRect(); return [Math.round(it.top), Math.round(it.height)]; }})"));
        assert!(
            (places[0][0].as_i64().expect("top") - places[1][0].as_i64().expect("top")).abs() <= 1,
            "{what}: {places}"
        );
    }
    // Also on a narrow card, no amount is cut, and the buttons are beside each other.
    let fits = "(() => { const card = document.querySelector('#job-tall'), facts = card.querySelector('.facts'); \
         const tops = [...card.querySelectorAll('[data-choose]')].map((it) => Math.round(it.getBoundingClientRect().top)); \
         return [facts.scrollWidth <= facts.clientWidth, new Set(tops).size]; })()";
    assert_eq!(page.eval(fits), json!([true, 1]));
    // An open note moves nothing.
    let place = "JSON.stringify([...document.querySelectorAll('#job-done [data-choose], #job-tall [data-choose]')].map((it) => Math.round(it.getBoundingClientRect().top + scrollY)))";
    let before = page.eval(place);
    page.click("#job-done [data-choose=note]");
    page.wait_for("document.querySelector('#job-done .note').checkVisibility()");
    assert_eq!(page.eval(place), before);
}

#[test]
fn touch_targets_are_large_and_times_local() {
    let mut page = open(390, 844);
    page.call("Emulation.setTimezoneOverride", &json!({ "timezoneId": "Asia/Tokyo" }));
    page.reload();
    page.wait_for("document.querySelector('.name time')?.title.endsWith('UTC')");
    let same = page.eval("(() => { const time = document.querySelector('.name time'); return new Date(time.dateTime).getHours() === (new Date(time.dateTime).getUTCHours() + 9) % 24 && time.textContent !== time.title; })()");
    assert_eq!(same, true);
    page.click("#job-done .pick");
    let bar = page.eval("document.querySelector('#picked').getBoundingClientRect().height").as_f64().expect("a number");
    assert!(bar < 844.0 * 0.1, "the bar takes {bar}");
    for button in ["keep", "retake"] {
        let reach =
            page.eval(&format!("document.querySelector('#picked [data-do={button}]').getBoundingClientRect().height"));
        assert!(reach.as_f64().is_some_and(|height| height >= 36.0), "{button}: {reach}");
    }
    // A swipe in the large view shows the next video.
    page.eval("document.querySelector('#job-done').focus()");
    page.press("Enter");
    page.wait_for("document.querySelector('#viewer').open");
    // The test's service gives something that no browser can play.
    page.wait_for("document.querySelector('#viewer .gone') !== null");
    page.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": true }));
    for (kind, x) in [("touchStart", 300), ("touchMove", 200), ("touchEnd", 100)] {
        let points = if kind == "touchEnd" { json!([]) } else { json!([{ "x": x, "y": 300 }]) };
        page.call("Input.dispatchTouchEvent", &json!({ "type": kind, "touchPoints": points }));
    }
    page.wait_for("document.querySelector('#viewer h2').textContent === 'tall'");
}
