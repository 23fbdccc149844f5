//! The programs for Windows and for Linux on arm64, under Wine and QEMU: `cargo test --test foreign`. A separate target, because it needs both,
//! and the programs, which `.ci/aside` builds first.
//!
//! Wine 8 lacks `bcryptprimitives.dll`. A stub passes its one function on to the generator that Wine has; it is never handed out.
#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

mod desk;
mod kills;
mod paths;
#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;
