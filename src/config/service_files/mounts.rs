//! Alias paths of a file that exist because a part of a file system is mounted more than once.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Mounted part of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// Device number of the file system.
    device: Vec<u8>,
    /// Folder or file of the file system that is mounted.
    root: PathBuf,
    /// Mount point.
    mount_point: PathBuf,
}

/// Mounts that this process sees, in the order of their creation.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the present mounts; none if the system does not list them.
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Parses a list of mounts, whose paths may have any encoding.
    fn parse(list: &[u8]) -> Self {
        Self(list.split(|byte| *byte == b'\n').filter_map(parse_mount).collect())
    }

    /// Returns other paths to a file or folder, or to something inside it.
    pub(crate) fn aliases(&self, path: &Path) -> Vec<PathBuf> {
        let real = resolve_links(path);
        // A later mount covers an earlier one at the same place.
        let covers = |mount: &&Mount| real.starts_with(&mount.mount_point);
        let length = |mount: &Mount| mount.mount_point.components().count();
        let Some(own_mount) = self.0.iter().filter(covers).max_by_key(|mount| length(mount)) else {
            return Vec::new();
        };
        let Ok(rest) = real.strip_prefix(&own_mount.mount_point) else { return Vec::new() };
        let path_in_file_system = join_paths(&own_mount.root, rest);
        let same_device = self.0.iter().filter(|mount| mount.device == own_mount.device);
        let alias = |mount: &Mount| match path_in_file_system.strip_prefix(&mount.root) {
            Ok(rest) => Some(join_paths(&mount.mount_point, rest)),
            Err(_) => {
                mount.root.starts_with(&path_in_file_system).then(|| mount.mount_point.clone())
            }
        };
        let is_other = |alias: &PathBuf| *alias != real && !alias.starts_with(&real);
        same_device.filter_map(alias).filter(is_other).collect()
    }
}

/// Returns the path without links, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(join_paths(&ancestor.canonicalize().ok()?, rest))
    });
    existing.unwrap_or_else(|| path.to_owned())
}

/// Joins two paths; `join` with an empty path would leave a slash at the end.
fn join_paths(path: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { path.to_owned() } else { path.join(rest) }
}

/// Parses a line: number, parent, device, root, mount point, and unused fields.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    let device = words.next()?.to_owned();
    Some(Mount { device, root: unescape(words.next()?), mount_point: unescape(words.next()?) })
}

/// Decodes a path in which the kernel has written blanks and backslashes as three octal digits.
fn unescape(escaped: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| first == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const TEXT: &str = "\
21 1 254:0 / / rw - ext4 /dev/vda rw
30 21 0:20 / /none/run rw - tmpfs tmpfs rw
40 21 254:0 /none/srv/conf /none/alias rw - ext4 /dev/vda rw
41 21 254:0 /none/srv /none/with\\040blank rw - ext4 /dev/vda rw
42 21 254:0 /none/srv/conf/secret /none/one rw - ext4 /dev/vda rw
43 21 0:20 /conf /none/other rw - tmpfs tmpfs rw
";

    #[test]
    fn a_path_is_found_under_every_mount_of_its_file_system() {
        let mounts = Mounts::parse(TEXT.as_bytes());
        let aliases_of = |path: &str| {
            let aliases = mounts.aliases(Path::new(path));
            aliases.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let conf = ["/none/alias", "/none/with blank/conf", "/none/one"];
        assert_eq!(aliases_of("/none/srv/conf"), conf);
        let file = ["/none/alias/secret", "/none/with blank/conf/secret", "/none/one"];
        assert_eq!(aliases_of("/none/srv/conf/secret"), file);
        assert_eq!(aliases_of("/none/with blank/conf/x"), ["/none/srv/conf/x", "/none/alias/x"]);
        assert_eq!(aliases_of("/none/run/conf/x"), ["/none/other/x"]);
        assert_eq!(aliases_of("/none/elsewhere"), Vec::<String>::new());
    }

    #[test]
    fn a_mount_in_another_encoding_hides_no_other() {
        let list =
            [TEXT.as_bytes(), b"44 21 254:0 /none/srv /none/caf\xe9 rw - ext4 /dev/vda rw\n"];
        let aliases = Mounts::parse(&list.concat()).aliases(Path::new("/none/srv/conf/secret"));
        let in_other_encoding = OsStr::from_bytes(b"/none/caf\xe9/conf/secret");
        assert!(aliases.contains(&PathBuf::from("/none/one")), "{aliases:?}");
        assert!(aliases.contains(&PathBuf::from(in_other_encoding)), "{aliases:?}");
    }
}
