//! Worker of an agent: the program, remote agent, team or model that performs its requests.

use std::sync::Arc;

use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::model::agent::{Access, AgentKind, Capacity, ProgramWorkerSpec, WorkerSpec};
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::runtime_settings::PresetReference;
use algonius_actors::model::push::Secret;

use super::program::{self, ConfiguredProgram, file_delivery, mode};
use super::team::ConfiguredTeam;
use super::{AgentReadContext, AgentWorker, consent, network, remote, resources, team};
use crate::config::diagnostics::Severity;
use crate::config::keys::cognition::cognitive_agent::{self, ConfiguredCognition};
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::keys::programs::sandbox;
use crate::config::presets::AgentPreset;
use crate::config::table::Section;

/// Settings of an agent on which the settings of its worker depend.
pub(super) struct WorkerReadContext<'s> {
    pub(super) bounds: &'s AgentSettingBounds,
    pub(super) capacity: Capacity,
    pub(super) access: Access,
    /// Severity of a fault of the machine.
    pub(super) machine_fault_severity: Severity,
}

/// Worker of an agent as it is written; only the part of the agent's kind is there.
pub(super) struct ConfiguredWorker {
    pub(super) program: Option<ConfiguredProgram>,
    pub(super) remote: Option<RemoteSpec>,
    pub(super) team: Option<ConfiguredTeam>,
    cognition: Option<ConfiguredCognition>,
    pub(super) spec: WorkerSpec,
}

impl ConfiguredWorker {
    /// Reads the worker. The parts of other kinds are faults.
    pub(super) fn read(
        section: &mut Section<'_>,
        (kind, id): (AgentKind, &AgentId),
        context: &AgentReadContext<'_>,
        worker_context: &WorkerReadContext<'_>,
    ) -> Self {
        let WorkerReadContext { access, machine_fault_severity, .. } = *worker_context;
        let remote = remote::read(section, kind, machine_fault_severity);
        let team = team::read(section, kind);
        let cognition = cognitive_agent::read(section, kind, context.cognition);
        let mut worker = Self { program: None, remote, team, cognition, spec: WorkerSpec::Remote };
        match kind {
            AgentKind::Program => {
                let location = (id, context.data_dir);
                worker.program = program::read(section, location, access, machine_fault_severity);
                let worker_spec =
                    read_worker_spec_into_program(section, worker.program.as_mut(), worker_context);
                worker.spec = WorkerSpec::Program(worker_spec);
            }
            AgentKind::Remote => {}
            AgentKind::Team => {
                let plan = worker.team.as_ref().map(ConfiguredTeam::plan).unwrap_or_default();
                worker.spec = WorkerSpec::Team(Arc::new(plan));
            }
            // An agent with a fault is dropped with its facts.
            AgentKind::Cognitive => {
                if let Some(cognition) = &worker.cognition {
                    worker.spec = WorkerSpec::Cognitive(Arc::clone(&cognition.spec));
                }
            }
        }
        worker
    }

    /// Returns the address of the other service that the worker calls, with the secret for it.
    pub(super) fn address_and_secret(&self) -> Option<(&str, &Secret)> {
        let remote = self.remote.as_ref().map(|remote| (&remote.url, &remote.token));
        let provider = self.cognition.as_ref().map(|cognition| &cognition.provider);
        let provider = provider.map(|provider| (&provider.base_url, &provider.api_key));
        let (address, secret) = remote.or(provider)?;
        secret.as_ref().map(|secret| (address.as_str(), secret))
    }

    /// Returns the worker; `None` if it has a fault.
    pub(super) fn into_worker(
        self,
        kind: AgentKind,
        preset: Option<&AgentPreset>,
    ) -> Option<AgentWorker> {
        match kind {
            AgentKind::Program => self.program.map(|program| program_worker(program, preset)),
            AgentKind::Remote => self.remote.map(|remote| AgentWorker::Remote(Arc::new(remote))),
            AgentKind::Team => Some(AgentWorker::Team),
            AgentKind::Cognitive => self.cognition.map(|cognition| {
                let ConfiguredCognition { provider, tool_backends, .. } = cognition;
                AgentWorker::Cognitive { provider, tool_backends }
            }),
        }
    }
}

/// Reads the surroundings of a program: its sandbox, its network, its limits and its mode. Returns the facts about the
/// program. The confinement is unknown until the service starts, because it depends on the capabilities of the system.
fn read_worker_spec_into_program(
    section: &mut Section<'_>,
    mut configured_program: Option<&mut program::ConfiguredProgram>,
    worker_context: &WorkerReadContext<'_>,
) -> ProgramWorkerSpec {
    let WorkerReadContext { bounds, capacity, access, machine_fault_severity } = *worker_context;
    let missing_program = configured_program
        .as_ref()
        .filter(|configured| configured.is_missing)
        .map(|configured| configured.search.name());
    let mut program = configured_program.as_mut().map(|configured| &mut configured.spec);
    let has_control_protocol =
        program.as_ref().is_some_and(|program| program.interactive_spec().is_some());
    let permissions = consent::read(section, has_control_protocol).map(Arc::new);
    sandbox::read_into_program(section, program.as_deref_mut(), access, machine_fault_severity);
    network::set_network_variables(section, program.as_deref_mut());
    let expected_memory = resources::read_into_program(section, program.as_deref_mut());
    let file_delivery = file_delivery::read(section, program.as_deref());
    mode::read_into_program(section, bounds, capacity, program);
    ProgramWorkerSpec {
        missing_program,
        expected_memory,
        heartbeat_interval: Some(section.duration("heartbeat", bounds.heartbeat)),
        permission_policy: permissions,
        file_delivery,
        ..ProgramWorkerSpec::default()
    }
}

/// Returns the program that was read as the worker of its agent.
fn program_worker(
    configured_program: ConfiguredProgram,
    preset: Option<&AgentPreset>,
) -> AgentWorker {
    let ConfiguredProgram { spec: mut program, search, .. } = configured_program;
    program.runtime_settings.preset = preset.map(|preset| PresetReference {
        name: preset.name.clone(),
        is_verified: preset.metadata.is_verified,
    });
    AgentWorker::Program { program: Arc::new(program), search: Arc::new(search) }
}
