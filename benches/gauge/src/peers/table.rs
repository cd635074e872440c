//! Results as a Markdown table with a line per contender.

use std::fmt::Write as _;

use algonius_gauge::page::format_number;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;

use super::PARALLEL_REQUESTS;
use super::contender::Contender;

const TABLE_HEAD: &str = "\
    | | Requests, 10 in flight | × L | this service ÷ it | p50, 1 in flight | × bare | p99, 10 in flight \
    | Memory at first | after so many requests |\n|---|---|---|---|---|---|---|---|---|\n";

/// Line of the table.
pub(crate) struct ContenderRow {
    name: String,
    /// Requests per second, then as ratios to L and of the service to it.
    rate: f64,
    limit_ratio: f64,
    service_ratio: f64,
    /// Milliseconds, then as a ratio to a process that starts the program and does nothing else.
    median_ms: f64,
    bare_ratio: f64,
    /// Milliseconds.
    p99_ms: f64,
    /// Megabytes.
    idle_mb: f64,
    final_mb: f64,
    /// Thousands of requests that were answered by then.
    answered_thousands: f64,
}

impl ContenderRow {
    /// Returns the lines of all contenders, of which the first is the service. `memory_and_request_counts` are the
    /// memory of each, and its answered requests, before the rounds.
    pub(crate) fn for_contenders(
        contenders: &[Contender],
        rounds: &Rounds,
        memory_and_request_counts: &[(f64, f64)],
    ) -> Vec<Self> {
        let service_series = contenders
            .first()
            .map_or_else(String::new, |service| service.series_name(PARALLEL_REQUESTS));
        let to_row = |(contender, memory_and_request_count)| {
            Self::new(contender, &service_series, rounds, memory_and_request_count)
        };
        contenders.iter().zip(memory_and_request_counts).map(to_row).collect()
    }

    fn new(
        contender: &Contender,
        service_series: &str,
        rounds: &Rounds,
        memory_and_request_count: &(f64, f64),
    ) -> Self {
        let (parallel_series, sequential_series) =
            (contender.series_name(PARALLEL_REQUESTS), contender.series_name(1));
        let (parallel_run, sequential_run) =
            (rounds.merged_run(&parallel_series), rounds.merged_run(&sequential_series));
        Self {
            name: contender.name.clone(),
            rate: rounds.median_of(&parallel_series, OperationTimes::rate),
            limit_ratio: rounds.median_ratio(&parallel_series, "L", OperationTimes::rate),
            service_ratio: rounds.median_ratio(
                service_series,
                &parallel_series,
                OperationTimes::rate,
            ),
            median_ms: rounds.median_of(&sequential_series, median_ms),
            bare_ratio: rounds.median_ratio(&sequential_series, "bare", median_ms),
            p99_ms: parallel_run.quantile_ms(990),
            idle_mb: memory_and_request_count.0 / 1e6,
            final_mb: contender.memory_bytes() / 1e6,
            answered_thousands: (memory_and_request_count.1
                + parallel_run.count()
                + sequential_run.count())
                / 1e3,
        }
    }
}

/// Returns the median in milliseconds.
pub(crate) fn median_ms(run: &OperationTimes) -> f64 {
    run.quantile_ms(500)
}

/// Returns all lines as a table.
pub(crate) fn markdown(rows: &[ContenderRow]) -> String {
    let mut text = TABLE_HEAD.to_owned();
    for row in rows {
        let ContenderRow {
            name,
            rate,
            limit_ratio,
            service_ratio,
            median_ms,
            bare_ratio,
            p99_ms,
            ..
        } = row;
        let [limit_ratio, service_ratio, bare_ratio] =
            [*limit_ratio, *service_ratio, *bare_ratio].map(format_number);
        let ContenderRow { idle_mb, final_mb, answered_thousands, .. } = row;
        _ = writeln!(
            text,
            "| {name} | {rate:.0}/s | {limit_ratio} | {service_ratio} | {median_ms:.2} ms | {bare_ratio} | {p99_ms:.2} ms \
             | {idle_mb:.1} MB | {final_mb:.1} MB, {answered_thousands:.1} k |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let row = ContenderRow {
            name: "a server 1.0".to_owned(),
            rate: 812.4,
            limit_ratio: 0.3333,
            service_ratio: 1.5,
            median_ms: 2.0,
            bare_ratio: 2.5,
            p99_ms: 14.321,
            idle_mb: 53.71,
            final_mb: 60.04,
            answered_thousands: 7.04,
        };
        let text = markdown(&[row]);
        let lines: Vec<_> = text.lines().collect();
        let cells = |line: &&str| line.matches('|').count();
        assert_eq!(lines.iter().map(cells).collect::<Vec<_>>(), [10; 3]);
        assert_eq!(
            lines.last().copied(),
            Some(
                "| a server 1.0 | 812/s | 0.333 | 1.5 | 2.00 ms | 2.5 | 14.32 ms | 53.7 MB | 60.0 MB, 7.0 k |"
            )
        );
    }
}
