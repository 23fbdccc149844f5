//! The same work on many things, on all processors at once.
//!
//! What comes of it is taken in the order of the things, by whoever asked, while the next ones are worked on. How far that runs ahead is bounded:
//! what waits takes memory.

use std::sync::mpsc::sync_channel;
use std::thread;

/// How many results of each thread may wait to be taken.
const AHEAD: usize = 8;

/// Works on each thing, and hands what comes of them to `take` in their order. What it does not take may not be worked on.
pub(in crate::manifest) fn in_order<T: Sync, U: Send, R>(
    things: &[T],
    work: impl Fn(&T) -> U + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = U>) -> R,
) -> R {
    // Whether there is more than one thing to do is asked first: how many processors there are is written in files of the system.
    let threads =
        if things.len() > 1 { thread::available_parallelism().map_or(1, usize::from).min(things.len()) } else { 1 };
    // Where there is one processor, another thread would only take turns with this one.
    if threads == 1 {
        return take(&mut things.iter().map(work));
    }
    let work = &work;
    thread::scope(|scope| {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(AHEAD)).unzip();
        for (first, sender) in senders.into_iter().enumerate() {
            let own = things.iter().skip(first).step_by(threads);
            // Nobody takes any more: the rest is not needed.
            scope.spawn(move || own.map(work).try_for_each(|result| sender.send(result)));
        }
        let mut in_turn = (0..things.len()).map_while(|number| inboxes[number % threads].recv().ok());
        take(&mut in_turn)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_order_whichever_is_ready_first() {
        let things: Vec<u64> = (0..500).collect();
        let slow_at_times = |thing: &u64| {
            if thing.is_multiple_of(7) {
                thread::yield_now();
            }
            thing * 2
        };
        let results: Vec<u64> = in_order(&things, slow_at_times, |results| results.collect());
        assert_eq!(results, things.iter().map(|thing| thing * 2).collect::<Vec<_>>());
    }

    #[test]
    fn what_nobody_takes_is_not_worked_on_for_long() {
        let (things, worked) = (vec![(); 10_000], AtomicUsize::new(0));
        let work = |(): &()| worked.fetch_add(1, Ordering::Relaxed);
        let taken = in_order(&things, work, |results| results.take(3).count());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(taken, 3);
        assert!(worked.into_inner() <= 3 + threads * (AHEAD + 2));
    }

    #[test]
    fn panic_of_the_work_reaches_the_caller() {
        let things: Vec<u32> = (0..100).collect();
        let work = |thing: &u32| assert!(*thing != 40, "forty");
        let ended = std::panic::catch_unwind(|| in_order(&things, work, |results| results.count()));
        let panic = ended.expect_err("a panic").downcast::<&str>().expect("its text");
        // On one core the panic is that of the work, on several that of the scope.
        assert!(["forty", "a scoped thread panicked"].contains(&*panic), "{panic}");
    }
}
