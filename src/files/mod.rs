//! Access to the disk: files are opened, read, replaced, and made durable.
//!
//! # What it promises
//!
//! - **No link is followed** by what writes, truncates or locks ([`open_plain`], [`no_links_below`]). A directory that someone
//!   else made, a downloaded project for example, may hold a link under any name that this program uses; what it leads
//!   to is not ours. Someone who swaps a file for a link while it is being opened can write there without us, too, and
//!   is not guarded against where the system has no `O_NOFOLLOW`.
//! - **Nothing is waited for that may never come.** A pipe in place of a file is refused, not read ([`open_plain`],
//!   [`read_at_most`]), and what is read is bounded in length. Only the manifest and the key may come through a pipe, because
//!   their owner says so on the command line.
//! - **Whole or not at all.** [`replace()`] lets a reader see the old file or the new one, also after the power was lost.
//! - **A new name lasts** as its file does: the directory is synced ([`sync_directory`], [`make_directories`]).
//!
//! [`open`] opens and reads, [`replace`](mod@replace) replaces and takes away what a killed process left, [`directory`] makes
//! directories, syncs them, and checks write access in a separate thread, [`table`] decodes what spreadsheet programs
//! save as text, and [`zone`] has the machine's time zone. This module imports no other.

mod directory;
mod open;
mod replace;
pub(crate) mod table;
mod zone;

pub(crate) use directory::{
    make_directories, make_private_directory, no_links_below, on_a_thread, sync_directory, sync_file, try_write,
};
pub(crate) use open::{ReadError, keep_from_readers, no_link, open_plain, open_private, read_at_most, read_text};
pub(crate) use replace::{replace, sweep, temporary, temporary_with_mode};
pub use zone::NoZone;
pub(crate) use zone::{own_zone, own_zone_name};
