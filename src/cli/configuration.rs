//! Commands on the configuration, and the search for its file.

pub(super) mod atomic_file;
pub(super) mod check;
pub(super) mod init;
mod load;
pub(super) mod redact;
pub(super) mod reload;
mod search;

pub(super) use load::load;
pub(super) use search::{ConfigLocation, ConfigOrigin};
