//! Facts about the programs behind agents. The version of each is requested when its agent is prepared, in the
//! background; an untested version causes only a warning.

mod temporary_holder;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::observation::status::ProgramStatus;
use algonius_actors::model::program::runtime_settings::VersionCheckSpec;
use algonius_actors::model::program::version::ProgramVersion;
use algonius_actors::model::program::{OutputMethod, ProgramSpec};
use algonius_warden::ProgramLauncher;
use tokio::sync::{Mutex, watch};

use crate::drivers::program::context::SharedDriverContext;
use crate::drivers::program::version::{VersionError, VersionSubject, query_version};

pub(crate) use temporary_holder::TemporaryHolder;

/// Time limit of a version request. A program on Node needs ten seconds of processor time for it and shares the
/// processors with other work; no execution waits for it.
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Runner of version requests in the sandboxes of the agents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct VersionRequester {
    pub(crate) shared_context: Arc<SharedDriverContext>,
    pub(crate) launcher: Arc<dyn ProgramLauncher>,
}

impl VersionRequester {
    /// Returns the version that the program of an agent reports.
    ///
    /// # Errors
    /// Fails if the program cannot be run, takes longer than `timeout`, or reports no version.
    pub(crate) async fn request_version(
        &self,
        (spec, program): (Arc<AgentSpec>, Arc<ProgramSpec>),
        version_check: &VersionCheckSpec,
        timeout: Duration,
    ) -> Result<String, VersionError> {
        let Self { shared_context, launcher } = self.clone();
        query_version(
            VersionSubject { spec, program, shared_context, launcher },
            version_check,
            timeout,
        )
        .await
    }
}

/// Known facts about each program. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ProgramStatuses {
    statuses: Arc<watch::Sender<BTreeMap<AgentId, ProgramStatus>>>,
    /// Lock that serializes version requests: all at once would compete with each other, and with executions, for the
    /// processors.
    request_lock: Arc<Mutex<()>>,
}

impl ProgramStatuses {
    /// Returns an empty record.
    pub(crate) fn new() -> Self {
        let statuses = Arc::new(watch::Sender::new(BTreeMap::new()));
        Self { statuses, request_lock: Arc::default() }
    }

    /// Requests the version of an agent's program in the background.
    pub(crate) fn start_inspection(
        &self,
        requester: VersionRequester,
        spec: &Arc<AgentSpec>,
        program: &Arc<ProgramSpec>,
    ) {
        let (id, status) = (spec.id.clone(), status_without_version(program));
        self.statuses.send_modify(|all| _ = all.insert(id.clone(), status));
        if program.runtime_settings.version_check.is_none() {
            return;
        }
        let (registry, spec, program) = (self.clone(), Arc::clone(spec), Arc::clone(program));
        tokio::spawn(async move {
            let guard = registry.request_lock.lock().await;
            let status = inspect_program(&requester, (spec, program), VERSION_TIMEOUT).await;
            drop(guard);
            if let Some(warning) = &status.warning {
                tracing::warn!(agent = %id, warning, "program");
            }
            registry.statuses.send_modify(|all| _ = all.insert(id, status));
        });
    }

    /// Returns the facts about an agent's program, or `None` if there are none.
    pub(crate) fn status_of(&self, id: &AgentId) -> Option<ProgramStatus> {
        let status = self.statuses.borrow().get(id).cloned();
        status.filter(|status| *status != ProgramStatus::default())
    }
}

/// Inspects the program of an agent: its preset, and the version that it reports within a time limit.
pub(crate) async fn inspect_program(
    requester: &VersionRequester,
    (spec, program): (Arc<AgentSpec>, Arc<ProgramSpec>),
    time_limit: Duration,
) -> ProgramStatus {
    let status = status_without_version(&program);
    let Some(version_check) = program.runtime_settings.version_check.clone() else { return status };
    let reported_version =
        requester.request_version((spec, Arc::clone(&program)), &version_check, time_limit).await;
    let warning = match &reported_version {
        Ok(version) => untested_warning(version, &program),
        Err(error) => Some(error.to_string()),
    };
    ProgramStatus { version: reported_version.ok(), warning, ..status }
}

/// Returns the facts that are known without a version request.
fn status_without_version(program: &ProgramSpec) -> ProgramStatus {
    let program_runtime = &program.runtime_settings;
    let tested_versions =
        program_runtime.version_check.as_ref().and_then(|spec| spec.tested_versions.as_ref());
    ProgramStatus {
        preset: program_runtime.preset.as_ref().map(|preset| preset.name.clone()),
        verified: program_runtime.preset.as_ref().map(|preset| preset.is_verified),
        tested: tested_versions.map(ToString::to_string),
        prints_events: program.stdio_protocol.is_some()
            || matches!(program.output_method, OutputMethod::Events | OutputMethod::Native(_)),
        ..ProgramStatus::default()
    }
}

/// Returns the warning about an untested version.
fn untested_warning(version: &str, program: &ProgramSpec) -> Option<String> {
    let tested_versions =
        program.runtime_settings.version_check.as_ref()?.tested_versions.as_ref()?;
    let is_tested =
        ProgramVersion::parse(version).is_some_and(|version| tested_versions.contains(&version));
    (!is_tested).then(|| format!("version {version} was not tested: {tested_versions} was"))
}
