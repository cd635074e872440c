//! Puts what a schedule says into words.

use chrono::{DateTime, Utc};

use crate::model::schedule::ScheduleSpec;

/// Fills in templates.
pub trait Wording: Send + Sync + 'static {
    /// What a schedule says at one of its times.
    ///
    /// # Errors
    /// When the template cannot be filled in: why, in a clause without the text itself.
    fn input(&self, spec: &ScheduleSpec, planned: DateTime<Utc>) -> Result<String, String>;
}
