//! `MonitorActor`: looks at the machine again and again, and says whether it can take more work.

mod alerts;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::alarm::alarmed;
use crate::decide::alert::{Sighting, Watch};
use crate::decide::pressure::{Gauges, basis, step};
use crate::kit::Kit;
use crate::model::alert::{Alert, AlertSpec};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::pressure::{Basis, Pressure, PressureSpec, Reading, Shortage};
use crate::ports::meter::Meter;

/// From one look at what is open to the next.
const TICK: Duration = Duration::from_secs(1);

/// How long the first reading may keep the service from starting.
const FIRST: Duration = Duration::from_secs(2);

/// Watches the machine and what is seen, and raises alerts.
pub struct MonitorActor;

/// How the machine is looked at: by what, how often, and where the bounds are.
#[derive(Clone)]
pub struct Probe {
    /// Reads the gauges.
    pub meter: Arc<dyn Meter>,
    /// The bounds.
    pub spec: PressureSpec,
    /// From one reading to the next.
    pub interval: Duration,
}

/// The latest judgement; `None` before the first reading, and where nobody looks.
pub type Latest = Option<Pressure>;

/// What the monitor is told.
pub enum MonitorMsg {
    /// The machine was read.
    Measured(Reading),
    /// The reading panicked.
    Broken,
    /// Somebody saw something.
    Seen(Sighting),
    /// Requests were counted, and more may come until the next tick.
    Requested,
    /// Asks since when it lives, and which alerts are open.
    Inspect(RpcReplyPort<(DateTime<Utc>, Vec<Alert>)>),
}

/// What the monitor begins with.
pub struct MonitorArgs {
    /// The world.
    pub kit: Kit,
    /// How it looks at the machine, where it does.
    pub probe: Option<Probe>,
    /// When somebody is told.
    pub alerts: AlertSpec,
    /// Where the latest judgement is told.
    pub pressure: watch::Sender<Latest>,
}

/// Loop data.
pub struct MonitorData {
    args: MonitorArgs,
    gauges: Gauges,
    watch: Watch,
    open: alerts::Open,
    born: Instant,
    since: DateTime<Utc>,
    /// Whether a tick is on its way.
    ticks: bool,
    /// The reading and the ticks, which end with this actor.
    reader: JoinSet<()>,
}

impl Actor for MonitorActor {
    type Msg = MonitorMsg;
    type State = MonitorData;
    type Arguments = MonitorArgs;

    /// Looks once before it is there, so that nobody begins work unjudged.
    async fn pre_start(
        &self,
        me: ActorRef<MonitorMsg>,
        args: MonitorArgs,
    ) -> Result<MonitorData, ActorProcessingErr> {
        let since = args.kit.clock.now();
        let mut data = MonitorData::new(args, since);
        let broken = me.clone();
        let Some(probe) = data.args.probe.clone() else { return Ok(data) };
        if let Ok(reading) = timeout(FIRST, probe.meter.read()).await {
            data.measured(reading);
        }
        data.reader.spawn(alarmed(read(me, probe), move || _ = broken.cast(MonitorMsg::Broken)));
        Ok(data)
    }

    async fn handle(
        &self,
        me: ActorRef<MonitorMsg>,
        msg: MonitorMsg,
        data: &mut MonitorData,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            MonitorMsg::Measured(reading) => data.measured(reading),
            MonitorMsg::Broken => return Err("the reading of the machine panicked".into()),
            MonitorMsg::Seen(Sighting::Tick) => {
                data.ticks = false;
                data.count();
                data.seen(Sighting::Tick);
            }
            MonitorMsg::Seen(sighting) => data.seen(sighting),
            MonitorMsg::Requested => data.begin_ticks(&me),
            MonitorMsg::Inspect(reply) => {
                data.count(); // What is told is not older than the question.
                _ = reply.send((data.since, data.open.values().cloned().collect()));
            }
        }
        data.go_on(&me);
        Ok(())
    }

    /// Written out because the default stops the supervisor when any child ends, even well.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<MonitorMsg>,
        _: SupervisionEvent,
        _: &mut MonitorData,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // It has no children.
    }
}

