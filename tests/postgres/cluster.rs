//! A PostgreSQL cluster of the tests' own, on loopback in a temporary directory. It ends with the process that started it, however that ends.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use shotlist::ledger::PostgresAddress;

use crate::support::wait_until;

/// A server that runs.
pub struct Cluster {
    directory: tempfile::TempDir,
    pub port: u16,
    /// It ends the server when its input ends.
    keeper: Child,
}

/// A database that was made for one test.
pub struct Database {
    port: u16,
    pub name: String,
}

/// Where Debian and others put the server's programs.
pub fn program(name: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin").join(name)).collect())
        .unwrap_or_default();
    found.retain(|path| path.exists());
    found.sort();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|directory| directory.join(name)).find(|path| path.exists());
    found.pop().or(in_path).unwrap_or_else(|| panic!("{name} is not here: install PostgreSQL (apt install postgresql)"))
}

/// A command, by a user who may start the server: it refuses to run as root.
pub fn as_postgres(program: &Path) -> Command {
    let is_root = String::from_utf8_lossy(&Command::new("id").arg("-u").output().expect("id").stdout).trim() == "0";
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

pub fn done(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// A directory that the server's user owns.
pub fn directory() -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("shotlist-pg").tempdir_in("/tmp").expect("a directory");
    let owner = Command::new("chown").arg("postgres").arg(directory.path()).output();
    drop(owner);
    directory
}

impl Cluster {
    /// The one that most tests share. Nothing drops it, so its keeper removes the directory.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let cluster = Self::start(&[]);
            std::fs::write(cluster.directory.path().join("sweep"), "").expect("a mark for its keeper");
            cluster
        })
    }

    /// Makes one and starts it. `settings` are lines of its configuration.
    pub fn start(settings: &[&str]) -> Self {
        let directory = directory();
        let data = directory.path().join("data");
        done(
            as_postgres(&program("initdb"))
                .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
                .arg(&data),
        );
        let hba = "hostnossl all tls_only 127.0.0.1/32 reject\nhost all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";
        std::fs::write(data.join("pg_hba.conf"), hba).expect("its rules");
        Self::of_directory(directory, settings)
    }

    /// Starts the server with its data in this directory.
    pub fn of_directory(directory: tempfile::TempDir, settings: &[&str]) -> Self {
        let port = free_port();
        let keeper = Self::run(directory.path(), port, settings);
        let cluster = Self { directory, port, keeper };
        cluster.wait();
        cluster
    }

    fn run(directory: &Path, port: u16, settings: &[&str]) -> Child {
        // If the test process is killed, its end of the pipe closes, and the server ends.
        let script = r#"exec 3<&0; server=$1; data=$2; shift 2; "$server" -D "$data" "$@" >"$data/../log" 2>&1 3<&- & pid=$!
            (cat <&3 >/dev/null; kill -QUIT $pid 2>/dev/null) & wait $pid
            if [ -e "$data/../sweep" ]; then cd /; rm -rf "${data%/data}"; fi; exit 0"#;
        let mut command = as_postgres(Path::new("/bin/sh"));
        command.args(["-c", script, "sh"]).arg(program("postgres")).arg(directory.join("data"));
        command.args(["-p", &port.to_string(), "-k", "", "-h", "127.0.0.1"]);
        for setting in ["max_connections=200", "shared_buffers=64MB"].iter().chain(settings) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts")
    }

    pub fn wait(&self) {
        wait_until("the server takes connections", || self.asks("postgres", "SELECT 1").is_some());
    }

    fn asks(&self, database: &str, sql: &str) -> Option<String> {
        let output = psql(self.port, database).args(["-c", sql]).output().expect("psql");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub fn sql(&self, database: &str, sql: &str) -> String {
        done(psql(self.port, database).args(["-c", sql])).trim().to_owned()
    }

    /// A new and empty database.
    pub fn database(&self) -> Database {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("books{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        Database { port: self.port, name }
    }

    /// A database that is there.
    pub fn named(&self, name: &str) -> Database {
        Database { port: self.port, name: name.to_owned() }
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Ends it as a loss of power does, and starts it again.
    pub fn crash_and_restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Starts it after it was stopped.
    pub fn start_again(&mut self) {
        self.keeper = Self::run(self.directory.path(), self.port, &[]);
        self.wait();
    }

    /// Ends it immediately.
    pub fn stop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().expect("it ends");
        drop(std::fs::remove_file(self.data().join("postmaster.pid")));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

fn psql(port: u16, database: &str) -> Command {
    let mut command = Command::new(program("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"]);
    command.args(["-p", &port.to_string(), "-d", database]);
    command
}

impl Database {
    /// As a user gives it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", self.port, self.name)
    }

    pub fn address(&self) -> PostgresAddress {
        PostgresAddress::new(&self.url(), &|_| None).expect("an address")
    }

    /// Queries the database directly: rows as lines, fields separated by bars.
    pub fn sql(&self, sql: &str) -> String {
        done(psql(self.port, &self.name).args(["-c", sql])).trim().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop_it = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        drop(psql(self.port, "postgres").args(["-c", &drop_it]).output());
    }
}
