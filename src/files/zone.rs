//! The machine's time zone.

use std::path::Path;

use jiff::tz::TimeZone;

/// The reason why the machine's time zone is not usable. In UTC instead, a day's limit would begin at another hour.
#[derive(Debug, thiserror::Error)]
pub enum NoZone {
    /// It is unknown to the system.
    #[error("the time zone of this machine is unknown: {0}")]
    Unknown(String),
    /// It has rules but no name, which the ledger needs.
    #[error("the time zone of this machine has no name: {0}")]
    Unnamed(String),
}

/// Returns the time zone of `TZ`, or else of the system. A system without one, such as an empty container, counts in UTC.
pub(crate) fn own_zone() -> Result<TimeZone, NoZone> {
    let has_none =
        || cfg!(unix) && std::env::var_os("TZ").is_none() && Path::new(LOCALTIME).symlink_metadata().is_err();
    match TimeZone::try_system() {
        Ok(zone) => Ok(zone),
        Err(_) if has_none() => Ok(TimeZone::UTC),
        Err(_) => Err(NoZone::Unknown(origin())),
    }
}

/// Returns the IANA name of [`own_zone`].
pub(crate) fn own_zone_name() -> Result<String, NoZone> {
    own_zone()?.iana_name().map(str::to_owned).ok_or_else(|| NoZone::Unnamed(origin()))
}

const LOCALTIME: &str = "/etc/localtime";

fn origin() -> String {
    match std::env::var_os("TZ") {
        Some(zone) => format!("`TZ` is `{}`", zone.display()),
        None => format!("it is that of `{LOCALTIME}`"),
    }
}
