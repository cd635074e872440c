//! Ten minutes of work at half of the machine's maximum: memory must not grow, and nothing may remain. The bench fails
//! otherwise. `--quick` takes a minute.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::cell::Cell;
use std::fs;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use algonius_gauge::client::Client;
use algonius_gauge::limit::{Limit, cores};
use algonius_gauge::load::number;
use algonius_gauge::part::{self, is_quick};
use algonius_gauge::process::resident;
use algonius_gauge::service::Service;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Number of client connections.
const CLIENTS: u32 = 8;

/// Greatest growth of memory in megabytes per minute.
const SLOPE: f64 = 1.0;

/// Greatest difference of open descriptors between two samples: those of requests in progress.
const UNDER_WAY: usize = 16 * CLIENTS as usize;

const AGENTS: &str = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n";

/// Sample of the service and its process holder.
struct Look {
    minutes: f64,
    megabytes: f64,
    descriptors: usize,
    zombies: usize,
}

fn main() -> ExitCode {
    if part::is_played() {
        return ExitCode::SUCCESS;
    }
    let rate = Limit::of_cat(1024).run(cores(), Duration::from_secs(3)).rate() / 2.0;
    let lasting = Duration::from_secs(if is_quick() { 60 } else { 600 });
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (looks, done) = runtime.block_on(LocalSet::new().run_until(work(rate, lasting)));
    println!("{done} requests, {rate:.0} a second, half of what can be started");
    match wrong(&looks) {
        None => ExitCode::SUCCESS,
        Some(wrong) => {
            println!("{wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Puts the service under load at this rate, and takes samples.
async fn work(rate: f64, lasting: Duration) -> (Vec<Look>, u64) {
    let service = Rc::new(Service::start(PROGRAM, "", AGENTS).await);
    let (begin, done) = (Instant::now(), Rc::new(Cell::new(0)));
    let pace = Duration::from_secs_f64(f64::from(CLIENTS) / rate);
    for _ in 0..CLIENTS {
        tokio::task::spawn_local(keep_asking(Rc::clone(&service), Rc::clone(&done), pace));
    }
    let mut looks = Vec::new();
    while begin.elapsed() < lasting {
        sleep(lasting / 60).await;
        let minutes = begin.elapsed().as_secs_f64() / 60.0;
        let look = look(&service, minutes).await;
        let Look { megabytes, descriptors, zombies, .. } = look;
        println!(
            "{minutes:5.2} min  {megabytes:7.2} MB  {descriptors:4} descriptors  {zombies} zombies"
        );
        looks.push(look);
    }
    (looks, done.get())
}

async fn keep_asking(service: Rc<Service>, done: Rc<Cell<u64>>, pace: Duration) {
    let mut client = Client::to(service.address).await;
    let asked = service.rpc("cat", 1024);
    let mut ticks = interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let answer = client.ask(&(asked.request)(number())).await;
        assert!((asked.is_good)(&answer), "{}", String::from_utf8_lossy(answer.body));
        done.set(done.get() + 1);
    }
}

async fn look(service: &Service, minutes: f64) -> Look {
    let open = |process| fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
    let processes = service.processes();
    Look {
        minutes,
        megabytes: service.sum(resident) / 1e6,
        descriptors: processes.into_iter().map(open).sum(),
        zombies: zombies(&processes).await,
    }
}

/// Returns the number of children that are zombies in two consecutive samples: a program that has just ended does not
/// count.
async fn zombies(parents: &[u32]) -> usize {
    let first = dead(parents);
    sleep(Duration::from_millis(100)).await; // Ended children are reaped meanwhile.
    dead(parents).iter().filter(|process| first.contains(process)).count()
}

fn dead(parents: &[u32]) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("the processes").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|process| is_dead(*process, parents)).collect()
}

fn is_dead(process: u32, parents: &[u32]) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut words = rest.split(' ');
    let is_zombie = words.next() == Some("Z");
    is_zombie && words.next().and_then(|it| it.parse().ok()).is_some_and(|it| parents.contains(&it))
}

/// Returns the violated limit, if any, after the first third of the samples, in which all caches are filled.
fn wrong(looks: &[Look]) -> Option<String> {
    let settled = looks.get(looks.len() / 3..).unwrap_or_default();
    let slope = slope(settled);
    println!("memory: {slope:+.3} MB a minute; at most {SLOPE}");
    let zombies: usize = looks.iter().map(|look| look.zombies).sum();
    let descriptors = || settled.iter().map(|look| look.descriptors);
    let (least, most) = (descriptors().min()?, descriptors().max()?);
    println!("descriptors: {least} to {most}; zombies: {zombies}");
    if slope > SLOPE {
        return Some(format!("memory grows by {slope:.3} MB a minute"));
    }
    if most - least > UNDER_WAY {
        return Some(format!("descriptors are not flat: {least} to {most}"));
    }
    (zombies > 0).then(|| format!("{zombies} zombies"))
}

/// Returns the slope in megabytes per minute, by least squares.
fn slope(looks: &[Look]) -> f64 {
    let count = looks.len() as f64;
    let mean = |of: fn(&Look) -> f64| looks.iter().map(of).sum::<f64>() / count;
    let (minutes, megabytes) = (mean(|look| look.minutes), mean(|look| look.megabytes));
    let over = |look: &Look| (look.minutes - minutes) * (look.megabytes - megabytes);
    let under = |look: &Look| (look.minutes - minutes).powi(2);
    looks.iter().map(over).sum::<f64>() / looks.iter().map(under).sum::<f64>()
}
