//! Folders of the service, and copies of its files in them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// Greatest number of entries of a folder that is examined.
const MAX_EXAMINED_ENTRIES: usize = 256;

/// Ends of the names of copies that editors, packages and operators make.
const COPY_SUFFIXES: [&str; 15] = [
    "~",
    ".bak",
    ".backup",
    ".old",
    ".orig",
    ".save",
    ".swp",
    ".swo",
    ".tmp",
    ".new",
    ".dpkg-old",
    ".dpkg-dist",
    ".rpmsave",
    ".rpmnew",
    ".lock",
];
/// Starts and ends of the names of an editor's temporary copies.
const COPY_AFFIXES: [(&str, &str); 4] = [(".", ".swp"), (".", ".swo"), ("#", "#"), (".#", "")];

/// Names of the files beside a key from Let's Encrypt, without numbers and the extension.
const ISSUED_CERTIFICATES: [&str; 4] = ["cert", "chain", "fullchain", "privkey"];
/// Extensions of the certificates that belong to a key of the same name.
const CERTIFICATE_EXTENSIONS: [&str; 4] = ["pem", "crt", "cer", "csr"];
/// File that programs for certificates write beside them.
const CERTIFICATE_NOTE: &str = "README";
/// Link to the version that is valid, in a folder of secrets that a container engine mounts; the names of the versions
/// start like it.
const MOUNTED_VERSION_LINK: &str = "..data";
const MOUNTED_VERSION_PREFIX: &str = "..";

/// Returns true if a name is that of a copy of a file: `key.bak`, `key~`, `.key.swp`, `#key#`.
pub(super) fn is_copy_name(name: &OsStr, original: &OsStr) -> bool {
    let (Some(name), Some(original)) = (name.to_str(), original.to_str()) else { return false };
    let is_suffix = |rest: &str| COPY_SUFFIXES.contains(&rest);
    let has_affixes = |(prefix, suffix): &(&str, &str)| {
        let name = name.strip_prefix(prefix).and_then(|name| name.strip_suffix(suffix));
        name == Some(original)
    };
    name.strip_prefix(original).is_some_and(is_suffix) || COPY_AFFIXES.iter().any(has_affixes)
}

/// Files of the service, as a view treats them. A path that does not exist is skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtectedServiceFiles {
    /// Hidden from the program, except its own folders and its own file in them.
    pub hidden_paths: Vec<PathBuf>,
    /// Read-only to the program.
    pub read_only_paths: Vec<PathBuf>,
    /// Folder of the configuration: read-only too, unless it is the working directory or the home of the program.
    pub config_folder: Option<PathBuf>,
}

/// Folders that a program uses, which no cover of a whole folder may take from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsedFolders {
    /// Folders in which the program works. What they contain stays visible, because missing files would look like
    /// removed ones.
    pub workspaces: Vec<PathBuf>,
    /// Other files and folders that the program uses.
    pub other_paths: Vec<PathBuf>,
}

impl UsedFolders {
    /// Returns true if a folder, without links, can be hidden as a whole.
    fn permit_cover_of(&self, folder: &Path) -> bool {
        let real_path = |path: &PathBuf| path.canonicalize().ok();
        let mut workspaces = self.workspaces.iter().filter_map(real_path);
        let mut other_paths = self.other_paths.iter().filter_map(real_path);
        !workspaces.any(|path| path.starts_with(folder) || folder.starts_with(path))
            && !other_paths.any(|path| path.starts_with(folder))
    }
}

impl ProtectedServiceFiles {
    /// Returns the files that programs may not read, and whose replacement a program in bubblewrap can read while it
    /// runs: their folder also contains other files, or the program uses it, so that it is not hidden as a whole. Lists
    /// folders, so it may block.
    #[must_use]
    pub fn files_visible_if_replaced(&self, used_folders: &UsedFolders) -> Vec<PathBuf> {
        let covered_folders = self.coverable_folders(used_folders);
        let is_covered = |path: &&PathBuf| {
            folders_of(path)
                .iter()
                .all(|it| covered_folders.iter().any(|folder| it.starts_with(folder)))
        };
        self.hidden_files().filter(|path| !is_covered(path)).cloned().collect()
    }

