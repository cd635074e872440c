//! Restores the modes and owners of files of the service.
//!
//! Landlock has no right for modes and owners: an agent of the service's user can open a file of the service to
//! other users of the machine, or close it to the service, although it cannot read the file itself.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::libc::O_PATH;
use nix::unistd::geteuid;

use crate::config::ServerSettings;

/// Bits that give access to other users than the owner.
const NON_OWNER_BITS: u32 = 0o077;

/// Owner bits that the service needs for a file that it reads.
const READ_FILE_OWNER_BITS: u32 = 0o500;

/// Owner bits that the service needs for a file that it creates.
const CREATED_FILE_OWNER_BITS: u32 = 0o700;

/// Files of the ledger and of the service's state, in the data directory.
const STATE_FILES: [&str; 5] =
    ["ledger.db", "ledger.db-wal", "ledger.db-shm", "lock", "agent-users.json"];

/// Folder of the scratch slots, in the runtime directory.
const SCRATCH_FOLDER: &str = "scratch";

/// Mode and owners of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FilePermissions {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl FilePermissions {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self { mode: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() }
    }

    /// Returns the permissions to restore, given the present ones. An operator may close a file further, so only the
    /// bits that the service needs are added.
    fn restoration_target(self, current: Self, needed_bits: u32) -> Self {
        let special_bits = self.mode & 0o7000;
        let owner_bits = current.mode & 0o700 | self.mode & needed_bits;
        Self { mode: special_bits | owner_bits | current.mode & self.mode & NON_OWNER_BITS, ..self }
    }
}

/// Files and folders of the service's user with the permissions that they are to have.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedPermissions(Vec<FileRecord>);

#[derive(Debug, Clone)]
struct FileRecord {
    path: PathBuf,
    permissions: FilePermissions,
    /// Owner bits that the service needs.
    needed_bits: u32,
}

/// File whose permissions had changed.
#[derive(Debug)]
pub(crate) struct ChangedFile {
    pub(crate) path: PathBuf,
    /// True if other users may have had access to it; otherwise the service had none.
    pub(crate) was_exposed: bool,
    /// Result of restoring it.
    pub(crate) restore_result: io::Result<()>,
}

impl RecordedPermissions {
    /// Returns the permissions of files that the service reads, and of files that it creates: those of
    /// `earlier_records`, and for other files the present ones. A path that does not exist or belongs to another user
    /// is omitted.
    ///
    /// An agent may have changed a mode since the last check, so the present permissions of a known file are not read
    /// again.
    pub(crate) fn from_files<'p>(
        files_to_read: impl IntoIterator<Item = &'p Path>,
        created_files: &[PathBuf],
        earlier_records: &Self,
    ) -> Self {
        // A file in both lists counts as created by the service.
        let files_to_read =
            files_to_read.into_iter().filter(|path| !created_files.iter().any(|file| file == path));
        let earlier_record = |path: &Path, needed_bits| {
            let is_same =
                |record: &&FileRecord| record.path == path && record.needed_bits == needed_bits;
            earlier_records.0.iter().find(is_same).cloned()
        };
        let record_of_file_to_read = |path: &Path| {
            earlier_record(path, READ_FILE_OWNER_BITS)
                .or_else(|| read_record(path, READ_FILE_OWNER_BITS))
        };
        let mut recorded = Self(files_to_read.filter_map(record_of_file_to_read).collect());
        recorded.0.extend(
            created_files.iter().filter_map(|path| earlier_record(path, CREATED_FILE_OWNER_BITS)),
        );
        recorded.record_created_files(created_files);
        recorded
    }

    /// Reads the present permissions of files that the service has created since, and forgets those that are gone.
    pub(crate) fn record_created_files(&mut self, created_files: &[PathBuf]) {
        let is_new = |path: &&PathBuf| !self.0.iter().any(|record| record.path == **path);
        let new_records: Vec<_> = created_files
            .iter()
            .filter(is_new)
            .filter_map(|path| read_created_record(path))
            .collect();
        if new_records.is_empty() {
            return;
        }
        self.0.retain(|record| {
            fs::symlink_metadata(&record.path).is_ok() || record.needed_bits == READ_FILE_OWNER_BITS
        });
        self.0.extend(new_records);
        // A folder precedes its files, because the files of a closed folder cannot be examined.
        self.0.sort_by(|one, other| one.path.cmp(&other.path));
        self.0.dedup_by(|next, first| next.path == first.path);
    }

    /// Restores the changed permissions: removes new access of other users, returns the owner's access, and restores
    /// the owners.
    pub(crate) fn restore(&self) -> Vec<ChangedFile> {
        self.0.iter().filter_map(restore).collect()
    }
}

