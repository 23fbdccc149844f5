//! Fetches one video safely.
//!
//! # What it promises
//!
//! - **Whole or not at all.** A video is streamed into a hidden file beside its place, checked (length, MP4 signature, no
//!   box cut short), hashed, synced, and renamed. What carries a video's name was once whole. One that is whole and can't be put
//!   into its place, because something is in the way, waits beside it under a hidden name and is not fetched again.
//! - **Nothing is lost to it.** A file that is in the way is kept under a version of its name, `waves~1.mp4`, unless the
//!   same bytes are kept there already.
//! - **Nothing leaves the directory.** A path is checked when the manifest is read ([`crate::domain::OutputPath`]); here, no
//!   directory or file on the way may be a link. Someone who swaps a directory for a link while a file is being placed may write
//!   there without shotlist, too, and is not guarded against.
//! - **The key goes home only.** Each request of a journey, redirects included, asks anew whether its address is the
//!   service's own origin. From https no redirect leads to http.
//! - **No link leads into the neighborhood** of this machine, where a service far away has no business ([`HostPolicy`]).
//! - **It ends.** Redirects, silence, drips, length, tries and time are all bounded by [`Limits`], and a host where nothing works
//!   out is given less of them.
//! - **It resumes.** What arrived is kept and asked for no second time, if the server named a version of the file that it
//!   can be asked for (`ETag`, `Last-Modified`; RFC 9110 §13.1.5). Of a process that was killed, what had been synced.
//!
//! The engine decides on another link when one no longer works: this module knows one link and one path.
//!
//! # Modules
//!
//! [`interface`] has the requests. [`stream`] fills a [`part`] from one link, along its [`redirects`], to allowed [`hosts`]; [`content`] reads
//! responses of the content endpoint. [`mp4`] checks whether a file is whole, and has its facts by [`footage`]. [`storing`] gives it its name, and
//! [`archive`] copies it to another directory.

mod archive;
mod content;
mod footage;
mod hosts;
mod interface;
mod mp4;
mod part;
mod redirects;
mod storing;
mod stream;

pub use archive::{CopyVideoError, copy_video, remove_original};
pub(crate) use content::holds;
pub use hosts::HostPolicy;
pub use interface::{Destination, Downloads, FetchError, Get, Limits, Link, Stored};
pub(crate) use mp4::footage_of;
pub use storing::is_whole;
pub use stream::Downloader;
