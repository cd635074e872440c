//! A disk of a few megabytes, to be filled.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small disk in memory at some folder. It goes with this, whoever still uses it.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Puts a disk of so many megabytes where the ledger of this story will be; nothing where the
    /// machine does not let us, which is said aloud.
    pub(crate) fn below(here: &Path, megabytes: u32) -> Option<Self> {
        Self::at(here.join("state/algonius"), megabytes)
    }

    /// The same at another place.
    pub(crate) fn at(place: PathBuf, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let size = format!("size={megabytes}m,mode=0700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&place).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(place));
        }
        println!("SKIPPED: a small disk can be mounted by root only");
        None
    }

    /// Writes until not a byte more fits.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        let mut piece = vec![0; 1 << 16];
        while !piece.is_empty() {
            match file.write(&piece) {
                Ok(written) if written == piece.len() => {}
                Ok(_) | Err(_) => piece.truncate(piece.len() / 2), // What is left is less.
            }
        }
    }

    /// Removes what filled it.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).status(); // The folder may be gone.
    }
}