fn read_record(path: &Path, needed_bits: u32) -> Option<FileRecord> {
    let permissions = FilePermissions::from_metadata(&fs::metadata(path).ok()?);
    let is_own = permissions.uid == geteuid().as_raw();
    is_own.then(|| FileRecord { path: path.to_owned(), permissions, needed_bits })
}

/// Returns the permissions of a file that the service has created. Its mode is known, so an earlier change by an agent
/// has no effect.
fn read_created_record(path: &Path) -> Option<FileRecord> {
    let mut record = read_record(path, CREATED_FILE_OWNER_BITS)?;
    let is_folder = path.is_dir();
    record.permissions.mode =
        if is_folder { record.permissions.mode | CREATED_FILE_OWNER_BITS } else { 0o600 };
    Some(record)
}

fn restore(record: &FileRecord) -> Option<ChangedFile> {
    let FileRecord { path, permissions: expected, needed_bits } = record;
    let current = FilePermissions::from_metadata(&fs::metadata(path).ok()?);
    let target_permissions = expected.restoration_target(current, *needed_bits);
    if current == target_permissions {
        return None;
    }
    let has_other_owner = (current.uid, current.gid) != (expected.uid, expected.gid);
    let was_exposed = has_other_owner || current.mode & NON_OWNER_BITS & !expected.mode != 0;
    Some(ChangedFile {
        path: path.to_owned(),
        was_exposed,
        restore_result: apply_permissions(path, target_permissions),
    })
}

/// Sets the permissions of the file that is now at a path. A file that its owner may not open is opened without access
/// to its content.
fn apply_permissions(path: &Path, permissions: FilePermissions) -> io::Result<()> {
    let file = File::options().read(true).custom_flags(O_PATH).open(path)?;
    let descriptor_path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let current = FilePermissions::from_metadata(&file.metadata()?);
    // The file is closed to others first. A change of the owner may clear bits, so the mode is set again.
    let may_change_mode = current.uid == geteuid().as_raw() || geteuid().is_root();
    if may_change_mode {
        fs::set_permissions(
            &descriptor_path,
            Permissions::from_mode(current.mode & permissions.mode),
        )?;
    }
    if (current.uid, current.gid) != (permissions.uid, permissions.gid) {
        chown(&descriptor_path, Some(permissions.uid), Some(permissions.gid))?;
    }
    fs::set_permissions(&descriptor_path, Permissions::from_mode(permissions.mode))
}

/// Returns the existing files that the service itself creates: its folders, the files of the ledger, keys, and sockets
/// of process holders.
pub(crate) fn service_created_files(server: &ServerSettings) -> Vec<PathBuf> {
    let folders = [&server.data_dir, &server.runtime_dir].map(PathBuf::clone);
    let state_files = STATE_FILES.map(|name| server.data_dir.join(name));
    let entries = fs::read_dir(&server.runtime_dir).into_iter().flatten().flatten();
    let is_own = |path: &PathBuf| {
        let has_extension =
            |suffix: &str| path.extension().is_some_and(|extension| extension == suffix);
        has_extension("key") || has_extension("sock") || path.ends_with(SCRATCH_FOLDER)
    };
    let own_entries = entries.map(|entry| entry.path()).filter(is_own);
    folders
        .into_iter()
        .chain(state_files)
        .chain(own_entries)
        .chain([server.token_file.clone()])
        .collect()
}
