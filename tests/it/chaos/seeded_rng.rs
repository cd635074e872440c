//! Numbers that look random and are the same for the same seed.

/// Returns random numbers for a test, and the number of its rounds. The printed seed repeats the test.
pub(super) fn rng_and_rounds_or_default(default_rounds: u64) -> (ChaosRng, u64) {
    let random_seed = uuid::Uuid::new_v4().as_u64_pair().0 >> 32;
    let seed = env_number("ALGONIUS_CHAOS_SEED").unwrap_or(random_seed);
    let rounds = env_number("ALGONIUS_CHAOS_ROUNDS").unwrap_or(default_rounds);
    println!("ALGONIUS_CHAOS_SEED={seed} ALGONIUS_CHAOS_ROUNDS={rounds}");
    (ChaosRng(seed), rounds)
}

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A `SplitMix64` with its state.
pub(super) struct ChaosRng(u64);

impl ChaosRng {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn random_below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    /// One of these, if there are any.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = self.random_below(items.len() as u64);
        items.get(usize::try_from(index).unwrap())
    }
}
