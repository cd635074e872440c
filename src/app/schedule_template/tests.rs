//! What a schedule says, at its times.

use algonius_actors::testing::cron_schedule;

use super::*;

fn render_input(input: &str) -> Result<String, String> {
    let mut spec = cron_schedule("nightly", "0 3 * * *");
    let zone = "Europe/Zurich";
    spec.recurrence =
        algonius_actors::model::schedule::recurrence::RecurrenceRule::new("0 3 * * *", zone, false)
            .unwrap();
    spec.params.insert("branch".to_owned(), "main".to_owned());
    let spec = ScheduleSpec { input: input.to_owned(), ..spec };
    TemplateRenderer.render(&spec, DateTime::from_timestamp(1_767_233_400, 0).unwrap())
}

#[test]
fn the_time_is_in_the_zone_of_the_schedule() {
    let text = render_input(
        "{{ schedule_id }} of {{ date }} {{ time }}: {{ param.branch }} {{ planned }}",
    );
    assert_eq!(text.unwrap(), "nightly of 2026-01-01 03:10: main 2026-01-01T03:10:00+01:00");
}

#[test]
fn unknown_template_names_are_refused() {
    for input in ["{{ input }}", "{{ param.other }}", "{% for a in b %}", "{{ date"] {
        assert!(render_input(input).is_err(), "{input}");
    }
}
