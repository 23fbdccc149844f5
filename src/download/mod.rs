//! Fetches one video safely.
//!
//! # Guarantees
//!
//! - **Complete or not at all.** A video is streamed into a hidden file, checked (length, MP4 signature, no truncated box), hashed, synced, and
//!   renamed. If its path is blocked, the complete video waits under its hidden name, and is not downloaded again.
//! - **No file is lost.** A file at the path is kept under a versioned name, `waves~1.mp4`, unless such a file has the same bytes.
//! - **No file is written outside the directory.** The manifest checks paths ([`crate::domain::OutputPath`]), and here no directory or file of a path
//!   may be a link. A user who exchanges a directory for a link during a write could write there anyway.
//! - **Only the service gets the key.** Each request, also after a redirect, gets it only for the service's origin. No redirect leads from HTTPS to
//!   HTTP.
//! - **No link leads into the local network**, unless the service is there ([`HostPolicy`]).
//! - **It ends.** [`Limits`] bounds redirects, silence, speed, length, tries, and time, and a failing host gets less.
//! - **It resumes.** Received bytes are kept if the server names a version of the file (`ETag`, `Last-Modified`; RFC 9110 §13.1.5); after a kill,
//!   the synced bytes.
//!
//! The engine requests another link for a failed one. This module knows one link and one path.
//!
//! # Modules
//!
//! [`interface`] has the requests. [`stream`] fills a [`part`] from one link, along redirects to allowed [`hosts`]; [`interface`] also reads
//! responses of the content endpoint. [`mp4`] checks whether a file is whole, and reads its facts. [`storing`] gives it its name, or
//! archives it in another directory.

mod hosts;
mod interface;
mod mp4;
mod part;
mod storing;
mod stream;

pub use hosts::HostPolicy;
pub(crate) use interface::holds;
pub use interface::{Destination, Downloads, FetchError, Get, Limits, Link, Stored};
pub(crate) use mp4::footage_of;
pub use storing::{CopyVideoError, copy_video, exchange, is_whole, remove_original};
pub use stream::Downloader;
