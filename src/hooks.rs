//! Runs hooks: the user's programs for local images and downloaded videos. One starts without a shell, with a timeout and bounded output, and is
//! killed with its group of processes on the timeout and on drop.
//!
//! Only the command line and the environment name hooks. A manifest can't, because a downloaded one must not start programs. Hooks inherit neither the
//! key nor another setting of shotlist.
//!
//! `--asset-command` gets a URL for a local image. The service must get the planned image: a changed one has no URL.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::domain::text::one_line;
use crate::domain::{LocalImage, has_password, why_no_web_address};
use crate::files::{ReadError, on_a_thread, read_at_most};

/// Bytes kept of each stream, from its end. A URL or a log line is shorter.
const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// Time to read output after the hook exits: a child process may keep the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);
/// Characters kept of the last line.
const MAX_LINE_CHARS: usize = 500;
/// Variables with this prefix are not inherited; they include the API key.
const PRIVATE_PREFIX: &str = "SHOTLIST_";
/// The search path without `PATH`: POSIX leaves it to the system, and both C libraries of Linux search there.
#[cfg(unix)]
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The user's program, with its first arguments.
#[derive(Clone, Debug)]
pub struct Program {
    words: Vec<String>,
    timeout: Duration,
}

/// A command line that names no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCommand(&'static str);

/// The output of a hook that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// Standard output, at most the last [`MAX_OUTPUT_BYTES`].
    pub stdout: String,
    /// The last line of standard output, or else of standard error.
    pub last_line: Option<String>,
}

/// The reason why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It can't be started.
    #[error("can't start `{program}`")]
    NotStarted { program: String, source: io::Error },
    /// It failed by its exit code, or was killed.
    #[error("{status}{}", last_line.as_ref().map(|line| format!(": {line}")).unwrap_or_default())]
    Failed { status: ExitStatus, last_line: Option<String> },
    /// It was killed after the timeout.
    #[error("it took longer than {}, and was killed", friendly(*.0))]
    TimedOut(Duration),
    /// The wait for its end failed.
    #[error("can't wait for the program")]
    WaitFailed(#[source] io::Error),
}

impl ProgramError {
    /// The last line of its output, if it exited.
    pub fn last_line(&self) -> Option<&str> {
        if let Self::Failed { last_line, .. } = self { last_line.as_deref() } else { None }
    }
}

impl Program {
    /// Splits a command line into words as a shell does, without variables, pipes, and patterns.
    pub fn parse(command: &str, timeout: Duration) -> Result<Self, InvalidCommand> {
        let words = shlex::split(command).ok_or(InvalidCommand("a quote in it is never closed"))?;
        if words.first().is_none_or(String::is_empty) {
            return Err(InvalidCommand("it names no program"));
        }
        Ok(Self { words, timeout })
    }

    /// Checks that the program exists. Other errors appear at its start.
    pub fn find(&self) -> Result<(), ProgramError> {
        let program = self.words.first().map_or("", String::as_str);
        found(program).map_err(|source| ProgramError::NotStarted { program: one_line(program), source })
    }

    /// Starts it with a path as its last argument, and waits for its end. Drop kills it.
    pub async fn run(&self, path: &Path, variables: &[(String, String)]) -> Result<HookOutput, ProgramError> {
        let (mut child, group) = self.start(path, variables)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let ended = {
            let mut reading =
                Box::pin(async { futures::join!(read_end(out, &mut stdout), read_end(err, &mut stderr)) });
            let mut is_read = false;
            let ended = tokio::time::timeout(self.timeout, async {
                tokio::select! {
                    status = child.wait() => status,
                    _ = &mut reading => {
                        is_read = true;
                        child.wait().await
                    }
                }
            });
            let Ok(ended) = ended.await else { return Err(ProgramError::TimedOut(self.timeout)) };
            group.ended();
            // Its children may keep the pipe open.
            if !is_read {
                drop(tokio::time::timeout(OUTPUT_GRACE, reading).await);
            }
            ended
        };
        let status = ended.map_err(ProgramError::WaitFailed)?;
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        if !status.success() {
            return Err(ProgramError::Failed { status, last_line: last_line(&stderr).or_else(|| last_line(&stdout)) });
        }
        let last_line = last_line(&stdout).or_else(|| last_line(&stderr));
        Ok(HookOutput { stdout, last_line })
    }

