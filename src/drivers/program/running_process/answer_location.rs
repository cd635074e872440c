//! Sources of an answer.

use algonius_actors::model::program::EventDialect;

use crate::drivers::files::file_access::AllowedFolders;
use crate::drivers::files::program_file::ProgramOutputFile;

/// Source of an answer.
pub(in crate::drivers) enum AnswerLocation {
    /// Standard output.
    Stdout,
    /// File in the execution's own folder; `None` if that folder no longer exists.
    File(Option<ProgramOutputFile>),
    /// Events on standard output, of this project or native, which may name files in the allowed folders.
    Events(AllowedFolders, Option<EventDialect>),
}
