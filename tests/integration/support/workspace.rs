//! A temporary directory with files, and the reports and ledgers that appear in it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Program, Service};

pub const TWO_JOBS: &str = "
version: 1
defaults: { model: beta-2.0-lite }
jobs:
  - { id: one, prompt: a cat }
  - { id: two, prompt: a dog, duration: 10 }
";

/// A manifest of this many jobs on alpha-2, `j0`, `j1` and so on, with the prompts `number 0`, `number 1` and so on.
pub fn numbered_jobs(count: usize) -> String {
    let mut manifest = String::from("version: 1\ndefaults: { model: alpha-2 }\njobs:\n");
    for number in 0..count {
        manifest.push_str(&format!("  - {{ id: j{number}, prompt: number {number} }}\n"));
    }
    manifest
}

/// A directory that goes when the test ends.
pub struct Workspace {
    directory: tempfile::TempDir,
}

impl Workspace {
    /// An empty one.
    pub fn new() -> Self {
        Self::in_directory(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn in_directory(directory: tempfile::TempDir) -> Self {
        Self { directory }
    }

    /// With a manifest `m.yaml`.
    pub fn with_manifest(text: &str) -> Self {
        Self::new().file("m.yaml", text)
    }

    /// The videos below it, sorted.
    pub fn videos(&self) -> Vec<String> {
        let is_video = |file: &String| Path::new(file).extension().is_some_and(|form| form == "mp4");
        self.files().into_iter().filter(is_video).collect()
    }

    /// With one more file.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    /// Replaces a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }

    /// Where a name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The program, to be started in this directory.
    pub fn shotlist(&self, args: &[&str]) -> Program {
        Program::new(self.root(), args)
    }

    /// A shell script in this directory that submits to a service; `$0` in it is the program.
    pub fn script(&self, service: &Service, script: &str) -> Program {
        Program::script(self.root(), script).with_service(&service.url())
    }

    /// `shotlist run m.yaml` against a service, with any cost confirmed.
    pub fn run(&self, service: &Service, args: &[&str]) -> Program {
        self.shotlist(&[&["run", "m.yaml", "--yes"], args].concat()).with_service(&service.url())
    }

    /// The JSON report of the manifest named `m`.
    pub fn report(&self) -> Value {
        self.json("shotlist-out/m/report.json")
    }

    /// The states in that report, in manifest order.
    pub fn states(&self) -> Vec<String> {
        let jobs = self.report()["jobs"].as_array().expect("jobs").clone();
        jobs.iter().map(|job| job["state"].as_str().expect("a state").to_owned()).collect()
    }

    /// A JSON file.
    pub fn json(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_str(&text).expect("JSON")
    }

    /// All rows of a query to the ledger, as texts; none while a run is still making it.
    pub fn ledger(&self, sql: &str) -> Vec<Vec<String>> {
        let connection = super::open_ledger(&self.path(".shotlist/ledger.db"));
        let made = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        if made.expect("a count") == 0 {
            return Vec::new();
        }
        super::show_records(&connection).expect("a view");
        let mut statement = connection.prepare(sql).expect("a query");
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns).map(|index| row.get::<_, rusqlite::types::Value>(index).map(shown)).collect()
        });
        rows.expect("rows").collect::<Result<_, _>>().expect("rows")
    }

    /// The first column of a query to the ledger; nothing if there is no ledger, or none that can be read.
    pub fn ledger_if_any(&self, sql: &str) -> Vec<String> {
        let path = self.path(".shotlist/ledger.db");
        let read = || -> rusqlite::Result<Vec<String>> {
            let connection = rusqlite::Connection::open(&path)?;
            super::show_records(&connection)?;
            connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        if path.exists() { read().unwrap_or_default() } else { Vec::new() }
    }

    /// The state of each attempt in the ledger, in the order of their submission.
    pub fn states_in_ledger(&self) -> Vec<String> {
        self.ledger_if_any("SELECT state FROM attempt ORDER BY id")
    }

    /// Waits until the ledger holds `count` active tasks. Polls don't show that: two tasks are polled while a third is sent.
    pub fn waits_for_active_tasks(&self, count: usize) {
        let active = || {
            self.states_in_ledger().iter().filter(|state| ["queued", "in_progress"].contains(&state.as_str())).count()
        };
        super::wait_until("the ledger holds every active task", || active() == count);
    }

    /// Every file below the directory, relative, in order.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    found.push(path.strip_prefix(self.root()).expect("inside").display().to_string());
                }
            }
        }
        found.sort();
        found
    }
}

fn shown(value: rusqlite::types::Value) -> String {
    use rusqlite::types::Value as Sql;
    match value {
        Sql::Null => "NULL".to_owned(),
        Sql::Integer(number) => number.to_string(),
        Sql::Real(number) => number.to_string(),
        Sql::Text(text) => text,
        Sql::Blob(_) => "BLOB".to_owned(),
    }
}

/// The SHA-256 of some bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
