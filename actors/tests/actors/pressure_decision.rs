//! The decision that a machine is short of a resource.

use algonius_actors::decide::host::pressure::{PressureGauges, pressure_basis, update_gauges};
use algonius_actors::model::host::pressure::Shortage::*;
use algonius_actors::model::host::pressure::{
    HostReading, PressureBasis, PressureSpec, Shortage, StallReading,
};
use algonius_actors::testing::PRESSURE_LIMITS;
use proptest::prelude::*;

const USAGE_LIMITS: PressureSpec =
    PressureSpec { uses_stall_information: false, ..PRESSURE_LIMITS };
const GIB: u64 = 1 << 30;

/// A machine at ease.
fn idle_machine(cores: u32) -> HostReading {
    HostReading {
        cores,
        cpu_percent: Some(10.0),
        memory_percent: Some(20.0),
        load: Some(0.5),
        disk_free_bytes: Some(50 * GIB),
        stalls: Some(StallReading::default()),
    }
}

/// What is short after the readings, one after the other.
fn shortages_after(spec: &PressureSpec, readings: &[HostReading]) -> Vec<Vec<Shortage>> {
    let apply_reading = |gauges: &mut PressureGauges, reading: &HostReading| {
        *gauges = update_gauges(std::mem::take(gauges), reading, spec);
        Some(gauges.shortages())
    };
    readings.iter().scan(PressureGauges::default(), apply_reading).collect()
}

/// What is short on a machine that stays as it is.
fn lasting_shortages(spec: &PressureSpec, reading: HostReading) -> Vec<Shortage> {
    shortages_after(spec, &[reading; 3]).pop().unwrap_or_default()
}

#[test]
fn readings_above_the_default_bounds_are_pressure() {
    for (reading, short) in [
        (HostReading { cpu_percent: Some(90.1), ..idle_machine(2) }, Cpu),
        (HostReading { memory_percent: Some(85.1), ..idle_machine(2) }, Memory),
        (HostReading { load: Some(4.1), ..idle_machine(64) }, Load),
        (HostReading { disk_free_bytes: Some(999_999_999), ..idle_machine(2) }, Disk),
    ] {
        assert_eq!(lasting_shortages(&USAGE_LIMITS, reading), [short]);
    }
    let reading_at_bounds = HostReading {
        cpu_percent: Some(90.0),
        memory_percent: Some(85.0),
        load: Some(4.0),
        disk_free_bytes: Some(1_000_000_000),
        ..idle_machine(2)
    };
    assert_eq!(lasting_shortages(&USAGE_LIMITS, reading_at_bounds), []);
}

#[test]
fn stalls_decide_whatever_the_usage() {
    let busy = HostReading {
        cpu_percent: Some(100.0),
        memory_percent: Some(99.0),
        load: Some(40.0),
        stalls: Some(StallReading { cpu_percent: 99.0, memory_percent: 5.0, io_percent: 60.0 }),
        ..idle_machine(16)
    };
    assert_eq!(lasting_shortages(&PRESSURE_LIMITS, busy), []);
    let reading_with_stalls = |stalls| HostReading { stalls: Some(stalls), ..idle_machine(16) };
    let memory_stalled =
        reading_with_stalls(StallReading { memory_percent: 21.0, ..StallReading::default() });
    let io_stalled =
        reading_with_stalls(StallReading { io_percent: 96.0, ..StallReading::default() });
    assert_eq!(
        (
            lasting_shortages(&PRESSURE_LIMITS, memory_stalled),
            lasting_shortages(&PRESSURE_LIMITS, io_stalled)
        ),
        (vec![Memory], vec![Io])
    );
}

