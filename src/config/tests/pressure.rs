//! Tests of the monitoring settings.

use super::*;
use crate::config::PressureSettings;

fn pressure(lines: &str) -> Option<PressureSettings> {
    load_settings(&format!("{CAT}[pressure]\n{lines}\n")).pressure
}

#[test]
fn usage_mode_has_the_documented_bounds() {
    let PressureSettings { spec, interval, .. } = pressure("mode = \"usage\"").unwrap();
    assert!(!spec.uses_stall_information);
    assert_eq!((spec.max_cpu_percent, spec.max_memory_percent, spec.max_load), (90.0, 85.0, 4.0));
    assert_eq!((spec.min_disk_free_bytes, interval), (1_000_000_000, Duration::from_secs(1)));
}

#[test]
fn pressure_uses_stalls_by_default_and_can_be_disabled() {
    let default_pressure = load_settings(CAT).pressure.unwrap();
    assert_eq!(Some(default_pressure), pressure("mode = \"stalls\""));
    assert!(default_pressure.spec.uses_stall_information);
    assert_eq!(pressure("enabled = false"), None);
    let configured = pressure(
        "cpu_stall_percent = 50\nmemory_stall_percent = 1.5\nio_stall_percent = 2\n\
         load_per_core = 8\nmin_disk_free_bytes = 0\ninterval = \"250ms\"",
    );
    let PressureSettings { spec, interval, .. } = configured.unwrap();
    let stalls =
        (spec.max_stalls.cpu_percent, spec.max_stalls.memory_percent, spec.max_stalls.io_percent);
    assert_eq!((stalls, spec.max_load_per_core), ((50.0, 1.5, 2.0), 8.0));
    assert_eq!((spec.min_disk_free_bytes, interval), (0, Duration::from_millis(250)));
}

#[test]
fn pressure_errors_are_reported() {
    for (line, expected) in [
        (
            "mode = \"usag\"",
            "pressure.mode = \"usag\": must be \"stalls\" or \"usage\"; did you mean `usage`?",
        ),
        ("cpu_percent = 101", "pressure.cpu_percent = 101: must be 0.1 to 100"),
        ("memory_percent = 0", "pressure.memory_percent = 0: must be 0.1 to 100"),
        ("load = \"4\"", "pressure.load: must be a number, not text"),
        (
            "min_disk_free = 1",
            "pressure.min_disk_free: unknown key; did you mean `min_disk_free_bytes`?",
        ),
    ] {
        let messages = fault_messages(&format!("{CAT}[pressure]\n{line}\n"));
        assert!(messages.len() == 1 && messages[0].ends_with(expected), "{messages:?}");
    }
}
