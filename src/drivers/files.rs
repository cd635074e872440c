//! Files of an execution: its own folder, the files of its request, and the files that a program names.

pub(super) mod file_access;
pub(super) mod input_files;
pub(super) mod program_file;
pub(super) mod removal;
pub(super) mod scratch_dir;
pub(super) mod scratch_slots;
