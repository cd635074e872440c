//! Measured parts of the performance page in Markdown.

use std::fmt::Write as _;

use algonius_gauge::page::format_number;
use algonius_gauge::report::{Curve, Goal, ResultRow};

/// Returns all rows as a table.
pub(crate) fn table(rows: &[ResultRow]) -> String {
    let mut text = "| # | What | Value | Gate, stretch | Reached | Behind it |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for ResultRow { number, description, value, unit, goal, details } in rows {
        let (value, rating) = (format_number(*value), goal.rating(*value));
        let (goal, details) = (goal_text(*goal), details.replace('|', "\\|").replace('\n', " "));
        _ = writeln!(
            text,
            "| {number} | {description} | {value} {unit} | {goal} | {rating} | {details} |"
        );
    }
    text
}

fn goal_text(goal: Goal) -> String {
    match goal {
        Goal::AtLeast(gate, stretch) if gate >= stretch => format!("≥ {gate}"),
        Goal::AtMost(gate, stretch) if gate <= stretch => format!("≤ {gate}"),
        Goal::AtLeast(gate, stretch) => format!("≥ {gate}, {stretch}"),
        Goal::AtMost(gate, stretch) => format!("≤ {gate}, {stretch}"),
        Goal::Unrated => String::new(),
    }
}

/// Returns all curves as images.
pub(crate) fn plots(curves: &[Curve]) -> String {
    let mut text = String::new();
    for Curve { name, x_label, y_label, .. } in curves {
        _ = writeln!(text, "![{y_label}, by {x_label}](performance/{name}.svg)\n");
    }
    text
}
