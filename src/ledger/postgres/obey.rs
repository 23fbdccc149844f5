//! What the writer does with its orders. Answers that came in first are written first: they are what was paid for.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::batches::AtWork;
use super::error::PostgresError;
use super::intend::Question;
use super::orders::{Answer, Order};
use super::record::{self, Happening};
use super::rows::Row;
use super::runner::{Runner, conclude, expire_at_start, heartbeats};
use super::spending::Asked;
use super::transaction::Transaction;
use super::writer::Writer;
use super::{accounts, batches, intend, jobs};
use crate::domain::{AttemptId, BatchKey, TaskNames};
use crate::ledger::crash;
use crate::ledger::{Event, Intent, LedgerError};

/// The most that one commit holds.
const LARGEST_GROUP: usize = 512;
/// How long a commit waits for more to come.
const GATHERING: Duration = Duration::from_millis(2);
type ToRecord = (usize, AttemptId, Box<Event>, Answer<Option<TaskNames>>);
type ToIntend = (usize, Box<Intent>, Answer<AttemptId>);

/// Orders that came in together.
#[derive(Default)]
pub(super) struct Group {
    records: Vec<ToRecord>,
    intents: Vec<ToIntend>,
    others: Vec<Order>,
}

impl Group {
    pub(super) fn of(first: Order) -> Self {
        let mut group = Self::default();
        group.add(first);
        group
    }

