//! Row 15: wakeups and processor time of an idle service and its process holder.

use std::time::Duration;

use algonius_gauge::process::{context_switches, thread_cpu_time_ms};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::service::Service;
use tokio::time::sleep;

use super::PROGRAM;

/// Time for the service to settle first.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Measures row 15, with everything that is enabled by default: the monitoring of the machine, and of the configuration
/// file.
pub(crate) async fn measure(report: &mut BenchReport) {
    let text = "[server]\nlisten = \"127.0.0.1:0\"\n[agents.cat]\ncommand = \"cat\"\n";
    let service = Service::start_with_config(PROGRAM, text).await;
    sleep(SETTLE_TIME).await;
    let seconds = if is_quick() { 5 } else { 30 };
    let (switches_before, cpu_ms_before) = (
        service.sum_over_processes(context_switches),
        service.sum_over_processes(thread_cpu_time_ms),
    );
    sleep(Duration::from_secs(seconds)).await; // The measured interval.
    let (switches, cpu_ms) = (
        service.sum_over_processes(context_switches) - switches_before,
        service.sum_over_processes(thread_cpu_time_ms) - cpu_ms_before,
    );
    let seconds = seconds as f64;
    let row = |description: &str, value, unit: &str, goal, details| ResultRow {
        number: 15,
        description: description.to_owned(),
        value,
        unit: unit.to_owned(),
        goal,
        details,
    };
    let details = format!("{switches} in {seconds} s, of all threads of service and warden");
    let goal = Goal::AtMost(10.0, 2.0);
    report.add_row(row("at rest: wake-ups", switches / seconds, "/s", goal, details));
    let details = format!("{cpu_ms:.2} ms in {seconds} s");
    let goal = Goal::AtMost(0.1, 0.02);
    report.add_row(row("at rest: processor time", cpu_ms / seconds / 10.0, "%", goal, details));
}
