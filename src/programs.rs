//! What is known of the programs behind agents. Each is asked for its version when its agent is made
//! ready, beside everything else; one that was not tested is worth a warning and no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ProgramSpec;
use algonius_actors::model::status::ProgramStatus;
use algonius_actors::model::version::Version;
use tokio::sync::{Mutex, watch};

use crate::drive::version::{VersionError, ask};

/// What is known of each program. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    known: Arc<watch::Sender<BTreeMap<AgentId, ProgramStatus>>>,
    /// One program is asked at a time: all of them at once would keep each other, and the work, from
    /// the processor.
    turn: Arc<Mutex<()>>,
}

impl Programs {
    /// Nothing is known as yet.
    pub(crate) fn new() -> Self {
        let known = Arc::new(watch::Sender::new(BTreeMap::new()));
        Self { known, turn: Arc::default() }
    }

    /// Asks the program of an agent, and returns at once.
    pub(crate) fn ask(&self, id: AgentId, program: &Arc<ProgramSpec>) {
        let known = unasked(program);
        self.known.send_modify(|all| _ = all.insert(id.clone(), known));
        if program.outfit.version.is_none() {
            return;
        }
        let (programs, program) = (self.clone(), Arc::clone(program));
        tokio::spawn(async move {
            let turn = programs.turn.lock().await;
            let known = look(&program).await;
            drop(turn);
            if let Some(warning) = &known.warning {
                tracing::warn!(agent = %id, warning, "program");
            }
            programs.known.send_modify(|all| _ = all.insert(id, known));
        });
    }

    /// What is known of the program of an agent; nothing where there is nothing to know.
    pub(crate) fn of(&self, id: &AgentId) -> Option<ProgramStatus> {
        let known = self.known.borrow().get(id).cloned();
        known.filter(|known| *known != ProgramStatus::default())
    }
}

/// Looks at a program: what its preset is, and what version it tells.
pub(crate) async fn look(program: &ProgramSpec) -> ProgramStatus {
    let known = unasked(program);
    let Some(spec) = &program.outfit.version else { return known };
    let told = ask(program, spec).await;
    let warning = match &told {
        Ok(version) => untested(version, program),
        Err(error @ VersionError::Run(_)) => {
            tracing::debug!(%error, "version");
            Some("the program could not be asked for its version".to_owned())
        }
        Err(error) => Some(error.to_string()),
    };
    ProgramStatus { version: told.ok(), warning, ..known }
}

/// What is known without asking.
fn unasked(program: &ProgramSpec) -> ProgramStatus {
    let outfit = &program.outfit;
    let tested = outfit.version.as_ref().and_then(|spec| spec.tested.as_ref());
    ProgramStatus {
        preset: outfit.preset.as_ref().map(|preset| preset.name.clone()),
        verified: outfit.preset.as_ref().map(|preset| preset.is_verified),
        tested: tested.map(ToString::to_string),
        ..ProgramStatus::default()
    }
}

/// What to say of a version that was not tested.
fn untested(version: &str, program: &ProgramSpec) -> Option<String> {
    let tested = program.outfit.version.as_ref()?.tested.as_ref()?;
    let is_tested = Version::parse(version).is_some_and(|version| tested.holds(&version));
    (!is_tested).then(|| format!("version {version} was not tested: {tested} was"))
}
