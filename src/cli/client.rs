//! Access to a running service over HTTP: requests, streams of events, and the responses that refuse.

mod agent_call;
mod connector;
pub(super) mod error_response;
pub(super) mod execution_feed;
mod http;
pub(super) mod percent_encoding;
pub(super) mod sse_stream;
pub(super) mod tail;

pub(super) use agent_call::similar_agent_hint;
pub(super) use http::{RequestHeader, ServiceClient};
