//! Every folder and link that leads to a path: a user who can change one of them chooses the file that the path
//! denotes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

/// Greatest number of links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// Kind of a place on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComponentKind {
    Folder,
    Link,
    /// The file or folder that the path leads to.
    End,
}

/// Place on a path.
#[derive(Debug)]
pub(super) struct PathComponent {
    pub(super) path: PathBuf,
    pub(super) kind: ComponentKind,
    pub(super) data: Metadata,
}

/// Places on a path, from the root. It ends at the first missing place.
#[derive(Debug)]
pub(super) struct PathRoute(pub(super) Vec<PathComponent>);

impl PathRoute {
    /// # Errors
    /// Fails if a place cannot be examined, or if there are too many links.
    pub(super) fn to(path: &Path) -> io::Result<Self> {
        let mut rest = parts(&std::path::absolute(path)?);
        let (mut at, mut places, mut links) = (PathBuf::from("/"), Vec::new(), 0);
        places.push(place(&at, ComponentKind::Folder)?);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(part);
            let found = match place(&next, ComponentKind::Folder) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            if found.data.is_symlink() {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::ELOOP.into());
                }
                let target = fs::read_link(&next)?;
                places.push(PathComponent { kind: ComponentKind::Link, ..found });
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let mut longer = parts(&target);
                longer.append(&mut rest);
                rest = longer;
            } else {
                let kind = if rest.is_empty() { ComponentKind::End } else { ComponentKind::Folder };
                places.push(PathComponent { kind, ..found });
                at = next;
            }
        }
        Ok(Self(places))
    }
}

fn place(path: &Path, kind: ComponentKind) -> io::Result<PathComponent> {
    Ok(PathComponent { path: path.to_owned(), kind, data: fs::symlink_metadata(path)? })
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}
