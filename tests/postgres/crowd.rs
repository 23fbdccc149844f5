//! Many runners at once, and nothing goes wrong but that they are many.

use crate::support::Ended;
use crate::team::{Team, all_end};

fn a_thousand_jobs(runners: usize) {
    let team = Team::new(runners, 1000);
    all_end(team.all_at_once(&[]), &[0]);
    assert_eq!(team.agree(), (1000, 0));
    assert_eq!(
        team.database.sql("SELECT state, count(*) FROM shotlist.attempt WHERE state <> 'void' GROUP BY state"),
        "completed|1000",
        "besides what stood still for too long before it was sent, was not sent, and was bought anew"
    );
    let buyers = team.database.sql("SELECT count(DISTINCT runner) FROM shotlist.attempt").parse::<usize>();
    assert_eq!(buyers, Ok(runners), "each of them bought something");
    assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.runner WHERE ended_us IS NULL"), "0");
}

#[test]
fn two_runners_share_a_thousand_jobs() {
    a_thousand_jobs(2);
}

#[test]
fn four_runners_share_a_thousand_jobs() {
    a_thousand_jobs(4);
}

#[test]
fn eight_runners_share_a_thousand_jobs() {
    a_thousand_jobs(8);
}

/// The places of the account and the limit of the month are those of all runners together.
#[test]
fn no_limit_is_passed_by_many_that_one_would_keep() {
    let team = Team::new(4, 60);
    for desk in &team.desks {
        let manifest = std::fs::read_to_string(desk.path("m.yaml")).expect("the manifest");
        desk.write("m.yaml", manifest.replace("jobs:\n", "budget: { month: 20.00 }\njobs:\n"));
    }
    // Each wants other jobs, which one alone would be allowed to buy.
    let wanted = ["j1?", "j2?", "j3?", "j4?"];
    let started: Vec<_> =
        (0..4).map(|desk| team.run(desk, &["--concurrency", "8", "--select", wanted[desk]]).starts()).collect();
    let codes: Vec<_> = started.into_iter().map(|child| Ended::of(child).code).collect();
    // Whoever comes when the month is spent is refused, or stopped.
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))) && codes.contains(&Some(3)), "{codes:?}");
    assert_eq!(team.agree(), (22, 0), "as many of $0.90 as fit into $20");
    let most = team.database.sql(
        "WITH changes AS (SELECT intended_us AS at, 1 AS by FROM shotlist.attempt
             UNION ALL SELECT (extract(epoch FROM (record::json ->> 'ended_at')::timestamptz) * 1000000)::bigint, -1 FROM shotlist.attempt
                 WHERE record::json ->> 'ended_at' IS NOT NULL)
         SELECT max(open) FROM (SELECT sum(by) OVER (ORDER BY at, by) AS open FROM changes) AS so_far",
    );
    assert!(most.parse::<u32>().expect("a number") <= 8, "{most} at once");
}
