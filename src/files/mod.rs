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
//! [`disk`] opens, reads, and replaces files, creates and syncs directories, checks write access, and removes leftovers of killed processes.
//! [`table`] decodes text tables of spreadsheet programs, and [`zone`] has the time zone of the machine.

mod disk;
pub(crate) mod table;
mod zone;

pub(crate) use disk::{
    ReadError, directory_of, keep_from_readers, make_directories, make_private_directory, name_anew, no_link,
    no_links_below, on_a_thread, open_plain, open_private, read_at_most, read_text, replace, sweep, sync_directory,
    sync_file, temporary, temporary_with_mode, try_write, with_suffix,
};
pub use zone::NoZone;
pub(crate) use zone::{own_zone, own_zone_name};
