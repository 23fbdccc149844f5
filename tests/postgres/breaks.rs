//! Broken connections at any point, and a server that stops and restarts: nothing is paid twice, and no job is in doubt.

use std::process::Child;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::cluster::{Cluster, as_postgres, directory, free_port};
use crate::proxy::Proxy;
use crate::support::{Ended, Program, wait_until};
use crate::team::{Team, all_end, murdered, quick};

fn is_running(children: &mut [Child]) -> bool {
    children.iter_mut().any(|child| child.try_wait().expect("a status").is_none())
}

/// A short outage ends no lease: none expires within twelve seconds.
const PATIENT: &str = "5";

/// While they run, something is done to them again and again.
fn troubled(team: &Team, mut trouble: impl FnMut()) {
    let mut started = team.all_at_once(&[]);
    while is_running(&mut started) {
        trouble();
    }
    all_end(started, &[0]);
}

#[test]
fn terminated_backends_and_canceled_statements_leave_no_doubt() {
    let team = Team { time_scale: PATIENT, ..Team::of_batches(3, 100) };
    let mut terminated = 0;
    troubled(&team, || {
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..150)));
        let some =
            "SELECT count(CASE WHEN random() < 0.5 THEN pg_terminate_backend(pid) ELSE pg_cancel_backend(pid) END)
             FROM pg_stat_activity
             WHERE application_name = 'shotlist' AND datname = current_database() AND random() < 0.6";
        terminated += team.database.sql(some).parse::<usize>().expect("a number");
    });
    assert!(terminated > 10, "only {terminated} backends were terminated or canceled");
    assert_eq!(team.agree(), (300, 0));
}

