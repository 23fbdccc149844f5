//! Times of a task: requested, accepted, generating, ended, downloaded.

use jiff::{SignedDuration, Timestamp};

use crate::domain::{Attempt, Sighting};

/// A video that was fetched later than this after its end waited for another run, not for the network.
const LATE: SignedDuration = SignedDuration::from_mins(3);

/// The moments of a task, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    /// The intent became durable.
    pub asked: Timestamp,
    /// The service's answer was recorded.
    pub accepted: Option<Timestamp>,
    /// Generation began, reckoned from the first poll that saw how far it was.
    pub generating: Option<Timestamp>,
    /// Generation ended.
    pub ended: Option<Timestamp>,
    /// The video was here.
    pub fetched: Option<Timestamp>,
    /// True if its task is active.
    pub is_open: bool,
}

impl Times {
    /// The times of an attempt.
    pub(super) fn of(attempt: &Attempt) -> Self {
        let accepted = attempt.answered_at.filter(|_| attempt.task.is_some());
        let began = |ended| generation_began(attempt.seen?, accepted?, ended);
        Self {
            asked: attempt.intended_at,
            accepted,
            generating: attempt.ended_at.and_then(began),
            ended: attempt.ended_at,
            is_open: attempt.state.is_active(),
            fetched: attempt.fetched_at.filter(|&fetched| is_in_time(attempt.ended_at, fetched)),
        }
    }

    /// The last of its times.
    pub(super) fn end(&self) -> Timestamp {
        [self.accepted, self.ended, self.fetched].into_iter().flatten().fold(self.asked, Timestamp::max)
    }

    /// Each phase with its begin and end. Without a moment at which generation began, all of it is generation; what is at the service
    /// still is open until now.
    pub(super) fn phases(&self, now: Option<Timestamp>) -> Vec<(&'static str, Timestamp, Timestamp)> {
        let mut phases = Vec::with_capacity(4);
        let Some(accepted) = self.accepted else { return phases };
        phases.push(("submission", self.asked, accepted));
        if let Some(now) = now.filter(|&now| self.is_open && now > accepted) {
            phases.push(("still", accepted, now));
        }
        let Some(ended) = self.ended.filter(|&ended| ended >= accepted) else { return phases };
        let generating = self.generating.unwrap_or(accepted);
        if generating > accepted {
            phases.push(("queue", accepted, generating));
        }
        phases.push(("generation", generating, ended));
        phases.extend(self.fetched.map(|fetched| ("fetch", ended, fetched)));
        phases
    }
}

fn is_in_time(ended: Option<Timestamp>, fetched: Timestamp) -> bool {
    ended.is_some_and(|ended| fetched >= ended && fetched.duration_since(ended) <= LATE)
}

/// The start of generation, if progress grows evenly from then to the end. A poll that saw 40 % after 60 seconds of a
/// task that took 90 means: after 40.
fn generation_began(seen: Sighting, accepted: Timestamp, ended: Timestamp) -> Option<Timestamp> {
    let percent = seen.percent.filter(|percent| (1..100).contains(percent))?;
    let share = f64::from(percent) / 100.0;
    let rest = ended.duration_since(seen.at).as_secs_f64();
    if rest <= 0.0 {
        return None;
    }
    let before = SignedDuration::try_from_secs_f64(rest * share / (1.0 - share)).ok()?;
    Some(seen.at.checked_sub(before).ok()?.max(accepted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_video_that_was_fetched_days_later_makes_no_bar_of_days() {
        let at = |second: i64| Timestamp::from_second(1_790_000_000 + second).expect("a time");
        for (fetched, counts) in [(90, true), (120, true), (89, false), (1290, false), (86400, false)] {
            assert_eq!(is_in_time(Some(at(90)), at(fetched)), counts, "{fetched}");
        }
        assert!(!is_in_time(None, at(1)));
    }

    #[test]
    fn the_begin_of_generation_is_reckoned_from_progress() {
        let at = |second: i64| Timestamp::from_second(1_790_000_000 + second).expect("a time");
        let began =
            |seen: i64, percent, ended: i64| generation_began(Sighting { at: at(seen), percent }, at(0), at(ended));
        assert_eq!(began(60, Some(40), 90), Some(at(40)));
        assert_eq!(began(60, Some(90), 90), Some(at(0)), "not before it was accepted");
        for (seen, percent, ended) in [(60, None, 90), (60, Some(0), 90), (60, Some(100), 90), (95, Some(50), 90)] {
            assert_eq!(began(seen, percent, ended), None);
        }
    }
}
