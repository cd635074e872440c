//! Engine of the store: statements, the writer with its queue, checkpoints, the read cache, and the data directory.

pub(crate) mod checkpoint;
pub(crate) mod directory;
pub(crate) mod encryption;
pub(crate) mod error;
pub(crate) mod integrity;
pub(crate) mod read_cache;
pub(crate) mod row_codec;
pub(crate) mod sql;
pub(crate) mod writer;
