//! Tests of `[scheduler]` and `[schedules.<id>]`.

use algonius_actors::model::schedule::{MissedPolicy, OverlapPolicy};

use super::*;

const NIGHTLY: &str = "[schedules.nightly]\nagent = 'a'\ncron = '0 3 * * *'\ninput = 'x'\n\
                       timezone = 'Europe/Zurich'\n";

fn schedule(lines: &str) -> super::super::ScheduleWithOwner {
    let loaded = load_text(&format!("{CAT}{NIGHTLY}{lines}")).unwrap();
    assert_eq!(loaded.warnings, []);
    loaded.settings.scheduling.schedules[0].clone()
}

#[test]
fn a_schedule_is_read_with_its_defaults() {
    let defaults = schedule("");
    assert_eq!((defaults.owner.as_str(), defaults.spec.name.as_str()), ("operator", "nightly"));
    assert_eq!(defaults.spec.recurrence.to_string(), "0 3 * * * (Europe/Zurich)");
    assert_eq!(defaults.spec.missed, MissedPolicy::Once { window: Duration::from_secs(3600) });
    assert_eq!((defaults.spec.overlap, defaults.spec.deadline), (OverlapPolicy::Queue, None));
    let complete_schedule = schedule(
        "name = 'Night'\nmissed = 'all'\nmissed_window = '2h'\nmissed_max = 5\njitter = '30s'\n\
         deadline = '20m'\nalert_after = 0\nenabled = false\n",
    );
    let spec = complete_schedule.spec;
    assert_eq!(spec.missed, MissedPolicy::All { max: 5, window: Duration::from_secs(7200) });
    assert_eq!((spec.overlap, spec.jitter), (OverlapPolicy::Queue, Duration::from_secs(30)));
    assert_eq!((spec.deadline, spec.alert_after), (Some(Duration::from_secs(1200)), 0));
    assert_eq!((spec.name.as_str(), spec.enabled), ("Night", false));
}

#[test]
fn parameters_of_a_schedule_belong_to_its_input_or_agent() {
    let schedules_with = |agent_lines: &str, input: &str, name: &str| {
        let schedule = NIGHTLY.replace("'x'", input);
        load_text(&format!("{CAT}{agent_lines}{schedule}params.{name} = 'main'\n"))
    };
    for (agent_lines, input) in [
        ("", "'{{ param.branch }}'"),
        ("params.branch = 'next'\n", "'x'"),
        ("args = ['{{ param.branch }}']\n", "'x'"),
    ] {
        let loaded = schedules_with(agent_lines, input, "branch").unwrap();
        assert_eq!(loaded.warnings, []);
        assert_eq!(loaded.settings.scheduling.schedules[0].spec.params["branch"], "main");
    }
    for (agent_lines, hint) in [
        ("params.branch = 'next'\n", "; did you mean `branch`?"),
        ("args = ['{{ param.branch }}']\n", ""),
    ] {
        let loaded = schedules_with(agent_lines, "'x'", "brnch").unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(fault_text).collect();
        let expected = format!(
            "warning: schedules.nightly.params.brnch: neither `input` nor the agent has a parameter of this name{hint}"
        );
        assert!(warnings.len() == 1 && warnings[0].ends_with(&expected), "{warnings:?}");
        assert_eq!(loaded.settings.scheduling.schedules[0].spec.params["brnch"], "main");
    }
}

#[test]
fn a_schedule_without_a_zone_uses_the_default_or_utc() {
    let zoneless_schedule = NIGHTLY.replace("timezone = 'Europe/Zurich'\n", "");
    let loaded = load_text(&format!("{CAT}{zoneless_schedule}")).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(fault_text).collect();
    let warning = "c:5:8: warning: schedules.nightly.cron = '0 3 * * *': is taken to be in UTC; \
                   give the schedule a `timezone`";
    assert_eq!(warnings, [warning]);
    let text = format!("{CAT}{zoneless_schedule}[scheduler]\ntimezone = 'Asia/Tokyo'\n");
    let loaded = load_text(&text).unwrap();
    assert_eq!(loaded.warnings, []);
    let zone = loaded.settings.scheduling.schedules[0].spec.recurrence.zone();
    assert_eq!(zone.name(), "Asia/Tokyo");
}

#[test]
fn schedule_errors_are_reported() {
    let text_with = |from: &str, to: &str| format!("{CAT}{}", NIGHTLY.replace(from, to));
    for (text, expected) in [
        (text_with("0 3 * * *", "0 0 31 2 *"), "is never due"),
        (text_with("0 3 * * *", "61 * * * *"), "is not a cron expression"),
        (text_with("0 3 * * *", "* * * * * *"), "scheduler.seconds = true"),
        (text_with("Europe/Zurich", "Mars/Base"), "`Mars/Base` is not a time zone"),
        (text_with("agent = 'a'", "agent = 'b'"), "there is no such agent"),
        (text_with("agent = 'a'\n", ""), "`agent` is missing"),
        (text_with("cron = '0 3 * * *'\n", ""), "`cron` is missing"),
        (text_with("input = 'x'\n", ""), "`input` is missing"),
        (text_with("'x'", "'{{ nothing }}'"), "`nothing` is not known to templates"),
        (text_with("'x'", "'{{ param.gone }}'"), "`gone` has no value"),
        (text_with("timezone", "missed = 'all'\noverlap = 'skip'\ntimezone"), "would lose what"),
        (text_with("timezone", "owner = 'ann'\ntimezone"), "there is no such token"),
        (text_with("timezone", "zone = 'x'\ntimezone"), "unknown key"),
        (text_with("[schedules.nightly]", "[schedules.'a b']"), "is not an id"),
        (
            format!("{CAT}enabled = false\n{NIGHTLY}"),
            "is switched off; set `enabled = true` for it",
        ),
        (
            format!("{CAT}{NIGHTLY}{}name = 'nightly'\n", NIGHTLY.replace("nightly", "other")),
            "has the same name as the schedule `nightly`",
        ),
    ] {
        let faults = load_text(&text).unwrap_err().to_string();
        assert!(faults.contains(expected), "{expected}: {faults}");
        assert_eq!(faults.lines().count(), 1, "{faults}");
    }
}
