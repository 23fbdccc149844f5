//! Reads the service's bill from CSV, and compares it with the ledger.
//!
//! [`read`](mod@read) parses the lines of a file with any column names, and reports unreadable ones: a guess would be about money. [`compare`](mod@compare)
//! matches lines and attempts by task ID, and returns agreements, differences, settled charges, and possible lines of jobs in doubt. Nothing here writes.

mod compare;
mod read;

pub use compare::{Comparison, Matched, Period, compare, depends_on};
pub use read::{Bill, BillError, Columns, Line, read};
