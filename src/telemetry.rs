//! Logs: to standard error, for people or as JSON. Texts of agents never come this way.
//!
//! A line has the fields of the spans around it: which request, which execution of which agent.

mod line;

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Arc, OnceLock};

use algonius_actors::ports::clock::Clock;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

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

/// The log that was begun: where its lines go beside standard error, once there is somebody who wants
/// them, and which of them there are.
#[derive(Clone, Default)]
pub(crate) struct Tap {
    onlooker: Arc<OnceLock<Observatory>>,
    /// `None` where the environment says what is written.
    filter: Option<reload::Handle<EnvFilter, Registry>>,
}

impl Tap {
    /// Writes lines of this level and above from now on, unless `RUST_LOG` says otherwise.
    pub(crate) fn turn(&self, level: Level) {
        let turned = self.filter.as_ref().map(|filter| filter.reload(filter_of(level)));
        if let Some(Err(error)) = turned {
            tracing::error!(%error, "the level of the log could not be changed");
        }
    }

    /// Lines go there too from now on, where they are wanted.
    pub(crate) fn lead_to(&self, observatory: &Observatory) {
        if observatory.wants_lines() {
            _ = self.onlooker.set(observatory.clone()); // Whoever came first has them.
        }
    }
}

/// Begins to log. `RUST_LOG` wins over `level`. A second call changes nothing.
pub(crate) fn begin(form: Form, level: Level) -> Tap {
    let given = EnvFilter::try_from_default_env().ok();
    let is_given = given.is_some();
    let (filter, handle) = reload::Layer::new(given.unwrap_or_else(|| filter_of(level)));
    let tap = Tap { filter: (!is_given).then_some(handle), ..Tap::default() };
    let is_terminal = stderr().is_terminal();
    let is_json = form == Form::Json || (form == Form::Auto && !is_terminal);
    let log = Log { is_json, is_coloured: is_terminal, tap: tap.clone() };
    if tracing_subscriber::registry().with(log.with_filter(filter)).try_init().is_err() {
        tracing::debug!("the log had begun before");
    }
    tap
}

fn filter_of(level: Level) -> EnvFilter {
    EnvFilter::default().add_directive(level.into())
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
        // One that the library of actors makes for each actor says nothing that a reader knows.
        if attributes.metadata().target().starts_with("ractor") {
            return;
        }
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
        if let Some(observatory) = self.tap.onlooker.get() {
            observatory.said(&line.told());
        }
    }
}
