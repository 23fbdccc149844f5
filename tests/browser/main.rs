//! The contact sheet in a real browser. A separate target, because it needs Chromium: `cargo test --test browser`.
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

mod browser;
mod decide;
mod looks;
mod many;
mod picture;
mod sheet;
#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;
