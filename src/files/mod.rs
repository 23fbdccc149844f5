//! Access to the disk: files are opened, read, replaced, and made durable.
//!
//! # Guarantees
//!
//! - **Writes, truncation, and locks follow no link** ([`open_plain`], [`no_links_below`]). A directory of another user, for example a downloaded project,
//!   may contain links to any file. Without `O_NOFOLLOW`, a user who exchanges the file during the open is not detected, and could write there anyway.
//! - **No read blocks forever.** A pipe in place of a file is refused ([`open_plain`], [`read_at_most`]), and reads are limited in length. Only the manifest
//!   and the key may be pipes, because the command line names them.
//! - **Complete or not at all.** With [`replace()`], a reader sees the old or the new file, also after a power loss.
//! - **New names are durable**: the directory is synced ([`sync_directory`], [`make_directories`]).
//!
//! [`open`] opens and reads files. [`directory`] creates and syncs directories, checks write access, replaces files, and removes leftovers of killed
//! processes, [`table`] decodes text tables of spreadsheet programs, and [`zone`] has the time zone of the machine.

mod directory;
mod open;
pub(crate) mod table;
mod zone;

pub(crate) use directory::{
    make_directories, make_private_directory, no_links_below, on_a_thread, sync_directory, sync_file, try_write,
};
pub(crate) use directory::{replace, sweep, temporary, temporary_with_mode};
pub(crate) use open::{ReadError, keep_from_readers, no_link, open_plain, open_private, read_at_most, read_text};
pub use zone::NoZone;
pub(crate) use zone::{own_zone, own_zone_name};
