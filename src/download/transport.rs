//! Means of a download: requests, allowed hosts, limits, and the state of hosts.

use reqwest::{RequestBuilder, Url};

use super::host_health::HostHealth;
use super::hosts::HostPolicy;
use super::interface::Limits;

/// Begins a GET of a URL, with the key if that may go there; the second argument says whether another host redirected to it. What sends it
/// follows no redirect, and resolves names by the same policy.
pub type Get = Box<dyn Fn(&Url, bool) -> RequestBuilder + Send + Sync>;

pub(super) struct Transport {
    pub get: Get,
    pub hosts: HostPolicy,
    pub limits: Limits,
    pub host_health: HostHealth,
}
