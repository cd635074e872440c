//! The tree in hundreds of random simulations, on paused time: the promises hold for all requests, failures,
//! cancellations and kills.
//!
//! `ALGONIUS_SEEDS=20000` runs more simulations, `ALGONIUS_SEED=17` the one of this seed.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

mod invariants;
mod plan;
mod run;
mod seeded_random;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use algonius_redact::Redactor;
use plan::SimulationPlan;
use seeded_random::SeededRandom;

/// How many are played where nobody says otherwise.
const DEFAULT_SIMULATIONS: u64 = 800;

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match (number("ALGONIUS_SEED"), number("ALGONIUS_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(DEFAULT_SIMULATIONS),
    }
}

fn simulate(seed: u64, redactor: &Arc<Redactor>) {
    let mut random = SeededRandom::from_seed(seed);
    let plan = SimulationPlan::from_random(&mut random);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let result = runtime.block_on(run::run_simulation(&plan, &mut random, redactor));
        invariants::assert_invariants(&plan, &result);
    }));
    assert!(outcome.is_ok(), "ALGONIUS_SEED={seed} fails as told above, by {plan:?}");
}

#[test]
fn all_promises_hold_in_simulated_worlds() {
    let redactor = Arc::new(Redactor::new([]));
    for seed in seeds() {
        simulate(seed, &redactor);
    }
}
