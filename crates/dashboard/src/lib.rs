//! A page and metrics on which a [`windrow::Db`] can be watched.
//!
//! With the feature `http`, a program that embeds the library shows its database in a few lines:
//!
//! ```
//! # #[cfg(feature = "http")] {
//! # let dir = tempfile::tempdir().unwrap();
//! use std::sync::Arc;
//! use windrow::{Db, Options};
//! use windrow_dashboard::{Dashboard, Events, Settings};
//!
//! let events = Arc::new(Events::default());
//! let mut options = Options::default();
//! options.components.listener = Some(events.clone());
//! let db = Db::open_with(dir.path(), options)?;
//!
//! let settings = Settings { address: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
//! let dashboard = Dashboard::start(db.clone(), events, settings).unwrap();
//! println!("watch it at http://{}/, and scrape http://{0}/metrics", dashboard.address());
//! # }
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! Without the feature: the same page as one file ([`page::of`]), trees as JSON ([`trees`]) and
//! metrics as text ([`Metrics`]).
//!
//! Owns: the choice and the form of what is shown of a database. Never does: change a database.

mod events;
mod film;
mod metrics;
pub mod page;
mod trees;

#[cfg(feature = "http")]
mod connection;
#[cfg(feature = "http")]
mod feed;
#[cfg(feature = "http")]
mod http;

pub use events::Events;
pub use film::{Film, Shot};
#[cfg(feature = "http")]
pub use http::{Dashboard, Settings, Source};
pub use metrics::{Kind, Metrics};
pub use trees::{state, trees};
