//! A directory in which the program for Windows works, against a simulator on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::{Program, Workspace};

/// The program with the stub beside it, and a prefix for Wine.
struct Wine {
    program: PathBuf,
    prefix: PathBuf,
}

static WINE: LazyLock<Wine> = LazyLock::new(|| {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = own.join("target");
    let built = target.join("packaging/build/x86_64-pc-windows-gnu/debug");
    let program = built.join("shotlist.exe");
    assert!(program.exists(), "{} is there: `.ci/aside` has the command that builds it", program.display());
    let [stub, source] = [built.join("bcryptprimitives.dll"), own.join("tests/windows/bcryptprimitives.c")]
        .map(|path| path.to_string_lossy().into_owned());
    done("x86_64-w64-mingw32-gcc", &["-shared", "-o", &stub, &source, "-ladvapi32"], &[]);
    let prefix = target.join("wine");
    done("wine", &["wineboot", "--init"], &environment(&prefix));
    Wine { program, prefix }
});

fn environment(prefix: &Path) -> [(&'static str, String); 4] {
    let prefix = prefix.to_string_lossy().into_owned();
    let libraries = "bcryptprimitives=n;mscoree,mshtml=".to_owned();
    [
        ("WINEPREFIX", prefix.clone()),
        ("HOME", prefix),
        ("WINEDEBUG", "-all".to_owned()),
        ("WINEDLLOVERRIDES", libraries),
    ]
}

fn done(program: &str, args: &[&str], environment: &[(&str, String)]) {
    let mut command = Command::new(program);
    command.args(args).envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The program for Windows, to be started in a workspace. Its process ID is that of the Windows process.
pub fn windows(here: &Workspace, args: &[&str]) -> Program {
    let wine = &*WINE;
    let words = shlex::try_join(args.iter().copied()).expect("no NUL");
    let script = format!("exec wine '{}' {words}", wine.program.display());
    let program = Program::script(here.root(), &script);
    environment(&wine.prefix).iter().fold(program, |program, (name, value)| program.env(name, value))
}

/// The arguments of a run that waits no longer than it must.
pub fn quick<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let quick = ["run", "m.yaml", "--yes", "--first-poll", "0s", "--poll-interval", "50ms", "--poll-floor", "5ms"];
    [&quick, args].concat()
}

/// A path of this machine, as Windows names it.
pub fn with_a_drive(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}
