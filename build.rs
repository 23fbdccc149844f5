//! Sets `SHOTLIST_BUILD`, the commit of a release build for `--version`, such as `(a1b2c3d4e5f6 2026-11-21)`.
//!
//! In a package, a file that cargo writes has the commit; in a checkout, git does. A development build names none, because it would have to be
//! rebuilt after each commit.

use std::path::Path;
use std::process::Command;

/// The file with the commit that cargo writes into a package.
const PACKAGE_COMMIT: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let build = if !is_release {
        "(development build)".to_owned()
    } else if Path::new(PACKAGE_COMMIT).exists() {
        println!("cargo:rerun-if-changed={PACKAGE_COMMIT}");
        package_commit().unwrap_or_else(unknown)
    } else {
        checkout_commit().unwrap_or_else(unknown)
    };
    println!("cargo:rustc-env=SHOTLIST_BUILD={build}");
}

fn unknown() -> String {
    "(unknown commit)".to_owned()
}

fn package_commit() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGE_COMMIT).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let changed = if text.contains("\"dirty\": true") { ", changed" } else { "" };
    Some(format!("({}{changed})", commit.get(..12)?))
}

fn checkout_commit() -> Option<String> {
    // Sources that were unpacked inside another repository don't have its commit.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != Path::new(".").canonicalize().ok()? {
        return None;
    }
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    // Files that change with each commit, and files with changes that are not committed.
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

/// The trimmed output of git, if it is installed and succeeds.
fn git(words: &[&str]) -> Option<String> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let output = Command::new("git").args(words).current_dir(folder).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}
