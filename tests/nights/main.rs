//! Unattended runs with the real tools: systemd units, and metrics in Prometheus's node exporter. Needs these tools and root, so
//! `cargo test` leaves it out: `cargo test --test nights`.
#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

mod week;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use support::{Answer, Service, TWO_JOBS, Workspace, json, output_of, wait_until};

/// The path of the program in the units.
const INSTALLED: &str = "/usr/local/bin/shotlist";
/// The user ID of `nobody`, in place of the user that systemd creates.
const NOBODY: u32 = 65534;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cron")
}

fn unit(name: &str) -> String {
    fs::read_to_string(examples().join(name)).expect("a unit")
}

/// All values of a setting of a unit.
fn settings<'u>(unit: &'u str, name: &str) -> Vec<&'u str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let here = Workspace::new();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--recursive-errors=yes", "--man=no"]);
    for name in ["shotlist.service", "shotlist.timer", "shotlist-failed.service", "../machines/shotlist@.service"] {
        // The program is where the test built it.
        let file = name.rsplit('/').next().expect("a name");
        here.write(file, unit(name).replace(INSTALLED, env!("CARGO_BIN_EXE_shotlist")));
        verify.arg(here.path(file));
    }
    let child = verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("systemd-analyze is there");
    let output = output_of(child);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("shotlist"), "{said}");
}

/// The command of the unit as systemd starts it: as another user without any rights, in a system that is read-only but for its own
/// directory, with its key as a credential.
#[test]
fn unit_writes_only_to_its_own_directories() {
    let unit = unit("shotlist.service");
    assert_eq!(settings(&unit, "WorkingDirectory"), ["%S/shotlist"]);
    assert_eq!(settings(&unit, "StateDirectory"), ["shotlist"]);
    let service = Service::scripted(|asked| {
        if asked.headers.get("authorization").is_some_and(|key| key == "Bearer from-the-credential") {
            Answer::Well
        } else {
            json(401, &serde_json::json!({ "error": { "message": "who?" } }))
        }
    });
    let daily = fs::read_to_string(examples().join("../daily.yaml")).expect("the example");
    let here = Workspace::new().file("state/daily.yaml", daily).file("credentials/key", "from-the-credential\n");
    // A user with all permissions may write here, except to the read-only system.
    fs::create_dir(here.path("open")).expect("a directory");
    fs::set_permissions(here.path("open"), fs::Permissions::from_mode(0o777)).expect("a mode");
    // The directory of that user and its copy of the key, which systemd creates.
    fs::set_permissions(here.root(), fs::Permissions::from_mode(0o755)).expect("a mode");
    for (path, mode) in [("state", 0o755), ("credentials", 0o500), ("credentials/key", 0o400)] {
        chown(here.path(path), Some(NOBODY), Some(NOBODY)).expect("the tests run as root");
        fs::set_permissions(here.path(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    // Other users may lack access to the build directory.
    fs::copy(env!("CARGO_BIN_EXE_shotlist"), here.path("shotlist")).expect("a copy");
    let command = settings(&unit, "ExecStart")[0].replace(INSTALLED, &here.path("shotlist").to_string_lossy());
    let umask = settings(&unit, "UMask")[0];
    let run = || {
        let inside = format!(
            "mount --bind \"$STATE\" \"$STATE\" && mount -o remount,ro,bind / && mount -o remount,rw,bind \"$STATE\" && cd \"$STATE\" \
             && umask {umask} && exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs \
             --bounding-set=-all --inh-caps=-all sh -c '! touch ../open/anything 2>/dev/null && exec {command}'"
        );
        let mut run = Command::new("unshare");
        run.args(["--mount", "sh", "-c", &inside]).env_clear().stdin(Stdio::null());
        run.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("STATE", here.path("state"));
        run.env("SHOTLIST_FIRST_POLL", "0s")
            .env("CREDENTIALS_DIRECTORY", here.path("credentials"))
            .env("SHOTLIST_BASE_URL", service.url());
        let output = output_of(run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unshare is there"));
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    // Twice: the second time everything is there already.
    for _ in 0..2 {
        assert_eq!(run(), (Some(0), String::new()));
    }
    assert_eq!(service.posts().len(), 2);
    let days: Vec<PathBuf> = fs::read_dir(here.path("state/shotlist-out/daily"))
        .expect("a directory")
        .map(|day| day.expect("an entry").path().join("report.json"))
        .collect();
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&days[0]).expect("a report")).expect("JSON");
    assert_eq!(report["jobs"][1]["state"], "completed");
    assert!(here.path("state/.shotlist/ledger.db").exists() && !here.path("open/anything").exists());
}

/// An exporter that is stopped when the test ends.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn scraped(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn prometheus_reads_the_metrics() {
    let service = Service::losing("a dog");
    let here = Workspace::with_manifest(&format!("{TWO_JOBS}name: \"odd \\\"name\\\\\"\n"));
    fs::create_dir(here.path("metrics")).expect("a directory");
    here.run(&service, &["--batch", "b"]).ends_with(7);
    let label = "client=od\"d";
    here.shotlist(&["limit", "set", "--day", "20", "--label", label, "--timezone", "UTC"]).ends_with(0);
    let metrics = here.shotlist(&["status", "m.yaml", "--batch", "b", "--format", "prometheus"]).ends_with(0).stdout;
    here.write("metrics/videos.prom", metrics);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut exporter = Command::new("prometheus-node-exporter");
    exporter.args(["--collector.disable-defaults", "--collector.textfile"]);
    exporter.arg(format!("--collector.textfile.directory={}", here.path("metrics").display()));
    exporter.arg(format!("--web.listen-address=127.0.0.1:{port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let _exporter = Exporter(exporter.spawn().expect("prometheus-node-exporter is there"));
    wait_until("it serves", || scraped(port).is_some());
    let text = scraped(port).expect("metrics");
    assert!(text.contains("node_textfile_scrape_error 0"), "{text}");
    let labels = r#"{batch="b",name="odd \"name\\"}"#;
    for line in [
        format!("shotlist_spent_usd{labels} 3.75"),
        format!("shotlist_at_risk_usd{labels} 7.5"),
        format!("shotlist_ledger_frozen{labels} 0"),
        r#"shotlist_jobs{batch="b",name="odd \"name\\",state="in_doubt"} 1"#.to_owned(),
        r#"shotlist_limit_usd{batch="b",limit="ledger.client.od\"d.day",name="odd \"name\\"} 20"#.to_owned(),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
}
