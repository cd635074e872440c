//! The driver of command-line programs: one process for each attempt.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::{OnLoss, ProgramSpec};
use algonius_actors::model::request::Request;
use algonius_actors::model::status::KeptStatus;
use algonius_actors::model::workspace::Workspace;
use algonius_actors::ports::driver::{Claimed, Driver, Hold, Lease, Reading, Work};
use algonius_actors::ports::sessions::Sessions;
use algonius_actors::report::Reporter;
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument;

use super::attempt::Attempt;
use super::environment::{self, Inherited};
use super::kept;
use super::live::{Ended, Live, Process};
use super::pool::Pool;
use super::thread::{self, Thread};
use super::workplace;
use crate::warden::{Gauge, Warden};

/// How long the program of a lost holder waits for another one.
const UNCLAIMED: Duration = Duration::from_secs(10);

/// Does an agent's work by running its program. Needs a tokio runtime around it.
pub struct ProcessDriver {
    program: Arc<ProgramSpec>,
    place: Arc<Place>,
    warden: Arc<dyn Warden>,
    /// Where programs are kept between messages, if they are.
    pool: Option<Arc<Pool>>,
}

/// Where a service keeps its things, and what it holds programs with.
#[derive(Debug, Clone)]
pub struct Site {
    /// Where executions get their own folders, for their input and output files.
    pub runtime_dir: PathBuf,
    /// The ledger, which is no program's.
    pub data_dir: PathBuf,
    /// Bubblewrap, where it works.
    pub bubblewrap: Option<PathBuf>,
    /// Whether the folders of executions are in memory, where nobody waits for a disk.
    pub in_memory: bool,
}

/// What all attempts of a service share.
pub struct Place {
    /// Where things are.
    pub(super) site: Site,
    /// What programs see of the service's environment.
    pub(super) inherited: Inherited,
    /// In which sessions programs remember conversations.
    pub(super) sessions: Arc<dyn Sessions>,
}

impl Place {
    /// One in which programs see what they may of this process's environment, as it is now.
    #[must_use]
    pub fn new(site: Site, sessions: Arc<dyn Sessions>) -> Self {
        Self { site, inherited: environment::inherited(), sessions }
    }
}

impl ProcessDriver {
    /// A driver of one program, which `warden` starts.
    #[must_use]
    pub fn new(program: Arc<ProgramSpec>, place: Arc<Place>, warden: Arc<dyn Warden>) -> Self {
        let pool = program.keeping.map(Pool::new);
        Self { program, place, warden, pool }
    }
}

#[async_trait]
impl Driver for ProcessDriver {
    async fn workspace(&self, spec: &AgentSpec, request: &Request) -> Option<Workspace> {
        workplace::workspace(&self.program, spec, request).await
    }

    fn takes_turns(&self) -> bool {
        self.program.remembers()
    }

    fn kept(&self) -> Vec<KeptStatus> {
        self.pool.as_ref().map(|pool| pool.all()).unwrap_or_default()
    }

    fn start(&self, work: Work, report: Reporter) -> Lease {
        self.drive(Begin::Anew, work, report)
    }

    fn claim(&self, execution: ExecutionId, stamp: Stamp) -> Option<Claimed> {
        let is_wanted = self.program.on_loss == OnLoss::Reattach;
        let held = if is_wanted { self.warden.claim(execution, stamp) } else { None };
        held.map(|held| Claimed { ran: held.age })
    }

    fn resume(&self, work: Work, report: Reporter) -> Lease {
        self.drive(Begin::Held, work, report)
    }

    async fn end(&self, execution: ExecutionId, stamp: Stamp) {
        self.warden.sweep(execution, stamp).await;
    }
}

impl ProcessDriver {
    fn drive(&self, begin: Begin, work: Work, report: Reporter) -> Lease {
        let (orders, received) = watch::channel(Order::Run);
        let (execution, stamp) = (work.execution, work.stamp);
        let attempt = Attempt {
            program: Arc::clone(&self.program),
            place: Arc::clone(&self.place),
            warden: Arc::clone(&self.warden),
            work,
            thread: Thread::default(),
        };
        let (found, gauge) = watch::channel(None);
        let (told, orders_for) = ((report, found), Orders(received));
        let span = tracing::Span::current();
        let task = match &self.pool {
            Some(pool) if begin == Begin::Anew => {
                let pool = Arc::clone(pool);
                tokio::spawn(kept::serve(attempt, pool, told, orders_for).instrument(span))
            }
            _ => tokio::spawn(serve(attempt, begin, told, orders_for).instrument(span)),
        };
        let warden = Arc::clone(&self.warden);
        Box::new(ProcessLease { orders, gauge, task, warden, execution, stamp })
    }
}

/// How an attempt comes to its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// It starts it.
    Anew,
    /// An earlier life has started it.
    Held,
}

/// What the holder of the lease wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Run,
    Stop,
    Release,
}

/// The holder's orders. A lease that was dropped has ordered nothing.
#[derive(Clone)]
pub(super) struct Orders(watch::Receiver<Order>);

