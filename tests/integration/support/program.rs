//! The real program in a process of its own, with nothing of this environment but the search path.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up on it. No test depends on how fast a machine is.
const PATIENCE: Duration = Duration::from_mins(2);

/// A command line that is being put together.
pub struct Program {
    command: Command,
}

/// How it ended.
pub struct Ended {
    /// The exit code, or nothing after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Program {
    /// The program with arguments, to be started in a folder.
    pub fn new(folder: &Path, args: &[&str]) -> Self {
        Self::scrubbed(env!("CARGO_BIN_EXE_shotlist"), folder, args)
    }

    /// A shell script, to be started in a folder; `$0` in it is the program.
    pub fn script(folder: &Path, script: &str) -> Self {
        Self::scrubbed("sh", folder, &["-c", script, env!("CARGO_BIN_EXE_shotlist")])
    }

    fn scrubbed(what: &str, folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(what);
        command.args(args).current_dir(folder).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TZ", "UTC");
        Self { command }
    }

    /// With one more environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Without an environment variable that was set before.
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it to its end.
    pub fn ends(mut self) -> Ended {
        Ended::new(self.command.output().expect("the program starts"))
    }

    /// Runs it to its end, which must have this exit code.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Ended {
        let ended = self.ends();
        assert_eq!(ended.code, Some(code), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
        ended
    }

    /// Starts it and leaves it running.
    pub fn starts(mut self) -> Child {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }
}

impl Ended {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Waits for a program that was started.
    pub fn of(child: Child) -> Self {
        Self::new(child.wait_with_output().expect("the program ends"))
    }
}

/// Sends a signal to one process, by its own number.
pub fn kill(child: &Child, signal: &str) {
    // The shell's own `kill`: a slim machine has no program of that name.
    let sent = Command::new("sh").args(["-c", &format!("kill {signal} {}", child.id())]).status().expect("sh runs");
    assert!(sent.success(), "no process to signal");
}

/// Waits until something is so, for as long as a slow machine may need.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
