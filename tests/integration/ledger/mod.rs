//! The ledger as a file, with faults of the disk and crashes.

mod crash;
mod faults;
mod file;
