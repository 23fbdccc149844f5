//! Completions in real shells on a terminal, by keys, and the API key from a password manager. A separate target,
//! because it needs zsh, fish, and pass: `cargo test --test shells`.
#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

mod pass;
#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use support::{Workspace, wait_until};

const MANIFEST: &str = "version: 1\njobs: [{ id: hero, model: alpha-2, prompt: A dog }]\n";

/// The typed line, with tabs, and the resulting words of the shell, with `_` for a space in a word.
const TYPED: [(&str, &str); 7] = [
    ("shotlist run m.ya\t--pla\t", "shotlist run m.yaml --plan"),
    ("shotlist run my\t--plan", "shotlist run my_list.yaml --plan"),
    ("shotlist resolve m.yaml hero --never\t", "shotlist resolve m.yaml hero --never-created"),
    ("shotlist status m.yaml --state in_d\t", "shotlist status m.yaml --state in_doubt"),
    ("shotlist sch\tplan", "shotlist schema plan"),
    ("shotlist run m.yaml --log-format js\t", "shotlist run m.yaml --log-format json"),
    ("shotlist sand\t--por\t", "shotlist sandbox --port"),
];

/// A shell on a separate terminal.
struct Shell {
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
    child: Child,
}

impl Shell {
    /// Starts it without settings, with the program on its path.
    fn start(here: &Workspace, command: &str) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_shotlist")).parent().expect("a directory");
        let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
        let mut script = Command::new("script");
        script.args(["-q", "-c", command, "/dev/null"]).current_dir(here.root()).env_clear();
        script.env("PATH", path).env("TERM", "xterm").env("HOME", here.root()).env("LANG", "C.UTF-8");
        let child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("script is there: it belongs to util-linux");
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut screen, written) = (child.stdout.take().expect("a screen"), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                written.lock().expect("a screen").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keys: child.stdin.take().expect("a keyboard"), shown, child }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a keyboard");
    }

    fn waits_for(&self, text: &str) {
        wait_until(text, || self.shown.lock().expect("a screen").contains(text));
    }

    /// Types a line with tabs, and lets the shell print its words instead of running them.
    fn makes_of(&mut self, typed: &str, words: &str) {
        self.press(typed);
        // At the start of the line: a command that prints each word on a line.
        self.press("\u{1}printf '<%s>' \u{5} end\n");
        let words: String = words.split(' ').chain(["end"]).fold(String::new(), |all, word| all + "<" + word + ">");
        self.waits_for(&words.replace("my_list", "my list").replace("summer_26", "summer 26"));
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn completes(shell: &str, set_up: &str) {
    // A name that would be a command, were it read again.
    let here = Workspace::with_manifest(MANIFEST).file("my list.yaml", MANIFEST).file("z$(touch pwned).yaml", MANIFEST);
    let mut shell = Shell::start(&here, shell);
    shell.press(&format!("{set_up}; echo rea''dy\n"));
    shell.waits_for("ready");
    for (typed, words) in TYPED {
        shell.makes_of(typed, words);
    }
    shell.press("shotlist run z\t\u{1}: \u{5}; echo do''ne\n");
    shell.waits_for("done");
    assert!(!here.path("pwned").exists(), "a name became a command");
}

#[test]
fn bash() {
    completes("bash --norc --noprofile -i", "source <(shotlist completions bash)");
}

#[test]
fn zsh() {
    completes("zsh -f -i", "autoload -U compinit && compinit -u -D && source <(shotlist completions zsh)");
}

/// As in a package: the first tab loads the file, and must complete.
#[test]
fn zsh_completes_after_loading_by_name() {
    let file = "mkdir f && shotlist completions zsh > f/_shotlist && fpath=($PWD/f $fpath)";
    completes("zsh -f -i", &format!("{file} && autoload -U compinit && compinit -u -D"));
}

#[test]
fn fish() {
    completes("fish --no-config", "shotlist completions fish | source");
}
