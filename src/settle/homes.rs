//! Homes of agents: folders of mode 0700, with files of mode 0600 that are written once.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use algonius_actors::model::outfit::OwnHome;

/// Makes it where it is not there, and writes what of its files is not there. What the program has
/// made of them since stays as it is.
pub(super) fn make(home: &OwnHome) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(&home.path)?;
    fs::set_permissions(&home.path, Permissions::from_mode(0o700))?;
    home.files.iter().try_for_each(|(name, text)| write(&home.path, Path::new(name), text))
}

fn write(home: &Path, name: &Path, text: &str) -> io::Result<()> {
    let mut folder = home.to_owned();
    for part in name.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        make_folder(&folder)?;
    }
    let place = home.join(name);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place);
    match opened {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A folder of the home. A link that the program has put there is not followed: it could lead to where
/// the program itself may not write.
fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_folder = fs::symlink_metadata(folder)?.is_dir();
            if is_folder { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn home(path: &Path) -> OwnHome {
        let files = [("a/b.json", "{}"), ("c", "x")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        OwnHome { path: path.to_owned(), files }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_home_is_made_for_its_owner_alone_and_its_files_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes/x");
        make(&home(&path)).unwrap();
        assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o700));
        assert_eq!((mode(&path.join("a/b.json")), mode(&path.join("c"))), (0o600, 0o600));
        fs::write(path.join("c"), "of the program").unwrap();
        fs::remove_file(path.join("a/b.json")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        make(&home(&path)).unwrap();
        assert_eq!(fs::read_to_string(path.join("c")).unwrap(), "of the program");
        assert_eq!(fs::read_to_string(path.join("a/b.json")).unwrap(), "{}");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_link_in_a_home_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("x"), folder.path().join("other"));
        fs::create_dir(&path).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&other, path.join("a")).unwrap();
        assert!(make(&home(&path)).is_err());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }
}
