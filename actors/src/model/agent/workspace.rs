//! Workspace: the folder that an execution modifies.

use std::path::{Path, PathBuf};

/// Resolved folder: absolute, without links in its path. The path is resolved again for each attempt, so a changed link
/// takes effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace(PathBuf);

impl Workspace {
    /// Creates a workspace from a path, which must not contain links.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns true if work in one folder may affect the other: the folders are equal, or one contains the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_overlap_when_they_are_the_same_or_nested() {
        for (one, other, expected) in [
            ("/srv/a", "/srv/a", true),
            ("/srv/a", "/srv/a/", true),
            ("/srv/a", "/srv/a/b/c", true),
            ("/", "/srv/a", true),
            ("/srv/a", "/srv/ab", false),
            ("/srv/a", "/srv/b", false),
            ("/srv/a/b", "/srv/b/a", false),
        ] {
            let (one, other) = (Workspace::new(one), Workspace::new(other));
            assert_eq!(one.overlaps(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), expected, "{other:?} {one:?}");
        }
    }
}
