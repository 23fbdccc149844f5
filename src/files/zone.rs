//! The machine's time zone.

use std::path::Path;

use jiff::tz::TimeZone;

/// An unusable time zone of this machine. UTC is no substitute: a day's limit starts at midnight here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoZone(String);

/// Returns the time zone of `TZ`, or else of the system. A system without one, such as an empty container, counts in UTC.
pub(crate) fn own_zone() -> Result<TimeZone, NoZone> {
    let has_none =
        || cfg!(unix) && std::env::var_os("TZ").is_none() && Path::new(LOCALTIME).symlink_metadata().is_err();
    match TimeZone::try_system() {
        Ok(zone) => Ok(zone),
        Err(_) if has_none() => Ok(TimeZone::UTC),
        Err(_) => Err(NoZone(format!("the time zone of this machine is unknown: {}", origin()))),
    }
}

/// Returns the IANA name of [`own_zone`].
pub(crate) fn own_zone_name() -> Result<String, NoZone> {
    let unnamed = || NoZone(format!("the time zone of this machine has no name: {}", origin()));
    own_zone()?.iana_name().map(str::to_owned).ok_or_else(unnamed)
}

const LOCALTIME: &str = "/etc/localtime";

fn origin() -> String {
    match std::env::var_os("TZ") {
        Some(zone) => format!("`TZ` is `{}`", zone.display()),
        None => format!("it is that of `{LOCALTIME}`"),
    }
}
