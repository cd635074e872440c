//! Expansion of the input templates of schedules.

use chrono::{DateTime, Utc};

use crate::model::schedule::ScheduleSpec;

/// Renderer of templates.
pub trait ScheduleTemplateRenderer: Send + Sync + 'static {
    /// Returns the input of a schedule at one of its planned times.
    ///
    /// # Errors
    /// Returns an error if the template cannot be expanded: the reason as a clause without the text itself.
    fn render(&self, spec: &ScheduleSpec, planned: DateTime<Utc>) -> Result<String, String>;
}
