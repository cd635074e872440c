//! Rows of results: a value, mostly as a ratio to a baseline of the same run, and its goal.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Goal of a row, with its gate and its stretch.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Minimum: gate, then stretch.
    AtLeast(f64, f64),
    /// Maximum: gate, then stretch.
    AtMost(f64, f64),
    /// Value without a goal.
    Unrated,
}

impl Goal {
    /// Returns the rating of a value: `stretch`, `gate`, `missed`, or an empty text without a goal.
    #[must_use]
    pub fn rating(self, value: f64) -> &'static str {
        let (reaches_gate, reaches_stretch) = match self {
            Self::AtLeast(gate, stretch) => (value >= gate, value >= stretch),
            Self::AtMost(gate, stretch) => (value <= gate, value <= stretch),
            Self::Unrated => return "",
        };
        match (reaches_gate, reaches_stretch) {
            (_, true) => "stretch",
            (true, false) => "gate",
            (false, false) => "missed",
        }
    }
}

/// Line of the table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ResultRow {
    /// Number of the goal, 1 to 21.
    pub number: u8,
    /// Description of the measurement, as `throughput, JSON-RPC, 10 in flight`.
    pub description: String,
    /// Measured value.
    pub value: f64,
    /// Unit of the value, as `× L`, `ms`, `KB`.
    pub unit: String,
    /// Goal of the value.
    pub goal: Goal,
    /// Figures behind the value, as `p50 2.1 ms, p95 2.9 ms, p99 3.4 ms; L 890/s`.
    pub details: String,
}

/// Curve of one quantity against another.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Curve {
    /// Short name, suitable for a file: `history`.
    pub name: String,
    /// Quantity of the horizontal axis, with its unit.
    pub x_label: String,
    /// Quantity of the vertical axis, with its unit.
    pub y_label: String,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Results of one bench.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct BenchReport {
    bench: String,
    rows: Vec<ResultRow>,
    curves: Vec<Curve>,
}

impl BenchReport {
    /// Returns the empty report of the bench with this name.
    #[must_use]
    pub fn new(bench: &str) -> Self {
        Self { bench: bench.to_owned(), ..Self::default() }
    }

    /// Adds a row, and prints it at once.
    pub fn add_row(&mut self, row: ResultRow) {
        let ResultRow { number, description, value, unit, goal, details } = &row;
        println!(
            "{number:>2}  {description:<58} {value:>9.3} {unit:<6} {:<8} {details}",
            goal.rating(*value)
        );
        self.rows.push(row);
    }

    /// Adds a curve.
    pub fn add_curve(&mut self, curve: Curve) {
        self.curves.push(curve);
    }

    /// Stores the results, below `target/bench`.
    ///
    /// # Panics
    /// Panics if the file cannot be written: the results would be lost.
    pub fn store(&self) {
        let folder = report_folder();
        fs::create_dir_all(&folder).expect("a folder for what was measured");
        let text = serde_json::to_string_pretty(self).expect("JSON");
        fs::write(folder.join(format!("{}.json", self.bench)), text).expect("a file");
    }

    /// Returns the rows.
    #[must_use]
    pub fn rows(&self) -> &[ResultRow] {
        &self.rows
    }

    /// Returns the curves.
    #[must_use]
    pub fn curves(&self) -> &[Curve] {
        &self.curves
    }
}

/// Returns the folder of the reports.
#[must_use]
pub fn report_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench")
}
