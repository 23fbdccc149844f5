//! What it takes to ask for a link: requests, who may be asked, how much is endured, and what is known of hosts.

use reqwest::{RequestBuilder, Url};

use super::host_health::HostHealth;
use super::hosts::HostPolicy;
use super::interface::Limits;

/// Begins a GET of an address, with the key if it is the service's own. What sends it follows no redirect, and resolves names
/// by the same policy.
pub type Get = Box<dyn Fn(&Url) -> RequestBuilder + Send + Sync>;

pub(super) struct Transport {
    pub get: Get,
    pub hosts: HostPolicy,
    pub limits: Limits,
    pub host_health: HostHealth,
}
