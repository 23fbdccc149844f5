//! The reasons why a ledger's file can't be used, each with its help.

use std::io;
use std::path::Path;

use super::schema::VERSION;
use crate::ledger::Unavailable;
use crate::ledger::value::Kind;

/// The help for most write errors.
pub(super) const WRITABLE: &str = "check the path, the permissions of the file and its directory, and the free space";
/// The help for a file that can't be read.
pub(super) const RESTORE: &str =
    "check `--ledger`; if it is your ledger, restore a copy that `shotlist ledger check` finds whole";
/// The help for a database of something else.
const OTHER_FILE: &str = "name another file with `--ledger`";

/// Something about a file or a directory failed: for example "create directory".
pub(super) fn failed(what: &str, path: &Path, source: io::Error) -> Unavailable {
    Unavailable::caused_by(source, format!("can't {what} `{}`", path.display()), WRITABLE)
}

/// It is not there, and runs have used it before.
pub(super) fn gone(path: &Path) -> Unavailable {
    let what = format!("ledger `{}` is missing, but its `.lock` or `.commits` file is still there", path.display());
    Unavailable::new(what, "restore it, or remove those files to start over: shotlist would then buy everything again")
}

/// The file is a database of another program.
pub(super) fn foreign(path: &Path) -> Unavailable {
    Unavailable::new(format!("`{}` is a database of another program", path.display()), OTHER_FILE)
}

/// The file is a ledger of the other kind.
pub(super) fn other_kind(path: &Path, found: Kind) -> Unavailable {
    let what = match found {
        Kind::Real => "a real ledger, but the run uses the simulator",
        Kind::Simulated => "the simulator's ledger, but the run is real",
    };
    Unavailable::new(format!("{} is {what}", path.display()), OTHER_FILE)
}

/// The file is no database at all, or a damaged one.
pub(super) fn damaged(path: &Path) -> Unavailable {
    Unavailable::new(format!("`{}` is not a database, or a damaged one", path.display()), RESTORE)
}

/// The file has two names, and with them two logs and two locks.
#[cfg(unix)]
pub(super) fn two_names(path: &Path) -> Unavailable {
    Unavailable::new(
        format!("`{}` has a hard link, so two runs could use it at once", path.display()),
        "remove the hard link (`find . -samefile` finds it), or copy the file",
    )
}

/// It is a link to a file that is no ledger yet: whatever that is, it is not ours to fill.
pub(super) fn link(path: &Path) -> Unavailable {
    let what = format!("`{}` is a link to an empty file", path.display());
    Unavailable::new(what, "name the target with `--ledger`, or remove the link")
}

/// It has fewer commits than the counter beside it knows.
pub(super) fn outdated(path: &Path, known: i64, found: i64) -> Unavailable {
    Unavailable::new(
        format!("ledger `{}` is outdated: found {found} commits, expected {known}", path.display()),
        "restore the newer copy with its log (`-wal`); if it is lost for good, look up at the service what was bought since, \
         then remove the file that ends in `.commits`: shotlist would buy again what this copy does not know",
    )
}

/// The log can't be had, on a network file system for example.
pub(super) fn no_log(path: &Path) -> Unavailable {
    let what = format!("`{}` can't have a write-ahead log, so a commit may not survive power loss", path.display());
    Unavailable::new(what, "put the ledger on a local disk with `--ledger`")
}

/// The file was written by another version of shotlist.
pub(super) fn other_version(path: &Path, found: i32) -> Unavailable {
    Unavailable::new(
        format!("ledger {} must have format {VERSION}, found {found}", path.display()),
        "use the shotlist version that wrote it, or another ledger with `--ledger`",
    )
}

/// An object of its schema is missing, added, or different: a trigger or view could change or hide attempts.
pub(super) fn altered(path: &Path, object: &str) -> Unavailable {
    Unavailable::new(
        format!("the schema of ledger {} was altered: `{object}`", path.display()),
        "use the shotlist version that wrote it, or restore a copy that `shotlist ledger check` finds whole",
    )
}
