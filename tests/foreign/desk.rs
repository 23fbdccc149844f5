//! The program for another system or processor, in a directory of this machine, against a simulator of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::{Program, Workspace};

/// The machine that a program is built for.
#[derive(Clone, Copy)]
pub enum Foreign {
    /// Windows, under Wine.
    Windows,
    /// Linux on arm64, under QEMU, with its GNU C library.
    Arm64,
}

/// The directory of Wine, with the stub in the program's directory.
static WINE: LazyLock<PathBuf> = LazyLock::new(|| {
    let [stub, source] = [
        program(Foreign::Windows).with_file_name("bcryptprimitives.dll"),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/bcryptprimitives.c"),
    ]
    .map(|path| path.to_string_lossy().into_owned());
    done("x86_64-w64-mingw32-gcc", &["-shared", "-o", &stub, &source, "-ladvapi32"], &[]);
    let prefix = target().join("wine");
    done("wine", &["wineboot", "--init"], &environment(&prefix));
    prefix
});

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target")
}

/// The program, as `packaging/release` built it from the last commit.
fn program(machine: Foreign) -> PathBuf {
    let name = match machine {
        Foreign::Windows => "x86_64-pc-windows-gnu/debug/shotlist.exe",
        Foreign::Arm64 => "aarch64-unknown-linux-gnu/debug/shotlist",
    };
    let program = target().join("packaging/build").join(name);
    assert!(program.exists(), "{} is there: `.ci/aside` has the command that builds it", program.display());
    program
}

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

/// The program for another machine, to be started in a workspace. Its process ID is that of the foreign process.
pub fn foreign(machine: Foreign, here: &Workspace, args: &[&str]) -> Program {
    let words = shlex::try_join(args.iter().copied()).expect("no NUL");
    let path = program(machine);
    match machine {
        Foreign::Windows => {
            let program = Program::script(here.root(), &format!("exec wine '{}' {words}", path.display()));
            environment(&WINE).iter().fold(program, |program, (name, value)| program.env(name, value))
        }
        Foreign::Arm64 => {
            let emulator = "qemu-aarch64-static -L /usr/aarch64-linux-gnu";
            Program::script(here.root(), &format!("exec {emulator} '{}' {words}", path.display()))
        }
    }
}

/// The program for Windows, to be started in a workspace.
pub fn windows(here: &Workspace, args: &[&str]) -> Program {
    foreign(Foreign::Windows, here, args)
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
