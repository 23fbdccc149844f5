//! The peer programs with their dependencies, under `target/peers`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreters and files of the peers.
pub struct Peers {
    directory: PathBuf,
}

impl Peers {
    /// Installs missing dependencies from the registries of Python and Node.js.
    pub fn ready() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let peers = Self { directory: root.join("target/peers") };
        std::fs::create_dir_all(&peers.directory).expect("a directory");
        for file in std::fs::read_dir(root.join("benches/peers")).expect("the peers").flatten() {
            std::fs::copy(file.path(), peers.directory.join(file.file_name())).expect("a copy");
        }
        if !peers.directory.join("venv/bin/shotlist-ready").exists() {
            peers.does("python3", &["-m", "venv", "venv"]);
            peers.does("venv/bin/pip", &["install", "--quiet", "aiohttp==3.14.5", "uvloop==0.23.0"]);
            std::fs::write(peers.directory.join("venv/bin/shotlist-ready"), "").expect("a mark");
        }
        if !peers.directory.join("node_modules").exists() {
            peers.does("npm", &["install", "--silent", "--no-audit", "--no-fund"]);
        }
        peers
    }

    fn does(&self, program: &str, args: &[&str]) {
        let path = self.directory.join(program);
        let mut command = Command::new(if path.exists() { path.as_path() } else { Path::new(program) });
        let status = command.args(args).current_dir(&self.directory).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "{program} {args:?}");
    }

    /// Writes a number of jobs in a format into a file.
    pub fn write_jobs(&self, jobs: usize, format: &str, models: &str, file: &Path) {
        let (jobs, file) = (jobs.to_string(), file.display().to_string());
        let args = ["gen_manifest.py", &jobs, "--format", format, "--models", models, "--out", &file];
        self.does("python3", &[args.as_slice(), &["--header", "version: 1\\nname: bench\\n"]].concat());
    }

    /// Node.js, about to load and check a manifest.
    pub fn node(&self, manifest: &Path) -> Command {
        let mut command = Command::new("node");
        command.arg("plan_node.mjs").arg(manifest).current_dir(&self.directory).stdout(Stdio::null());
        command
    }

    /// aiohttp, about to make the jobs of a file of JSON lines.
    pub fn aiohttp(&self, url: &str, jobs: &Path, active: usize) -> Command {
        let mut command = Command::new(self.directory.join("venv/bin/python"));
        command.args(["peer_b_aiohttp.py", "--uvloop", "--poll", "0", "--base-url", url]).current_dir(&self.directory);
        command.args(["--inflight", &active.to_string()]).arg("--manifest").arg(jobs);
        command.arg("--out").arg(self.directory.join("out.csv")).env("VIDEO_API_KEY", "k").stdout(Stdio::null());
        command
    }
}
