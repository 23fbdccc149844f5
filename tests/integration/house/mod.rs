//! How the program is built: held against a table.

mod layering;
