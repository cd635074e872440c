//! Where agents are made ready: what the machine holds them with, and what does their work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::rungs::Rungs;
use algonius_actors::ports::sessions::Sessions;
use algonius_actors::root::Seat;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::config::{Agent, Server};
use crate::drive::process::{Place, ProcessDriver, Site};
use crate::programs::Programs;
use crate::warden::group::Groups;
use crate::warden::wardens::Wardens;
use crate::{StartError, settle, warden};

/// What every agent is made ready with, at the start and later. Cheap to clone.
#[derive(Clone)]
pub(super) struct Workshop {
    machine: Rungs,
    groups: Option<Arc<Groups>>,
    wardens: Arc<Wardens>,
    place: Arc<Place>,
    programs: Programs,
}

impl Workshop {
    pub(super) fn new(
        server: &Server,
        machine: Rungs,
        groups: Option<Arc<Groups>>,
        wardens: Arc<Wardens>,
        sessions: Arc<dyn Sessions>,
    ) -> Self {
        let site = Site {
            runtime_dir: server.runtime_dir.clone(),
            data_dir: server.data_dir.clone(),
            bubblewrap: bubblewrap(&machine),
            in_memory: is_in_memory(&server.runtime_dir),
        };
        let place = Arc::new(Place::new(site, sessions));
        Self { machine, groups, wardens, place, programs: Programs::new() }
    }

    /// What the machine offers.
    pub(super) const fn machine(&self) -> &Rungs {
        &self.machine
    }

    /// What holds the programs.
    pub(super) const fn wardens(&self) -> &Arc<Wardens> {
        &self.wardens
    }

    /// What is known of the programs.
    pub(super) const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Settles what holds an agent to what it may do and take, and makes its home.
    pub(super) fn settle(&self, agent: &mut Agent) -> Result<(), StartError> {
        settle::sandbox(agent, &self.machine)?;
        settle::limit(agent, self.groups.as_deref())?;
        settle::home(agent)
    }

    /// An agent that is settled, and what does its work.
    pub(super) fn seat(&self, agent: Agent) -> Seat {
        let Agent { spec, program, .. } = agent;
        if spec.enabled {
            self.programs.ask(spec.id.clone(), &program);
        }
        let warden = Arc::clone(&self.wardens) as _;
        let driver = Arc::new(ProcessDriver::new(program, Arc::clone(&self.place), warden));
        Seat { spec, driver }
    }
}

fn is_in_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|of| of.filesystem_type() == TMPFS_MAGIC)
}

fn bubblewrap(machine: &Rungs) -> Option<PathBuf> {
    let look = || warden::rungs::bubblewrap(std::env::var_os("PATH").as_deref());
    machine.means().bubblewrap.then(look).flatten()
}
