//! What schedules cost while none is due: processor time and memory of the tree with and without 100,000
//! of them, in one run.
//!
//! `benches/README.md` says how to read what it prints.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::key::Keyring;
use algonius_actors::decide::redact::Redactor;
use algonius_actors::kit::{Circuits, Kit, Masking, Pens, Purses};
use algonius_actors::lookout::Lookout;
use algonius_actors::model::schedule::{Configured, ScheduleSpec};
use algonius_actors::ports::observer::Nobody;
use algonius_actors::ports::wording::Wording;
use algonius_actors::root::Seat;
use algonius_actors::scheduler::{Agenda, NAP};
use algonius_actors::testing::{ScriptedDriver, WORKER, every, spec};
use algonius_actors::tree::{Plan, Tree};
use algonius_actors::turns::Turns;
use algonius_supervisor::clock::WallClock;
use algonius_supervisor::store::{Durability, Store};
use chrono::{DateTime, Utc};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// How many there are.
const MANY: usize = 100_000;
/// How long nothing happens: three naps of the scheduler.
const WHILE: Duration = Duration::from_secs(60);

struct Plainly;

impl Wording for Plainly {
    fn input(&self, spec: &ScheduleSpec, _: DateTime<Utc>) -> Result<String, String> {
        Ok(spec.input.clone())
    }
}

#[tokio::main]
async fn main() {
    let without = idle(0).await;
    let with = idle(MANY).await;
    println!("processor time of {} s of nothing:", WHILE.as_secs());
    println!("  without schedules      {:>9.3} ms", without.spent);
    println!("  with {MANY} schedules  {:>9.3} ms", with.spent);
    println!("taking them up at the start: {:.1} s", with.began);
    let each = (with.resident - without.resident) * 1024 / MANY;
    println!("memory of each: {each} bytes");
}

struct Cost {
    /// Milliseconds of processor time.
    spent: f64,
    /// Seconds until the tree stood.
    began: f64,
    /// Kilobytes.
    resident: usize,
}

/// What a tree with so many schedules costs while none of them is due.
async fn idle(count: usize) -> Cost {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("data"), Durability::Process).await;
    let store = Arc::new(store.expect("a store"));
    let began = tokio::time::Instant::now();
    let tree = grow(&store, count).await;
    let began = began.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(30)).await; // Each was looked at once by then.
    let before = spent();
    tokio::time::sleep(WHILE).await; // What is measured.
    let spent = spent() - before;
    let resident = resident();
    tree.stop(Duration::ZERO).await;
    store.close().await;
    Cost { spent, began, resident }
}

async fn grow(store: &Arc<Store>, count: usize) -> Tree {
    let kit = Kit {
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
    };
    let schedule = |number| {
        let id = format!("s{number}");
        Configured { spec: every(&id, "0 0 1 1 *"), owner: "operator".to_owned() }
    };
    let agenda = Agenda {
        timebook: Arc::clone(store) as _,
        wording: Arc::new(Plainly),
        configured: Some((0..count).map(schedule).collect()),
        history: Duration::from_secs(90 * 86_400),
        nap: NAP,
    };
    let driver = Arc::new(ScriptedDriver::default());
    let seats = vec![Seat { spec: Arc::new(spec(WORKER)), driver }];
    let plan = Plan { agenda: Some(agenda), ..Plan::default() };
    Tree::start(kit, seats, plan).await.expect("a tree")
}

/// Milliseconds of processor time that this process took so far.
fn spent() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
    let spent = usage.user_time() + usage.system_time();
    f64::from(u32::try_from(spent.num_microseconds()).unwrap_or(u32::MAX)) / 1000.0
}

/// Kilobytes of memory that are in use.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}
