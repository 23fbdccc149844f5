//! Output on a terminal, and outside text that must not control it.

mod outside;
mod progress;
mod terminal;
