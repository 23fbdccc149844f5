//! The real program in a separate process. Of this environment, it has only the search path.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up on it. No test depends on how fast a machine is.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long a program may take to its end: the longest ones work for a minute on an idle machine.
const MAX_RUN: Duration = Duration::from_mins(10);

/// The only authority that the program trusts: the one of the servers of the tests.
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/service/certificates/authority.pem");

/// The limit of a run that leaves tasks active or gives up on a lock: time enough for all that the test means to come before it, on a machine
/// that has much else to do.
pub const LEFT_AFTER: &str = "2s";

/// A command line that is being put together.
pub struct Program {
    command: Command,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code, or nothing after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Program {
    /// The program with arguments, to be started in a directory.
    pub fn new(directory: &Path, args: &[&str]) -> Self {
        Self::scrubbed(env!("CARGO_BIN_EXE_shotlist"), directory, args)
    }

    /// A shell script, to be started in a directory; `$0` in it is the program.
    pub fn script(directory: &Path, script: &str) -> Self {
        Self::scrubbed("sh", directory, &["-c", script, env!("CARGO_BIN_EXE_shotlist")])
    }

    fn scrubbed(what: &str, directory: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(what);
        command.args(args).current_dir(directory).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TZ", "UTC");
        // No text of a test changes with the days.
        command.env("SHOTLIST_PRICES_TAKEN_ON", "9999-01-01");
        // A machine trusts a hundred and more authorities, and the program reads them on each start.
        command.env("SSL_CERT_FILE", AUTHORITY);
        // Not as options, which printed commands repeat.
        let pace = [("FIRST_POLL", "0s"), ("POLL_INTERVAL", "50ms"), ("POLL_FLOOR", "5ms")];
        command.envs(pace.map(|(name, value)| (format!("SHOTLIST_{name}"), value)));
        Self { command }
    }

    /// With the URL of a service, and a key for it.
    pub fn with_service(self, url: &str) -> Self {
        self.env("SHOTLIST_BASE_URL", url).env("SHOTLIST_API_KEY", "k")
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
    #[track_caller]
    pub fn ends(self) -> Ended {
        Ended::wait_for(self.starts())
    }

    /// Runs it to its end, which must be a refusal with this code and this exit code.
    #[track_caller]
    pub fn fails_with(self, code: &str, exit: i32) -> Ended {
        let ended = self.ends_with(exit);
        assert!(ended.stderr.contains(&format!("error[{code}]: ")), "not {code}: {}", ended.stderr);
        ended
    }

    /// Runs it to its end, which must have this exit code.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Ended {
        let ended = self.ends();
        assert_eq!(ended.code, Some(code), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
        ended
    }

    /// Runs it to its end, with SIGTERM once it has come so far, as `timeout` ends a run that leaves tasks active.
    #[track_caller]
    pub fn ends_by_timeout(self, mut is_far: impl FnMut() -> bool) -> Ended {
        let mut child = self.starts();
        let mut has_ended = false;
        wait_until("it has ended, or leaves only active tasks", || {
            has_ended = child.try_wait().expect("a status").is_some();
            has_ended || is_far()
        });
        if !has_ended {
            kill(&child, "-TERM");
        }
        Ended::wait_for(child)
    }

    /// Starts it, and kills it where it halts in its directory; it may end before.
    #[track_caller]
    pub fn dies_at(self, point: &str) -> Ended {
        let flag = self.command.get_current_dir().expect("a directory").join("halted");
        let program = self.env("SHOTLIST_HALT_AT", point).env("SHOTLIST_HALT_FILE", &flag.to_string_lossy());
        let mut child = program.starts();
        wait_until("it stands still, or has ended", || flag.exists() || child.try_wait().expect("a status").is_some());
        if flag.exists() {
            kill(&child, "-KILL");
            std::fs::remove_file(&flag).expect("a flag");
        }
        Ended::wait_for(child)
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
    #[track_caller]
    pub fn wait_for(child: Child) -> Self {
        Self::new(output_of(child))
    }
}

/// What a child wrote until its end. One that does not end is killed, and reported with what it said.
#[track_caller]
pub fn output_of(mut child: Child) -> Output {
    let (stdout, stderr) = (read_aside(child.stdout.take()), read_aside(child.stderr.take()));
    let start = Instant::now();
    let is_late = loop {
        if child.try_wait().expect("a status").is_some() || start.elapsed() > MAX_RUN {
            break child.try_wait().expect("a status").is_none();
        }
        // Short at first: most are over in a few milliseconds.
        std::thread::sleep((start.elapsed() / 20).clamp(Duration::from_millis(1), Duration::from_millis(50)));
    };
    if is_late {
        child.kill().expect("it can be killed");
    }
    let status = child.wait().expect("it has ended");
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("its words"));
    let output = Output { status, stdout, stderr };
    assert!(!is_late, "waited in vain for the end of a program: {output:?}");
    output
}

/// Reads a pipe to its end on a thread: a full pipe halts the child.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)).transpose().expect("it can be read");
        bytes
    })
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
