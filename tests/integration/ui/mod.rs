//! What people see on a terminal, and what text from outside can not do there.

mod outside;
mod progress;
mod terminal;
