//! Assembly of the service: the base resources, the supervision tree, and then the listener.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::supervision_tree::{Tree, TreePlan};
use algonius_actors::maintenance::monitor::ReadingSettings;
use algonius_actors::maintenance::retention::Retention;
use algonius_actors::model::execution::State;
use algonius_actors::model::execution::record::Filter;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::OnLoss;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_metrics::HostMetrics;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::root::AgentDefinition;
use algonius_actors::scheduler::{NAP, SchedulerConfig};
use algonius_actors::services::Services;
use algonius_store::Store;
use algonius_warden::wardens::{HolderCommand, ProcessHolders};

use crate::app::credentials::Credentials;
use crate::app::http_state::{Fixed, HttpState, Specs};
use crate::app::observability_setup::{Observability, RunningObservability};
use crate::app::push_setup::set_up;
use crate::app::reload::{self, RedactionState, ReloadContext, Reloader, Switches};
use crate::app::resources::ServiceResources;
use crate::app::schedule_template::TemplateRenderer;
use crate::config::{self, ConfigSource, SchedulerSettings, Settings};
use crate::serve::http::listen::{self, ShutdownHandle};
use crate::{Running, StartError};

/// Interval between two searches for sealed inputs to erase, if the history has no bounds.
const ERASED: Duration = Duration::from_secs(600);

/// Service with its supervision tree, before it accepts connections.
pub(crate) struct StartedService {
    resources: ServiceResources,
    tree: Tree,
    specs: Specs,
    keys: Credentials,
    switches: Switches,
    redaction: RedactionState,
    observability: RunningObservability,
}

impl StartedService {
    /// Binds the address, opens the ledger, resumes or kills the processes that an earlier process instance left,
    /// recovers, and starts the tree. From then on the switches and the isolation of the agents are decided.
    pub(crate) async fn start(
        settings: &mut Settings,
        (clock, meter): (&Arc<dyn Clock>, Arc<dyn HostMetrics>),
        origin: HolderCommand,
    ) -> Result<Self, StartError> {
        let Settings { server, agents, secrecy, service_files, .. } = settings;
        let mut switches = Switches::read(&server.data_dir)?;
        switches.apply_to(agents);
        let resources =
            ServiceResources::open((server, &secrecy.inputs, service_files), agents, origin)
                .await?;
        // A program that nobody resumes must not write into a folder that an agent of this process uses.
        end_what_is_over(&*resources.store, agents, resources.agent_factory.wardens()).await?;
        // Before this process creates a folder that could be mistaken for an old one.
        resources.agent_factory.sweep().await;
        let definitions =
            agents.iter().map(|agent| resources.agent_factory.definition(agent.clone()));
        let definitions: Vec<_> = definitions.collect();
        let specs = reload::specs(definitions.iter().map(|definition| &definition.spec));
        let keys = Credentials::seed(&*resources.store, settings, &specs, &**clock).await?;
        // The operator's token is redacted like every configured secret: an agent may print it.
        let secrets = settings.secrecy.secrets.iter().chain([&keys.own]).cloned();
        let redaction = RedactionState::new(secrets, settings.secrecy.redaction.clone());
        let observability = Observability::prepare(settings)?;
        let services = resources.services(
            Arc::clone(clock),
            redaction.masking(),
            &observability.instruments,
            memory(settings.pressure, &*meter),
        );
        let plan = plan(settings, meter, &resources.store);
        let observability = observability.start(resources.agent_factory.wardens())?;
        let tree = start(services, definitions, plan, resources.agent_factory.wardens()).await?;
        Ok(Self { resources, tree, specs, keys, switches, redaction, observability })
    }

