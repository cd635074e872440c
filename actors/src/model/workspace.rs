//! The folder that an execution changes.

use std::path::{Path, PathBuf};

/// A folder as it really is: absolute, without links in its path. It is resolved anew for each
/// attempt, so a link that was changed meanwhile leads where it leads now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace(PathBuf);

impl Workspace {
    /// The folder of this path, which must have no links in it.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether work in the one may meet work in the other: they are the same, or one stands in the
    /// other.
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
