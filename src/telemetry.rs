//! Logs: to standard error, for people or as JSON. Texts of agents never come this way.
//!
//! A line has the fields of the spans around it: which request, which execution of which agent.

mod line;

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, OnceLock};

use algonius_actors::ports::clock::Clock;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::clock::WallClock;
use crate::observe::Observatory;
use line::{Fields, Line};

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lines for people on a terminal, JSON otherwise.
    Auto,
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Where lines go beside standard error, once there is somebody who wants them.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<OnceLock<Observatory>>);

impl Tap {
    /// Lines go there too from now on, where they are wanted.
    pub(crate) fn lead_to(&self, observatory: &Observatory) {
        if observatory.wants_lines() {
            _ = self.0.set(observatory.clone()); // Whoever came first has them.
        }
    }
}

/// Begins to log. `RUST_LOG` wins over `level`. A second call changes nothing.
pub(crate) fn begin(form: Form, level: &str) -> Tap {
    let tap = Tap::default();
    let filter = EnvFilter::try_from_default_env()
        .or_else(|_unset| EnvFilter::try_new(level))
        .unwrap_or_else(|_malformed| EnvFilter::new("info"));
    let is_terminal = stderr().is_terminal();
    let is_json = form == Form::Json || (form == Form::Auto && !is_terminal);
    let log = Log { is_json, is_coloured: is_terminal, tap: tap.clone() };
    if tracing_subscriber::registry().with(log.with_filter(filter)).try_init().is_err() {
        tracing::debug!("the log had begun before");
    }
    tap
}

/// Writes lines to standard error.
struct Log {
    is_json: bool,
    is_coloured: bool,
    tap: Tap,
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Log {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.extend(outer);
            }
        }
        event.record(&mut fields);
        let meta = event.metadata();
        let line =
            Line { at: WallClock.now(), level: *meta.level(), target: meta.target(), fields };
        let text = if self.is_json { line.json() } else { line.human(self.is_coloured) };
        // One call for a line. What cannot be written is not told where it could not be written.
        _ = stderr().lock().write_all(text.as_bytes());
        if let Some(observatory) = self.tap.0.get() {
            observatory.said(&line.told());
        }
    }
}
