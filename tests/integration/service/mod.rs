//! A service that fails, wrong URLs, gateways, and TLS.

mod closings;
mod faults;
mod gateways;
mod http2;
mod names;
mod responses;
pub mod tls;
mod wrong_servers;
