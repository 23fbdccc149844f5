//! A build without a feature reports that at its use.

use crate::support::{TWO_JOBS, Workspace};

#[cfg(not(feature = "postgres"))]
#[test]
fn database_is_no_ledger_without_postgres() {
    let here = Workspace::with_manifest(TWO_JOBS);
    let refused = here.shotlist(&["run", "m.yaml", "--plan", "--ledger", "postgres://ann@db/books"]).ends_with(2);
    let why = refused.stderr.lines().find_map(|line| line.rsplit_once(": ").map(|(_, why)| why)).expect("a reason");
    assert_eq!(why, "this build of shotlist has no support for PostgreSQL");
}

#[cfg(not(feature = "xlsx"))]
#[test]
fn workbook_is_neither_table_nor_report_without_xlsx() {
    let rows = "version: 1\njobs: [{ for_each: rows.xlsx, id: \"{{ row.ID }}\", model: alpha-2, prompt: x }]\n";
    let here = Workspace::with_manifest(rows).file("rows.xlsx", "PK\u{3}\u{4}");
    here.shotlist(&["run", "m.yaml", "--plan"]).fails_with("unreadable", 2);
    let drafted = here.shotlist(&["init", "--from", "rows.xlsx"]).ends();
    assert_ne!(drafted.code, Some(0), "{}", drafted.stderr);
    here.write("m.yaml", TWO_JOBS);
    here.shotlist(&["run", "m.yaml", "--sandbox", "--report", "r.xlsx"]).fails_with("option-invalid", 2);
}

#[cfg(all(feature = "postgres", feature = "xlsx"))]
#[test]
fn default_build_has_every_feature() {
    let here = Workspace::with_manifest(TWO_JOBS);
    here.shotlist(&["run", "m.yaml", "--yes", "--sandbox", "--report", "r.xlsx"]).ends_with(0);
    assert!(here.path("r.xlsx").exists());
}
