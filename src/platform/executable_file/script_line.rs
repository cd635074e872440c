//! First line of a script, read as the kernel reads it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Program that searches its first argument in the folders of `PATH`.
const ENV_PROGRAM: &str = "env";

/// First line of a script: `#!`, the interpreter, and at most one argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptLine {
    interpreter: PathBuf,
    argument: Vec<u8>,
}

impl ScriptLine {
    /// Parses the beginning of a file; `None` if its first line names no interpreter, or is longer than the kernel
    /// reads.
    pub(super) fn parse(beginning: &[u8]) -> Option<Self> {
        let rest = beginning.strip_prefix(b"#!")?;
        let line = rest.split(|byte| *byte == b'\n').next()?;
        let is_whole = line.len() < rest.len();
        let line = trim_blanks(line);
        let (interpreter, argument) = match line.iter().position(|byte| is_blank(*byte)) {
            Some(end) => line.split_at(end),
            // A name that the kernel would cut is refused.
            None if is_whole || beginning.len() < super::FORMAT_PREFIX_BYTES => (line, &[][..]),
            None => return None,
        };
        if interpreter.is_empty() || interpreter.contains(&0) {
            return None;
        }
        let interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
        Some(Self { interpreter, argument: trim_blanks(argument).to_owned() })
    }

    pub(super) fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// Returns the command that `env` searches in the folders of `PATH`, if that is the interpreter: `node` in
    /// `#!/usr/bin/env node`. A line whose meaning only `env` itself knows has none.
    pub(super) fn env_command(&self) -> Option<&Path> {
        if self.interpreter.file_name()? != ENV_PROGRAM {
            return None;
        }
        let command = match self.argument.strip_prefix(b"-S") {
            // The kernel passes one argument, so blanks belong to the name.
            None => self.argument.as_slice(),
            Some(words) if words.iter().any(|byte| br#"'"\$#"#.contains(byte)) => return None,
            // With this option `env` separates words itself, also at a carriage return.
            Some(words) => words
                .split(|byte| is_blank(*byte) || *byte == b'\r')
                .find(|word| !word.is_empty())?,
        };
        // Before the command, `env` takes variables, of which one may be `PATH`, and further options.
        let is_option_or_assignment = command.starts_with(b"-") || command.contains(&b'=');
        let is_searched =
            !command.is_empty() && !command.contains(&b'/') && !is_option_or_assignment;
        is_searched.then(|| Path::new(OsStr::from_bytes(command)))
    }

    /// Returns true if the line was saved with the line ends of another system.
    pub(super) fn ends_in_carriage_return(&self) -> bool {
        let name = self.interpreter.as_os_str().as_bytes();
        let last = self.argument.last().or_else(|| name.last());
        last == Some(&b'\r')
    }

    /// Returns a name of this line without the carriage return at its end.
    pub(super) fn name_without_carriage_return(&self, name: &Path) -> PathBuf {
        let bytes = name.as_os_str().as_bytes();
        OsStr::from_bytes(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into()
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_blank(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_blank(*last)
    {
        bytes = rest;
    }
    bytes
}
