//! Folders and disks of tests.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use algonius_skips::skip;
use tempfile::TempDir;

/// Small disk in memory at a folder. Dropping it unmounts the disk, even if it is in use.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of this many megabytes at the future ledger of this test; returns `None` if the machine does not
    /// permit it, which is recorded as a skip.
    pub(crate) fn mount_for_ledger_or_skip(test_folder: &Path, megabytes: u32) -> Option<Self> {
        Self::mount_at_or_skip(test_folder.join("state/algonius"), megabytes)
    }

    /// Mounts a disk at another place.
    pub(crate) fn mount_at_or_skip(mount_point: PathBuf, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(&mount_point).unwrap();
        let mount_options = format!("size={megabytes}m,mode=0700");
        let mount_status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &mount_options, "tmpfs"])
            .arg(&mount_point)
            .status();
        if mount_status.is_ok_and(|status| status.success()) {
            return Some(Self(mount_point));
        }
        skip("only root can mount a small disk");
        None
    }

    /// Writes until no byte fits any more.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.filler_path()).unwrap();
        let mut chunk = vec![0; 1 << 16];
        while !chunk.is_empty() {
            match file.write(&chunk) {
                Ok(written_bytes) if written_bytes == chunk.len() => {}
                Ok(_) | Err(_) => chunk.truncate(chunk.len() / 2), // The remaining room is smaller than the chunk.
            }
        }
    }

    /// Removes the file that filled the disk.
    pub(crate) fn remove_filler(&self) {
        fs::remove_file(self.filler_path()).unwrap();
    }

    fn filler_path(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).status(); // The folder may be gone.
    }
}

/// Creates a folder that only its owner can enter: the service refuses secret files that others can read, and those of
/// tests have the mode of all files.
pub(super) fn create_private_temp_dir() -> TempDir {
    let private_mode = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(private_mode).tempdir().unwrap()
}
