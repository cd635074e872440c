//! Results as a Markdown table with a line per contender.

use std::fmt::Write as _;

use algonius_gauge::page::number_of;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::RunTimes;

use super::PARALLEL_REQUESTS;
use super::contender::Contender;

const HEAD: &str = "\
    | | Requests, 10 in flight | × L | this service ÷ it | p50, 1 in flight | × bare | p99, 10 in flight \
    | Memory at first | after so many requests |\n|---|---|---|---|---|---|---|---|---|\n";

/// Line of the table.
pub(crate) struct ContenderRow {
    name: String,
    /// Requests per second, then as ratios to L and of the service to it.
    rate: f64,
    of_limit: f64,
    of_service: f64,
    /// Milliseconds, then as a ratio to a process that starts the program and does nothing else.
    half: f64,
    of_bare: f64,
    /// Milliseconds.
    p99: f64,
    /// Megabytes.
    idle: f64,
    after: f64,
    /// Thousands of requests that were answered by then.
    answered_thousands: f64,
}

impl ContenderRow {
    /// Returns the lines of all contenders, of which the first is the service. `before` contains the memory of each,
    /// and its answered requests, before the rounds.
    pub(crate) fn all(these: &[Contender], rounds: &Rounds, before: &[(f64, f64)]) -> Vec<Self> {
        let service =
            these.first().map_or_else(String::new, |service| service.key(PARALLEL_REQUESTS));
        let one = |(it, before)| Self::of(it, &service, rounds, before);
        these.iter().zip(before).map(one).collect()
    }

    fn of(it: &Contender, service: &str, rounds: &Rounds, before: &(f64, f64)) -> Self {
        let (wide, one) = (it.key(PARALLEL_REQUESTS), it.key(1));
        let (all, each) = (rounds.merged(&wide), rounds.merged(&one));
        Self {
            name: it.name.clone(),
            rate: rounds.of(&wide, RunTimes::rate),
            of_limit: rounds.ratio(&wide, "L", RunTimes::rate),
            of_service: rounds.ratio(service, &wide, RunTimes::rate),
            half: rounds.of(&one, half),
            of_bare: rounds.ratio(&one, "bare", half),
            p99: all.at(990),
            idle: before.0 / 1e6,
            after: it.memory() / 1e6,
            answered_thousands: (before.1 + all.count() + each.count()) / 1e3,
        }
    }
}

/// Returns the median in milliseconds.
pub(crate) fn half(run: &RunTimes) -> f64 {
    run.at(500)
}

/// Returns all lines as a table.
pub(crate) fn markdown(rows: &[ContenderRow]) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let ContenderRow { name, rate, of_limit, of_service, half, of_bare, p99, .. } = row;
        let [of_limit, of_service, of_bare] = [*of_limit, *of_service, *of_bare].map(number_of);
        let ContenderRow { idle, after, answered_thousands, .. } = row;
        _ = writeln!(
            text,
            "| {name} | {rate:.0}/s | {of_limit} | {of_service} | {half:.2} ms | {of_bare} | {p99:.2} ms \
             | {idle:.1} MB | {after:.1} MB, {answered_thousands:.1} k |"
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
            of_limit: 0.3333,
            of_service: 1.5,
            half: 2.0,
            of_bare: 2.5,
            p99: 14.321,
            idle: 53.71,
            after: 60.04,
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
