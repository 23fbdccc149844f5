//! The README's picture: the contact sheet of a real run of `examples/spring` on the simulator, with a frame of each clip that is in view.

use base64::Engine as _;
use serde_json::json;

use crate::browser::Browser;
use crate::support::Workspace;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/spring");
/// Names the file that the picture is written to, if it is wanted: `packaging/picture` sets it.
const WANTED: &str = "SHOTLIST_PICTURE";

/// The places of the clips in view, in pixels; null while one of them has no frame.
const CLIPS: &str = "(() => {
    const inView = [...document.querySelectorAll('.card')].filter((card) => card.getBoundingClientRect().bottom <= innerHeight);
    const clips = inView.map((card) => card.querySelector('video'));
    if (clips.some((clip) => !(clip?.readyState >= 2))) return null;
    return clips.map((clip) => clip.getBoundingClientRect()).map(({ x, y, width, height }) => ({ x, y, width, height }));
})()";

/// The brightness of a picture in the middle column of each clip: the largest of red, green, and blue there.
const BRIGHTNESS: &str = "(async (picture, clips) => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + picture)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    return clips.map(({ x, y, width, height }) => canvas.getImageData(x + width / 2, y, 1, height).data)
        .map((column) => Math.max(...column.filter((_, index) => index % 4 < 3)));
})";

#[test]
fn readme_picture_shows_a_frame_of_each_clip() {
    let here = Workspace::new();
    let status = std::process::Command::new("cp").args(["-R", EXAMPLE]).arg(here.path("spring")).status();
    assert!(status.expect("cp is there").success());
    let usual = ["run", "spring/spring.yaml", "--sandbox", "--yes", "--quiet"];
    here.shotlist(&[&usual[..], &["--asset-command", "spring/hooks/address-stub"]].concat()).ends_with(0);
    let report = here.path("spring/shotlist-sandbox/spring/report.html");
    let mut page = Browser::open(&format!("file://{}", report.display()), 1280, 650);
    page.call("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    page.wait_for(&format!("{CLIPS} !== null"));
    let clips = page.eval(CLIPS);
    assert_eq!(clips.as_array().map(Vec::len), Some(4));

    // A frame that is there is drawn a moment later. Where none is drawn, a clip is nearly black.
    let mut reader = Browser::open("data:text/html,reader", 100, 100);
    let picture = (0..100).find_map(|_| {
        let picture = page.call("Page.captureScreenshot", &json!({}))["data"].as_str().expect("a picture").to_owned();
        let brightness = reader.eval(&format!("{BRIGHTNESS}('{picture}', {clips})"));
        let drawn = brightness.as_array().expect("a list").iter().all(|value| value.as_u64() > Some(100));
        drawn.then_some(picture)
    });
    let picture = picture.expect("a picture of a hundred shows all clips");
    let picture = base64::engine::general_purpose::STANDARD.decode(picture).expect("Base64");
    if let Some(file) = std::env::var_os(WANTED) {
        std::fs::write(file, picture).expect("a file");
    }
}
