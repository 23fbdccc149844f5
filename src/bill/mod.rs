//! The service's bill, read from a spreadsheet's CSV and held against what the ledger knows.
//!
//! [`read`](mod@read) makes lines of a file, whatever its columns are called, and tells what it can't read: a guess would be money. [`compare`](mod@compare) matches
//! them with attempts by the names of tasks, and says what agrees, what each side has that the other lacks, what the bill settles,
//! and what of it a doubt may have been. Nothing here writes.

mod compare;
mod read;

pub use compare::{Comparison, Matched, Period, compare, depends_on};
pub use read::{Bill, BillError, Columns, Line, read};
