//! Ten minutes of work at half of the machine's maximum: memory must not grow, and nothing may remain. The bench fails
//! otherwise. `--quick` takes a minute.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::cell::Cell;
use std::fs;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::process::resident_bytes;
use algonius_gauge::role::{self, is_quick};
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Number of client connections.
const CLIENT_COUNT: u32 = 8;

/// Greatest growth of memory in megabytes per minute.
const MAX_GROWTH_MB_PER_MINUTE: f64 = 1.0;

/// Greatest difference of open descriptors between two samples: those of requests in progress.
const MAX_DESCRIPTOR_DIFFERENCE: usize = 16 * CLIENT_COUNT as usize;

const AGENTS_CONFIG: &str =
    "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n";

/// Sample of the service and its process holder.
struct Sample {
    minutes: f64,
    megabytes: f64,
    descriptors: usize,
    zombies: usize,
}

fn main() -> ExitCode {
    if role::run_requested_role() {
        return ExitCode::SUCCESS;
    }
    let rate =
        SpawnRateBaseline::for_cat(1024).run(core_count(), Duration::from_secs(3)).rate() / 2.0;
    let duration = Duration::from_secs(if is_quick() { 60 } else { 600 });
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (samples, completed_count) =
        runtime.block_on(LocalSet::new().run_until(run_soak(rate, duration)));
    println!("{completed_count} requests, {rate:.0} a second, half of what can be started");
    match find_violation(&samples) {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("{violation}");
            ExitCode::FAILURE
        }
    }
}

/// Puts the service under load at this rate, and takes samples.
async fn run_soak(rate: f64, duration: Duration) -> (Vec<Sample>, u64) {
    let service = Rc::new(Service::start(PROGRAM, "", AGENTS_CONFIG).await);
    let (started_at, completed_count) = (Instant::now(), Rc::new(Cell::new(0)));
    let request_interval = Duration::from_secs_f64(f64::from(CLIENT_COUNT) / rate);
    for _ in 0..CLIENT_COUNT {
        tokio::task::spawn_local(send_requests(
            Rc::clone(&service),
            Rc::clone(&completed_count),
            request_interval,
        ));
    }
    let mut samples = Vec::new();
    while started_at.elapsed() < duration {
        sleep(duration / 60).await;
        let minutes = started_at.elapsed().as_secs_f64() / 60.0;
        let sample = take_sample(&service, minutes).await;
        let Sample { megabytes, descriptors, zombies, .. } = sample;
        println!(
            "{minutes:5.2} min  {megabytes:7.2} MB  {descriptors:4} descriptors  {zombies} zombies"
        );
        samples.push(sample);
    }
    (samples, completed_count.get())
}

async fn send_requests(
    service: Rc<Service>,
    completed_count: Rc<Cell<u64>>,
    request_interval: Duration,
) {
    let mut client = KeepAliveClient::connect(service.address).await;
    let load_request = service.json_rpc_load_request("cat", 1024);
    let mut ticks = interval(request_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answer = client.send_request(&(load_request.build)(unique_number())).await;
        assert!((load_request.is_good)(&answer), "{}", String::from_utf8_lossy(answer.body));
        completed_count.set(completed_count.get() + 1);
    }
}

async fn take_sample(service: &Service, minutes: f64) -> Sample {
    let open_descriptors = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let processes = service.pids();
    Sample {
        minutes,
        megabytes: service.sum_over_processes(resident_bytes) / 1e6,
        descriptors: processes.into_iter().map(open_descriptors).sum(),
        zombies: count_zombies(&processes).await,
    }
}

/// Returns the number of children that are zombies in two consecutive samples: a program that has just ended does not
/// count.
async fn count_zombies(parents: &[u32]) -> usize {
    let first = zombie_children(parents);
    sleep(Duration::from_millis(100)).await; // Ended children are reaped meanwhile.
    zombie_children(parents).iter().filter(|pid| first.contains(pid)).count()
}

fn zombie_children(parents: &[u32]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("the processes").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|pid| is_zombie_child(*pid, parents)).collect()
}

fn is_zombie_child(pid: u32, parents: &[u32]) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut words = rest.split(' ');
    let is_zombie = words.next() == Some("Z");
    is_zombie
        && words
            .next()
            .and_then(|word| word.parse().ok())
            .is_some_and(|parent| parents.contains(&parent))
}

/// Returns the violated limit, if any, after the first third of the samples, in which all caches are filled.
fn find_violation(samples: &[Sample]) -> Option<String> {
    let steady_samples = samples.get(samples.len() / 3..).unwrap_or_default();
    let slope = memory_slope(steady_samples);
    println!("memory: {slope:+.3} MB a minute; at most {MAX_GROWTH_MB_PER_MINUTE}");
    let zombies: usize = samples.iter().map(|sample| sample.zombies).sum();
    let descriptors = || steady_samples.iter().map(|sample| sample.descriptors);
    let (lowest, highest) = (descriptors().min()?, descriptors().max()?);
    println!("descriptors: {lowest} to {highest}; zombies: {zombies}");
    if slope > MAX_GROWTH_MB_PER_MINUTE {
        return Some(format!("memory grows by {slope:.3} MB a minute"));
    }
    if highest - lowest > MAX_DESCRIPTOR_DIFFERENCE {
        return Some(format!("descriptors are not flat: {lowest} to {highest}"));
    }
    (zombies > 0).then(|| format!("{zombies} zombies"))
}

/// Returns the slope in megabytes per minute, by least squares.
fn memory_slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (minutes, megabytes) = (mean(|sample| sample.minutes), mean(|sample| sample.megabytes));
    let covariance = |sample: &Sample| (sample.minutes - minutes) * (sample.megabytes - megabytes);
    let variance = |sample: &Sample| (sample.minutes - minutes).powi(2);
    samples.iter().map(covariance).sum::<f64>() / samples.iter().map(variance).sum::<f64>()
}
