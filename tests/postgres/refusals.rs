//! Errors of a database before a submission: each is reported with a fix, and ends with 74.

use crate::cluster::Cluster;
use crate::support::{Workspace, has_code};
use crate::team::Team;

#[track_caller]
fn refused(team: &Team, ledger: &str, code: i32, words: &[&str]) {
    let run = team.run(0, &[]).env("SHOTLIST_LEDGER", ledger);
    let ended = run.ends_with(code);
    for word in words {
        assert!(ended.stderr.contains(word), "`{word}` is missing: {}", ended.stderr);
    }
    assert_eq!(has_code(&ended.stderr, "ledger-unavailable"), code == 74, "{}", ended.stderr);
    assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
    assert_eq!(team.simulator.ledger()["charges"].as_array().expect("charges").len(), 0);
}

#[test]
fn bad_addresses_and_passwords_are_reported() {
    let team = Team::new(1, 1);
    let port = Cluster::shared().port;
    let name = &team.database.name;
    Cluster::shared().sql("postgres", "CREATE ROLE guarded LOGIN PASSWORD 'right'");
    refused(&team, &format!("postgres://guarded@127.0.0.1:{port}/{name}"), 74, &["password", "PGPASSWORD"]);
    refused(
        &team,
        &format!("postgres://guarded:secret@127.0.0.1:{port}/{name}"),
        74,
        &["refuses the user or the password"],
    );
    refused(&team, "postgres://team@127.0.0.1:1/books", 74, &["can't connect to ledger", "server"]);
    refused(&team, "postgres://team@no-such-host.invalid/books", 74, &["no-such-host.invalid"]);
    refused(&team, "postgres:///", 2, &["names no host"]);
    Cluster::shared().sql("postgres", "CREATE ROLE tls_only LOGIN");
    refused(&team, &format!("postgres://tls_only@127.0.0.1:{port}/{name}"), 74, &["without TLS", "?sslmode=require"]);
    refused(
        &team,
        &format!("{}?options=-csearch_path%3Dother", team.database.url()),
        2,
        &["`options` is not supported"],
    );
    refused(&team, &format!("postgres://postgres@127.0.0.1:{port}/not_there"), 74, &["not_there"]);
    let here = Workspace::with_manifest(&crate::team::jobs(1));
    let with = format!("postgres://guarded:secret@127.0.0.1:{port}/{name}");
    here.shotlist(&["status", "m.yaml", "--ledger", &with]).ends_with(2);
    // The file that PostgreSQL's own tools read, too.
    let file = here.path("pgpass");
    std::fs::write(&file, format!("127.0.0.1:{port}:*:guarded:right\n")).expect("a file");
    drop(std::process::Command::new("chmod").arg("600").arg(&file).status());
    let plain = format!("postgres://guarded@127.0.0.1:{port}/{name}");
    here.shotlist(&["status", "m.yaml", "--ledger", &plain]).env("PGPASSFILE", &file.to_string_lossy()).ends_with(0);
}

#[test]
fn foreign_or_unsafe_database_is_refused() {
    let team = Team::new(1, 1);
    let url = team.database.url();
    team.database.sql("CREATE SCHEMA shotlist CREATE TABLE something_else (x int)");
    refused(&team, &url, 74, &["is not a ledger"]);
    team.database.sql("DROP SCHEMA shotlist CASCADE; CREATE SCHEMA shotlist CREATE TABLE ledger (x int)");
    refused(&team, &url, 74, &["is not a ledger"]);
    team.database.sql("DROP SCHEMA shotlist CASCADE");
    team.run(0, &["--sample", "1", "--plan"]).ends_with(0);
    assert_eq!(team.database.sql("SELECT to_regnamespace('shotlist') IS NULL"), "t", "a plan makes nothing");
    team.command(0, &["limit", "set", "--month", "100"]).ends_with(0);
    team.database.sql("UPDATE shotlist.ledger SET version = 99");
    refused(&team, &url, 74, &["found 99"]);
    team.database.sql("UPDATE shotlist.ledger SET version = 1");
    let (port, name) = (Cluster::shared().port, &team.database.name);
    Cluster::shared().sql("postgres", "CREATE ROLE reader LOGIN");
    let reference = team.command(0, &["help", "machines"]).ends_with(0).stdout;
    let rights = |role: &str, last: &str| -> String {
        let of_role = |line: &&str| line.trim().starts_with("GRANT") && line.trim().ends_with(&format!("TO {role};"));
        let sql: Vec<&str> = reference.lines().filter(of_role).collect();
        assert!(sql.last().is_some_and(|grant| grant.contains(last)), "{reference}");
        sql.join("\n")
    };
    team.database.sql(&rights("reader", "GRANT SELECT ON"));
    let reader = format!("postgres://reader@127.0.0.1:{port}/{name}");
    team.command(0, &["status", "m.yaml"]).env("SHOTLIST_LEDGER", &reader).ends_with(0);
    refused(&team, &reader, 74, &["lacks a right", "permission denied", "shotlist help machines"]);
    Cluster::shared().sql("postgres", "CREATE ROLE team LOGIN");
    team.database.sql(&rights("team", "DELETE ON"));
    team.database.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    refused(&team, &url, 74, &["read-only"]);
    let forgetful = Cluster::start(&["fsync=off"]);
    refused(&team, &forgetful.database().url(), 74, &["fsync=off"]);
    Cluster::shared().sql("postgres", &format!("ALTER DATABASE {name} RESET default_transaction_read_only"));
    let buyer = format!("postgres://team@127.0.0.1:{port}/{name}");
    team.run(0, &[]).env("SHOTLIST_LEDGER", &buyer).ends_with(0);
}
