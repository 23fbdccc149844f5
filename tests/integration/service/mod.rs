//! The service in all its dialects, on bad days, behind gateways and TLS.

mod closings;
mod dialect;
mod dialects_of_polls;
mod dialects_of_submissions;
mod faults;
mod gateways;
mod http2;
mod names;
mod tls;
mod wrong_servers;
