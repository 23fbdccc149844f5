//! A distant database: the round trips of a write.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::suite::store::{batch, intent_of, task};
use crate::cluster::Cluster;
use crate::ledger::{Event, LedgerAddress, PostgresAddress};
use crate::proxy::Proxy;

/// The fewest round trips of some tries: heartbeats take others.
macro_rules! fewest {
    ($proxy:ident, $work:expr) => {{
        let mut fewest = usize::MAX;
        for number in 0..4 {
            let before = $proxy.round_trips.load(Ordering::Relaxed);
            $work(number).await;
            fewest = fewest.min($proxy.round_trips.load(Ordering::Relaxed) - before);
        }
        fewest
    }};
}

#[tokio::test]
async fn intent_and_acceptance_take_two_round_trips_each() {
    let database = Cluster::shared().database();
    let proxy = Proxy::to(Cluster::shared().port);
    proxy.delay(Duration::from_millis(60));
    let url = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), database.name);
    let ledger = LedgerAddress::Database(PostgresAddress::new(&url, &|_| None).expect("an address")).ledger(false);
    let held = ledger.lock(&batch("")).await.expect("a batch");
    let mut attempts = Vec::new();
    let intended = fewest!(proxy, async |number: usize| {
        attempts.push(held.intend(intent_of(&format!("j{number}"))).await.expect("an intent"));
    });
    let accepted = fewest!(proxy, async |number: usize| {
        held.accept(attempts[number], task(&format!("t{number}"))).await.expect("recorded");
    });
    let recorded = fewest!(proxy, async |number: usize| {
        held.record(attempts[number], Event::Started).await.expect("recorded");
    });
    assert_eq!([intended, accepted, recorded], [2, 2, 2]);
    // The intent sees the change of the event.
    let both = fewest!(proxy, async |number: usize| {
        let started = held.record(attempts[number], Event::Started);
        let (started, next) = futures::join!(started, held.intend(intent_of(&format!("next{number}"))));
        started.and(next.map(drop)).expect("recorded");
    });
    assert_eq!(both, 3, "in one commit");
}

#[tokio::test]
async fn lock_takes_three_round_trips() {
    let database = Cluster::shared().database();
    let proxy = Proxy::to(Cluster::shared().port);
    let url = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), database.name);
    let ledger = LedgerAddress::Database(PostgresAddress::new(&url, &|_| None).expect("an address")).ledger(false);
    let _first = ledger.lock(&batch("")).await.expect("a batch");
    proxy.delay(Duration::from_millis(60));
    let mut held = Vec::new();
    let locked = fewest!(proxy, async |number: usize| {
        held.push(ledger.lock(&batch(&format!("b{number}"))).await.expect("a batch"));
    });
    let read = fewest!(proxy, async |_| drop(ledger.controls().await.expect("limits and freeze")));
    assert_eq!([locked, read], [3, 1]);
}
