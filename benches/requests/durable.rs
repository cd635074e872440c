//! Throughput of a service whose commits survive a power failure.

use algonius_gauge::limit::{Limit, cores};
use algonius_gauge::load::{Until, run};
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::service::Service;

use super::{BYTES, CAT, PROGRAM};

/// Measures row 21.
pub(crate) async fn measure(report: &mut Report) {
    let service = Service::start(PROGRAM, "durability = \"power\"", CAT).await;
    let (limit, mut rounds) = (Limit::of_cat(BYTES), Rounds::default());
    let (asked, until) = (service.rpc("cat", BYTES), Until::Over(Rounds::lasting()));
    for _ in 0..Rounds::count() {
        rounds.take("L", limit.run(cores(), Rounds::lasting()));
        rounds.take("power", run(service.address, &asked, 100, until).await);
    }
    let [rate, most] = ["power", "L"].map(|kind| rounds.of(kind, Run::rate));
    report.row(Row {
        number: 21,
        what: "throughput that a power failure does not undo, 100 in flight".to_owned(),
        value: rounds.ratio("power", "L", Run::rate),
        unit: "× L".to_owned(),
        goal: Goal::AtLeast(0.6, 0.75),
        behind: format!("{rate:.0}/s; L {most:.0}/s; {}", rounds.whole("power").told()),
    });
}
