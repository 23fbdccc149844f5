//! How the program is built: held against a table.

mod imports;
mod layering;
mod notices;
mod ratchets;
mod texts;
