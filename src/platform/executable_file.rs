//! File of a program: the reasons for which the kernel refuses to execute it.
//!
//! The kernel reports a missing interpreter with the same error as a missing program or a missing working folder. This
//! module reads the first bytes of the file as the kernel does, and names the cause.

mod elf;
mod executed_files;
mod script_line;

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

use self::elf::ElfHeader;
pub(crate) use self::executed_files::PathVisibility;
use self::script_line::ScriptLine;

/// Number of bytes by which the kernel recognizes the format of a program.
const FORMAT_PREFIX_BYTES: usize = 256;

/// Greatest number of scripts that are interpreters of each other.
const MAX_INTERPRETER_DEPTH: usize = 5;

/// Formats that the machine executes in addition to scripts and its own binaries.
const BINFMT_FOLDER: &str = "/proc/sys/fs/binfmt_misc";

/// Entries of that folder that are no formats.
const BINFMT_CONTROL_FILES: [&str; 2] = ["register", "status"];

/// Reason for which a program that exists cannot be executed. Its text names files without their folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramFault {
    /// The service may not execute the file.
    NotExecutable,
    /// The file system of the program, or of its interpreter, is mounted so that nothing on it can be executed.
    NotExecutableMount,
    /// The first line of the script names an interpreter that does not exist.
    InterpreterMissing {
        /// The interpreter, as the line names it.
        interpreter: PathBuf,
        /// True if the line ends in a carriage return, which the kernel takes as a part of the name.
        ends_in_carriage_return: bool,
    },
    /// The service may not execute the interpreter of the script.
    InterpreterNotExecutable {
        /// The interpreter, as the first line of the script names it.
        interpreter: PathBuf,
    },
    /// The binary needs a dynamic loader that does not exist; usually it was built for another system library.
    LoaderMissing {
        /// The loader, as the binary names it.
        loader: PathBuf,
    },
    /// The binary was built for another processor.
    ForeignProcessor {
        /// Name of that processor.
        processor: &'static str,
    },
    /// The file is neither a script with a `#!` line nor a binary.
    UnknownFormat,
}

impl ProgramFault {
    /// Examines a program; `None` if there is no such file, or if nothing prevents its execution. Names without a
    /// folder are searched on `search_path`. Blocks on the file system.
    pub(crate) fn find(program: &Path, search_path: Option<&str>) -> Option<Self> {
        let fault = Self::find_after_exec_failure(program, search_path)?;
        // The machine may execute other formats, for which this module knows no sign.
        (!fault.is_format_fault() || !executes_foreign_formats()).then_some(fault)
    }

    /// Examines a program that the kernel has refused to execute, like [`Self::find`].
    pub(crate) fn find_after_exec_failure(
        program: &Path,
        search_path: Option<&str>,
    ) -> Option<Self> {
        find_fault(program, search_path, MAX_INTERPRETER_DEPTH)
    }

    /// Returns true if the fault is the format of the file. The kernel may know other formats, and a shell executes a
    /// script without a first line for some callers.
    pub(crate) const fn is_format_fault(&self) -> bool {
        matches!(self, Self::ForeignProcessor { .. } | Self::UnknownFormat)
    }

    /// Returns the file that the fault is about, if it is another one than the program.
    pub(crate) fn interpreter_or_loader(&self) -> Option<&Path> {
        match self {
            Self::InterpreterMissing { interpreter, .. }
            | Self::InterpreterNotExecutable { interpreter } => Some(interpreter),
            Self::LoaderMissing { loader } => Some(loader),
            _ => None,
        }
    }
}

impl Display for ProgramFault {
    /// Writes the fault as a clause about the program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.interpreter_or_loader().unwrap_or_else(|| Path::new(""));
        // The name comes from a file, so control characters are escaped.
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let name = name.escape_debug();
        match self {
            Self::NotExecutable => f.write_str("it may not be executed"),
            Self::NotExecutableMount => f.write_str(
                "its file system is mounted with `noexec`, so that nothing on it can be executed",
            ),
            Self::InterpreterMissing { ends_in_carriage_return: false, .. } => {
                write!(f, "its interpreter `{name}` does not exist")
            }
            Self::InterpreterMissing { ends_in_carriage_return: true, .. } => {
                write!(
                    f,
                    "its first line ends in a carriage return, so that its interpreter `{name}` does not exist"
                )
            }
            Self::InterpreterNotExecutable { .. } => {
                write!(f, "its interpreter `{name}` may not be executed")
            }
            Self::LoaderMissing { .. } => {
                write!(
                    f,
                    "its dynamic loader `{name}` does not exist; it was built for another system"
                )
            }
            Self::ForeignProcessor { processor } => write!(f, "it was built for {processor}"),
            Self::UnknownFormat => {
                f.write_str("it is neither a script with a `#!` line nor a binary of this machine")
            }
        }
    }
}

