//! An execution that asked, and ends without an answer.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Waiting;
use crate::execution::Resumption;
use crate::model::progress::Progress;
use crate::model::record::Record;
use crate::model::request::{Input, Overrides, Request};

impl Waiting {
    /// What takes up an execution that asked, to end it.
    pub(super) fn asked(record: &Record, due: Instant) -> Self {
        let request = Request {
            agent: record.agent.clone(),
            owner: record.owner,
            message: record.message.clone(),
            context: record.context.clone(),
            opens: false,
            idempotency: None,
            continues: None,
            standing: Overrides::default(),
            trigger: record.trigger.clone(),
            trace: record.trace.clone(),
            input: Input::default(),
        };
        Self {
            request: Arc::new(request),
            reply: None,
            progress: watch::Sender::new(Progress::accepted()),
            since: record.changed_at,
            span: tracing::Span::none(),
            due,
            from: Resumption::asked(record),
            equal: None,
            parked: None,
            probe: None,
        }
    }
}
