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
pub(super) enum PathComponentKind {
    Folder,
    Link,
    /// The file or folder that the path leads to.
    Target,
}

/// Place on a path.
#[derive(Debug)]
pub(super) struct PathComponent {
    pub(super) path: PathBuf,
    pub(super) kind: PathComponentKind,
    pub(super) metadata: Metadata,
}

/// Places on a path, from the root. It ends at the first missing place.
#[derive(Debug)]
pub(super) struct PathResolution(pub(super) Vec<PathComponent>);

impl PathResolution {
    /// # Errors
    /// Fails if a place cannot be examined, or if there are too many links.
    pub(super) fn resolve(path: &Path) -> io::Result<Self> {
        let mut remaining = path_parts(&std::path::absolute(path)?);
        let (mut current, mut components, mut link_count) = (PathBuf::from("/"), Vec::new(), 0);
        components.push(component_at(&current, PathComponentKind::Folder)?);
        while let Some(part) = remaining.pop_front() {
            if part == ".." {
                current.pop();
                continue;
            }
            let next = current.join(part);
            let component = match component_at(&next, PathComponentKind::Folder) {
                Ok(component) => component,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            if component.metadata.is_symlink() {
                link_count += 1;
                if link_count > MAX_LINKS {
                    return Err(Errno::ELOOP.into());
                }
                let target = fs::read_link(&next)?;
                components.push(PathComponent { kind: PathComponentKind::Link, ..component });
                if target.is_absolute() {
                    current = PathBuf::from("/");
                }
                let mut target_parts = path_parts(&target);
                target_parts.append(&mut remaining);
                remaining = target_parts;
            } else {
                let kind = if remaining.is_empty() {
                    PathComponentKind::Target
                } else {
                    PathComponentKind::Folder
                };
                components.push(PathComponent { kind, ..component });
                current = next;
            }
        }
        Ok(Self(components))
    }
}

fn component_at(path: &Path, kind: PathComponentKind) -> io::Result<PathComponent> {
    Ok(PathComponent { path: path.to_owned(), kind, metadata: fs::symlink_metadata(path)? })
}

fn path_parts(path: &Path) -> VecDeque<OsString> {
    let to_part = |component: Component<'_>| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(to_part).collect()
}