fn find_fault(
    program: &Path,
    search_path: Option<&str>,
    remaining_depth: usize,
) -> Option<ProgramFault> {
    if !fs::metadata(program).ok()?.is_file() || access(program, AccessFlags::X_OK).is_err() {
        let is_on_noexec = is_on_noexec_mount(program);
        return Some(if is_on_noexec {
            ProgramFault::NotExecutableMount
        } else {
            ProgramFault::NotExecutable
        });
    }
    if is_on_noexec_mount(program) {
        return Some(ProgramFault::NotExecutableMount);
    }
    // A program may be executable without being readable; then nothing is known about its format. A pipe may have been
    // put in its place meanwhile, and must not be waited for.
    let file = File::options().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(program).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    let beginning = read_beginning(&file).ok()?;
    if beginning.starts_with(b"#!") {
        return match ScriptLine::parse(&beginning) {
            Some(line) => find_script_fault(&line, search_path, remaining_depth),
            None => Some(ProgramFault::UnknownFormat),
        };
    }
    match ElfHeader::read(&file, &beginning) {
        Some(header) => find_binary_fault(&header),
        None => Some(ProgramFault::UnknownFormat),
    }
}

fn find_script_fault(
    line: &ScriptLine,
    search_path: Option<&str>,
    remaining_depth: usize,
) -> Option<ProgramFault> {
    let interpreter = line.interpreter();
    // The working folder of the program is not known here.
    if !interpreter.is_absolute() || remaining_depth == 0 {
        return None;
    }
    if let Err(error) = fs::metadata(interpreter) {
        return is_missing_path_error(&error).then(|| missing_interpreter_fault(line, interpreter));
    }
    if let Some(command) = line.env_command() {
        // What is in relative folders depends on the working folder of the program.
        let search_path =
            search_path.filter(|path| path.split(':').all(|it| it.starts_with('/')))?;
        let is_found =
            search_path.split(':').any(|folder| Path::new(folder).join(command).is_file());
        return (!is_found).then(|| missing_interpreter_fault(line, command));
    }
    match find_fault(interpreter, search_path, remaining_depth - 1)? {
        ProgramFault::NotExecutable => {
            Some(ProgramFault::InterpreterNotExecutable { interpreter: interpreter.to_owned() })
        }
        fault => Some(fault),
    }
}

fn missing_interpreter_fault(line: &ScriptLine, name: &Path) -> ProgramFault {
    let ends_in_carriage_return = line.ends_in_carriage_return();
    let interpreter = line.name_without_carriage_return(name);
    ProgramFault::InterpreterMissing { interpreter, ends_in_carriage_return }
}

fn find_binary_fault(header: &ElfHeader) -> Option<ProgramFault> {
    if let Some(processor) = header.foreign_processor() {
        return Some(ProgramFault::ForeignProcessor { processor });
    }
    let loader = header.loader.as_ref().filter(|loader| loader.is_absolute())?;
    let is_missing = fs::metadata(loader).is_err_and(|error| is_missing_path_error(&error));
    is_missing.then(|| ProgramFault::LoaderMissing { loader: loader.clone() })
}

fn read_beginning(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; FORMAT_PREFIX_BYTES];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, length as u64)? {
            0 => break,
            count => length += count,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn is_on_noexec_mount(program: &Path) -> bool {
    statvfs(program).is_ok_and(|filesystem| filesystem.flags().contains(FsFlags::ST_NOEXEC))
}

fn is_missing_path_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns true if the machine executes formats of which this module knows nothing.
fn executes_foreign_formats() -> bool {
    let entries = fs::read_dir(BINFMT_FOLDER).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| !BINFMT_CONTROL_FILES.iter().any(|control| name == *control))
}

#[cfg(test)]
mod tests;
