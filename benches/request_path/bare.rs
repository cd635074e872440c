//! What nobody can leave out: the program, started by the standard library.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::WIDE;

/// What the service wraps, without the service: spawn, write, read, wait.
pub(crate) fn bare(program: &Path, text: &str) {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("a reader");
    drop(input);
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("an end").success() && said == text);
}

pub(crate) fn bare_wide(program: &Path, text: &str, times: u64) {
    std::thread::scope(|scope| {
        for _ in 0..WIDE {
            scope.spawn(|| (0..times).for_each(|_| bare(program, text)));
        }
    });
}

/// The program as the service finds it.
pub(crate) fn cat() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join("cat"));
    files.find(|file| file.is_file()).expect("`cat` on the PATH")
}