    /// Accepts connections, and watches the configuration from then on.
    pub(crate) fn open(
        self,
        source: ConfigSource,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Running, StartError> {
        let Self { resources, tree, specs, keys, switches, redaction, observability } = self;
        let (push_registry, push_worker) = set_up(&settings, &resources.store, &clock, tree.api())?;
        let bounds = super::resources::bounds(&settings.server);
        let ServiceResources { listener, address, certificates, store, agent_factory, .. } =
            resources;
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let (reload_handle, orders) =
            reload::channel(&store, settings.observability.log.level, source.file());
        let holders = Arc::clone(agent_factory.wardens());
        let fixed = Fixed {
            address,
            scheme,
            api: tree.api().clone(),
            push_registry,
            capabilities: agent_factory.machine().clone(),
            holders: Arc::clone(&holders),
            instruments: observability.instruments.clone(),
            admin: Arc::new(reload_handle.clone()),
            programs: agent_factory.programs().clone(),
        };
        let http_state = HttpState::new(fixed, &settings.callers.lockout);
        let url = super::http_state::url(settings.server.public.url.as_deref(), scheme, address);
        let (paths, handle) = (http_state.paths().latest(), ShutdownHandle::new());
        let (seating, kept) = (tree.seating(), Arc::clone(&store));
        let breakers = tree.api().tree.circuits();
        let context = ReloadContext {
            source,
            clock,
            store,
            agent_factory,
            seating,
            http_state,
            redaction,
            breakers,
        };
        let reloader = Reloader::start(context, settings, (specs, keys, switches), orders);
        let served =
            tokio::spawn(listen::serve(listener, certificates, paths, bounds, handle.clone()));
        Ok(Running {
            url,
            scheme,
            address,
            tree,
            push_worker,
            observability,
            store: kept,
            holders,
            handle,
            served,
            reload_handle,
            reloader,
        })
    }
}

/// Ends held programs that no agent will resume, before anything starts that may work in the same folder.
async fn end_what_is_over(
    ledger: &dyn Ledger,
    agents: &[config::Agent],
    wardens: &ProcessHolders,
) -> Result<(), StartError> {
    let reattaches = |id: &AgentId| {
        let mut found = agents.iter().filter(|agent| agent.spec.id == *id);
        found
            .any(|agent| agent.program().is_some_and(|program| program.on_loss == OnLoss::Reattach))
    };
    let unfinished = ledger.executions(Filter { unfinished: true, ..Filter::default() }).await?;
    let goes_on = unfinished.into_iter().filter(|record| {
        matches!(record.state, State::Starting | State::Running) && reattaches(&record.agent)
    });
    wardens.end_all_but(&goes_on.map(|record| (record.id, record.stamp)).collect()).await;
    Ok(())
}

/// Returns the bytes of memory for all agents together: by default four fifths of the machine's.
fn memory(pressure: Option<config::PressureSettings>, meter: &dyn HostMetrics) -> Option<u64> {
    pressure?.agents_memory.or_else(|| Some(meter.memory()? / 5 * 4))
}

/// Returns the bounds of the history. Without bounds, sealed inputs are erased nevertheless.
fn bounds(retention: Option<config::RetentionSettings>) -> Retention {
    let interval = retention.map_or(ERASED, |it| it.interval);
    Retention { keep: retention.map(|it| it.keep), interval }
}

/// Starts the tree, which resumes the executions of held programs. Programs that no execution resumes are terminated.
async fn start(
    services: Services,
    definitions: Vec<AgentDefinition>,
    plan: TreePlan,
    wardens: &ProcessHolders,
) -> Result<Tree, StartError> {
    let tree = Tree::start(services, definitions, plan).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}

/// Returns the tree's tasks besides serving its agents.
fn plan(settings: &Settings, meter: Arc<dyn HostMetrics>, store: &Arc<Store>) -> TreePlan {
    let probe = |it: config::PressureSettings| ReadingSettings {
        host_metrics: meter,
        spec: it.spec,
        interval: it.interval,
    };
    TreePlan {
        probe: settings.pressure.map(probe),
        agenda: Some(agenda(store, &settings.scheduling)),
        retention: Some(bounds(settings.retention)),
        alerts: settings.observability.alerts.spec,
    }
}

/// Returns the configuration of the scheduler.
fn agenda(store: &Arc<Store>, scheduling: &SchedulerSettings) -> SchedulerConfig {
    SchedulerConfig {
        schedule_store: Arc::clone(store) as _,
        wording: Arc::new(TemplateRenderer),
        configured: Some(reload::schedules(scheduling)),
        history: scheduling.history,
        nap: NAP,
    }
}