impl Orders {
    /// Whether the end was asked for, or nobody can ask for it any more.
    pub(super) fn is_stopped(&self) -> bool {
        *self.0.borrow() != Order::Run || self.is_lost()
    }

    /// Whether the holder is gone without a word.
    pub(super) fn is_lost(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Returns when the end was asked for; never when the holder is lost.
    pub(super) async fn stopped(&mut self) {
        if self.0.wait_for(|order| *order != Order::Run).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the lease was cleaned, or dropped; answers whether it was cleaned.
    pub(super) async fn released(&mut self) -> bool {
        self.0.wait_for(|order| *order == Order::Release).await.is_ok()
    }
}

/// Dropping it is an order too: the task sees the channel close, and keeps the program for whoever
/// claims it.
struct ProcessLease {
    orders: watch::Sender<Order>,
    /// Comes when there is a program.
    gauge: watch::Receiver<Option<Gauge>>,
    task: JoinHandle<()>,
    warden: Arc<dyn Warden>,
    execution: ExecutionId,
    stamp: Stamp,
}

#[async_trait]
impl Hold for ProcessLease {
    fn stop(&self) {
        self.orders.send_if_modified(|order| {
            let is_new = *order == Order::Run;
            if is_new {
                *order = Order::Stop;
            }
            is_new
        });
    }

    fn usage(&self) -> Reading {
        let gauge = self.gauge.borrow().clone();
        Box::pin(async move { gauge?.read().await })
    }

    async fn clean(self: Box<Self>) {
        let Self { orders, task, warden, execution, stamp, .. } = *self;
        orders.send_replace(Order::Release);
        if let Err(error) = task.await {
            tracing::error!(%execution, %error, "the driver's task failed");
            warden.sweep(execution, stamp).await;
        }
    }
}

/// The whole life of an attempt, from the order to start until nothing of it is left.
async fn serve(
    mut attempt: Attempt,
    mut begin: Begin,
    (report, gauge): (Reporter, watch::Sender<Option<Gauge>>),
    orders: Orders,
) {
    loop {
        let (live, process) = match attempt.come_to_life(begin, &report, &orders).await {
            Ok(begun) => begun,
            Err(failure) => return report.ended(Err(failure), None),
        };
        gauge.send_replace(Some(live.gauge()));
        // Who was lost before it was there may be settled already, without it: then nobody claims it.
        let patience = if orders.is_lost() { Duration::ZERO } else { UNCLAIMED };
        let mut wishes = orders.clone();
        let ended = tokio::select! {
            ended = live.run(process, &report, orders.clone()) => Some(ended),
            _ = wishes.released() => None,
            () = live.taken() => None,
        };
        match ended {
            Some(ended) if ended.is_lost() && !orders.is_stopped() => {
                // It did no work, for it knew nothing to go on with.
                live.clear().await;
                let Place { sessions, .. } = &*attempt.place;
                if let Err(failure) = thread::give_up(&attempt.work, &**sessions, &report).await {
                    return report.ended(Err(failure), None);
                }
                begin = Begin::Anew;
            }
            Some(mut ended) => {
                attempt.remember(&mut ended, &report).await;
                ended.tell(report);
                let_go(live, orders, patience).await;
                return;
            }
            None if let_go(live, orders, patience).await => {
                let failure = Failure::new(Code::Interrupted, "its holder let it go");
                return report.ended(Err(failure), None);
            }
            None => return report.leave(),
        }
    }
}

impl Attempt {
    /// Starts the program, or takes over the one that an earlier life started.
    async fn come_to_life(
        &mut self,
        begin: Begin,
        report: &Reporter,
        orders: &Orders,
    ) -> Result<(Live, Process), Failure> {
        let Place { sessions, .. } = &*self.place;
        self.thread = Thread::find(&self.program, &self.work, &**sessions, report).await?;
        // A start is not called off half-way, so that nothing can come to life after the clean-up.
        match begin {
            Begin::Anew => self.clone().begin(orders).await,
            Begin::Held => self.clone().resume(report).await,
        }
    }

    /// Keeps the session of a run that went well. The answer does not hang on that.
    async fn remember(&self, ended: &mut Ended, report: &Reporter) {
        let Some(named) = ended.remembered() else { return };
        let Place { sessions, .. } = &*self.place;
        let keeper = (&**sessions, report);
        if let Err(error) = self.thread.keep(&self.program, &self.work, keeper, named).await {
            tracing::error!(execution = %self.work.execution, %error, "a session is not kept");
        }
    }
}

/// Waits until the holder lets it go, and removes what is left of it; answers whether it did. Who
/// crashed is followed by somebody who may claim it within `patience`: then it is left as it is.
async fn let_go(live: Live, mut orders: Orders, patience: Duration) -> bool {
    let is_taken = tokio::select! {
        () = live.taken() => true,
        is_cleaned = orders.released() => {
            !is_cleaned && timeout(patience, live.taken()).await.is_ok()
        }
    };
    if is_taken {
        live.leave();
    } else {
        live.clear().await;
    }
    !is_taken
}
