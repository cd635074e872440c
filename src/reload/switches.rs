//! Agents that are switched on and off while the service runs, whatever the configuration says.
//!
//! A switch is kept in a file beside the ledger: it holds over reloads and restarts, until the agent is
//! switched back.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use tokio::task::spawn_blocking;

use super::{Reloader, told};
use crate::StartError;
use crate::config::{Agent, Checked, Severity};
use crate::serve::admin::Switching;
use crate::wire::admin::{ConfigurationStatus, Switched, Wrong};

/// The name of the file.
const FILE: &str = "switches.json";

/// How agents are switched, and how they are configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    file: PathBuf,
    wanted: BTreeMap<String, bool>,
    configured: BTreeMap<String, bool>,
}

impl Switches {
    /// Those that are kept in this folder.
    ///
    /// # Errors
    /// When there is a file, and it cannot be read: an agent that was switched off must stay off.
    pub(crate) fn read(data_dir: &Path) -> Result<Self, StartError> {
        let file = data_dir.join(FILE);
        let wanted = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        };
        let wanted = wanted.map_err(|source| StartError::Switches { file: FILE, source })?;
        Ok(Self { file, wanted, configured: BTreeMap::new() })
    }

    /// Notes how these agents are configured, and switches them.
    pub(crate) fn put(&mut self, agents: &mut [Agent]) {
        let configured = |agent: &Agent| (agent.spec.id.to_string(), agent.spec.enabled);
        self.configured = agents.iter().map(configured).collect();
        for agent in agents {
            if let Some(wanted) = self.wanted.get(agent.spec.id.as_str()) {
                Arc::make_mut(&mut agent.spec).enabled = *wanted;
            }
        }
    }

    /// Those that are otherwise than configured.
    pub(super) fn told(&self) -> Vec<String> {
        let differs = |(id, on): &(&String, &bool)| {
            self.configured.get(*id).is_some_and(|configured| configured != *on)
        };
        self.wanted.iter().filter(differs).map(|(id, _)| id.clone()).collect()
    }

    /// The same with this agent switched, and nothing kept of one that is as it is configured.
    fn with(&self, id: &AgentId, on: bool, configured: bool) -> Self {
        let mut switches = self.clone();
        switches.configured.insert(id.to_string(), configured);
        switches.wanted.remove(id.as_str());
        if on != configured {
            switches.wanted.insert(id.to_string(), on);
        }
        switches
    }

    /// At once or not at all, and for its owner alone.
    fn write(&self) -> io::Result<()> {
        let beside = self.file.with_added_extension("new");
        let mut options = OpenOptions::new();
        let mut opened =
            options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        opened.write_all(&serde_json::to_vec(&self.wanted)?)?;
        opened.sync_all()?;
        fs::rename(&beside, &self.file)
    }
}

impl Reloader {
    /// Switches an agent on or off. What it has goes on, and the switch is kept before it holds.
    pub(super) async fn switch(&mut self, id: AgentId, on: bool) -> Result<Switching, Failure> {
        let Some(known) = self.settings.agents.iter().find(|agent| agent.spec.id == id) else {
            return Err(Failure::new(Code::AgentUnknown, "there is no such agent"));
        };
        let configured = self.switches.configured.get(id.as_str()).copied().unwrap_or_default();
        let (mut agent, configured) = match on && !configured && !known.spec.enabled {
            true => match self.complete(&id).await {
                Ok(fresh) => (fresh.clone(), fresh.spec.enabled),
                Err(wrong) => return Ok(Err(wrong)),
            },
            false => (known.clone(), configured),
        };
        Arc::make_mut(&mut agent.spec).enabled = on;
        let mut settings = self.settings.clone();
        settings.agents.iter_mut().filter(|it| it.spec.id == id).for_each(|it| *it = agent.clone());
        let agents = match self.prepare(&mut settings) {
            Ok(agents) => agents,
            Err(error) => return Ok(Err(vec![told::unfit(&error)])),
        };
        let switches = self.switches.with(&id, on, configured);
        keep(switches.clone()).await?;
        (self.switches, self.settings) = (switches, settings);
        self.change_over(agents).await;
        if on {
            self.world.circuits.mended(); // Whoever switches it on may have mended its credential.
        }
        self.show();
        let switched = self.switches.told();
        self.status
            .send_modify(|status| *status = ConfigurationStatus { switched, ..status.clone() });
        tracing::info!(agent = %id, on, "agent switched");
        Ok(Ok(Switched { id: id.to_string(), enabled: on, configured }))
    }

    /// An agent that is off by configuration, as that is written now: what it lacks was passed over
    /// when it was read, and may be there meanwhile.
    async fn complete(&self, id: &AgentId) -> Result<Agent, Vec<Wrong>> {
        let source = self.world.source.clone();
        let read = spawn_blocking(move || source.read()).await;
        let Checked { settings, warnings } = match read {
            Ok(Ok(checked)) => checked,
            Ok(Err(faults)) => return Err(told::errors(&faults)),
            Err(_panicked) => return Err(vec![gone()]),
        };
        let below = format!("agents.{id}.");
        let lacks = |key: &str| key.starts_with(&below);
        let lacking = warnings.iter().filter(|it| it.severity == Severity::Lack && lacks(&it.path));
        let lacking: Vec<_> = lacking.map(told::wrong).collect();
        if !lacking.is_empty() {
            return Err(lacking);
        }
        settings.agents.into_iter().find(|agent| agent.spec.id == *id).ok_or_else(|| vec![gone()])
    }
}

async fn keep(switches: Switches) -> Result<(), Failure> {
    let kept = spawn_blocking(move || switches.write()).await.map_err(io::Error::other);
    kept.and_then(|kept| kept).map_err(|error| {
        tracing::error!(%error, "a switch could not be kept");
        Failure::new(Code::Internal, "the switch could not be kept; the agent is as it was")
    })
}

fn gone() -> Wrong {
    let message = "the configuration as it is written has no such agent; reload it".to_owned();
    Wrong { file: None, line: None, column: None, key: None, message, hint: None }
}
