//! `MonitorActor`: reads the machine's resources and checks the preconditions of all executions periodically, and
//! decides whether the service can accept more work.

mod alerts;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::decide::host::pressure::{PressureGauges, pressure_basis, update_gauges};
use crate::decide::notification::alert::{AlertInput, AlertTracker};
use crate::model::host::host_fault::{HostCondition, HostFault};
use crate::model::host::pressure::{HostReading, Pressure, PressureBasis, PressureSpec, Shortage};
use crate::model::observation::alert::AlertSpec;
use crate::ports::host_check::HostCheck;
use crate::ports::host_metrics::HostMetrics;
use crate::services::Services;
pub use crate::services::monitor_handle::MonitorMsg;
use crate::services::panic_guard::run_with_panic_guard;

/// Interval of the checks of open alerts.
const ALERT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the checks of the preconditions.
const HOST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Longest time for which the first reading, and the first check, may each delay the start of the service.
const FIRST_READING_TIMEOUT: Duration = Duration::from_secs(2);

/// Actor that watches the machine and raises alerts.
pub struct MonitorActor;

/// Settings of the resource readings: source, interval and limits.
#[derive(Clone)]
pub struct HostReadingSettings {
    /// Source of the readings.
    pub host_metrics: Arc<dyn HostMetrics>,
    /// Limits of the resource pressure.
    pub spec: PressureSpec,
    /// Interval between two readings.
    pub interval: Duration,
}

/// Settings of the monitor.
#[derive(Clone, Default)]
pub struct MonitorSettings {
    /// Settings of the resource readings, if enabled.
    pub host_reading_settings: Option<HostReadingSettings>,
    /// Check of the preconditions, if there is one.
    pub host_check: Option<Arc<dyn HostCheck>>,
    /// Limits above which alerts are raised.
    pub alert_spec: AlertSpec,
}

/// Arguments of the monitor.
pub struct MonitorArgs {
    /// Shared services.
    pub services: Services,
    /// Settings of the monitor.
    pub settings: MonitorSettings,
    /// Sender of the condition of the machine.
    pub host_condition: watch::Sender<HostCondition>,
}

/// State of the actor.
pub struct MonitorActorState {
    args: MonitorArgs,
    gauges: PressureGauges,
    tracker: AlertTracker,
    open_alerts: alerts::OpenAlerts,
    start_instant: Instant,
    started_at: DateTime<Utc>,
    /// True if a tick is pending.
    is_tick_pending: bool,
    /// Tasks of the readings and the ticks, which end with this actor.
    tasks: JoinSet<()>,
}

impl Actor for MonitorActor {
    type Msg = MonitorMsg;
    type State = MonitorActorState;
    type Arguments = MonitorArgs;

    /// Checks and reads once before the start completes, so that no work starts without an evaluation.
    async fn pre_start(
        &self,
        myself: ActorRef<MonitorMsg>,
        args: MonitorArgs,
    ) -> Result<MonitorActorState, ActorProcessingErr> {
        let started_at = args.services.clock.now();
        let mut state = MonitorActorState::new(args, started_at);
        let MonitorSettings { host_reading_settings: reading_settings, host_check, .. } =
            state.args.settings.clone();
        if let Some(host_check) = host_check {
            if let Ok(faults) =
                timeout(FIRST_READING_TIMEOUT, host_check.repair_and_find_faults()).await
            {
                state.apply_faults(faults);
            }
            state.spawn_guarded(&myself, run_host_checks(myself.clone(), host_check));
        }
        if let Some(settings) = reading_settings {
            if let Ok(reading) = timeout(FIRST_READING_TIMEOUT, settings.host_metrics.read()).await
            {
                state.apply_reading(reading);
            }
            state.spawn_guarded(&myself, run_readings(myself.clone(), settings));
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<MonitorMsg>,
        msg: MonitorMsg,
        state: &mut MonitorActorState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            MonitorMsg::HostMeasured(reading) => state.apply_reading(reading),
            MonitorMsg::HostChecked(faults) => state.apply_faults(faults),
            MonitorMsg::BackgroundFuturePanicked => {
                return Err("the reading of the machine panicked".into());
            }
            MonitorMsg::AlertInputReceived(AlertInput::Tick) => {
                state.is_tick_pending = false;
                state.apply_request_counts();
                state.apply_alert_input(AlertInput::Tick);
            }
            MonitorMsg::AlertInputReceived(alert_input) => state.apply_alert_input(alert_input),
            MonitorMsg::RequestCountsPending => state.schedule_tick(&myself),
            MonitorMsg::Inspect(reply) => {
                state.apply_request_counts(); // The reply includes all earlier requests.
                _ = reply.send((state.started_at, state.open_alerts.values().cloned().collect()));
            }
        }
        state.schedule_tick_if_needed(&myself);
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<MonitorMsg>,
        _: SupervisionEvent,
        _: &mut MonitorActorState,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // This actor has no children.
    }
}

/// Reads the machine until the actor stops. Only one reading runs at a time: a hanging disk delays one reading, and not
/// one more each second.
async fn run_readings(myself: ActorRef<MonitorMsg>, settings: HostReadingSettings) {
    loop {
        tokio::time::sleep(settings.interval).await; // Interval of the readings; no task waits for it.
        let reading = settings.host_metrics.read().await;
        if myself.cast(MonitorMsg::HostMeasured(reading)).is_err() {
            return;
        }
    }
}