    fn start(&self, path: &Path, variables: &[(String, String)]) -> Result<(Child, Group), ProgramError> {
        let (program, first) = self.words.split_first().map_or(("", [].as_slice()), |(p, rest)| (p.as_str(), rest));
        let mut command = Command::new(program);
        command.args(first).arg(path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_private(name)) {
            command.env_remove(name);
        }
        // Invalid in a variable.
        command.envs(variables.iter().map(|(name, value)| (name, value.replace('\0', " "))));
        // A process group: no signals of the terminal, and its children are killed with it.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn();
        let child = child.map_err(|source| ProgramError::NotStarted { program: one_line(program), source })?;
        let group = Group(child.id());
        Ok((child, group))
    }

    /// Uploads an image, whose path it gets, and returns the one URL that it prints.
    pub async fn url_of(&self, image: &LocalImage) -> Result<String, ImageUrlError> {
        check_unchanged(image).await?;
        let output = self.run(&image.path, &[]).await?;
        let url = only_url(&output.stdout).map_err(ImageUrlError::InvalidOutput)?;
        // The image may have changed during the upload.
        check_unchanged(image).await?;
        Ok(url)
    }
}

/// Searches as the system does: a path itself, or else the directories of `PATH`.
#[cfg(unix)]
fn found(program: &str) -> io::Result<()> {
    let why = if program.contains('/') { "no program is there that may be started" } else { "it is not on the PATH" };
    let directories = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    which::which_in(program, Some(directories), ".").map(drop).map_err(|_| io::Error::new(io::ErrorKind::NotFound, why))
}

/// On other systems, a name may have several files, and only the system knows the order.
#[cfg(not(unix))]
fn found(_: &str) -> io::Result<()> {
    Ok(())
}

fn is_private(name: &OsStr) -> bool {
    name.to_string_lossy().to_ascii_uppercase().starts_with(PRIVATE_PREFIX)
}

/// A running program with its child processes. Drop kills them.
struct Group(Option<u32>);