    /// Returns the folders, without links, that a view hides as a whole: they contain hidden files, and nothing but
    /// files of the service. A mount on a file ends when another file replaces it, and the program would see the new
    /// file. Lists folders, so it may block.
    pub(super) fn coverable_folders(&self, used_folders: &UsedFolders) -> Vec<PathBuf> {
        let own_names = self.own_names_by_folder();
        let folders: BTreeSet<_> = self.hidden_files().flat_map(|path| folders_of(path)).collect();
        let is_coverable = |folder: &PathBuf| {
            let own_names = own_names.get(folder);
            own_names.is_some_and(|own_names| has_only_own_entries(folder, own_names))
                && used_folders.permit_cover_of(folder)
        };
        let mut folders: Vec<_> = folders.into_iter().filter(is_coverable).collect();
        // A folder comes after the one that contains it.
        folders.dedup_by(|inner, outer| inner.starts_with(outer));
        folders
    }

    fn hidden_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.hidden_paths.iter().filter(|path| path.is_file())
    }

    /// Returns the names of the service's files and folders by their folders without links. A link counts in its
    /// folder, and its target in that of the target.
    fn own_names_by_folder(&self) -> BTreeMap<PathBuf, BTreeSet<OsString>> {
        let mut names_by_folder: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for path in self.hidden_paths.iter().chain(&self.read_only_paths) {
            for path in [without_parent_links(path), path.canonicalize().ok()].into_iter().flatten()
            {
                let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                    continue;
                };
                names_by_folder.entry(folder.to_owned()).or_default().insert(name.to_owned());
            }
        }
        names_by_folder
    }
}

/// Returns true if a folder contains nothing but files of the service, copies of them and their certificates.
fn has_only_own_entries(folder: &Path, own_names: &BTreeSet<OsString>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_mounted = folder.join(MOUNTED_VERSION_LINK).is_symlink();
    let mut entry_count = 0;
    let mut are_own = entries.map(|entry| {
        entry_count += 1;
        let is_own = entry.is_ok_and(|entry| is_own_entry(&entry, own_names, is_mounted));
        is_own && entry_count <= MAX_EXAMINED_ENTRIES
    });
    are_own.all(|is_own| is_own)
}

fn is_own_entry(entry: &DirEntry, own_names: &BTreeSet<OsString>, is_mounted: bool) -> bool {
    let name = entry.file_name();
    if own_names.contains(&name) {
        return true;
    }
    let is_version = || name.to_str().is_some_and(|name| name.starts_with(MOUNTED_VERSION_PREFIX));
    if is_mounted && is_version() {
        return true;
    }
    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let is_related = |own: &OsString| is_copy_name(&name, own) || is_certificate_of(&name, own);
    !is_folder && (name == CERTIFICATE_NOTE || own_names.iter().any(is_related))
}

/// Returns true if a name is that of a certificate which belongs to a key.
fn is_certificate_of(name: &OsStr, key: &OsStr) -> bool {
    let (name, key) = (Path::new(name), Path::new(key));
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let extension = name.extension().and_then(OsStr::to_str);
    let is_issued = |stem: String| {
        ISSUED_CERTIFICATES.contains(&stem.trim_end_matches(|it: char| it.is_ascii_digit()))
    };
    let is_of_same_issue = || stem(key).is_some_and(is_issued) && stem(name).is_some_and(is_issued);
    extension.is_some_and(|extension| CERTIFICATE_EXTENSIONS.contains(&extension))
        && (stem(name) == stem(key) || is_of_same_issue())
}

