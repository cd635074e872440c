//! Kinds, their medians and the ratios between them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode};

/// Measurements of each kind, after warming up.
const SAMPLES: usize = 20;

/// Measures kinds with criterion and keeps a median of each.
pub(crate) struct Bench {
    pub(crate) criterion: Criterion,
    medians: BTreeMap<&'static str, Duration>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let criterion = Criterion::default()
            .sample_size(SAMPLES)
            .warm_up_time(Duration::from_secs(1))
            .measurement_time(Duration::from_secs(4));
        Self { criterion: criterion.configure_from_args(), medians: BTreeMap::new() }
    }

    /// Measures one kind; `act` does it so many times.
    pub(crate) fn measure(&mut self, kind: &'static str, mut act: impl FnMut(u64)) {
        let mut taken = Vec::new();
        let mut group = self.criterion.benchmark_group("request_path");
        group.sampling_mode(SamplingMode::Flat).bench_function(kind, |bencher| {
            bencher.iter_custom(|times| {
                let begin = Instant::now();
                act(times);
                let took = begin.elapsed();
                taken.push(took / u32::try_from(times).unwrap_or(u32::MAX));
                took
            });
        });
        group.finish();
        // Tried out or left out, and not measured.
        if taken.len() <= SAMPLES {
            return;
        }
        // What came before the last samples was warming up.
        let mut samples = taken.split_off(taken.len() - SAMPLES);
        samples.sort_unstable();
        if let Some(median) = samples.get(samples.len() / 2) {
            self.medians.insert(kind, *median);
        }
    }

    /// One line for each kind that was measured, and the ratios.
    pub(crate) fn summary(&self) -> String {
        let mut text = "\nmedians of this run\n".to_owned();
        for (kind, median) in &self.medians {
            text += &format!("  {kind:<24} {:>9.3} ms\n", median.as_secs_f64() * 1e3);
        }
        for (product, base) in [
            ("held, 1 in flight", "bare, 1 in flight"),
            ("held, 10 in flight", "bare, 10 in flight"),
            ("send, 1 in flight", "bare, 1 in flight"),
            ("send, 10 in flight", "bare, 10 in flight"),
        ] {
            if let (Some(above), Some(below)) = (self.medians.get(product), self.medians.get(base))
            {
                let ratio = above.as_secs_f64() / below.as_secs_f64();
                text += &format!("{product} / {base}: {ratio:.2}\n");
            }
        }
        text
    }
}
