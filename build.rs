//! Tells the program which commit it was built of: `SHOTLIST_BUILD`, `(a1b2c3d4e5f6 2026-11-21)` for example.
//!
//! A package names its commit in a file that cargo puts into it; a checkout asks git. A build for work on the program says nothing of
//! one: it would have to be built again after each commit, and is of none.

use std::path::Path;
use std::process::Command;

/// What cargo writes into a package.
const OF_A_PACKAGE: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let build = if !is_release {
        "(a build for work on it)".to_owned()
    } else if Path::new(OF_A_PACKAGE).exists() {
        println!("cargo:rerun-if-changed={OF_A_PACKAGE}");
        of_a_package().unwrap_or_else(unknown)
    } else {
        of_a_checkout().unwrap_or_else(unknown)
    };
    println!("cargo:rustc-env=SHOTLIST_BUILD={build}");
}

fn unknown() -> String {
    "(of an unknown commit)".to_owned()
}

fn of_a_package() -> Option<String> {
    let text = std::fs::read_to_string(OF_A_PACKAGE).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let changed = if text.contains("\"dirty\": true") { ", changed" } else { "" };
    Some(format!("({}{changed})", commit.get(..12)?))
}

fn of_a_checkout() -> Option<String> {
    // Unpacked inside of somebody's own repository, it is not of that one's commit.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != Path::new(".").canonicalize().ok()? {
        return None;
    }
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    // What moves with each commit, and what may be changed since.
    for path in [&format!("{folder}/logs/HEAD"), &format!("{folder}/HEAD"), "src", "Cargo.toml", "Cargo.lock"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["log", "-1", "--abbrev=12", "--format=%h %cs"])?;
    let is_changed =
        !git(&["status", "--porcelain", "--untracked-files=no", "--", "src", "Cargo.toml", "Cargo.lock"])?.is_empty();
    Some(format!("({commit}{})", if is_changed { ", changed" } else { "" }))
}

/// What git answers, if this is a checkout and there is a git.
fn git(words: &[&str]) -> Option<String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let answer = Command::new("git").args(words).current_dir(folder).output().ok()?;
    let text = answer.status.success().then_some(answer.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}
