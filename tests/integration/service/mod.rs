//! A service with failures, at wrong URLs, behind gateways, and with TLS.

mod closings;
mod faults;
mod gateways;
mod http2;
mod names;
mod responses;
pub mod tls;
mod wrong_servers;
