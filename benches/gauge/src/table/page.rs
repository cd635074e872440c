//! The parts of the page that are measured, in Markdown.

use std::fmt::Write as _;

use algonius_gauge::report::{Curve, Goal, Row};

/// The page with another text between the two marks of this name.
///
/// # Panics
/// Where the page lacks them.
pub(crate) fn between(page: &str, name: &str, text: &str) -> String {
    let [open, close] = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->")];
    let (before, rest) = page.split_once(&open).expect("a mark");
    let (_, after) = rest.split_once(&close).expect("the mark of its end");
    format!("{before}{open}\n{}\n\n{close}{after}", text.trim_end())
}

/// All rows.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = "| # | What | Value | Gate, stretch | Reached | Behind it |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for Row { number, what, value, unit, goal, behind } in rows {
        let (value, reached) = (number_of(*value), goal.verdict(*value));
        let (goal, behind) = (told(*goal), behind.replace('|', "\\|").replace('\n', " "));
        _ = writeln!(
            text,
            "| {number} | {what} | {value} {unit} | {goal} | {reached} | {behind} |"
        );
    }
    text
}

fn told(goal: Goal) -> String {
    match goal {
        Goal::AtLeast(gate, stretch) if gate >= stretch => format!("≥ {gate}"),
        Goal::AtMost(gate, stretch) if gate <= stretch => format!("≤ {gate}"),
        Goal::AtLeast(gate, stretch) => format!("≥ {gate}, {stretch}"),
        Goal::AtMost(gate, stretch) => format!("≤ {gate}, {stretch}"),
        Goal::Told => String::new(),
    }
}

/// A number with as many places as say something.
pub(crate) fn number_of(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        1000.0.. => return format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// All curves as pictures.
pub(crate) fn plots(curves: &[Curve]) -> String {
    let mut text = String::new();
    for Curve { name, across, up, .. } in curves {
        _ = writeln!(text, "![{up}, by {across}](performance/{name}.svg)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let once = between(page, "x", "new\n");
        assert_eq!(once, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n");
        assert_eq!(between(&once, "x", "new"), once);
    }

    #[test]
    fn numbers_are_no_longer_than_they_must_be() {
        let told = [0.2195, 1.0, 12.345, 345.67, 12_345.6, 0.0].map(number_of);
        assert_eq!(told, ["0.22", "1", "12.35", "345.7", "12346", "0"]);
    }
}