/// Five builds beside the service on two processors; then so many that nothing moves; then their
/// end, which the load forgets slowly.
#[test]
fn a_high_load_counts_only_with_processor_stalls() {
    let reading_with_load = |load, cpu_percent| HostReading {
        load: Some(load),
        stalls: Some(StallReading { cpu_percent, ..StallReading::default() }),
        ..idle_machine(2)
    };
    assert_eq!(lasting_shortages(&PRESSURE_LIMITS, reading_with_load(20.0, 99.9)), []);
    assert_eq!(lasting_shortages(&PRESSURE_LIMITS, reading_with_load(33.0, 99.9)), [Load]);
    assert_eq!(lasting_shortages(&PRESSURE_LIMITS, reading_with_load(33.0, 40.0)), []);
}

#[test]
fn without_stall_data_memory_and_load_decide() {
    let without_stalls = |reading: HostReading| HostReading { stalls: None, ..reading };
    let busy = without_stalls(HostReading {
        cpu_percent: Some(100.0),
        load: Some(31.0),
        ..idle_machine(2)
    });
    assert_eq!(
        (pressure_basis(&busy, &PRESSURE_LIMITS), lasting_shortages(&PRESSURE_LIMITS, busy)),
        (PressureBasis::Fallback, vec![])
    );
    assert_eq!(
        lasting_shortages(
            &PRESSURE_LIMITS,
            without_stalls(HostReading { load: Some(33.0), ..idle_machine(2) })
        ),
        [Load]
    );
    assert_eq!(
        lasting_shortages(
            &PRESSURE_LIMITS,
            without_stalls(HostReading { memory_percent: Some(86.0), ..idle_machine(2) })
        ),
        [Memory]
    );
}

#[test]
fn pressure_needs_repeated_readings_and_clears_with_margin() {
    let reading_with_memory =
        |percent| HostReading { memory_percent: Some(percent), ..idle_machine(2) };
    let readings = [20.0, 90.0, 20.0, 90.0, 90.0, 84.0, 84.0, 84.0, 20.0, 90.0, 20.0, 20.0];
    let readings = readings.map(reading_with_memory);
    let shortage_counts: Vec<_> =
        shortages_after(&USAGE_LIMITS, &readings).into_iter().map(|short| short.len()).collect();
    assert_eq!(shortage_counts, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn the_first_reading_is_effective() {
    let full_disk_reading = HostReading { disk_free_bytes: Some(1), ..idle_machine(2) };
    assert_eq!(
        shortages_after(&PRESSURE_LIMITS, &[full_disk_reading, idle_machine(2), idle_machine(2)]),
        [vec![Disk], vec![Disk], vec![]]
    );
}

#[test]
fn unreadable_readings_and_disabled_bounds_give_no_pressure() {
    assert_eq!(lasting_shortages(&USAGE_LIMITS, HostReading::default()), []);
    assert_eq!(lasting_shortages(&PRESSURE_LIMITS, HostReading::default()), []);
    let without_disk_limit = PressureSpec { min_disk_free_bytes: 0, ..PRESSURE_LIMITS };
    let full_disk_reading = HostReading { disk_free_bytes: Some(0), ..idle_machine(2) };
    assert_eq!(
        (
            lasting_shortages(&without_disk_limit, full_disk_reading),
            lasting_shortages(&PRESSURE_LIMITS, full_disk_reading)
        ),
        (vec![], vec![Disk])
    );
}

proptest! {
    /// Around a bound, whatever the order: the judgement never turns twice in a row, and a machine
    /// at ease is taken as one in the end.
    #[test]
    fn a_pressure_state_lasts_for_at_least_two_readings(
        levels in proptest::collection::vec(70.0f64..100.0, 0..60),
    ) {
        let reading = |percent: &f64| HostReading { cpu_percent: Some(*percent), ..idle_machine(2) };
        let readings: Vec<_> = levels.iter().map(reading).chain([idle_machine(2), idle_machine(2)]).collect();
        let shortages = shortages_after(&USAGE_LIMITS, &readings);
        for window in shortages.windows(3) {
            prop_assert!(!(window[0] != window[1] && window[1] != window[2]), "{:?}", shortages);
        }
        prop_assert_eq!(shortages.last(), Some(&vec![]));
    }
}
