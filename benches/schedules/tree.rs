//! The tree with schedules, on a ledger of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::key::Keyring;
use algonius_actors::decide::redact::Redactor;
use algonius_actors::door::Gateway;
use algonius_actors::kit::{Circuits, Kit, Masking, Pens, Purses, Room};
use algonius_actors::lookout::Lookout;
use algonius_actors::model::principal::{Right, Scope, TokenSeed};
use algonius_actors::model::schedule::{Configured, Overlap, ScheduleSpec};
use algonius_actors::model::timetable::Timetable;
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::ports::observer::Nobody;
use algonius_actors::ports::wording::Wording;
use algonius_actors::root::Seat;
use algonius_actors::scheduler::Agenda;
use algonius_actors::testing::{ScriptedDriver, WORKER, every, spec};
use algonius_actors::tree::{Plan, Tree};
use algonius_actors::turns::Turns;
use algonius_supervisor::clock::WallClock;
use algonius_supervisor::store::{Durability, Store};
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio::time::Instant;

/// Whose the schedules are that may ask.
pub(crate) const OWNER: &str = "operator";

struct Plainly;

impl Wording for Plainly {
    fn input(&self, spec: &ScheduleSpec, _: DateTime<Utc>) -> Result<String, String> {
        Ok(spec.input.clone())
    }
}

/// A tree, what it stands on, and how long it took to grow.
pub(crate) struct Standing {
    tree: Tree,
    pub(crate) store: Arc<Store>,
    pub(crate) took: Duration,
    _folder: TempDir,
}

impl Standing {
    /// Grows a tree with these schedules, which sleeps no longer than `nap`.
    pub(crate) async fn with(configured: Vec<Configured>, nap: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("data"), Durability::Process).await;
        let store = Arc::new(store.expect("a store"));
        let scope = Scope { rights: vec![Right::Read, Right::Run], agents: None };
        let seed = TokenSeed { name: OWNER.to_owned(), hash: [9; 32], scope, expires: None };
        store.seed(vec![seed], WallClock.now()).await.expect("an owner");
        let agenda = Agenda {
            timebook: Arc::clone(&store) as _,
            wording: Arc::new(Plainly),
            configured: Some(configured),
            history: Duration::from_secs(90 * 86_400),
            nap,
        };
        let begin = Instant::now();
        let tree =
            Tree::start(kit(&store), seats(), Plan { agenda: Some(agenda), ..Plan::default() });
        let tree = tree.await.expect("a tree");
        Self { tree, store, took: begin.elapsed(), _folder: folder }
    }

    pub(crate) fn door(&self) -> &Gateway {
        self.tree.gateway()
    }

    pub(crate) async fn end(self) {
        self.tree.stop(Duration::ZERO).await;
        self.store.close().await;
    }
}

fn seats() -> Vec<Seat> {
    let mut worker = spec(WORKER);
    worker.capacity.running = None;
    worker.capacity.waiting = 10_000;
    let driver = Arc::new(ScriptedDriver::default());
    vec![Seat { spec: Arc::new(worker), driver }]
}

fn kit(store: &Arc<Store>) -> Kit {
    Kit {
        ledger: Arc::clone(store) as _,
        history: Arc::clone(store) as _,
        clock: Arc::new(WallClock),
        redactor: Masking::fixed(Arc::new(Redactor::new([]))),
        keyring: Keyring::new([7; 32]),
        observer: Arc::new(Nobody),
        lookout: Lookout::default(),
        turns: Turns::default(),
        pens: Pens::default(),
        circuits: Circuits::default(),
        purses: Purses::default(),
        room: Room::default(),
    }
}

/// Schedules of which none is due soon, each with a time and words of its own.
pub(crate) fn quiet(count: usize) -> Vec<Configured> {
    let month = (WallClock.now() + chrono::TimeDelta::days(60)).format("%-m").to_string();
    let one = |number: usize| {
        let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1440 % 28 + 1);
        let spec = every(&format!("s{number}"), &format!("{minute} {hour} {day} {month} *"));
        let input = format!("Look after item {number}, and say what is to be done about it.");
        owned(ScheduleSpec { name: format!("Schedule {number}"), input, ..spec })
    };
    (0..count).map(one).collect()
}

/// Schedules that are due once in so many seconds each, spread over these by their jitter.
pub(crate) fn busy(count: usize, seconds: usize, owner: &str) -> Vec<Configured> {
    let timetable = Timetable::new(&format!("@every {seconds}s"), "UTC", true).expect("a pace");
    let one = |number: usize| {
        let spec = every(&format!("busy-{owner}-{number}"), "0 0 1 1 *");
        let spec = ScheduleSpec {
            timetable: timetable.clone(),
            jitter: Duration::from_millis(seconds as u64 * 1000 - 1),
            overlap: Overlap::Allow,
            params: BTreeMap::new(),
            ..spec
        };
        Configured { spec, owner: owner.to_owned() }
    };
    (0..count).map(one).collect()
}

fn owned(spec: ScheduleSpec) -> Configured {
    Configured { spec, owner: OWNER.to_owned() }
}