    pub(super) fn add(&mut self, order: Order) {
        match order {
            Order::Record(batch, attempt, event, answer) => self.records.push((batch, attempt, event, answer)),
            Order::Intend(batch, intent, answer) => self.intents.push((batch, intent, answer)),
            other => self.others.push(other),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len() + self.intents.len() + self.others.len()
    }

    pub(super) async fn obey(self, writer: &mut Writer) {
        if !self.records.is_empty() {
            writer.record(self.records).await;
        }
        for other in self.others {
            writer.obey(other).await;
        }
        if !self.intents.is_empty() {
            writer.intend(self.intents).await;
        }
    }
}

impl Writer {
    /// Obeys until nobody gives orders any more, and takes leave.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        loop {
            let until_next = self.times.beat.saturating_sub(self.last_sign.elapsed());
            let first = tokio::select! {
                first = inbox.recv() => first,
                () = tokio::time::sleep(until_next), if self.is_enrolled => {
                    self.give_a_sign().await;
                    continue;
                }
            };
            let Some(first) = first else { break };
            tokio::time::sleep(GATHERING).await;
            let mut group = Group::of(first);
            while group.len() < LARGEST_GROUP
                && let Ok(order) = inbox.try_recv()
            {
                group.add(order);
            }
            group.obey(&mut self).await;
        }
        // The process may end while it waits to take leave.
        self.rescue();
        if self.is_enrolled {
            self.take_leave().await;
        }
    }

    async fn record(&mut self, orders: Vec<ToRecord>) {
        let happenings: Vec<Happening<'_>> =
            orders.iter().map(|(_, attempt, event, _)| Happening { attempt: *attempt, event }).collect();
        let times = self.times;
        let recorded = self
            .transact_at_once(async |transaction, runner, opening| {
                record::record(transaction, runner, opening, &happenings, &times).await
            })
            .await;
        let recorded = match recorded {
            Ok(recorded) => recorded,
            // One that the database does not take must not keep the others from being written.
            Err(error) if orders.len() > 1 && !matches!(error, PostgresError::Outage(_)) => {
                drop(happenings);
                for order in orders {
                    Box::pin(self.record(vec![order])).await;
                }
                return;
            }
            Err(error) => {
                let error = LedgerError::from(error);
                for (.., answer) in orders {
                    drop(answer.send(Err(error.clone())));
                }
                return;
            }
        };
        for ((batch, .., answer), (told, row)) in orders.into_iter().zip(recorded) {
            if let Some(row) = row {
                self.remember(batch, row);
            }
            drop(answer.send(told));
        }
    }

    async fn intend(&mut self, mut orders: Vec<ToIntend>) {
        // Whoever wanted it is gone, and sends nothing: it would be a doubt about nothing.
        orders.retain(|(.., answer)| !answer.is_closed());
        // Answers go by their places: an order that is not asked about must not be among those that are answered.
        let (orders, given_back): (Vec<_>, Vec<_>) =
            orders.into_iter().partition(|(batch, ..)| self.at_work.contains_key(batch));
        refuse(given_back, &LedgerError::Closed);
        let times = self.times;
        if self.waits_for_slots
            && let Some((_, intent, _)) = orders.first()
        {
            let account = intent.account.clone();
            let waits = self
                .transact_at_once(async |transaction, runner, opening| {
                    intend::wait_for_slot(transaction, runner, opening, &account, &times).await
                })
                .await;
            match waits {
                Ok(Duration::ZERO) => {}
                Ok(wait) => return refuse(orders, &LedgerError::Later(wait)),
                Err(error) => return refuse(orders, &error.into()),
            }
        }
        let asked: Vec<Asked<'_>> = orders
            .iter()
            .filter_map(|(batch, intent, _)| Some(Asked { batch: self.at_work.get(batch)?.number, intent }))
            .collect();
        let seen: HashMap<i64, i64> = self.at_work.values().map(|work| (work.number, work.seen)).collect();
        let numbers: BTreeMap<usize, i64> = self.at_work.iter().map(|(own, work)| (*own, work.number)).collect();
        let limits = self.limits.clone();
        let decided = self
            .transact_at_once(async |transaction, runner, opening| {
                intend::intend(
                    transaction,
                    runner,
                    opening,
                    Question { asked: &asked, seen: &seen, limits: &limits },
                    &times,
                )
                .await
            })
            .await;
        let decided = decided.map(|decided| {
            self.note_taken(decided.taken);
            if let Some(facts) = decided.facts {
                self.shared.alive.store(facts.alive, Ordering::Relaxed);
                self.limits = facts.limits;
            }
            self.waits_for_slots = decided.answers.iter().any(|answer| matches!(answer, Err(LedgerError::Later(_))));
            decided.answers
        });
        drop(asked);
        // Another server may have given the batch another number meanwhile: then these were written nowhere.
        let is_same =
            numbers.iter().all(|(own, number)| self.at_work.get(own).is_some_and(|work| work.number == *number));
        match decided {
            Ok(decided) if is_same => {
                if decided.iter().any(Result::is_ok) {
                    crash::point("after-intent");
                }
                for ((batch, _, answer), decision) in orders.into_iter().zip(decided) {
                    let told = decision.map(|row: Row| {
                        let id = AttemptId(row.stored.id);
                        self.shared.send_by.lock().unwrap_or_else(PoisonError::into_inner).insert(id, self.send_by);
                        self.remember(batch, row);
                        id
                    });
                    drop(answer.send(told));
                }
            }
            Ok(_) => refuse(orders, &LedgerError::RolledBack),
            Err(error) if orders.len() > 1 && !matches!(error, PostgresError::Outage(_)) => {
                for order in orders {
                    Box::pin(self.intend(vec![order])).await;
                }
            }
            Err(error) => refuse(orders, &error.into()),
        }
    }

    fn remember(&mut self, own: usize, row: Row) {
        // Of a batch that was given back meanwhile, nobody asks any more.
        if let Some(work) = self.at_work.get(&own) {
            self.memory.keep(&work.key, row);
        }
    }

    /// Keeps what others have taken, so that nobody asks for it again.
    fn note_taken(&mut self, taken: Vec<intend::Taken>) {
        let mut known = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for intend::Taken { batch, attempt, job } in taken {
            let Some((own, work)) = self.at_work.iter_mut().find(|(_, work)| work.number == batch) else { continue };
            work.seen = work.seen.max(attempt);
            let newest = known.entry(*own).or_default().entry(job).or_insert(AttemptId(attempt));
            *newest = AttemptId(attempt).max(*newest);
        }
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Record(..) | Order::Intend(..) => {}
            Order::Hold(own, key, answer) => {
                let held = self.hold(own, key).await;
                drop(answer.send(held.map_err(LedgerError::from)));
            }
            Order::Leave(own) => {
                let Some(work) = self.at_work.remove(&own) else { return };
                let left = self.transact(async |it, runner, _| batches::end(it, runner, work.number).await).await;
                if let Err(error) = left {
                    tracing::debug!("{} could not be given back: {error}", work.key);
                }
            }
            Order::Join(own, joining, answer) => {
                let joined =
                    self.at(own, answer, async |it, runner, batch| batches::join(it, runner, batch, &joining).await);
                if joined.await
                    && let Some(work) = self.at_work.get_mut(&own)
                {
                    work.is_buying = true;
                    self.runner.concurrency = joining.concurrency;
                }
            }
            Order::NoteUnsent(own, job, reason, answer) => {
                self.at(own, answer, async |it, _, batch| jobs::note_unsent(it, batch, &job, &reason).await.map(Ok))
                    .await;
            }
            Order::Move(own, moves, answer) => {
                self.at(own, answer, async |it, _, batch| jobs::move_all(it, batch, &moves).await).await;
            }
            Order::KeepRetake(own, retake, answer) => {
                let retake = retake.as_ref();
                self.at(own, answer, async |it, _, batch| jobs::keep_retake(it, batch, retake).await.map(Ok)).await;
            }
            Order::Adopt(own, account, answer) => {
                self.at(own, answer, async |it, _, batch| jobs::adopt(it, batch, &account).await.map(Ok)).await;
            }
            Order::Others(own, videos, answer) => {
                self.at(own, answer, async |it, runner, batch| {
                    batches::others(it, runner, batch, videos).await.map(Ok)
                })
                .await;
            }
            Order::TakeOver(attempts, answer) => {
                let taken = self.transact(async |it, runner, _| batches::take_over(it, runner, &attempts).await).await;
                drop(answer.send(taken.map_err(LedgerError::from)));
            }
            Order::Pause(account, wait, answer) => {
                let paused = self.transact(async |it, _, _| accounts::pause(it, &account, wait).await).await;
                drop(answer.send(paused.map_err(LedgerError::from)));
            }
            Order::FindAddress(key, since, answer) => {
                let found = self.transact(async |it, _, _| accounts::find_address(it, &key, since).await).await;
                drop(answer.send(found.map_err(LedgerError::from)));
            }
            Order::KeepAddress(key, url, answer) => {
                let kept = self.transact(async |it, _, _| accounts::keep_address(it, &key, &url).await).await;
                drop(answer.send(kept.map_err(LedgerError::from)));
            }
        }
    }

    /// Does something with a batch that is held, tells what came of it, and says whether it was done.
    async fn at<T: Clone>(
        &mut self,
        own: usize,
        answer: Answer<T>,
        work: impl AsyncFn(&Transaction<'_>, &Runner, i64) -> Result<Result<T, LedgerError>, PostgresError>,
    ) -> bool {
        let Some(batch) = self.at_work.get(&own).map(|work| work.number) else {
            drop(answer.send(Err(LedgerError::Closed)));
            return false;
        };
        let done = self.transact(async |transaction, runner, _| work(transaction, runner, batch).await).await;
        let done = done.map_err(LedgerError::from).and_then(|done| done);
        let is_done = done.is_ok();
        drop(answer.send(done));
        is_done
    }

    async fn hold(&mut self, own: usize, key: BatchKey) -> Result<usize, PostgresError> {
        let times = self.times;
        let held = self
            .transact(async |transaction, runner, _| {
                let number = batches::ensure(transaction, &key).await?;
                expire_at_start(transaction, &times).await?;
                let work = AtWork { key: key.clone(), number, is_buying: false, seen: 0 };
                batches::begin(transaction, runner, &work).await?;
                let concluded = conclude(transaction, Some(number), &times).await?;
                Ok((work, concluded, heartbeats(transaction).await?))
            })
            .await;
        let (work, concluded, latest) = held?;
        self.note_heartbeats(latest);
        self.at_work.insert(own, work);
        Ok(concluded)
    }
}

fn refuse(orders: Vec<ToIntend>, error: &LedgerError) {
    for (.., answer) in orders {
        drop(answer.send(Err(error.clone())));
    }
}
