//! Burst of a thousand requests.

use algonius_gauge::client::Client;
use algonius_gauge::limit::{Limit, cores};
use algonius_gauge::load::burst;
use algonius_gauge::process::peak;
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{Run, median};
use algonius_gauge::service::Service;

use super::{BYTES, PROGRAM, SERVER, cat};

/// Number of simultaneous requests, each on a connection of its own.
const COUNT: usize = 1000;

/// Measures row 6.
pub(crate) async fn measure(report: &mut Report) {
    let (limit, mut rounds, mut peaks, mut bad) =
        (Limit::of_cat(BYTES), Rounds::default(), Vec::new(), 0);
    for _ in 0..Rounds::count().min(3) {
        rounds.take("L", limit.run(cores(), Rounds::lasting()));
        let service = Service::start(PROGRAM, SERVER, &cat(COUNT)).await; // A new service, so that its peak memory belongs to this burst.
        let asked = service.rpc("cat", BYTES);
        Client::to(service.address).await.ask(&(asked.request)(1)).await;
        let (run, failed) = burst(service.address, &asked, COUNT).await;
        bad += failed;
        peaks.push(service.sum(peak) / 1e6);
        rounds.take("burst", run);
    }
    let limit = rounds.of("L", Run::rate);
    let told = rounds.whole("burst").told();
    // The ratio of the makespan to that of L equals the ratio of L's rate to this one.
    report.row(Row {
        number: 6,
        what: format!("burst of {COUNT}: all of it, against {COUNT} / L"),
        value: rounds.ratio("L", "burst", Run::rate),
        unit: "× ideal".to_owned(),
        goal: Goal::AtMost(1.5, 1.3),
        behind: format!("{:.2} s; L {limit:.0}/s; {told}", rounds.of("burst", seconds)),
    });
    report.row(Row {
        number: 6,
        what: format!("burst of {COUNT}: requests that failed"),
        value: f64::from(u32::try_from(bad).unwrap_or(u32::MAX)),
        unit: String::new(),
        goal: Goal::AtMost(0.0, 0.0),
        behind: String::new(),
    });
    report.row(Row {
        number: 6,
        what: format!("burst of {COUNT}: peak memory of service and warden"),
        value: median(peaks),
        unit: "MB".to_owned(),
        goal: Goal::AtMost(64.0, 48.0),
        behind: "resident, connections included".to_owned(),
    });
}

fn seconds(run: &Run) -> f64 {
    run.lasted as f64 / 1e9
}
