//! Writes the stored results to `docs/performance.md`: the table, and the curves as plots.
#![expect(
    clippy::expect_used,
    reason = "a page that lacks half of its numbers must not be written"
)]
#![expect(clippy::print_stdout, reason = "it says what it wrote")]

mod page;
mod plot;

use std::fs;

use algonius_gauge::machine;
use algonius_gauge::page::{docs_folder, write_sections};
use algonius_gauge::report::{BenchReport, Curve, ResultRow, report_folder};

fn main() {
    let (rows, curves) = stored_results();
    assert!(!rows.is_empty(), "nothing is measured yet: run the benches first");
    let plots = docs_folder().join("performance");
    fs::create_dir_all(&plots).expect("a folder for plots");
    for curve in &curves {
        let file = plots.join(format!("{}.svg", curve.name));
        fs::write(file, plot::svg(curve)).expect("a plot");
    }
    write_sections(&[
        ("machine", machine::description()),
        ("table", page::table(&rows)),
        ("curves", page::plots(&curves)),
    ]);
    println!("docs/performance.md: {} rows, {} curves", rows.len(), curves.len());
}

/// Returns the stored results of all benches, by number.
fn stored_results() -> (Vec<ResultRow>, Vec<Curve>) {
    let files =
        fs::read_dir(report_folder()).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let read_report = |file| {
        let text = fs::read_to_string(file).expect("what was kept");
        serde_json::from_str::<BenchReport>(&text).expect("a report")
    };
    let reports: Vec<_> = files.iter().map(read_report).collect();
    let mut rows: Vec<_> = reports.iter().flat_map(BenchReport::rows).cloned().collect();
    rows.sort_by_key(|row| row.number);
    (rows, reports.iter().flat_map(BenchReport::curves).cloned().collect())
}
