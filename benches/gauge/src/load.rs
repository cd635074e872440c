//! Constant number of requests in flight: each answer starts the next request.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::client::{BenchResponse, KeepAliveClient, NO_RESPONSE};
use crate::run::{OperationTimes, nanoseconds};

/// Number of connections that are added at once.
const CONNECTION_BATCH: usize = 500;

/// Repeated request, and the check of its answer.
pub struct LoadRequest {
    /// Function that returns the bytes of the request with this number; no two are equal.
    pub build: Box<dyn Fn(u64) -> Vec<u8>>,
    /// Function that returns true for a good answer.
    pub is_good: Box<dyn Fn(&BenchResponse<'_>) -> bool>,
}

/// End condition of a load.
#[derive(Clone, Copy)]
pub enum StopCondition {
    /// Time after the first request; requests in flight at the end are awaited, and count.
    Elapsed(Duration),
    /// Number of requests.
    Completed(usize),
}

struct LoadState {
    load_request: Rc<LoadRequest>,
    stop_condition: StopCondition,
    started_at: Instant,
    started_count: Cell<usize>,
    times: RefCell<Vec<u64>>,
    failures: RefCell<Vec<String>>,
    failure_notify: Notify,
}

impl LoadState {
    fn new(load_request: &Rc<LoadRequest>, stop_condition: StopCondition) -> Rc<Self> {
        Rc::new(Self {
            load_request: Rc::clone(load_request),
            stop_condition,
            started_at: Instant::now(),
            started_count: Cell::new(0),
            times: RefCell::default(),
            failures: RefCell::default(),
            failure_notify: Notify::new(),
        })
    }

    fn try_reserve_request(&self) -> bool {
        let started_count = self.started_count.replace(self.started_count.get() + 1);
        match self.stop_condition {
            StopCondition::Elapsed(duration) => self.started_at.elapsed() < duration,
            StopCondition::Completed(count) => started_count < count,
        }
    }

    async fn send_requests(&self, client: &mut KeepAliveClient) {
        while self.try_reserve_request() {
            let request = (self.load_request.build)(unique_number());
            let request_started_at = Instant::now();
            let answer = client.send_request(&request).await;
            let elapsed = nanoseconds(request_started_at.elapsed());
            if (self.load_request.is_good)(&answer) {
                self.times.borrow_mut().push(elapsed);
            } else {
                let body = String::from_utf8_lossy(answer.body);
                self.failures.borrow_mut().push(format!("{}: {body:.300}", answer.status));
                self.failure_notify.notify_one();
                if answer.status == NO_RESPONSE {
                    return;
                }
            }
        }
    }

    fn failure_summary(&self) -> String {
        let failures = self.failures.borrow();
        let first = failures.first().map_or("none", String::as_str);
        format!("{} bad answers, such as {first}", failures.len())
    }
}

/// Runs a load with this many requests in flight, each on a connection that exists before the first.
///
/// # Panics
/// Panics if an answer is not good.
pub async fn run_load(
    address: SocketAddr,
    load_request: &Rc<LoadRequest>,
    in_flight: usize,
    stop_condition: StopCondition,
) -> OperationTimes {
    let clients = connect_all(address, in_flight).await;
    let state = LoadState::new(load_request, stop_condition);
    run_clients(clients, &state).await;
    let elapsed = state.started_at.elapsed();
    assert!(state.failures.borrow().is_empty(), "{address}: {}", state.failure_summary());
    OperationTimes::new(state.times.take(), elapsed)
}

/// Runs a load whose answers may be bad, and returns their number.
pub async fn run_burst(
    address: SocketAddr,
    load_request: &Rc<LoadRequest>,
    count: usize,
) -> (OperationTimes, usize) {
    let clients = connect_all(address, count).await;
    let state = LoadState::new(load_request, StopCondition::Completed(count));
    run_clients(clients, &state).await;
    let elapsed = state.started_at.elapsed();
    (OperationTimes::new(state.times.take(), elapsed), state.failures.take().len())
}

/// Keeps this many requests in flight, and counts the answers in a window that starts when all are in flight. The
/// requests are added gradually; `wait_until_arrived` returns after nearly all of them have arrived. Requests in flight
/// at the end are abandoned.
///
/// # Errors
/// The first bad answer, or the message that the load does not settle.
pub async fn measure_steady_load(
    (address, load_request): (SocketAddr, &Rc<LoadRequest>),
    in_flight: usize,
    wait_until_arrived: impl AsyncFn(usize) -> Result<(), String>,
    duration: Duration,
) -> Result<OperationTimes, String> {
    let (tasks, state) =
        (LocalSet::new(), LoadState::new(load_request, StopCondition::Elapsed(Duration::MAX)));
    let measurement = async {
        let mut connection_count = 0;
        while connection_count < in_flight {
            let added_count = CONNECTION_BATCH.min(in_flight - connection_count);
            spawn_clients(connect_all(address, added_count).await, &state, &tasks);
            connection_count += added_count;
            wait_until_arrived(connection_count).await?;
        }
        state.times.take();
        let window_started_at = Instant::now();
        tokio::time::sleep(duration).await; // The window of the measurement.
        Ok(OperationTimes::new(state.times.take(), window_started_at.elapsed()))
    };
    tasks
        .run_until(async {
            tokio::select! {
                run = measurement => run,
                () = state.failure_notify.notified() => Err(state.failure_summary()),
            }
        })
        .await
}

async fn connect_all(address: SocketAddr, count: usize) -> Vec<KeepAliveClient> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(KeepAliveClient::connect(address).await);
    }
    clients
}

fn run_clients(clients: Vec<KeepAliveClient>, state: &Rc<LoadState>) -> LocalSet {
    let tasks = LocalSet::new();
    spawn_clients(clients, state, &tasks);
    tasks
}

fn spawn_clients(clients: Vec<KeepAliveClient>, state: &Rc<LoadState>, tasks: &LocalSet) {
    for mut client in clients {
        let state = Rc::clone(state);
        tasks.spawn_local(async move { state.send_requests(&mut client).await });
    }
}

/// Returns nanoseconds of the wall clock, which the started programs read too.
///
/// # Panics
/// Panics if the clock is before 1970.
#[must_use]
pub fn wall_clock_nanoseconds() -> u64 {
    nanoseconds(UNIX_EPOCH.elapsed().expect("a clock"))
}

/// Returns a number that no other request had: the clock advances faster than requests are built.
#[must_use]
pub fn unique_number() -> u64 {
    wall_clock_nanoseconds()
}