/// Without `BEGIN`, its statements are committed one after the other. They find the tables if a role is named like the schema.
#[test]
fn transactions_canceled_at_their_beginning_change_nothing() {
    for role in ["postgres", "shotlist"] {
        let mut team = Team { time_scale: PATIENT, ..Team::of_batches(2, 50) };
        if role == "shotlist" {
            team.database.sql("CREATE ROLE shotlist SUPERUSER LOGIN");
        }
        let proxy = Proxy::to(Cluster::shared().port);
        proxy.cancel_beginnings();
        team.ledger = format!("postgres://{role}@127.0.0.1:{}/{}", proxy.port(), team.database.name);
        all_end(team.all_at_once(&[]), &[0]);
        team.run(0, &["--plan"]).ends_with(0);
        assert!(proxy.canceled.load(Ordering::Relaxed) > 10, "the proxy canceled some");
        assert_eq!(team.agree(), (100, 0));
        assert_eq!(team.database.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    }
}

/// Later statements only have a consequence of that error.
#[test]
fn lacking_right_is_reported_at_once() {
    let mut team = Team::new(1, 1);
    team.run(0, &[]).ends_with(0);
    let rights = "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA shotlist TO clerk;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shotlist TO clerk;
        REVOKE UPDATE ON shotlist.batch FROM clerk; GRANT EXECUTE ON FUNCTION pg_control_system() TO clerk";
    team.database.sql(rights);
    team.ledger = team.ledger.replace("postgres@", "clerk@");
    let refused = team.run(0, &[]).ends_with(74).stderr;
    assert!(refused.starts_with("error[ledger-unavailable]: the user lacks a right in the database"), "{refused}");
}

/// Four distant runners behind a proxy that cuts connections and loses responses to COMMIT. Two runners are killed.
#[test]
fn cuts_at_counted_messages_and_kills_buy_nothing_twice() {
    let mut team = Team::of_batches(4, 100);
    team.time_scale = PATIENT;
    let proxy = Proxy::to(Cluster::shared().port);
    proxy.delay(Duration::from_millis(4));
    proxy.lose_commits(10);
    proxy.cut_messages(4);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let mut running = team.all_at_once(&["--concurrency", "5"]);
    for (killed, victim) in running.iter_mut().enumerate().take(2) {
        wait_until("some are bought", || team.charges().len() > 60 * (killed + 1));
        let next = team.run(killed, &["--concurrency", "5", "--lock-wait", "5m"]).starts();
        murdered(std::mem::replace(victim, next));
    }
    // A runner that did not reach the database for a lease has expired.
    all_end(running, &[0, 7, 74]);
    let (cuts, lost) = (proxy.cuts.load(Ordering::Relaxed), proxy.lost_commits.load(Ordering::Relaxed));
    assert!(cuts >= 30 && lost >= 10, "only {cuts} cuts, {lost} lost responses");
    team.agree();
    team.ledger = team.database.url();
    all_end((0..4).map(|desk| team.run(desk, &["--lock-wait", "5m"]).starts()).collect(), &[0, 7]);
    let (charges, doubts) = team.agree();
    assert!(charges + doubts >= 400 && doubts <= 2 * 5, "{charges} charges, {doubts} doubts");
}

/// A connection that is silent beyond the timeout is broken, even if the system reports it as open.
#[test]
fn silent_connection_is_replaced() {
    let mut team = Team::of_batches(2, 50);
    let proxy = Proxy::to(Cluster::shared().port);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let started = team.all_at_once(&["--concurrency", "10"]);
    wait_until("they are at it", || {
        team.database.sql("SELECT to_regclass('shotlist.attempt') IS NOT NULL") == "t"
            && team.database.sql("SELECT count(*) > 8 FROM shotlist.attempt") == "t"
    });
    proxy.stall(true);
    // A transaction may take a thirtieth of a minute here.
    std::thread::sleep(Duration::from_secs(4));
    // Those that hang stay cut off; new ones get through.
    proxy.cut();
    proxy.stall(false);
    // A runner that was cut off for longer has expired.
    all_end(started, &[0, 7, 74]);
    team.agree();
    all_end((0..2).map(|desk| team.run(desk, &["--lock-wait", "5m"]).starts()).collect(), &[0, 7]);
    let (charges, doubts) = team.agree();
    assert!(charges + doubts >= 100, "{charges} {doubts}");
}

#[test]
fn run_waits_for_a_crashed_server() {
    let mut cluster = Cluster::start(&[]);
    let team = Team { time_scale: PATIENT, ..Team::on(cluster.database(), 2, 0, &["--speed", "400"]) };
    team.split(150);
    let started = team.all_at_once(&[]);
    for round in 1..=3 {
        wait_until("some are bought", || {
            team.database.sql("SELECT CASE WHEN to_regclass('shotlist.attempt') IS NULL THEN 0 ELSE 1 END") == "1"
                && team.database.sql("SELECT count(*) FROM shotlist.attempt").parse::<u32>().expect("a number")
                    > round * 50
        });
        cluster.crash_and_restart();
    }
    all_end(started, &[0]);
    assert_eq!(team.agree(), (300, 0));
}

/// Behind a pooler, each transaction may get another session. If a session dies, the pooler responds, and does not know whether the commit
/// succeeded.
#[test]
fn transaction_pooler_changes_nothing() {
    let mut team = Team { time_scale: PATIENT, ..Team::of_batches(3, 100) };
    let (directory, port) = (directory(), free_port());
    let settings = format!(
        "[databases]\n* = user=postgres host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 100\n\
         ignore_startup_parameters = extra_float_digits\nserver_login_retry = 0\nlogfile = {}/log\npidfile = {}/pid\n",
        Cluster::shared().port,
        directory.path().display(),
        directory.path().display(),
    );
    std::fs::write(directory.path().join("settings.ini"), settings).expect("a file");
    let program =
        ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| std::path::Path::new(path).exists());
    let program = program.expect("pgbouncer is here: apt install pgbouncer");
    let mut pooler = as_postgres(std::path::Path::new(program))
        .arg("-q")
        .arg(directory.path().join("settings.ini"))
        .spawn()
        .expect("it starts");
    wait_until("the pooler takes connections", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    team.ledger = format!("postgres://postgres@127.0.0.1:{port}/{}", team.database.name);
    let mut terminated = 0;
    troubled(&team, || {
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..150)));
        let some = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.6";
        terminated += team.database.sql(some).parse::<usize>().expect("a number");
    });
    assert!(terminated > 5, "only {terminated} sessions died");
    pooler.kill().expect("it ends");
    pooler.wait().expect("it ended");
    drop(std::process::Command::new("pkill").args(["-f", &directory.path().display().to_string()]).status());
    assert_eq!(team.agree(), (300, 0));
}

