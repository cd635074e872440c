//! What the tree needs from the world, as traits. The edge implements them; tests script them.

pub mod clock;
pub mod driver;
pub mod history;
pub mod ledger;
pub mod meter;
pub mod observer;
pub mod outbox;
pub mod sessions;
pub mod timebook;
pub mod wording;
