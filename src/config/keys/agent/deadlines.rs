//! Time limits of each part of an agent's work.

use std::time::Duration;

use algonius_actors::model::agent::PhaseTimeouts;

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::keys::limits::AgentSettingBounds;
use crate::config::table::{Section, value};

/// Reads the deadlines of an agent.
pub(crate) fn read(section: &mut Section<'_>, bounds: &AgentSettingBounds) -> PhaseTimeouts {
    let timeout = section.duration("timeout", bounds.timeout);
    PhaseTimeouts {
        start: section.duration("start_timeout", bounds.start_timeout),
        run: timeout,
        idle: read_idle_timeout(section, bounds, timeout),
        grace: section.duration("stop_grace", bounds.stop_grace),
        question: section.duration("answer_timeout", bounds.answer_timeout),
    }
}

/// Reads the idle limit. Disabled by default: many programs are silent before their answer, and `timeout` bounds them
/// anyway.
fn read_idle_timeout(
    section: &mut Section<'_>,
    bounds: &AgentSettingBounds,
    timeout: Duration,
) -> Option<Duration> {
    let entry = section.entry("idle_timeout")?;
    let seconds = value::seconds(section.reader, &entry, bounds.idle_timeout)?;
    let idle = Duration::try_from_secs_f64(seconds).ok()?;
    if idle >= timeout {
        let diagnostic = new_diagnostic("means nothing: `timeout` passes before it");
        let diagnostic = diagnostic.with_hint("lower it, or leave it out");
        section.reader.record_fault(Severity::Warning, &entry.position, diagnostic);
    }
    Some(idle)
}
