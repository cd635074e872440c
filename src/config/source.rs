//! Where a configuration comes from, to be read again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Checked, Faults, Settings, load, load_shipped};

/// Looks up a variable of an environment.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where a configuration comes from. Cheap to clone.
#[derive(Clone)]
pub struct Source {
    origin: Origin,
    /// Where to listen, whatever is written.
    listen: Option<SocketAddr>,
}

#[derive(Clone)]
enum Origin {
    /// A file, or the one that is shipped, with an environment.
    Written(Option<PathBuf>, Environment),
    /// Settings that never change.
    Given(Box<Settings>),
}

impl Source {
    /// A file, or the shipped configuration where there is none, in the environment of this process.
    #[must_use]
    pub fn new(file: Option<&Path>) -> Self {
        let environment = Arc::new(|name: &str| std::env::var(name).ok());
        Self { origin: Origin::Written(file.map(Path::to_owned), environment), listen: None }
    }

    /// Settings of somebody who has read them already; read again they are the same.
    #[must_use]
    pub fn given(settings: Settings) -> Self {
        Self { origin: Origin::Given(Box::new(settings)), listen: None }
    }

    /// The same, listening there whatever is written.
    #[must_use]
    pub fn listening(self, listen: Option<SocketAddr>) -> Self {
        Self { listen, ..self }
    }

    /// The file, where there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Written(file, _) => file.as_deref(),
            Origin::Given(_) => None,
        }
    }

    /// Reads and checks all of it. Reads files, so it may take a moment.
    ///
    /// # Errors
    /// When anything of it is wrong.
    pub fn read(&self) -> Result<Checked, Faults> {
        let mut checked = match &self.origin {
            Origin::Written(Some(file), environment) => load(file, &**environment),
            Origin::Written(None, environment) => load_shipped(&**environment),
            Origin::Given(settings) => {
                Ok(Checked { settings: Settings::clone(settings), warnings: Vec::new() })
            }
        }?;
        if let Some(listen) = self.listen {
            checked.settings.server.listen = listen;
        }
        Ok(checked)
    }
}