/// Checks the preconditions until the actor stops, one check at a time like the readings.
async fn run_host_checks(myself: ActorRef<MonitorMsg>, host_check: Arc<dyn HostCheck>) {
    loop {
        tokio::time::sleep(HOST_CHECK_INTERVAL).await; // Interval of the checks; no task waits for it.
        let faults = host_check.repair_and_find_faults().await;
        if myself.cast(MonitorMsg::HostChecked(faults)).is_err() {
            return;
        }
    }
}

/// Sends a tick to the monitor after a pause.
async fn send_tick(myself: ActorRef<MonitorMsg>) {
    tokio::time::sleep(ALERT_CHECK_INTERVAL).await; // Interval of the ticks; no task waits for it.
    _ = myself.cast(MonitorMsg::AlertInputReceived(AlertInput::Tick));
}

impl MonitorActorState {
    fn new(args: MonitorArgs, started_at: DateTime<Utc>) -> Self {
        Self {
            args,
            gauges: PressureGauges::default(),
            tracker: AlertTracker::default(),
            open_alerts: alerts::OpenAlerts::new(),
            start_instant: Instant::now(),
            started_at,
            is_tick_pending: false,
            tasks: JoinSet::new(),
        }
    }

    /// Starts a task whose panic restarts the actor.
    fn spawn_guarded(
        &mut self,
        myself: &ActorRef<MonitorMsg>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let myself = myself.clone();
        self.tasks.spawn(run_with_panic_guard(task, move || {
            _ = myself.cast(MonitorMsg::BackgroundFuturePanicked);
        }));
    }

    /// Schedules the next tick if some state expires with time, and only then.
    fn schedule_tick_if_needed(&mut self, myself: &ActorRef<MonitorMsg>) {
        while self.tasks.try_join_next().is_some() {} // Drops finished tasks.
        if self.tracker.needs_ticks() {
            self.schedule_tick(myself);
        }
    }

    fn schedule_tick(&mut self, myself: &ActorRef<MonitorMsg>) {
        if !self.is_tick_pending {
            self.is_tick_pending = true;
            self.tasks.spawn(send_tick(myself.clone()));
        }
    }

    /// Handles the requests since the last tick.
    fn apply_request_counts(&mut self) {
        for (endpoint, count) in self.args.services.monitor.take_request_counts() {
            self.apply_alert_input(AlertInput::RequestsReceived(endpoint, count));
        }
    }

    fn apply_faults(&mut self, faults: Vec<HostFault>) {
        if self.args.host_condition.borrow().faults == faults {
            return;
        }
        log_faults(&faults);
        self.apply_alert_input(AlertInput::HostFaults(faults.clone()));
        self.args.host_condition.send_modify(|condition| condition.faults = faults);
    }

    fn apply_reading(&mut self, reading: HostReading) {
        let Some(HostReadingSettings { spec, .. }) = &self.args.settings.host_reading_settings
        else {
            return;
        };
        self.gauges = update_gauges(std::mem::take(&mut self.gauges), &reading, spec);
        let (shortages, basis, at) = (
            self.gauges.shortages(),
            pressure_basis(&reading, spec),
            self.args.services.clock.now(),
        );
        let previous = self.args.host_condition.borrow().pressure.clone();
        log_pressure_change(previous.as_ref(), &shortages, basis);
        let unchanged_pressure = previous.filter(|previous| previous.short == shortages);
        let since = unchanged_pressure.map_or(at, |previous| previous.since);
        let pressure = Pressure { short: shortages, since, at, basis, reading };
        self.apply_alert_input(AlertInput::Shortages(pressure.short.clone()));
        if let Some(bytes) = reading.disk_free_bytes {
            self.apply_alert_input(AlertInput::LedgerFreeBytes(bytes));
        }
        // Every agent subscribes; a reading with the same result as the previous one wakes none of them.
        self.args.host_condition.send_if_modified(|condition| {
            let shortages = pressure.short.clone();
            let previous = condition.pressure.replace(pressure);
            previous.is_none_or(|previous| previous.short != shortages)
        });
    }
}

/// Logs changes of the evaluation.
fn log_pressure_change(previous: Option<&Pressure>, shortages: &[Shortage], basis: PressureBasis) {
    if basis == PressureBasis::Fallback && previous.is_none_or(|previous| previous.basis != basis) {
        tracing::warn!("kernel reports no stalls: using memory and load");
    }
    let is_changed = previous.map_or(!shortages.is_empty(), |previous| previous.short != shortages);
    match (is_changed, shortages.is_empty()) {
        (false, _) => {}
        (true, false) => {
            tracing::warn!(short = ?shortages, "host under pressure: refusing new work");
        }
        (true, true) => tracing::info!("pressure cleared: accepting new work"),
    }
}

/// Logs a change of the faults.
fn log_faults(faults: &[HostFault]) {
    let names: Vec<_> = faults.iter().map(|fault| fault.as_str()).collect();
    match faults {
        [] => tracing::info!("all preconditions of executions are fulfilled: accepting new work"),
        _ => tracing::error!(faults = ?names, "service cannot start work: refusing new work"),
    }
}
