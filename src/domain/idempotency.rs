//! Keys by which a service recognizes a repeated submission.
//!
//! The interface documents none. A catalog may state that a service honors them; without that, none is sent, and nothing relies on them.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Account;
use super::random::random;

/// The shortest time for which a service must remember a key.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// The longest time from the decision to repeat a submission to its arrival: more than its timeout.
const ON_THE_WAY: SignedDuration = SignedDuration::from_mins(4);

/// The statement that a service answers a repeated submission with the task of the first.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// The header that carries the key.
    pub header: String,
    /// The time for which the service remembers a key.
    #[serde(rename = "for")]
    remembered_for: SignedDuration,
}

/// The key of one submission.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The header that carries it.
    pub header: String,
    /// 32 hexadecimal digits, never used twice.
    pub value: String,
    /// The account that sent it: another one may have other keys.
    pub account: Account,
    /// The time of the submission.
    sent_at: Timestamp,
}

impl Idempotency {
    /// The fault of the statement, if it has one.
    pub fn fault(&self) -> Option<&'static str> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if self.header.is_empty() || !self.header.bytes().all(is_name) {
            return Some("`idempotency.header` must be a name of letters, digits, and hyphens");
        }
        (self.remembered_for < SHORTEST).then_some("`idempotency.for` must be 10 minutes or more, such as `24h`")
    }

    /// A new key, for a submission by an account at this time.
    pub fn key(&self, account: &Account, at: Timestamp) -> IdempotencyKey {
        let value = format!("{:016x}{:016x}", random(), random());
        IdempotencyKey { header: self.header.clone(), value, account: account.clone(), sent_at: at }
    }

    /// Returns whether a submission with this key may be repeated at this time: the service must remember the key when the request arrives. A key
    /// that it has forgotten would buy again.
    pub fn remembers(&self, key: &IdempotencyKey, at: Timestamp) -> bool {
        // Clocks differ, and a request takes time. A clock that was put back says nothing about the age of a key.
        let repeatable = self.remembered_for / 10 * 9 - ON_THE_WAY;
        let age = at.duration_since(key.sent_at);
        key.header == self.header && !age.is_negative() && age < repeatable
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn account() -> Account {
        Account { service: "s".into(), key: "k".into() }
    }

    fn stated(text: &str) -> Result<Idempotency, serde_yaml::Error> {
        serde_yaml::from_str(text)
    }

    #[test]
    fn key_is_remembered_for_nine_tenths_of_the_stated_time_without_the_way() {
        let hours = stated("{ header: Idempotency-Key, for: 10h }").expect("a statement");
        assert_eq!(hours.fault(), None);
        let at = Timestamp::UNIX_EPOCH;
        let key = hours.key(&account(), at);
        let after = |minutes| hours.remembers(&key, at + SignedDuration::from_mins(minutes));
        assert_eq!([after(-1), after(0), after(535), after(536)], [false, true, true, false]);
        // A statement that was corrected since counts.
        for other in ["{ header: Idempotency-Key, for: 10m }", "{ header: Other, for: 10h }"] {
            let other = stated(other).expect("a statement");
            assert!(!other.remembers(&key, at + SignedDuration::from_mins(5)));
        }
    }

    #[test]
    fn no_two_keys_are_the_same() {
        let stated = stated("{ header: Idempotency-Key, for: 24h }").expect("a statement");
        let keys: HashSet<String> = (0..1000).map(|_| stated.key(&account(), Timestamp::UNIX_EPOCH).value).collect();
        assert_eq!(keys.len(), 1000);
        assert!(keys.iter().all(|key| key.len() == 32));
    }

    #[test]
    fn statement_without_a_usable_header_or_time_is_refused() {
        for text in ["{ header: '', for: 24h }", "{ header: 'a b', for: 24h }", "{ header: Key, for: 9m }"] {
            assert!(stated(text).expect("a statement").fault().is_some(), "{text}");
        }
        for text in ["{ header: Key }", "{ header: Key, for: soon }", "{ header: Key, for: 24h, by: x }"] {
            assert!(stated(text).is_err(), "{text}");
        }
    }
}
