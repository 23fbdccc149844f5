//! The moment after which a request must not leave.
//!
//! A process can halt between two instructions: a laptop is closed, a debugger or a hypervisor stops it. Meanwhile, other runners may take
//! over its work, so its request must not leave when it wakes up. The deadline is measured by a clock that counts the halt.

use std::time::Duration;

/// A moment after which no byte may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendBy(Clock);

impl SendBy {
    /// This long from now.
    pub fn within(span: Duration) -> Self {
        Self(Clock::now().plus(span))
    }

    /// Returns whether the moment has passed.
    pub fn is_over(self) -> bool {
        self.0.is_past()
    }
}

/// The time since the start of the machine, including sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clock(Duration);

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock {
    fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self(now.try_into().unwrap_or(Duration::MAX))
    }

    fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    fn is_past(self) -> bool {
        Self::now().0 >= self.0
    }
}

/// On a system without such a clock, the maximum of two: the first may stop while the machine sleeps, and the second may be set.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clock(std::time::Instant, std::time::SystemTime);

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Clock {
    fn now() -> Self {
        Self(std::time::Instant::now(), std::time::SystemTime::now())
    }

    fn plus(self, span: Duration) -> Self {
        Self(self.0 + span, self.1 + span)
    }

    fn is_past(self) -> bool {
        let now = Self::now();
        now.0 >= self.0 || now.1 >= self.1
    }
}
