//! Who counts, traces and raises alarms.

use crate::model::news::News;

/// Is told what happens. It returns at once and keeps nothing that grows: what it cannot take it
/// drops.
pub trait Observer: Send + Sync + 'static {
    /// Hears it.
    fn tell(&self, news: News);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn tell(&self, _: News) {}
}
