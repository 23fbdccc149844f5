//! The structure of the source, compared with tables.

mod imports;
mod layering;
mod notices;
mod ratchets;
mod texts;
