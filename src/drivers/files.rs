//! Files of an execution: the home of its agent, its own folder, the files of its request, and those that a program
//! names.

pub(crate) mod agent_home;
pub(super) mod file_access;
pub(super) mod input_files;
pub(super) mod program_file;
pub(super) mod removal;
pub(super) mod scratch_dir;
pub(super) mod scratch_slots;
