//! Rows: what was measured, as a ratio to a yardstick of the same run, and what it has to be.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the gate and the stretch of a row lie.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// At least so much; gate, then stretch.
    AtLeast(f64, f64),
    /// At most so much; gate, then stretch.
    AtMost(f64, f64),
    /// Told, not judged.
    Told,
}

impl Goal {
    /// How a value stands to this goal: `stretch`, `gate`, `missed`, or nothing where none is set.
    #[must_use]
    pub fn verdict(self, value: f64) -> &'static str {
        let (gate, stretch) = match self {
            Self::AtLeast(gate, stretch) => (value >= gate, value >= stretch),
            Self::AtMost(gate, stretch) => (value <= gate, value <= stretch),
            Self::Told => return "",
        };
        match (gate, stretch) {
            (_, true) => "stretch",
            (true, false) => "gate",
            (false, false) => "missed",
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Row {
    /// The number of the goal, 1 to 21.
    pub number: u8,
    /// What was measured, as `throughput, JSON-RPC, 10 in flight`.
    pub what: String,
    /// What it came to.
    pub value: f64,
    /// Its unit, as `× L`, `ms`, `KB`.
    pub unit: String,
    /// What it has to be.
    pub goal: Goal,
    /// The figures behind it, as `p50 2.1 ms, p95 2.9 ms, p99 3.4 ms; L 890/s`.
    pub behind: String,
}

/// How something grows with something else.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Curve {
    /// A short name, fit for a file: `history`.
    pub name: String,
    /// What grows, with its unit.
    pub across: String,
    /// What is measured, with its unit.
    pub up: String,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// What one bench has measured.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Report {
    bench: String,
    rows: Vec<Row>,
    curves: Vec<Curve>,
}

impl Report {
    /// The report of the bench of this name.
    #[must_use]
    pub fn of(bench: &str) -> Self {
        Self { bench: bench.to_owned(), ..Self::default() }
    }

    /// Takes a row, and prints it at once.
    pub fn row(&mut self, row: Row) {
        let Row { number, what, value, unit, goal, behind } = &row;
        println!(
            "{number:>2}  {what:<58} {value:>9.3} {unit:<6} {:<8} {behind}",
            goal.verdict(*value)
        );
        self.rows.push(row);
    }

    /// Takes a curve.
    pub fn curve(&mut self, curve: Curve) {
        self.curves.push(curve);
    }

    /// Keeps what was measured, below `target/bench`.
    ///
    /// # Panics
    /// Where it cannot be written: what was measured would be lost.
    pub fn keep(&self) {
        let folder = folder();
        fs::create_dir_all(&folder).expect("a folder for what was measured");
        let text = serde_json::to_string_pretty(self).expect("JSON");
        fs::write(folder.join(format!("{}.json", self.bench)), text).expect("a file");
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Its curves.
    #[must_use]
    pub fn curves(&self) -> &[Curve] {
        &self.curves
    }
}

/// Where reports are kept.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench")
}
