//! The contact sheet: one file that the user opens in a browser, from the disk and without a network.
//!
//! Templates escape all untrusted text. The policy of the page allows only its own script, so an unescaped script would not run. Videos are beside the
//! page, or at the URLs of the service.
//!
//! [`page`] surrounds the cards. [`card`] is one job. Templates are compiled with the program, and cards are written one by one: ten thousand of them need no more memory than one.

mod card;
mod page;

pub(super) use card::path_as_link;
pub(super) use page::write;
