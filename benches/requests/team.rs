//! A team of three steps, against three requests to its member.

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;

use super::MESSAGE_BYTES;

/// Measures row 22: one request after the other, so that the times are those of the requests alone.
pub(crate) async fn measure(service: &Service, report: &mut BenchReport) {
    let mut rounds = Rounds::default();
    let stop_condition = StopCondition::Elapsed(Rounds::run_duration());
    let [member, team] =
        ["cat", "crew"].map(|agent| service.json_rpc_load_request(agent, MESSAGE_BYTES));
    for _ in 0..Rounds::count() {
        rounds.add("member", run_load(service.address, &member, 1, stop_condition).await);
        rounds.add("team", run_load(service.address, &team, 1, stop_condition).await);
    }
    let [team_rate, member_rate] =
        ["team", "member"].map(|kind| rounds.median_of(kind, OperationTimes::rate));
    report.add_row(ResultRow {
        number: 22,
        description: "a team of three steps".to_owned(),
        value: rounds.median_ratio("member", "team", OperationTimes::rate) / 3.0,
        unit: "× three requests".to_owned(),
        goal: Goal::AtMost(1.6, 1.3),
        details: format!(
            "{team_rate:.0} runs/s; {member_rate:.0} requests/s; {}",
            rounds.merged_run("team").summary()
        ),
    });
}
