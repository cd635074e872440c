//! Sender of requests to the present gateway actor, which changes when the gateway is restarted.

use std::time::Duration;

use ractor::{ActorRef, rpc::CallResult};
use tokio::sync::watch;

use crate::gateway::GatewayMsg;

/// Time limit for replies that never wait for work.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Handle of the present gateway actor. Clones are cheap.
#[derive(Clone)]
pub(crate) struct GatewayHandle {
    pub(crate) gateway: watch::Receiver<Option<ActorRef<GatewayMsg>>>,
    /// True while the service stops.
    pub(crate) draining: watch::Receiver<bool>,
}

/// Cause of a missing answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The answer did not arrive in time, and may still arrive.
    Timeout,
    /// The actor was lost, and with it the answer.
    ActorLost,
}

impl GatewayHandle {
    /// Sends a request to the gateway; returns `None` if no actor replied.
    pub(crate) async fn call_or_none<T: Send + 'static>(
        &self,
        build_msg: impl FnOnce(ractor::RpcReplyPort<T>) -> GatewayMsg + Send,
    ) -> Option<T> {
        self.call(build_msg).await.ok()
    }

    /// Sends a request to the gateway; returns the cause if no reply arrived.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        build_msg: impl FnOnce(ractor::RpcReplyPort<T>) -> GatewayMsg + Send,
    ) -> Result<T, CallError> {
        let gateway = self.gateway.borrow().clone().ok_or(CallError::ActorLost)?;
        match gateway.call(build_msg, Some(REPLY_TIMEOUT)).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout) => Err(CallError::Timeout),
            Ok(CallResult::SenderError) | Err(_) => Err(CallError::ActorLost),
        }
    }
}
