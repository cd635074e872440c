//! Key file in the runtime directory: readable by its owner alone, and lost with the memory of the machine.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc::O_NOFOLLOW;
use nix::unistd::geteuid;
use uuid::Uuid;

use crate::StartError;

/// Generated key with its file, which is written again after the runtime directory was removed.
pub(crate) struct RuntimeKeyFile {
    file: PathBuf,
    secret: [u8; 32],
}

impl RuntimeKeyFile {
    pub(super) const fn new(file: PathBuf, secret: [u8; 32]) -> Self {
        Self { file, secret }
    }

    /// Returns true if the key file is there.
    pub(crate) fn is_in_place(&self) -> bool {
        self.file.symlink_metadata().is_ok()
    }

    /// Writes the key file again.
    pub(crate) fn restore(&self) -> io::Result<()> {
        write_atomically(&self.file, &self.secret)
    }
}

/// Returns the path of the key file of an instance; `None` if the runtime directory is inside the data directory,
/// because the key would then be on the disk and in each backup. In that case only the process holders keep the key.
pub(super) fn key_file_path(
    runtime_dir: &Path,
    data_dir: &Path,
    data_dir_id: Uuid,
) -> Option<PathBuf> {
    let real_path = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_outside_data_dir = !real_path(runtime_dir).starts_with(real_path(data_dir));
    is_outside_data_dir.then(|| runtime_dir.join(format!("inputs-{}.key", data_dir_id.simple())))
}

/// Corrects the mode of the file, and reads the key; returns `None` if there is no file, or a file without a key.
pub(super) fn repair_and_read(file: &Path) -> Result<Option<[u8; 32]>, StartError> {
    let key_error = |source| StartError::InputKey { source };
    restore_mode(file).map_err(key_error)?;
    // A link could lead to a file that an agent has chosen.
    let open_result = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(file);
    let mut open_key_file = match open_result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(key_error)?,
    };
    check_not_exposed(file, &open_key_file)?;
    let mut bytes = Vec::new();
    // A key has 32 bytes; a few more show that the file is damaged.
    (&mut open_key_file).take(64).read_to_end(&mut bytes).map_err(key_error)?;
    let key = bytes.try_into().ok();
    if key.is_none() {
        tracing::warn!(
            "the key of sealed inputs in the runtime directory was damaged, and is replaced"
        );
    }
    Ok(key)
}

/// Writes the key atomically: a reader of the file always finds a complete key.
pub(super) fn write(file: &Path, secret: &[u8; 32]) -> Result<(), StartError> {
    write_atomically(file, secret).map_err(|source| StartError::InputKey { source })
}

fn write_atomically(file: &Path, secret: &[u8; 32]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let temporary_path = file.with_added_extension(std::process::id().to_string());
    // A file with the same name was left behind by a process that no longer exists.
    match fs::remove_file(&temporary_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut temporary_file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary_path)?;
    temporary_file.write_all(secret)?;
    fs::rename(&temporary_path, file)
}

/// Restores the mode of a key file of this user in a folder that no other user can list: an agent of the same user can
/// change the mode, and must not stop the service by that.
fn restore_mode(file: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    let folder = fs::metadata(file.parent().unwrap_or(file))?;
    let own_uid = geteuid().as_raw();
    let is_ours = metadata.is_file() && metadata.uid() == own_uid && folder.uid() == own_uid;
    let is_closed = folder.mode() & 0o066 == 0;
    if is_ours && is_closed && metadata.mode() & 0o777 != 0o600 {
        let mode = format!("{:o}", metadata.mode() & 0o777);
        tracing::error!(file = %file.display(), mode, "key file had unexpected permissions; correcting them");
        fs::set_permissions(file, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Rejects a file that other users can access, and a directory in which another user could create one.
fn check_not_exposed(file: &Path, open_key_file: &File) -> Result<(), StartError> {
    let key_error = |source| StartError::InputKey { source };
    let metadata = open_key_file.metadata().map_err(key_error)?;
    let own_uid = geteuid().as_raw();
    if !metadata.is_file() || metadata.uid() != own_uid || metadata.mode() & 0o077 != 0 {
        return Err(StartError::InputKeyExposed { kind: "key file", path: file.to_owned() });
    }
    let folder = file.parent().unwrap_or(file);
    let metadata = fs::metadata(folder).map_err(key_error)?;
    if metadata.uid() != own_uid || metadata.mode() & 0o022 != 0 {
        return Err(StartError::InputKeyExposed { kind: "folder", path: folder.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn create_key_path() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = key_file_path(folder.path(), Path::new("/nowhere"), Uuid::from_u128(1)).unwrap();
        (folder, file)
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_file_is_read_back_and_private() {
        let (_folder, file) = create_key_path();
        assert_eq!(repair_and_read(&file).unwrap(), None);
        write(&file, &[7; 32]).unwrap();
        assert_eq!(repair_and_read(&file).unwrap(), Some([7; 32]));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        write(&file, &[8; 32]).unwrap();
        assert_eq!(repair_and_read(&file).unwrap(), Some([8; 32]));
        fs::write(&file, [1; 31]).unwrap();
        assert_eq!(repair_and_read(&file).unwrap(), None, "torn");
    }

    #[test]
    fn a_key_that_others_can_read_or_replace_is_refused() {
        let (folder, file) = create_key_path();
        write(&file, &[7; 32]).unwrap();
        chmod(folder.path(), 0o755);
        chmod(&file, 0o640);
        let refused = repair_and_read(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod 600") || refused.contains("remove"), "{refused}");
        chmod(&file, 0o600);
        chmod(folder.path(), 0o770);
        assert!(matches!(
            repair_and_read(&file),
            Err(StartError::InputKeyExposed { kind: "folder", .. })
        ));
        chmod(folder.path(), 0o700);
        let moved_file = folder.path().join("elsewhere");
        fs::rename(&file, &moved_file).unwrap();
        symlink(&moved_file, &file).unwrap();
        assert!(repair_and_read(&file).is_err(), "a link leads anywhere");
    }

    #[test]
    fn a_mode_that_an_agent_changed_is_repaired_in_a_closed_folder() {
        let (folder, file) = create_key_path();
        chmod(folder.path(), 0o700);
        write(&file, &[7; 32]).unwrap();
        for mode in [0o644, 0o000] {
            chmod(&file, mode);
            assert_eq!(repair_and_read(&file).unwrap(), Some([7; 32]));
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_runtime_directory_in_the_data_directory_has_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        assert_eq!(key_file_path(&run, folder.path(), Uuid::nil()), None);
    }
}
