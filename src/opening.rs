//! How the service is put together: the tree grows on the ground, then the door is opened.

use std::sync::Arc;

use algonius_actors::kit::Kit;
use algonius_actors::model::execution::State;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::OnLoss;
use algonius_actors::model::record::Filter;
use algonius_actors::monitor::Probe;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::ports::meter::Meter;
use algonius_actors::retention::Retention;
use algonius_actors::root::Seat;
use algonius_actors::scheduler::{Agenda, NAP};
use algonius_actors::tree::{Plan, Tree};

use crate::admit::Keys;
use crate::config::{self, Scheduling, Settings, Source};
use crate::front::{self, Fixed, Front, Specs};
use crate::ground::{self, Ground};
use crate::reload::{self, Masks, Reloader, Switches, World};
use crate::serve::listen::{self, Latch};
use crate::store::Store;
use crate::telling::tell;
use crate::warden::wardens::{Origin, Wardens};
use crate::watching::{Onlookers, Watching};
use crate::wording::Words;
use crate::{Running, StartError};

/// The ground with a tree on it, and nobody at the door yet.
pub(super) struct Grown {
    ground: Ground,
    tree: Tree,
    specs: Specs,
    keys: Keys,
    switches: Switches,
    masks: Masks,
    onlookers: Onlookers,
}

impl Grown {
    /// Takes the address, opens the ledger, takes up or sweeps what an earlier life left running,
    /// recovers, and starts the tree. The agents are switched and settled from then on.
    pub(super) async fn grow(
        settings: &mut Settings,
        (clock, meter): (&Arc<dyn Clock>, Arc<dyn Meter>),
        origin: Origin,
    ) -> Result<Self, StartError> {
        let Settings { server, agents, .. } = settings;
        let mut switches = Switches::read(&server.data_dir)?;
        switches.put(agents);
        let ground = Ground::lay(server, agents, origin).await?;
        end_what_is_over(&*ground.store, agents, ground.workshop.wardens()).await?;
        let seats = agents.iter().map(|agent| ground.workshop.seat(agent.clone()));
        let seats: Vec<_> = seats.collect();
        let specs = reload::specs(seats.iter().map(|seat| &seat.spec));
        let keys = Keys::seed(&*ground.store, settings, &specs, &**clock).await?;
        let secrets = settings.secrets.iter().chain([&keys.own]).cloned();
        let masks = Masks::new(secrets, settings.redaction.clone());
        let watching = Watching::prepare(settings)?;
        let kit = ground.kit(
            Arc::clone(clock),
            masks.masking(),
            &watching.observatory,
            memory(settings.pressure, &*meter),
        );
        let plan = plan(settings, meter, &ground.store);
        let onlookers = watching.begin(ground.workshop.wardens())?;
        let tree = start(kit, seats, plan, ground.workshop.wardens()).await?;
        Ok(Self { ground, tree, specs, keys, switches, masks, onlookers })
    }

    /// Opens the door, and reads the configuration again from then on.
    pub(super) fn open(
        self,
        source: Source,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Running, StartError> {
        let Self { ground, tree, specs, keys, switches, masks, onlookers } = self;
        let (desk, postman) = tell(&settings, &ground.store, &clock, tree.gateway())?;
        let bounds = ground::bounds(&settings.server);
        let Ground { listener, address, certificates, store, workshop } = ground;
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let (steward, orders) = reload::desk(&store, settings.log.level);
        let wardens = Arc::clone(workshop.wardens());
        let fixed = Fixed {
            address,
            scheme,
            gateway: tree.gateway().clone(),
            desk,
            rungs: workshop.machine().clone(),
            wardens: Arc::clone(&wardens),
            observatory: onlookers.observatory.clone(),
            admin: Arc::new(steward.clone()),
            programs: workshop.programs().clone(),
        };
        let front = Front::new(fixed, &settings.lockout);
        let url = front::url(settings.server.public_url.as_deref(), scheme, address);
        let (paths, handle) = (front.paths().latest(), Latch::new());
        let (seating, kept) = (tree.seating(), Arc::clone(&store));
        let circuits = tree.gateway().circuits();
        let world = World { source, clock, store, workshop, seating, front, masks, circuits };
        let reloader = Reloader::begin(world, settings, (specs, keys, switches), orders);
        let served =
            tokio::spawn(listen::serve(listener, certificates, paths, bounds, handle.clone()));
        Ok(Running {
            url,
            scheme,
            address,
            tree,
            postman,
            onlookers,
            store: kept,
            wardens,
            handle,
            served,
            steward,
            reloader,
        })
    }
}

/// Ends what the wardens hold and no agent will take up, before anything begins that may work in the
/// same folder.
async fn end_what_is_over(
    ledger: &dyn Ledger,
    agents: &[config::Agent],
    wardens: &Wardens,
) -> Result<(), StartError> {
    let reattaches = |id: &AgentId| {
        let mut found = agents.iter().filter(|agent| agent.spec.id == *id);
        found.any(|agent| agent.program.on_loss == OnLoss::Reattach)
    };
    let unfinished = ledger.executions(Filter { unfinished: true, ..Filter::default() }).await?;
    let goes_on = unfinished.into_iter().filter(|record| {
        matches!(record.state, State::Starting | State::Running) && reattaches(&record.agent)
    });
    wardens.end_all_but(&goes_on.map(|record| (record.id, record.stamp)).collect()).await;
    Ok(())
}

/// How much memory agents may take together: four fifths of the machine's where nobody says.
fn memory(pressure: Option<config::Pressure>, meter: &dyn Meter) -> Option<u64> {
    pressure?.agents_memory.or_else(|| Some(meter.memory()? / 5 * 4))
}

/// How the history is kept.
fn bounds(config::Retention { keep, interval }: config::Retention) -> Retention {
    Retention { keep, interval }
}

/// Starts the tree, which takes up what the wardens hold; what it does not is ended.
async fn start(
    kit: Kit,
    seats: Vec<Seat>,
    plan: Plan,
    wardens: &Wardens,
) -> Result<Tree, StartError> {
    let tree = Tree::start(kit, seats, plan).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}

/// What the tree does besides serving its agents.
fn plan(settings: &Settings, meter: Arc<dyn Meter>, store: &Arc<Store>) -> Plan {
    let probe = |it: config::Pressure| Probe { meter, spec: it.spec, interval: it.interval };
    Plan {
        probe: settings.pressure.map(probe),
        agenda: Some(agenda(store, &settings.scheduling)),
        retention: settings.retention.map(bounds),
        alerts: settings.alerts.spec,
    }
}

/// What there is to do at set times.
fn agenda(store: &Arc<Store>, scheduling: &Scheduling) -> Agenda {
    Agenda {
        timebook: Arc::clone(store) as _,
        wording: Arc::new(Words),
        configured: Some(reload::schedules(scheduling)),
        history: scheduling.history,
        nap: NAP,
    }
}
