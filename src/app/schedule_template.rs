//! Rendering of the input texts of schedules.

use algonius_actors::model::schedule::ScheduleSpec;
use algonius_actors::ports::schedule_template::ScheduleTemplateRenderer;
use chrono::{DateTime, SecondsFormat, Utc};

use crate::platform::template::{ScheduleValues, Template};

/// Renderer of the templates of schedules.
pub(crate) struct TemplateRenderer;

impl ScheduleTemplateRenderer for TemplateRenderer {
    fn render(&self, spec: &ScheduleSpec, planned: DateTime<Utc>) -> Result<String, String> {
        let local_time = planned.with_timezone(&spec.recurrence.zone());
        let values = ScheduleValues {
            schedule_id: spec.id.to_string(),
            schedule_name: spec.name.clone(),
            agent_id: spec.agent.to_string(),
            planned_at: local_time.to_rfc3339_opts(SecondsFormat::Secs, true),
            date: local_time.format("%Y-%m-%d").to_string(),
            time: local_time.format("%H:%M").to_string(),
            params: spec.params.clone(),
        };
        let template = Template::for_values::<ScheduleValues>(&spec.input)
            .map_err(|error| error.to_string())?;
        template.render(&values).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