/// Reads the machine for as long as anybody wants to know. One reading at a time: a disk that
/// hangs holds up one reading, not one more each second.
async fn read(me: ActorRef<MonitorMsg>, probe: Probe) {
    loop {
        tokio::time::sleep(probe.interval).await; // The pace of the readings; nothing waits for it.
        let reading = probe.meter.read().await;
        if me.cast(MonitorMsg::Measured(reading)).is_err() {
            return;
        }
    }
}

/// Lets time pass for what is open.
async fn tick(me: ActorRef<MonitorMsg>) {
    tokio::time::sleep(TICK).await; // The pace of the looks; nothing waits for it.
    _ = me.cast(MonitorMsg::Seen(Sighting::Tick));
}

impl MonitorData {
    fn new(args: MonitorArgs, since: DateTime<Utc>) -> Self {
        Self {
            args,
            gauges: Gauges::default(),
            watch: Watch::default(),
            open: alerts::Open::new(),
            born: Instant::now(),
            since,
            ticks: false,
            reader: JoinSet::new(),
        }
    }

    /// Sees to it that time passes while something ends by itself, and only then.
    fn go_on(&mut self, me: &ActorRef<MonitorMsg>) {
        while self.reader.try_join_next().is_some() {} // What is over is let go.
        if self.watch.ends_by_itself() {
            self.begin_ticks(me);
        }
    }

    fn begin_ticks(&mut self, me: &ActorRef<MonitorMsg>) {
        if !self.ticks {
            self.ticks = true;
            self.reader.spawn(tick(me.clone()));
        }
    }

    /// Sees the requests that came since the last tick.
    fn count(&mut self) {
        for (endpoint, count) in self.args.kit.lookout.requests() {
            self.seen(Sighting::Requested(endpoint, count));
        }
    }

    fn measured(&mut self, reading: Reading) {
        let Some(Probe { spec, .. }) = &self.args.probe else { return };
        self.gauges = step(std::mem::take(&mut self.gauges), &reading, spec);
        let (short, basis, at) =
            (self.gauges.short(), basis(&reading, spec), self.args.kit.clock.now());
        let before = self.args.pressure.borrow().clone();
        tell(before.as_ref(), &short, basis);
        let same = before.filter(|before| before.short == short);
        let since = same.map_or(at, |before| before.since);
        let pressure = Pressure { short, since, at, basis, reading };
        self.seen(Sighting::Short(pressure.short.clone()));
        if let Some(bytes) = reading.disk_free_bytes {
            self.seen(Sighting::Free(bytes));
        }
        // Every agent listens; a reading that judges as the one before wakes none of them.
        self.args.pressure.send_if_modified(|latest| {
            let before = latest.replace(pressure);
            before.is_none_or(|before| {
                Some(before.short) != latest.as_ref().map(|it| it.short.clone())
            })
        });
    }
}

/// Logs what is new.
fn tell(before: Option<&Pressure>, short: &[Shortage], basis: Basis) {
    if basis == Basis::Fallback && before.is_none_or(|before| before.basis != basis) {
        tracing::warn!("the machine tells of no stalls: judged by memory in use and load");
    }
    let is_new = before.map_or(!short.is_empty(), |before| before.short != short);
    match (is_new, short.is_empty()) {
        (false, _) => {}
        (true, false) => tracing::warn!(?short, "machine under pressure: new work is refused"),
        (true, true) => tracing::info!("machine at ease: new work is taken"),
    }
}

/// Whether new work must stay out.
pub(crate) fn is_high(latest: &Latest) -> bool {
    latest.as_ref().is_some_and(Pressure::is_high)
}

/// The refusal of new work, while the machine has too little of something.
pub(crate) fn refusal(pressure: &Latest) -> Option<Failure> {
    let pressure = pressure.as_ref().filter(|pressure| pressure.is_high())?;
    let short: Vec<_> = pressure.short.iter().map(|short| short.as_words()).collect();
    let message = format!("the machine is short of {}", short.join(" and "));
    Some(Failure::new(Code::Pressure, message))
}
