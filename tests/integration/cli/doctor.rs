//! `shotlist doctor`: one right sentence for each thing that is wrong, and no task.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::service::tls::{EXPIRED_AUTHORITY, serve_expired};
use crate::support::{Ended, Program, Simulator, Workspace, unnumbered};

const ONE_JOB: &str = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";

fn doctor(here: &Workspace, args: &[&str]) -> Program {
    here.shotlist(&[&["doctor", "m.yaml"], args].concat()).env("SHOTLIST_API_KEY", "k")
}

/// The URL of a server with this response to every request.
fn answering(head: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _request = socket.read(&mut [0; 4096]);
            let _client_may_be_gone =
                write!(socket, "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

/// The lines that name a problem.
fn problems(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("problem  ")).collect()
}

/// The only problem of a run to the end of all checks.
#[track_caller]
fn only_problem(program: Program) -> String {
    let ended = program.ends_with(1);
    let problems = problems(&ended);
    assert_eq!(problems.len(), 1, "{}", ended.stdout);
    unnumbered(problems[0])
}

#[test]
fn healthy_setup_has_no_problem_and_leaves_nothing() {
    let here = Workspace::with_manifest(ONE_JOB);
    let simulator = Simulator::start(&here, &["--speed", "200"]);
    let before = here.files();
    let ended = doctor(&here, &["--exec", "true"]).with_service(simulator.url()).ends_with(0);
    let names: Vec<&str> =
        ended.stdout.lines().map(|line| line["ok       ".len()..].split(':').next().expect("a name")).collect();
    assert_eq!(names, ["manifest", "prices", "hooks", "output", "ledger", "service", "clock"], "{}", ended.stdout);
    assert_eq!(here.files(), before, "nothing is written");
    // Without a manifest, and after a run.
    here.shotlist(&["doctor"]).with_service(simulator.url()).ends_with(0);
    here.shotlist(&["run", "m.yaml", "--yes", "--no-download"]).with_service(simulator.url()).ends_with(0);
    doctor(&here, &[]).with_service(simulator.url()).ends_with(0);
    assert_eq!(simulator.ledger()["charges"].as_array().expect("charges").len(), 1, "the run's own");
}

#[test]
fn wrong_key_address_and_clock_have_a_sentence_each() {
    let here = Workspace::with_manifest(ONE_JOB);
    let problem_of = |url: &str| only_problem(doctor(&here, &["--base-url", url]));
    let json = "{\"error\":{\"message\":\"no such key\"}}";
    let problem = problem_of(&answering("401 x\r\ncontent-type: application/json", json));
    insta::assert_snapshot!(problem, @"service: the service refused the key (HTTP 401): no such key; check `SHOTLIST_API_KEY`, or the file of `--api-key-file`");

    let problem = problem_of(&answering("403 x\r\ncontent-type: application/json", json));
    insta::assert_snapshot!(problem, @"service: the service refused the key, which must belong to the vip group (HTTP 403): no such key; check `SHOTLIST_API_KEY`, or the file of `--api-key-file`");

    let problem = problem_of(&answering("503 x\r\nretry-after: 9\r\ncontent-type: application/json", "{}"));
    assert!(
        problem.ends_with("the service asked to wait (HTTP 503); check again later; a run waits by itself"),
        "{problem}"
    );

    let no_route = "{\"error\":{\"message\":\"No such endpoint: GET /v2/v1/videos\"}}";
    let wrong = answering("404 x\r\ncontent-type: application/json", no_route);
    let told = "the service has no such path (HTTP 404): No such endpoint: GET /v2/v1/videos";
    assert!(
        problem_of(&wrong)
            .ends_with(&format!("{told}; check the base URL and the network, and for a proxy or login page")),
        "{wrong}"
    );
    let run = here.shotlist(&["run", "m.yaml", "--yes", "--base-url", &wrong]).env("SHOTLIST_API_KEY", "k");
    let stderr = run.ends_with(6).stderr;
    assert!(stderr.lines().any(|line| line == format!("error[stopping]: stopped submitting: {told}")), "{stderr}");

    let problem = problem_of("http://127.0.0.1:9");
    insta::assert_snapshot!(problem, @"service: can't connect to http://127.0.0.1:9: tcp connect error: Connection refused; check the base URL and the network, and for a proxy or login page");

    let problem = only_problem(doctor(&here, &[]));
    let expected =
        "service: the base URL is not set; pass `--base-url`, or set `SHOTLIST_BASE_URL`; `--sandbox` needs none";
    assert_eq!(problem, expected);

    let problem = problem_of(&answering("200 x\r\ncontent-type: text/html", "<html>log in</html>"));
    insta::assert_snapshot!(problem, @"service: the response is an HTML page (HTTP 200): <html>log in</html>; check the base URL and the network, and for a proxy or login page");

    let anywhere = answering("404 x\r\ncontent-type: application/json", json);
    let ended = doctor(&here, &["--base-url", &anywhere]).ends_with(0);
    let service = ended.line("service: ");
    assert!(
        service.ends_with(" responds, and does not refuse the API key"),
        "whether it accepts it is unknown: {service}"
    );

    let late = "404 x\r\ncontent-type: application/json\r\ndate: Wed, 01 Jan 2020 00:00:00 GMT";
    let problem = problem_of(&answering(late, json));
    let (_, told) = problem.split_once(" ahead of ").expect("how far the clock is ahead");
    assert!(problem.starts_with("clock: "), "{problem}");
    insta::assert_snapshot!(told, @"the service's; set this machine's clock: limits count by its days");
}

#[test]
fn expired_certificate_is_named() {
    let here = Workspace::with_manifest(ONE_JOB);
    let url = serve_expired();
    let problem = only_problem(doctor(&here, &["--base-url", &url]).env("SSL_CERT_FILE", EXPIRED_AUTHORITY));
    let (told, _times) = problem.split_once(": verification time").expect("what is wrong with it");
    insta::assert_snapshot!(told.replace(&url, "URL"), @"service: can't connect to URL: invalid peer certificate: certificate expired");
}

#[test]
fn ledger_disk_programs_and_prices_have_a_sentence_each() {
    let here = Workspace::with_manifest(ONE_JOB).file("ledger.db", "not a database, but a text of some length");
    let simulator = Simulator::start(&here, &[]);
    let problem = |args: &[&str]| only_problem(doctor(&here, args).with_service(simulator.url()));
    // Not even root can make a file there.
    let unwritable = |option: &str, path: &str| {
        let problem = problem(&[option, path]);
        problem.split_once(" at path").expect("the cause").0.to_owned()
    };
    insta::assert_snapshot!(unwritable("--ledger", "/proc/ledger.db"), @"ledger: can't write to `/proc`: No such file or directory");
    insta::assert_snapshot!(unwritable("--out", "/proc/out"), @"output: can't write to `/proc/out`: No such file or directory");
    insta::assert_snapshot!(problem(&["--ledger", "ledger.db"]), @"ledger: `ledger.db` is not a database, or a damaged one; check `--ledger`; if it is your ledger, restore a copy that `shotlist ledger check` finds whole");
    insta::assert_snapshot!(problem(&["--exec", "no-such-program"]), @"hooks: `--exec`: can't start `no-such-program`: it is not on the PATH; name an executable program, by its path or by its name on the PATH");
    let old = doctor(&here, &[]).with_service(simulator.url()).env("SHOTLIST_PRICES_TAKEN_ON", "2020-01-01");
    assert!(only_problem(old).starts_with("prices: of 2020-01-01, "));
    here.write("m.yaml", "version: 1\njobs: [{ id: a, model: nonsense, prompt: a }]\n");
    assert!(problem(&[]).starts_with("manifest: "));
    here.write("m.yaml", ONE_JOB);
    here.shotlist(&["limit", "set", "--freeze"]).ends_with(0);
    assert!(problem(&[]).starts_with("ledger: purchases are frozen"));
}
