//! What is mounted where.
//!
//! Of two paths the longer one counts, so layers are mounted from the root downwards. A folder that
//! could be moved away with what is mounted in it is mounted too, on itself: nobody moves a mount.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::{View, ViewError};

/// Links that are followed, as the system counts them.
const LINKS: u32 = 40;

/// What stands at a path, and below it as far as no other layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Writable,
    ReadOnly,
    Hidden,
    /// The devices that hold nothing, and terminals of its own.
    Devices,
    /// What `/proc` tells of its own processes.
    Processes,
}

/// Every layer by its path, without links; `/` is among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layers(BTreeMap<PathBuf, Layer>);

impl Layers {
    /// What a view consists of.
    ///
    /// # Errors
    /// When a path is not as it must be, or cannot be looked at.
    pub(super) fn of(
        view: &View,
        workspace: &Path,
        private: Vec<PathBuf>,
    ) -> Result<Self, ViewError> {
        let mut layers = Self::base(&view.confinement.writable)?;
        let hidden = view.hidden.iter().map(|path| place(path));
        let mut hidden = hidden.collect::<Result<Vec<_>, _>>()?;
        hidden.extend(private);
        hidden.sort();
        for place in hidden {
            layers.put(place, Layer::Hidden)?;
        }
        if layers.0.get(workspace) == Some(&Layer::Hidden) {
            return Err(ViewError::Blind);
        }
        if matches!(layers.around(workspace), Layer::Hidden | Layer::Devices) {
            let may = if view.changes_workspace { Layer::Writable } else { Layer::ReadOnly };
            layers.0.insert(workspace.to_owned(), may);
        }
        let protected = view.protected.iter().map(|path| layers.fixed(workspace.join(path)));
        let mut protected = protected.collect::<Result<Vec<_>, _>>()?;
        protected.sort();
        for place in protected {
            layers.put(place, Layer::ReadOnly)?;
        }
        Ok(layers)
    }

    /// What may be changed, over what may not. What is not there is passed over.
    fn base(writable: &[PathBuf]) -> Result<Self, ViewError> {
        let mut layers = BTreeMap::from([("/proc".into(), Layer::Processes)]);
        for path in writable {
            match path.canonicalize() {
                Ok(place) => _ = layers.insert(place, Layer::Writable),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !layers.contains_key(Path::new("/")) {
            layers.insert("/".into(), Layer::ReadOnly);
            layers.entry("/dev".into()).or_insert(Layer::Devices);
        }
        Ok(Self(layers))
    }

    /// The layer in which a path lies.
    fn around(&self, path: &Path) -> Layer {
        let found = path.ancestors().find_map(|above| self.0.get(above));
        found.copied().unwrap_or(Layer::ReadOnly)
    }

    /// Puts a layer where it makes a difference, so that nobody can move it away. Parents come before
    /// their children.
    fn put(&mut self, place: PathBuf, layer: Layer) -> Result<(), ViewError> {
        let may_change = |path: &&Path| self.around(path) == Layer::Writable;
        let above: Vec<_> =
            place.ancestors().skip(1).filter(may_change).map(Path::to_owned).collect();
        match (self.around(&place), layer) {
            // Also in what is hidden: the workspace may lie between the two.
            (_, Layer::Hidden) | (Layer::Writable, _) => {
                self.0.extend(above.into_iter().map(|above| (above, Layer::Writable)));
                self.0.insert(place, layer);
            }
            (Layer::Processes, _) => return Err(ViewError::Missing { path: place }),
            // It cannot be changed there anyway.
            _ => {}
        }
        Ok(())
    }

    /// Where a path that is to be protected leads, by no link that could be led elsewhere.
    fn fixed(&self, mut path: PathBuf) -> Result<PathBuf, ViewError> {
        for _ in 0..LINKS {
            let links = path.ancestors().filter(|above| above.is_symlink());
            let Some(link) = links.last() else { return place(&path) };
            let folder = link.parent().unwrap_or(Path::new("/")).canonicalize()?;
            if self.around(&folder) == Layer::Writable {
                return Err(ViewError::Replaceable { path: link.to_owned() });
            }
            let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
            path = folder.join(link.read_link()?).join(rest);
        }
        Err(io::Error::from(Errno::ELOOP).into())
    }

    /// As bubblewrap is told of them.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let has_devices = self.0.get(Path::new("/")) == Some(&Layer::Writable);
        let mut args = Vec::new();
        for (path, layer) in &self.0 {
            let is_device = has_devices || path.starts_with("/dev");
            let words: &[&str] = match layer {
                Layer::Writable if is_device => &["--dev-bind"],
                Layer::Writable => &["--bind"],
                Layer::ReadOnly => &["--ro-bind"],
                Layer::Hidden if path.is_dir() => &["--tmpfs"],
                // Not read-only: then it could not be opened.
                Layer::Hidden => &["--dev-bind", "/dev/null"],
                Layer::Devices => &["--dev"],
                Layer::Processes => &["--proc"],
            };
            args.extend(words.iter().map(OsString::from));
            if matches!(layer, Layer::Writable | Layer::ReadOnly) {
                args.push(path.into());
            }
            args.push(path.into());
        }
        // At last, when all that stands in them is mounted.
        let hidden =
            self.0.iter().filter(|(path, layer)| **layer == Layer::Hidden && path.is_dir());
        args.extend(hidden.flat_map(|(path, _)| ["--remount-ro".into(), path.into()]));
        args
    }
}

fn place(path: &Path) -> Result<PathBuf, ViewError> {
    path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ViewError::Missing { path: path.to_owned() }
        }
        _ => error.into(),
    })
}
