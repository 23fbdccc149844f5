//! A contact sheet with thousands of jobs has the layout and the scrolling of a small one.

use serde_json::json;

use crate::browser::Browser;
use crate::support::{Workspace, numbered_jobs};

/// A page of pending jobs.
fn opened(manifest: &str) -> Browser {
    let here = Workspace::with_manifest(manifest);
    here.shotlist(&["report", "m.yaml"]).ends_with(0);
    Browser::open(&format!("file://{}", here.path("shotlist-out/m/report.html").display()), 1440, 1000)
}

/// The work of the page during a hundred frames of scrolling, in milliseconds of its thread.
fn scrolled(page: &mut Browser) -> f64 {
    page.call("Performance.enable", &json!({ "timeDomain": "threadTicks" }));
    let worked = |page: &mut Browser| {
        let metrics = page.call("Performance.getMetrics", &json!({}));
        let metrics = metrics["metrics"].as_array().expect("metrics");
        let all = metrics.iter().find(|metric| metric["name"] == "TaskDuration").expect("the sum of all tasks");
        all["value"].as_f64().expect("seconds") * 1000.0
    };
    let before = worked(page);
    page.eval(
        "new Promise((done) => { let frames = 0; scrollTo(0, 0);
            const step = () => { scrollBy(0, 150); if (++frames < 100) requestAnimationFrame(step); else done(); };
            requestAnimationFrame(step); })",
    );
    worked(page) - before
}

#[test]
fn five_thousand_cards_scroll_like_five_hundred() {
    let mut pages = [500, 5000].map(|jobs| {
        let mut page = opened(&numbered_jobs(jobs));
        assert_eq!(page.eval("document.querySelectorAll('.card').length"), jobs);
        // The first frames are about the page, and the next ones about scrolling.
        scrolled(&mut page);
        page
    });
    // In turn, and the best of each: others are at work on this machine, too.
    let rounds: Vec<[f64; 2]> = (0..3).map(|_| pages.each_mut().map(scrolled)).collect();
    let [few, many] = [0, 1].map(|page| rounds.iter().map(|round| round[page]).fold(f64::INFINITY, f64::min));
    // Before cards stood in blocks, it was five times as much.
    assert!(many < 2.5 * few, "five hundred: {few} ms, five thousand: {many} ms");
}

/// Counts cards at another place than without blocks, and all cards.
const ELSEWHERE: &str = "(() => {
    const sheet = document.querySelector('#sheet'), cards = [...sheet.querySelectorAll('.card:not([hidden])')];
    const blocks = [...sheet.querySelectorAll('.block')], items = blocks.flatMap((block) => [...block.children]);
    for (const element of [...blocks, ...cards]) element.style.contentVisibility = 'visible';
    const places = () => cards.map((card) => { const { left, top } = card.getBoundingClientRect(); return [Math.round(left), Math.round(top + scrollY)].join(); });
    const own = places();
    sheet.classList.remove('blocks');
    sheet.replaceChildren(...items);
    const expected = places();
    return [blocks.length > 3, own.filter((place, number) => place !== expected[number]).length, cards.length];
})()";

#[test]
fn cards_in_blocks_stand_where_they_would_without() {
    let job = |number: usize| {
        let upright = if number.is_multiple_of(7) { ", aspect_ratio: '9:16'" } else { "" };
        let takes = match number {
            150 => ", takes: 9",
            number if number.is_multiple_of(50) => ", takes: 3",
            _ => "",
        };
        format!("  - {{ id: j{number}, prompt: number {number}{upright}{takes} }}\n")
    };
    let jobs: String = (0..600).map(job).collect();
    let manifest = format!("version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}");
    assert_eq!(opened(&manifest).eval(ELSEWHERE), json!([true, 0, 630]));

    let mut page = opened(&manifest);
    let heights = page.eval(
        "[...document.querySelectorAll('.card')].map((card) => parseFloat(card.style.width) / card.style.getPropertyValue('--r'))",
    );
    let heights = heights.as_array().expect("heights").iter().filter_map(serde_json::Value::as_f64);
    let (low, high) = heights.fold((f64::MAX, 0.0_f64), |(low, high), height| (height.min(low), height.max(high)));
    assert!(high < 1.2 * low, "heights of rows from {low} to {high}");
    page.eval(
        "{ const size = document.querySelector('#size'); size.value = 120; size.dispatchEvent(new Event('input')); }",
    );
    page.click("#text");
    page.press("3");
    page.wait_for("document.querySelector('#count').textContent.includes('of')");
    let kept = page.eval("document.activeElement.id");
    let found = page.eval(ELSEWHERE);
    assert_eq!((kept, &found[0], &found[1]), (json!("text"), &json!(true), &json!(0)), "{found}");
}

#[test]
fn resize_keeps_the_visible_card_in_place() {
    let mut page = opened(&numbered_jobs(2000));
    page.eval("document.querySelector('#job-j900').scrollIntoView({ block: 'center' })");
    page.wait_for("document.querySelector('#job-j900').getBoundingClientRect().top > 0");
    page.click("#job-j900 .pick");
    let first = "(() => { const bar = document.querySelector('.tools').getBoundingClientRect().bottom;
        return [20, 60, 100].map((below) => document.elementFromPoint(300, bar + below)?.closest('.card')?.dataset.id).find(Boolean) ?? null; })()";
    page.wait_for(&format!("{first} !== null"));
    let before = page.eval(first);
    let resized =
        "{ const size = document.querySelector('#size'); size.value = 300; size.dispatchEvent(new Event('input')); }";
    page.eval(resized);
    page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    let place = format!("document.querySelector('#job-{}').getBoundingClientRect()", before.as_str().expect("a card"));
    let is_seen = format!("{place}.bottom > 0 && {place}.top < innerHeight");
    assert_eq!(page.eval(&is_seen), true, "{before} is at {}", page.eval(&format!("{place}.top")));
    assert_eq!(page.eval("document.activeElement.closest('.card')?.dataset.id ?? null"), "j900", "the focus");
}

#[test]
fn keys_go_through_blocks() {
    let mut page = opened(&numbered_jobs(400));
    page.press("j");
    let focused = "document.activeElement.dataset.id";
    assert_eq!(page.eval(focused), "j0");
    let row = page.eval("(() => { const tops = [...document.querySelectorAll('.block .card')].map((card) => Math.round(card.getBoundingClientRect().top)); return tops.filter((top) => top === tops[0]).length; })()");
    let in_a_row = row.as_u64().expect("a number");
    for row in 1..=20 {
        page.press("ArrowDown");
        assert_eq!(page.eval(focused), format!("j{}", row * in_a_row), "row {row}");
    }
    for _ in 0..20 {
        page.press("ArrowUp");
    }
    assert_eq!(page.eval(focused), "j0");
}
