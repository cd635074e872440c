//! Files that the kernel opens to execute a program.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc::{O_NOCTTY, O_NONBLOCK};

use super::elf::ElfHeader;
use super::script_line::ScriptLine;
use super::{MAX_INTERPRETER_DEPTH, read_beginning};

/// Paths that a sandbox hides from a program, and paths in them that stay visible.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathVisibility {
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) visible: Vec<PathBuf>,
}

impl PathVisibility {
    /// Returns the first hidden file that the kernel must open to execute a program: the program itself, one of its
    /// interpreters, or its loader. Blocks on the file system.
    pub(crate) fn find_hidden_executed_file(
        &self,
        program: &Path,
        search_path: Option<&str>,
    ) -> Option<PathBuf> {
        let with_resolved = |paths: &[PathBuf]| {
            let resolved = paths.iter().filter_map(|path| path.canonicalize().ok());
            paths.iter().cloned().chain(resolved).collect::<Vec<_>>()
        };
        let paths =
            Self { hidden: with_resolved(&self.hidden), visible: with_resolved(&self.visible) };
        let is_hidden = |file: &PathBuf| {
            paths.hides(file) || file.canonicalize().is_ok_and(|file| paths.hides(&file))
        };
        executed_files(program, search_path).into_iter().find(is_hidden)
    }

    /// Returns true if the longest path above a file is a hidden one, also if it is a visible one too.
    fn hides(&self, file: &Path) -> bool {
        let longest_match = |paths: &[PathBuf]| {
            let parents = paths.iter().filter(|path| file.starts_with(path));
            parents.map(|path| path.components().count()).max()
        };
        let hidden = longest_match(&self.hidden);
        hidden.is_some() && hidden >= longest_match(&self.visible)
    }
}

/// Returns the program, its interpreters and its loader, as far as they exist.
fn executed_files(program: &Path, search_path: Option<&str>) -> Vec<PathBuf> {
    let mut files = vec![program.to_owned()];
    for _ in 0..=MAX_INTERPRETER_DEPTH {
        let next =
            files.last().map(|file| find_interpreter_files(file, search_path)).unwrap_or_default();
        if next.is_empty() {
            break;
        }
        files.extend(next);
    }
    files
}

/// Returns the files that are executed because of this one. The last one decides about further files.
fn find_interpreter_files(file: &Path, search_path: Option<&str>) -> Vec<PathBuf> {
    let Some((opened_file, beginning)) = open_and_read_beginning(file) else { return Vec::new() };
    if !beginning.starts_with(b"#!") {
        let header = ElfHeader::read(&opened_file, &beginning);
        return header.and_then(|header| header.loader).into_iter().collect();
    }
    let Some(line) = ScriptLine::parse(&beginning) else { return Vec::new() };
    let command = line.env_command().and_then(|command| {
        let folders = search_path?.split(':').map(Path::new);
        folders.map(|folder| folder.join(command)).find(|file| file.is_file())
    });
    [line.interpreter().to_owned()].into_iter().chain(command).collect()
}

fn open_and_read_beginning(file: &Path) -> Option<(File, Vec<u8>)> {
    // A pipe in the place of the program must not be waited for.
    let opened_file =
        File::options().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(file).ok()?;
    opened_file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let beginning = read_beginning(&opened_file).ok()?;
    Some((opened_file, beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_decides_about_a_file() {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
        let path_visibility = PathVisibility {
            hidden: paths(&["/a", "/a/b/c", "/d"]),
            visible: paths(&["/a/b", "/", "/d"]),
        };
        for (file, expected) in [
            ("/a/x", true),
            ("/a/b/x", false),
            ("/a/b/c/x", true),
            ("/ab/x", false),
            ("/x", false),
            ("/d/x", true),
        ] {
            assert_eq!(path_visibility.hides(Path::new(file)), expected, "{file}");
        }
    }
}