impl Group {
    /// True once it was reaped: its number may be reused.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(id) = self.0.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
            // It may have exited meanwhile.
            let _gone = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// Reads to the end, and keeps the last bytes.
async fn read_end(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut source) = source else { return };
    let mut buffer = [0; 8 << 10];
    // An unreadable output ends here: the exit code decides.
    while let Ok(read @ 1..) = source.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > MAX_OUTPUT_BYTES {
            kept.drain(..kept.len() - MAX_OUTPUT_BYTES);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line that is not blank, safe for a terminal.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(one_line(line).chars().take(MAX_LINE_CHARS).collect())
}

fn friendly(duration: Duration) -> String {
    jiff::SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

/// The maximum length of a URL, as of common servers.
const MAX_URL_BYTES: usize = 8 << 10;

/// The reason why an image has no URL.
#[derive(Debug, thiserror::Error)]
pub enum ImageUrlError {
    /// The command failed.
    #[error("`--asset-command`")]
    Program(#[from] ProgramError),
    /// It succeeded, and printed something else.
    #[error("`--asset-command` printed {0}")]
    InvalidOutput(String),
    /// The image has changed since the manifest was read.
    #[error("it changed during the run; the next run plans with the new content")]
    Changed,
    /// The image is unreadable now.
    #[error("can't read the file again")]
    Gone(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ImageUrlError {
    /// Returns whether the command is the cause, and not the image.
    pub fn is_about_the_command(&self) -> bool {
        matches!(self, Self::Program(_) | Self::InvalidOutput(_))
    }
}

async fn check_unchanged(image: &LocalImage) -> Result<(), ImageUrlError> {
    let path = image.path.clone();
    let read =
        on_a_thread(move || read_at_most(&path, LocalImage::MAX_BYTES).map(|bytes| LocalImage::new(path, &bytes)));
    let now = read.await.map_err(ReadError::from).flatten().map_err(|error| ImageUrlError::Gone(error.into()))?;
    if now.sha256 == image.sha256 { Ok(()) } else { Err(ImageUrlError::Changed) }
}

/// The URL, if it is the whole output.
fn only_url(output: &str) -> Result<String, String> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(url) = lines.next() else { return Err("nothing; it must print one URL".to_owned()) };
    let more = lines.count();
    if more > 0 {
        return Err(format!("{} lines; it must print one URL", more + 1));
    }
    if url.len() > MAX_URL_BYTES {
        return Err(format!("a URL of {} bytes; a URL must have at most {MAX_URL_BYTES}", url.len()));
    }
    if let Some(fault) = why_no_web_address(url) {
        let shown: String = one_line(url).chars().take(100).collect();
        return Err(format!("`{shown}`, which {fault}"));
    }
    if has_password(url) {
        return Err("a URL with a password, which the service and the ledger would learn".to_owned());
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_expected_and_nothing_else() {
        assert_eq!(only_url("https://x/a.png\r\n").as_deref(), Ok("https://x/a.png"));
        for bad in [
            "",
            "\n",
            "https://x/a\nhttps://x/b\n",
            "file:///tmp/a.png",
            "uploaded: https://x/a",
            "a.png",
            "s3://b/a",
            "https://x/\u{1b}[31m1",
            "https://x/a b.png",
            "https://me:secret@x/a.png",
        ] {
            assert!(only_url(bad).is_err(), "{bad:?}");
        }
        assert!(only_url(&format!("https://x/{}", "a".repeat(MAX_URL_BYTES))).is_err());
    }
}

#[cfg(all(test, unix))]
mod unix_tests {
    use std::path::PathBuf;

    use super::*;

    fn shell(script: &str) -> Program {
        Program { words: vec!["sh".into(), "-c".into(), script.into(), "sh".into()], timeout: Duration::from_mins(1) }
    }

    #[tokio::test]
    async fn hook_gets_the_path_and_the_variables() {
        let variables = [("SHOTLIST_ID".to_owned(), "hero\0".to_owned())];
        let hook = shell(r#"echo "$1|$SHOTLIST_ID""#);
        let output = hook.run(Path::new("a b.mp4"), &variables).await.expect("it ran");
        assert_eq!((&*output.stdout, output.last_line.as_deref()), ("a b.mp4|hero \n", Some("a b.mp4|hero")));
    }

    #[test]
    fn command_is_split_like_in_a_shell_without_expansion() {
        let words = |command| Program::parse(command, Duration::ZERO).map(|program| program.words);
        assert_eq!(words("up --to 'my bucket' $HOME").expect("words"), ["up", "--to", "my bucket", "$HOME"]);
        for bad in ["", "  ", "it's", "''"] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn failure_is_reported_with_the_last_line() {
        let shown = async |script: &str| {
            let error = shell(script).run(Path::new("x"), &[]).await.expect_err("a failure");
            error.to_string()
        };
        assert_eq!(shown("echo fine; echo 'no such bucket' >&2; echo; exit 3").await, "exit status: 3: no such bucket");
        assert_eq!(shown("exit 1").await, "exit status: 1");
        assert_eq!(shown("kill -9 $$").await, "signal: 9 (SIGKILL)");
        let nowhere = Program::parse("no-such-program-here", Duration::from_mins(1)).expect("words");
        let error = nowhere.run(Path::new("x"), &[]).await.expect_err("nothing to start");
        assert_eq!(error.to_string(), "can't start `no-such-program-here`");
        let found = |command| Program::parse(command, Duration::ZERO).expect("words").find();
        for (command, is_there) in [
            ("sh", true),
            ("/bin/sh -c x", true),
            ("no-such-program-here", false),
            ("./x", false),
            ("/etc", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(found(command).is_ok(), is_there, "{command}");
        }
    }

    #[tokio::test]
    async fn hanging_hook_is_killed_with_its_children() {
        let directory = tempfile::tempdir().expect("a directory");
        let alive = directory.path().join("pid");
        let mut program = shell("sleep 600 & echo $! > \"$1\"; wait");
        program.timeout = Duration::from_secs(1);
        let error = program.run(&alive, &[]).await.expect_err("it hangs");
        assert_eq!(error.to_string(), "it took longer than 1s, and was killed");
        let pid = std::fs::read_to_string(&alive).expect("it began").trim().to_owned();
        let state = || std::fs::read_to_string(PathBuf::from("/proc").join(&pid).join("stat"));
        for _ in 0..1000 {
            // A process that is dead may still have to be collected.
            if state().map_or(true, |stat| stat.contains(") Z ")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("its child still runs: {:?}", state());
    }

    #[tokio::test]
    async fn hook_is_done_at_its_own_exit() {
        let mut hook = shell("sleep 600 & echo done; echo $! > \"$1\"");
        // Its remaining children don't count for its time.
        hook.timeout = OUTPUT_GRACE;
        let directory = tempfile::tempdir().expect("a directory");
        let pid = directory.path().join("pid");
        let output = hook.run(&pid, &[]).await.expect("it ended");
        assert_eq!(output.last_line.as_deref(), Some("done"));
        let pid = std::fs::read_to_string(&pid).expect("a number");
        let killed = std::process::Command::new("kill").arg(pid.trim()).status().expect("kill is there");
        assert!(killed.success(), "it was killed before");
    }

    #[tokio::test]
    async fn endless_output_is_kept_from_its_end() {
        let hook = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
        let output = hook.run(Path::new("x"), &[]).await.expect("it ended");
        assert_eq!((output.stdout.len(), output.last_line.as_deref()), (MAX_OUTPUT_BYTES, Some("line 19999")));
    }
}
