//! The simulator: as the interface has the service, and with every fault that it can play.

mod faults;
mod interface;
mod prompts;
