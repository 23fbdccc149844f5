//! The contact sheet: one file that the user opens in a browser, from the disk and without a network.
//!
//! Everything in it that comes from outside, a manifest or a service, is escaped by the templates, and the page's own
//! policy lets nothing run but the script that it carries: should an escape ever fail, it still would not run. Videos come
//! from beside the page or from the addresses that the service gave, and from nowhere else.
//!
//! [`page`] surrounds the cards. [`card`] is one job. Templates are compiled with the program, and cards are written one by one: ten thousand of them need no more memory than one.

mod card;
mod page;
mod text;

pub(super) use page::write;
