//! Health of hosts: a link is tried less often at a host that has failed for a while, so that a host that is gone costs
//! a thousand videos no hours.

use std::collections::HashMap;

use parking_lot::Mutex;

/// After so many links in a row that came to nothing, a host's links are tried once.
const UNHEALTHY_AFTER: u32 = 3;

/// The state of hosts.
#[derive(Debug, Default)]
pub(super) struct HostHealth {
    /// The number of failed links in a row.
    failures: Mutex<HashMap<String, u32>>,
}

impl HostHealth {
    /// The number of tries for a link of a host, if the default is this.
    pub(super) fn tries(&self, host: &str, usual: u32) -> u32 {
        let failures = self.failures.lock().get(host).copied().unwrap_or(0);
        if failures >= UNHEALTHY_AFTER { 1 } else { usual }
    }

    /// A link of a host was good.
    pub(super) fn answered(&self, host: &str) {
        self.failures.lock().remove(host);
    }

    /// A link of a host came to nothing.
    pub(super) fn failed(&self, host: &str) {
        *self.failures.lock().entry(host.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_gone_is_tried_once_until_it_answers() {
        let health = HostHealth::default();
        for _ in 0..UNHEALTHY_AFTER {
            assert_eq!(health.tries("v", 5), 5);
            health.failed("v");
        }
        assert_eq!((health.tries("v", 5), health.tries("w", 5)), (1, 5));
        health.answered("v");
        assert_eq!(health.tries("v", 5), 5);
    }
}
