//! Access to a running service over HTTP: requests, streams of events, and the responses that refuse.

mod agent_call;
mod connector;
pub(super) mod error_response;
pub(super) mod execution_feed;
pub(super) mod feed_item;
pub(super) mod percent_encoding;
mod service_client;
pub(super) mod sse_stream;
pub(super) mod stderr_tail;

pub(super) use agent_call::similar_agent_hint;
pub(super) use service_client::{RequestHeader, ServiceClient};
