//! When a machine has too little of something to take more work.

use algonius_actors::decide::pressure::{Gauges, basis, step};
use algonius_actors::model::pressure::{
    Basis, PressureSpec, Reading, Shortage, Shortage::*, Stalls,
};
use algonius_actors::testing::BOUNDS;
use proptest::prelude::*;

const USAGE: PressureSpec = PressureSpec { by_stalls: false, ..BOUNDS };
const GIB: u64 = 1 << 30;

/// A machine at ease.
fn ease(cores: u32) -> Reading {
    Reading {
        cores,
        cpu_percent: Some(10.0),
        memory_percent: Some(20.0),
        load: Some(0.5),
        disk_free_bytes: Some(50 * GIB),
        stalls: Some(Stalls::default()),
    }
}

/// What is short after the readings, one after the other.
fn story(spec: &PressureSpec, readings: &[Reading]) -> Vec<Vec<Shortage>> {
    let next = |gauges: &mut Gauges, reading: &Reading| {
        *gauges = step(std::mem::take(gauges), reading, spec);
        Some(gauges.short())
    };
    readings.iter().scan(Gauges::default(), next).collect()
}

/// What is short on a machine that stays as it is.
fn lasting(spec: &PressureSpec, reading: Reading) -> Vec<Shortage> {
    story(spec, &[reading; 3]).pop().unwrap_or_default()
}

#[test]
fn above_the_well_known_bounds_nothing_new_is_let_in() {
    for (reading, short) in [
        (Reading { cpu_percent: Some(90.1), ..ease(2) }, Cpu),
        (Reading { memory_percent: Some(85.1), ..ease(2) }, Memory),
        (Reading { load: Some(4.1), ..ease(64) }, Load),
        (Reading { disk_free_bytes: Some(999_999_999), ..ease(2) }, Disk),
    ] {
        assert_eq!(lasting(&USAGE, reading), [short]);
    }
    let bounds = Reading {
        cpu_percent: Some(90.0),
        memory_percent: Some(85.0),
        load: Some(4.0),
        disk_free_bytes: Some(1_000_000_000),
        ..ease(2)
    };
    assert_eq!(lasting(&USAGE, bounds), []);
}

#[test]
fn stalls_count_whatever_is_in_use_and_use_counts_nothing() {
    let busy = Reading {
        cpu_percent: Some(100.0),
        memory_percent: Some(99.0),
        load: Some(40.0),
        stalls: Some(Stalls { cpu_percent: 99.0, memory_percent: 5.0, io_percent: 60.0 }),
        ..ease(16)
    };
    assert_eq!(lasting(&BOUNDS, busy), []);
    let of = |stalls| Reading { stalls: Some(stalls), ..ease(16) };
    let thrashing = of(Stalls { memory_percent: 21.0, ..Stalls::default() });
    let drowning = of(Stalls { io_percent: 96.0, ..Stalls::default() });
    assert_eq!((lasting(&BOUNDS, thrashing), lasting(&BOUNDS, drowning)), (vec![Memory], vec![Io]));
}

/// Five builds beside the service on two processors; then so many that nothing moves; then their
/// end, which the load forgets slowly.
#[test]
fn a_long_line_at_the_processors_counts_while_it_is_there() {
    let with = |load, cpu_percent| Reading {
        load: Some(load),
        stalls: Some(Stalls { cpu_percent, ..Stalls::default() }),
        ..ease(2)
    };
    assert_eq!(lasting(&BOUNDS, with(20.0, 99.9)), []);
    assert_eq!(lasting(&BOUNDS, with(33.0, 99.9)), [Load]);
    assert_eq!(lasting(&BOUNDS, with(33.0, 40.0)), []);
}

#[test]
fn a_machine_that_tells_of_no_stalls_is_judged_by_memory_and_the_load_of_a_processor() {
    let of = |reading: Reading| Reading { stalls: None, ..reading };
    let busy = of(Reading { cpu_percent: Some(100.0), load: Some(31.0), ..ease(2) });
    assert_eq!((basis(&busy, &BOUNDS), lasting(&BOUNDS, busy)), (Basis::Fallback, vec![]));
    assert_eq!(lasting(&BOUNDS, of(Reading { load: Some(33.0), ..ease(2) })), [Load]);
    assert_eq!(lasting(&BOUNDS, of(Reading { memory_percent: Some(86.0), ..ease(2) })), [Memory]);
}

#[test]
fn a_later_reading_alone_turns_nothing_and_relief_comes_well_below_the_bound() {
    let with = |percent| Reading { memory_percent: Some(percent), ..ease(2) };
    let readings = [20.0, 90.0, 20.0, 90.0, 90.0, 84.0, 84.0, 84.0, 20.0, 90.0, 20.0, 20.0];
    let readings = readings.map(with);
    let shown: Vec<_> = story(&USAGE, &readings).into_iter().map(|short| short.len()).collect();
    assert_eq!(shown, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn the_first_reading_is_believed() {
    let full = Reading { disk_free_bytes: Some(1), ..ease(2) };
    assert_eq!(story(&BOUNDS, &[full, ease(2), ease(2)]), [vec![Disk], vec![Disk], vec![]]);
}

#[test]
fn what_cannot_be_read_and_a_bound_of_nothing_keep_nobody_out() {
    assert_eq!(lasting(&USAGE, Reading::default()), []);
    assert_eq!(lasting(&BOUNDS, Reading::default()), []);
    let off = PressureSpec { min_disk_free_bytes: 0, ..BOUNDS };
    let full = Reading { disk_free_bytes: Some(0), ..ease(2) };
    assert_eq!((lasting(&off, full), lasting(&BOUNDS, full)), (vec![], vec![Disk]));
}

proptest! {
    /// Around a bound, whatever the order: the judgement never turns twice in a row, and a machine
    /// at ease is taken as one in the end.
    #[test]
    fn a_judgement_lasts_for_two_readings_at_least(
        levels in proptest::collection::vec(70.0f64..100.0, 0..60),
    ) {
        let with = |percent: &f64| Reading { cpu_percent: Some(*percent), ..ease(2) };
        let readings: Vec<_> = levels.iter().map(with).chain([ease(2), ease(2)]).collect();
        let shown = story(&USAGE, &readings);
        for three in shown.windows(3) {
            prop_assert!(!(three[0] != three[1] && three[1] != three[2]), "{:?}", shown);
        }
        prop_assert_eq!(shown.last(), Some(&vec![]));
    }
}
