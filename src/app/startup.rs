//! Assembly of the service: the base resources, the supervision tree, and then the listener.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::RequestHandleCell;
use algonius_actors::api::supervision_tree::{SupervisionTree, TreeOptions};
use algonius_actors::maintenance::monitor::HostReadingSettings;
use algonius_actors::maintenance::retention::RetentionSpec;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::record::ExecutionFilter;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::ServiceLossAction;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_metrics::HostMetrics;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::root::AgentDefinition;
use algonius_actors::scheduler::{DEFAULT_MAX_SLEEP, SchedulerConfig};
use algonius_actors::services::Services;
use algonius_store::Store;
use algonius_warden::process_holders::{HolderCommand, ProcessHolders};

use crate::app::credentials::Credentials;
use crate::app::http_state::{AgentSpecs, HttpState, StaticState};
use crate::app::observability_setup::{Observability, RunningObservability};
use crate::app::push_setup::set_up_push;
use crate::app::reload::{self, AgentSwitches, RedactionState, ReloadContext, Reloader};
use crate::app::resources::ServiceResources;
use crate::app::schedule_template::TemplateRenderer;
use crate::config::{self, ConfigSource, SchedulerSettings, Settings};
use crate::serve::http::listen::{self, ShutdownHandle};
use crate::{ListenerAddress, RunningService, StartError};

/// Interval between two searches for sealed inputs to erase, if the history has no bounds.
const INPUT_ERASE_INTERVAL: Duration = Duration::from_secs(600);

/// Service with its supervision tree, before it accepts connections.
pub(crate) struct StartedService {
    resources: ServiceResources,
    tree: SupervisionTree,
    specs: AgentSpecs,
    credentials: Credentials,
    switches: AgentSwitches,
    redaction: RedactionState,
    observability: RunningObservability,
}

impl StartedService {
    /// Binds the address, opens the ledger, resumes or kills the processes that an earlier process instance left,
    /// recovers, and starts the tree. From then on the switches and the isolation of the agents are decided.
    pub(crate) async fn start(
        settings: &mut Settings,
        (clock, host_metrics): (&Arc<dyn Clock>, Arc<dyn HostMetrics>),
        holder_command: HolderCommand,
    ) -> Result<Self, StartError> {
        let Settings { server, agents, secrecy, service_files, .. } = settings;
        let mut switches = AgentSwitches::read(&server.data_dir)?;
        switches.record_and_apply_to(agents);
        let resources = ServiceResources::open(
            (server, &secrecy.inputs, service_files),
            agents,
            holder_command,
            clock,
        )
        .await?;
        // A program that nobody resumes must not write into a folder that an agent of this process uses.
        end_unresumable_programs(&*resources.store, agents, resources.agent_factory.holders())
            .await?;
        // Before this process creates a folder that could be mistaken for an old one.
        resources.agent_factory.remove_stale_folders().await;
        let definitions =
            agents.iter().map(|agent| resources.agent_factory.build_definition(agent.clone()));
        let definitions: Vec<_> = definitions.collect();
        let specs = reload::specs_by_id(definitions.iter().map(|definition| &definition.spec));
        let credentials =
            Credentials::store_and_load(&*resources.store, settings, &specs, &**clock).await?;
        // The operator's token is redacted like every configured secret: an agent may print it.
        let secrets = settings.secrecy.secrets.iter().chain([&credentials.operator_token]).cloned();
        let redaction = RedactionState::new(secrets, settings.secrecy.redaction.clone());
        let observability = Observability::prepare(settings)?;
        let services = resources.build_services(
            Arc::clone(clock),
            redaction.redactor_handle(),
            &observability.instruments,
            agents_memory_limit(settings.pressure, &*host_metrics),
        );
        let request_handle_cell = resources.agent_factory.request_handle_cell().clone();
        let tree_options = TreeOptions {
            host_check: Some(Arc::clone(&resources.host_check)),
            ..build_tree_options(settings, host_metrics, &resources.store, request_handle_cell)
        };
        let observability =
            observability.start(resources.agent_factory.holders(), redaction.redactor_handle())?;
        let tree =
            start_tree(services, definitions, tree_options, resources.agent_factory.holders())
                .await?;
        Ok(Self { resources, tree, specs, credentials, switches, redaction, observability })
    }

