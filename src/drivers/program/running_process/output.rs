//! Sources of an answer.

use algonius_actors::model::program::EventDialect;

use crate::drivers::files::file_access::Reach;
use crate::drivers::files::scratch_dir::OwnFile;

/// Source of an answer.
pub(in crate::drivers) enum Output {
    /// Standard output.
    Stdout,
    /// File in the execution's own folder; `None` if that folder no longer exists.
    File(Option<OwnFile>),
    /// Events on standard output, of this project or native, which may name files within reach.
    Events(Reach, Option<EventDialect>),
}
