//! Reservation of a job's price before its submission, so that concurrency can't exceed a spend limit.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::domain::{AttemptId, Job, Usd};
use crate::plan::{Limit, Plan};

/// The balances of a run's spend limits.
///
/// A retry gets only what the first submissions leave: a job that fails repeatedly must not use the money of one that
/// was never submitted.
#[derive(Debug)]
pub(super) struct SpendGuard {
    balances: Mutex<Vec<LimitBalance>>,
    /// The costs of tasks above their price.
    overruns: Mutex<HashMap<AttemptId, Usd>>,
}

/// A limit with its balance.
#[derive(Debug)]
struct LimitBalance {
    limit: Limit,
    /// Spent, reserved, or at risk in this run.
    taken: Usd,
    /// The price of the first submissions to come.
    waiting: Usd,
}

impl LimitBalance {
    fn has(&self, price: Usd) -> bool {
        self.taken + price <= self.limit.left()
    }
}

impl SpendGuard {
    /// Guards the limits of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let balances = plan.every_limit().map(|limit| LimitBalance {
            limit: limit.clone(),
            taken: Usd::ZERO,
            waiting: plan.cost_under(limit),
        });
        // The limits include the costs that earlier runs recorded.
        let overruns = plan.active_tasks().map(|task| (task.id, task.cost().saturating_sub(task.purchase.price)));
        Self { balances: Mutex::new(balances.collect()), overruns: Mutex::new(overruns.collect()) }
    }

    /// Reserves the price of a first submission. Returns false without a reservation if a limit is too low.
    pub(super) fn reserve(&self, job: &Job) -> bool {
        let mut balances = self.balances.lock();
        let mut own: Vec<&mut LimitBalance> =
            balances.iter_mut().filter(|balance| balance.limit.is_about(job)).collect();
        for balance in &mut own {
            balance.waiting = balance.waiting.saturating_sub(job.purchase.price);
        }
        take(own, job.purchase.price, |_| Usd::ZERO)
    }

    /// Reserves the price of a retry from what the first submissions leave.
    pub(super) fn reserve_retry(&self, job: &Job) -> bool {
        let mut balances = self.balances.lock();
        let own = balances.iter_mut().filter(|balance| balance.limit.is_about(job)).collect();
        take(own, job.purchase.price, |balance| balance.waiting)
    }

    /// Adds the cost of a task above its reserved price to the limits on all jobs, because the job is unknown here. The ledger adds it to every limit.
    pub(super) fn record_overrun(&self, attempt: AttemptId, usd: Usd) {
        let mut overruns = self.overruns.lock();
        let known = overruns.entry(attempt).or_default();
        let more = usd.saturating_sub(*known);
        *known += more;
        for balance in self.balances.lock().iter_mut().filter(|balance| balance.limit.label.is_none()) {
            balance.taken += more;
        }
    }

    /// Releases a reservation: the submission certainly bought nothing. A job that `is_due` waits again, because this
    /// run may submit it later.
    pub(super) fn release(&self, job: &Job, is_due: bool) {
        for balance in self.balances.lock().iter_mut().filter(|balance| balance.limit.is_about(job)) {
            balance.taken = balance.taken.saturating_sub(job.purchase.price);
            balance.waiting += if is_due { job.purchase.price } else { Usd::ZERO };
        }
    }
}

/// Adds a price to every balance, or to none.
fn take(mut balances: Vec<&mut LimitBalance>, price: Usd, kept: impl Fn(&LimitBalance) -> Usd) -> bool {
    let enough = balances.iter().all(|balance| balance.has(price + kept(balance)));
    for balance in balances.iter_mut().filter(|_| enough) {
        balance.taken += price;
    }
    enough
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Charging, JobId, Label, Labels, Purchase, Request, Spec};

    fn usd(cents: i64) -> Usd {
        Usd::from_micros(cents * 10_000)
    }

    fn job(cents: i64, client: &str) -> Job {
        let spec = Spec::default();
        Job {
            purchase: Purchase {
                job: JobId::new("a").expect("an id"),
                request: Request::new(&spec),
                model: String::new(),
                price: usd(cents),
                charging: Charging::AtSubmission,
                typical_s: (1, 2),
                labels: Labels::from([("client".to_owned(), client.to_owned())]),
                output: None,
                local_images: None,
            },
            spec,
            take: 1,
            tags: Vec::new(),
            row: None,
            matrix: None,
            review: None,
            has_no_review: false,
            up_to: None,
        }
    }

    /// A guard with these limits in cents and this price of first submissions.
    fn guard(limits: &[(i64, Option<&str>)], waiting: i64) -> SpendGuard {
        let label = |value: &str| Label { name: "client".into(), value: value.into() };
        let balances = limits.iter().map(|(cents, client)| LimitBalance {
            limit: Limit { source: "a limit".into(), label: client.map(label), usd: usd(*cents), used: Usd::ZERO },
            taken: Usd::ZERO,
            waiting: usd(waiting),
        });
        SpendGuard { balances: Mutex::new(balances.collect()), overruns: Mutex::default() }
    }

    #[test]
    fn never_takes_more_than_the_limit() {
        let guard_of_two = guard(&[(200, None)], 200);
        assert!(guard_of_two.reserve(&job(150, "x")));
        assert!(!guard_of_two.reserve(&job(51, "x")));
        assert!(guard_of_two.reserve(&job(50, "x")));
        assert!(!guard_of_two.reserve(&job(1, "x")));
        guard_of_two.release(&job(50, "x"), false);
        assert!(guard_of_two.reserve(&job(50, "x")));
        assert!(guard(&[], 0).reserve(&job(100_000_000, "x")));
        assert!(!guard(&[(0, None)], 1).reserve(&job(1, "x")));
    }

    #[test]
    fn retry_never_takes_the_money_of_a_waiting_job() {
        let guard = guard(&[(500, None)], 400);
        assert!(guard.reserve(&job(200, "x")));
        assert!(guard.reserve_retry(&job(100, "x")));
        assert!(!guard.reserve_retry(&job(100, "x")), "the second job waits");
        assert!(guard.reserve(&job(200, "x")));
        guard.release(&job(200, "x"), true);
        assert!(!guard.reserve_retry(&job(200, "x")), "it waits again");
        assert!(guard.reserve(&job(200, "x")));
        guard.release(&job(200, "x"), false);
        assert!(guard.reserve_retry(&job(200, "x")));
    }

    #[test]
    fn limit_of_one_client_spares_the_others() {
        let guard = guard(&[(500, None), (100, Some("acme"))], 0);
        assert!(guard.reserve(&job(100, "acme")));
        assert!(!guard.reserve(&job(1, "acme")), "acme has nothing left");
        assert!(guard.reserve(&job(400, "other")), "what acme was refused is nobody's");
        assert!(!guard.reserve(&job(1, "other")));
    }
}