    /// Accepts connections, and watches the configuration from then on.
    pub(crate) fn start_listening(
        self,
        source: ConfigSource,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<RunningService, StartError> {
        let Self { resources, tree, specs, credentials, switches, redaction, observability } = self;
        let (push_registry, push_worker) =
            set_up_push(&settings, &resources.store, &clock, tree.api())?;
        let listen_limits = super::resources::listen_limits(&settings.server);
        let ServiceResources { listener, address, certificates, store, agent_factory, .. } =
            resources;
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let (reload_handle, reloader_channels) =
            reload::channel(&store, settings.observability.log.level, source.file());
        let process_holders = Arc::clone(agent_factory.holders());
        let mcp_servers = agent_factory.mcp_servers().clone();
        let static_state = StaticState {
            address,
            scheme,
            api: tree.api().clone(),
            push_registry,
            capabilities: agent_factory.capabilities().clone(),
            holders: Arc::clone(&process_holders),
            instruments: observability.instruments.clone(),
            admin: Arc::new(reload_handle.clone()),
            program_statuses: agent_factory.program_statuses().clone(),
        };
        let http_state = HttpState::new(static_state, &settings.callers.lockout);
        let url =
            super::http_state::base_url(settings.server.public.url.as_deref(), scheme, address);
        let (routes, shutdown_handle) =
            (http_state.route_publisher().routing_service(), ShutdownHandle::new());
        let (agent_registry, service_store) = (tree.agent_registry(), Arc::clone(&store));
        let breakers = tree.api().tree.breakers();
        let context = ReloadContext {
            source,
            clock,
            store,
            agent_factory,
            agent_registry,
            http_state,
            redaction,
            breakers,
        };
        let reload_join_handle =
            Reloader::start(context, settings, (specs, credentials, switches), reloader_channels);
        let shutdown = shutdown_handle.clone();
        let server_join_handle =
            tokio::spawn(listen::serve(listener, certificates, routes, listen_limits, shutdown));
        Ok(RunningService {
            listener_address: ListenerAddress { url, scheme, address },
            tree,
            mcp_servers,
            push_worker,
            observability,
            store: service_store,
            process_holders,
            shutdown_handle,
            server_join_handle,
            reload_handle,
            reload_join_handle,
        })
    }
}

/// Ends held programs that no agent will resume, before anything starts that may work in the same folder.
async fn end_unresumable_programs(
    ledger: &dyn Ledger,
    agents: &[config::ConfiguredAgent],
    holders: &ProcessHolders,
) -> Result<(), StartError> {
    let reattaches = |id: &AgentId| {
        let mut matching = agents.iter().filter(|agent| agent.spec.id == *id);
        matching.any(|agent| {
            agent
                .program()
                .is_some_and(|program| program.on_service_loss == ServiceLossAction::Reattach)
        })
    };
    let unfinished_records = ledger
        .executions(ExecutionFilter { unfinished_only: true, ..ExecutionFilter::default() })
        .await?;
    let resumable = unfinished_records.into_iter().filter(|record| {
        matches!(record.state, ExecutionState::Starting | ExecutionState::Running)
            && reattaches(&record.agent)
    });
    holders
        .end_earlier_programs_except(
            &resumable.map(|record| (record.id, record.attempt_id)).collect(),
        )
        .await;
    Ok(())
}

/// Returns the bytes of memory for all agents together: by default four fifths of the machine's.
fn agents_memory_limit(
    pressure: Option<config::PressureSettings>,
    host_metrics: &dyn HostMetrics,
) -> Option<u64> {
    pressure?.max_reserved_memory_bytes.or_else(|| Some(host_metrics.total_memory()? / 5 * 4))
}

/// Returns the bounds of the history. Without bounds, sealed inputs are erased nevertheless.
fn retention_spec(retention: Option<config::RetentionSettings>) -> RetentionSpec {
    let interval = retention.map_or(INPUT_ERASE_INTERVAL, |it| it.interval);
    RetentionSpec { limits: retention.map(|it| it.limits), interval }
}

/// Starts the tree, which resumes the executions of held programs. Programs that no execution resumes are terminated.
async fn start_tree(
    services: Services,
    definitions: Vec<AgentDefinition>,
    tree_options: TreeOptions,
    holders: &ProcessHolders,
) -> Result<SupervisionTree, StartError> {
    let tree = SupervisionTree::start(services, definitions, tree_options).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    holders.end_programs_not_taken_over().await;
    Ok(tree)
}

/// Returns the tree's tasks besides serving its agents.
fn build_tree_options(
    settings: &Settings,
    host_metrics: Arc<dyn HostMetrics>,
    store: &Arc<Store>,
    request_handle_cell: RequestHandleCell,
) -> TreeOptions {
    let to_host_reading_settings = |it: config::PressureSettings| HostReadingSettings {
        host_metrics,
        spec: it.spec,
        interval: it.interval,
    };
    TreeOptions {
        host_reading_settings: settings.pressure.map(to_host_reading_settings),
        scheduler_config: Some(scheduler_config(store, &settings.scheduling)),
        retention: Some(retention_spec(settings.retention)),
        alert_spec: settings.observability.alerts.spec,
        request_handle_cell,
        ..TreeOptions::default()
    }
}

/// Returns the configuration of the scheduler.
fn scheduler_config(store: &Arc<Store>, scheduling: &SchedulerSettings) -> SchedulerConfig {
    SchedulerConfig {
        schedule_store: Arc::clone(store) as _,
        renderer: Arc::new(TemplateRenderer),
        configured_schedules: Some(reload::configured_schedules(scheduling)),
        occurrence_retention: scheduling.history_retention,
        max_sleep: DEFAULT_MAX_SLEEP,
    }
}