/// Returns the path with its folder resolved: the last part may be a link.
fn without_parent_links(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// Returns the folder of a path, and that of the file to which the path leads.
fn folders_of(path: &Path) -> Vec<PathBuf> {
    let paths = [without_parent_links(path), path.canonicalize().ok()].into_iter().flatten();
    let mut folders: Vec<_> = paths.filter_map(|path| Some(path.parent()?.to_owned())).collect();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn copies_are_recognized_by_name() {
        for name in ["key.bak", "key~", ".key.swp", "#key#", ".#key", "key.new"] {
            assert!(is_copy_name(OsStr::new(name), OsStr::new("key")), "{name}");
        }
        for name in ["key", "keys", "key.pub", "key.rs", "key.example", "my.key", ".keyring", "ke"]
        {
            assert!(!is_copy_name(OsStr::new(name), OsStr::new("key")), "{name}");
        }
    }

    /// Creates files in a folder, and returns their paths.
    fn create_files(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
        fs::create_dir_all(folder).unwrap();
        let paths: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
        paths.iter().for_each(|path| fs::write(path, "text").unwrap());
        paths
    }

    fn files_with_hidden(hidden_paths: Vec<PathBuf>) -> ProtectedServiceFiles {
        ProtectedServiceFiles { hidden_paths, ..ProtectedServiceFiles::default() }
    }

    fn covered_folders(files: &ProtectedServiceFiles) -> Vec<PathBuf> {
        files.coverable_folders(&UsedFolders::default())
    }

    /// Returns a temporary folder, and its path without links.
    fn temporary_root() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        (temporary, root)
    }

    #[test]
    fn a_folder_with_another_file_is_not_covered() {
        let (_temporary, root) = temporary_root();
        let [alone, mixed] = ["alone", "mixed"].map(|name| root.join(name));
        let mut hidden = create_files(&alone, &["key", "other-secret"]);
        create_files(&alone, &["key.bak", ".key.swp"]);
        hidden.extend(create_files(&mixed, &["key"]));
        create_files(&mixed, &["notes.txt"]);
        hidden.push(root.join("missing/key"));
        let files = files_with_hidden(hidden);
        assert_eq!(covered_folders(&files), std::slice::from_ref(&alone));
        let visible_files = files.files_visible_if_replaced(&UsedFolders::default());
        assert_eq!(visible_files, [mixed.join("key")]);
        fs::create_dir(alone.join("key.old")).unwrap();
        assert_eq!(covered_folders(&files), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_folder_of_a_configuration_has_files_of_both_kinds() {
        let (_temporary, root) = temporary_root();
        let hidden_paths = create_files(&root, &["supervisor.toml", "environment"]);
        fs::create_dir(root.join("presets")).unwrap();
        let files = files_with_hidden(hidden_paths);
        assert!(covered_folders(&files).is_empty());
        let files = ProtectedServiceFiles { read_only_paths: vec![root.join("presets")], ..files };
        assert_eq!(covered_folders(&files), [root]);
    }

    #[test]
    fn a_folder_that_the_program_uses_is_not_covered() {
        let (_temporary, root) = temporary_root();
        let folder = root.join("secrets");
        let files = files_with_hidden(create_files(&folder, &["key"]));
        fs::create_dir(root.join("elsewhere")).unwrap();
        symlink(&root, root.join("elsewhere/link")).unwrap();
        for (workspace, other_path, is_covered) in [
            (root.join("elsewhere"), root.clone(), true),
            (root.join("elsewhere"), folder.clone(), false),
            (root.clone(), root.join("elsewhere"), false),
            (root.join("elsewhere/link"), root.join("elsewhere"), false),
            (folder.clone(), root.join("elsewhere"), false),
        ] {
            let used_folders =
                UsedFolders { workspaces: vec![workspace], other_paths: vec![other_path] };
            assert_eq!(
                !files.coverable_folders(&used_folders).is_empty(),
                is_covered,
                "{used_folders:?}"
            );
            assert_eq!(files.files_visible_if_replaced(&used_folders).is_empty(), is_covered);
        }
    }

    /// A program may need certificates that do not belong to the key.
    #[test]
    fn only_certificates_of_the_key_are_covered_with_it() {
        let (_temporary, root) = temporary_root();
        let hidden_paths = create_files(&root, &["server.key"]);
        create_files(&root, &["server.crt", "server.csr"]);
        let files = files_with_hidden(hidden_paths);
        assert_eq!(covered_folders(&files), std::slice::from_ref(&root));
        create_files(&root, &["ca.pem"]);
        assert!(covered_folders(&files).is_empty());
    }

    /// A renewed certificate is a new file and a new link to it.
    #[test]
    fn the_folders_of_a_link_and_of_its_target_are_covered() {
        let (_temporary, root) = temporary_root();
        let [live, archive] = ["live", "archive"].map(|name| root.join(name));
        create_files(&archive, &["privkey1.pem", "cert1.pem", "fullchain1.pem"]);
        create_files(&live, &["README"]);
        symlink("../archive/privkey1.pem", live.join("privkey.pem")).unwrap();
        symlink("../archive/cert1.pem", live.join("cert.pem")).unwrap();
        let files = files_with_hidden(vec![live.join("privkey.pem")]);
        assert_eq!(covered_folders(&files), [archive, live]);
        // As a container engine mounts secrets.
        let mounted = root.join("mounted");
        create_files(&mounted.join("..2026"), &["key"]);
        symlink("..2026", mounted.join("..data")).unwrap();
        symlink("..data/key", mounted.join("key")).unwrap();
        let files = files_with_hidden(vec![mounted.join("key")]);
        assert_eq!(covered_folders(&files), std::slice::from_ref(&mounted));
        let visible_files = files.files_visible_if_replaced(&UsedFolders::default());
        assert_eq!(visible_files, Vec::<PathBuf>::new());
    }
}
