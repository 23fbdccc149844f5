//! Videos on this machine: whole or not there, fetched once, and never at the price of a key, a file or another generation.

mod direct;
mod hostile;
mod kept;
mod links;
mod resumed;