/// The first one back finds the others silent for longer than a lease, and must not expire them.
#[test]
fn runners_survive_an_outage_longer_than_a_lease() {
    let mut team = Team { time_scale: PATIENT, ..Team::of_batches(4, 50) };
    let proxy = Proxy::to(Cluster::shared().port);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let started = team.all_at_once(&["--concurrency", "4"]);
    wait_until("they are at it", || team.charges().len() > 20);
    proxy.close(true);
    let silent_for = |seconds| {
        let sql = format!(
            "SELECT bool_and(heartbeat_us < (extract(epoch FROM clock_timestamp()) - {seconds}) * 1000000) FROM shotlist.runner"
        );
        team.database.sql(&sql) == "t"
    };
    // A lease is a fifth of a minute here.
    wait_until("the lease of each is over", || silent_for(14));
    proxy.close(false);
    all_end(started, &[0]);
    assert_eq!(team.agree(), (200, 0));
    assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.runner WHERE expired_us IS NOT NULL"), "0");
}

/// An ID of a paid task that can't be recorded is shown soon, and a signal ends the wait.
#[test]
fn runner_without_ledger_shows_its_task_and_obeys_a_signal() {
    let mut team = Team::on(Cluster::shared().database(), 1, 3, &["--speed", "20", "--fault", "slow=1"]);
    team.time_scale = "1";
    let proxy = Proxy::to(Cluster::shared().port);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let output = team.here.path("output");
    let script = format!("exec \"$0\" {} 2>'{}'", quick(&["--concurrency", "1"]).join(" "), output.display());
    let run = team.prepared(0, Program::script(team.desks[0].root(), &script)).starts();
    wait_until("one is charged", || !team.charges().is_empty());
    proxy.close(true);
    let said = || std::fs::read_to_string(&output).expect("its output");
    let (_, task) = team.charges().remove(0);
    wait_until("the task is shown", || said().contains(&format!("RESCUE: the task of j0 is {task}")));
    crate::support::kill(&run, "-TERM");
    let ended = Ended::wait_for(run);
    assert_eq!(ended.code, Some(74), "{}", said());
}

/// During a restore, the tables are missing for seconds. Runners with purchases wait for them.
#[test]
fn runners_wait_for_missing_tables() {
    let mut team = Team::of_batches(2, 20);
    team.time_scale = PATIENT;
    let started = team.all_at_once(&["--concurrency", "2"]);
    let bought = || {
        team.database.sql("SELECT CASE WHEN to_regclass('shotlist.attempt') IS NULL THEN '0' ELSE 'some' END") == "some"
    };
    wait_until("they are at it", || bought() && team.charges().len() > 6);
    // Each transaction that meets no tables is rolled back.
    let sql = format!("SELECT xact_rollback FROM pg_stat_database WHERE datname = '{}'", team.database.name);
    let rolled_back = || team.database.sql(&sql).parse::<u64>().expect("a count");
    let before = rolled_back();
    team.database.sql("ALTER SCHEMA shotlist RENAME TO away");
    let charged = team.charges().len();
    wait_until("the runners have met it", || rolled_back() >= before + 4);
    assert!(team.charges().len() <= charged + 4, "nothing is submitted without a ledger");
    team.database.sql("ALTER SCHEMA away RENAME TO shotlist");
    all_end(started, &[0]);
    assert_eq!(team.agree(), (40, 0));
}

/// No other runner remembers the purchases.
#[test]
fn runner_names_its_purchases_if_the_tables_stay_away() {
    let team = Team::new(1, 40);
    let run = team.run(0, &["--concurrency", "2"]).starts();
    wait_until("it has bought some", || team.charges().len() > 6);
    // A drop would lock table by table, against the order of the runner's transactions.
    team.database.sql("ALTER SCHEMA shotlist RENAME TO away");
    let ended = Ended::wait_for(run);
    assert_eq!(ended.code, Some(74), "{}", ended.stderr);
    let rescued = ended.stderr.matches("RESCUE: ").count();
    assert!(rescued >= team.charges().len(), "{rescued} of {}: {}", team.charges().len(), ended.stderr);
    assert!(
        ended.stderr.contains("the tables of the ledger are missing") || ended.stderr.contains("does not exist"),
        "{}",
        ended.stderr
    );
}
