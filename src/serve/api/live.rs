//! Events of an execution as they happen, as server-sent events.

use std::convert::Infallible;

use algonius_actors::follow::{Follow, Next};
use algonius_actors::model::failure::Failure;
use axum::response::Response;
use axum::response::sse::Event;
use serde::Serialize;

use crate::serve::sse;
use crate::wire::api::ExecutionEntry;
use crate::wire::api::history::Waiting;
use crate::wire::problem;

/// Follows an execution to its end.
pub(super) fn response(follow: Follow) -> Response {
    sse::stream(futures_util::stream::unfold(Some(follow), async |follow| {
        let mut follow = follow?;
        match follow.next().await {
            Ok(None) => None,
            Ok(Some(next)) => Some((Ok::<_, Infallible>(line(next)), Some(follow))),
            Err(failure) => Some((Ok(refusal(&failure)), None)),
        }
    }))
}

/// Only what is recorded has a number, after which it can be taken up.
fn line(next: Next) -> Event {
    match next {
        Next::Event(event) => {
            let numbered = Event::default().id(event.number.to_string()).event("event");
            numbered.data(whole(&event))
        }
        Next::Queued(queued) => {
            let told = Waiting { queue: queued, message: queued.to_string() };
            Event::default().event("queued").data(whole(&told))
        }
        Next::Rest(record) => {
            let entry = ExecutionEntry::from(&*record);
            Event::default().event("rest").data(whole(&entry))
        }
    }
}

/// A shape as JSON. There is none among these that JSON cannot hold.
fn whole(shape: &impl Serialize) -> String {
    serde_json::to_string(shape).unwrap_or_default()
}

fn refusal(failure: &Failure) -> Event {
    Event::default().event("error").data(whole(&problem::document(failure)))
}
