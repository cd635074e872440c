//! Speed of redacting ordinary text: with the default rules, and with ten times as many.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod text;

use std::hint::black_box;
use std::sync::Arc;

use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_redact::{Pattern, RedactionConfig};
use algonius_redact::{Redactor, StreamRedactor};
use tokio::time::Instant;

/// Bytes that a program writes at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Number of configured patterns: the maximum.
const PATTERN_COUNT: usize = 64;

/// Number of registered values. Together with the patterns they are nine times the built-in rules: the formats of some
/// sixty kinds of tokens, and a dozen families of key words.
const VALUE_COUNT: usize = 640;

type RedactFn = fn(&Arc<Redactor>, &str) -> usize;

fn main() {
    let bytes = if is_quick() { 1 << 20 } else { 8 << 20 };
    let text = text::ordinary_text(bytes);
    let [default_rules, registered_values, values_and_patterns] =
        [(0, 0), (VALUE_COUNT, 0), (VALUE_COUNT, PATTERN_COUNT)].map(redactor);
    let cases: [(&str, &Arc<Redactor>, RedactFn); 5] = [
        ("copied", &default_rules, copy_text),
        ("whole", &default_rules, redact_whole),
        ("streamed", &default_rules, redact_stream),
        ("values", &registered_values, redact_whole),
        ("ten times", &values_and_patterns, redact_whole),
    ];
    let mut rounds = Rounds::default();
    for _ in 0..=Rounds::count() {
        for (kind, redactor, redact) in cases {
            let started_at = Instant::now();
            assert!(black_box(redact(redactor, &text)) > 0);
            let elapsed = started_at.elapsed();
            rounds.add(
                kind,
                OperationTimes::new(vec![u64::try_from(elapsed.as_nanos()).unwrap_or(0)], elapsed),
            );
        }
    }
    report_speed(&rounds, text.len());
}

fn report_speed(rounds: &Rounds, bytes: usize) {
    let mut report = BenchReport::new("redaction");
    let speed =
        |kind: &str| bytes as f64 / 1e6 / (rounds.median_of(kind, |run| run.lasted as f64) / 1e9);
    let [copy_speed, whole_text_speed, stream_speed, values_speed, ten_times_speed] =
        ["copied", "whole", "streamed", "values", "ten times"].map(speed);
    let row = |description: &str, value, unit: &str, goal, details| ResultRow {
        number: 18,
        description: description.to_owned(),
        value,
        unit: unit.to_owned(),
        goal,
        details,
    };
    let goal = Goal::AtLeast(100.0, 300.0);
    let details =
        format!("{:.1} MB of lines of a log; copied {copy_speed:.0} MB/s", bytes as f64 / 1e6);
    report.add_row(row(
        "redaction, default rules, a whole text",
        whole_text_speed,
        "MB/s",
        goal,
        details,
    ));
    let details = format!("in pieces of {} KB, as programs write", PIECE_BYTES >> 10);
    report.add_row(row("redaction, default rules, a stream", stream_speed, "MB/s", goal, details));
    let details = format!(
        "{VALUE_COUNT} registered values and {PATTERN_COUNT} patterns: {ten_times_speed:.0} MB/s; without the patterns {values_speed:.0}"
    );
    let ratio = rounds.median_ratio("ten times", "whole", |run| run.lasted as f64);
    let goal = Goal::AtMost(3.0, 2.0);
    report.add_row(row("redaction, ten times the rules: time", ratio, "×", goal, details));
    report.add_curve(speed_curve(bytes));
    report.store();
}

/// Returns the speed by the number of registered values.
fn speed_curve(bytes: usize) -> Curve {
    let text = text::ordinary_text(bytes.min(1 << 20));
    let point = |value_count: usize| {
        let redactor = redactor((value_count, 0));
        let started_at = Instant::now();
        black_box(redact_whole(&redactor, &text));
        (value_count as f64, text.len() as f64 / 1e6 / started_at.elapsed().as_secs_f64())
    };
    Curve {
        name: "redaction".to_owned(),
        x_label: "registered values".to_owned(),
        y_label: "MB/s".to_owned(),
        points: [0, 10, 100, 1000].map(point).to_vec(),
    }
}

/// Returns a redactor with this many registered values and configured patterns.
fn redactor((value_count, pattern_count): (usize, usize)) -> Arc<Redactor> {
    let value = |number: usize| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let pattern = |number: usize| {
        Pattern::new(&format!("p{number}"), &format!("(?:EMP|CUST)-{number:02}[0-9]{{6}}"), 4)
            .expect("a pattern")
    };
    let redaction_config = RedactionConfig {
        patterns: (0..pattern_count).map(pattern).collect(),
        ..RedactionConfig::default()
    };
    Arc::new(Redactor::new((1..=value_count).map(value)).with_configuration(redaction_config))
}

fn copy_text(_: &Arc<Redactor>, text: &str) -> usize {
    black_box(text.to_owned()).len()
}

fn redact_whole(redactor: &Arc<Redactor>, text: &str) -> usize {
    redactor.redact(text).len()
}

fn redact_stream(redactor: &Arc<Redactor>, text: &str) -> usize {
    let mut stream = StreamRedactor::new(Arc::clone(redactor));
    let total_length: usize =
        text.as_bytes().chunks(PIECE_BYTES).map(|piece| stream.push(piece).len()).sum();
    total_length + stream.finish().len()
}
