//! Setup of push notifications: their targets and their bodies.

use std::sync::Arc;

use algonius_actors::api::Api;
use algonius_actors::decide::notification::alert::AlertInput;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_store::Store;

use crate::config::Settings;
use crate::push::{DeliveryPolicy, NotificationBodyFn, PushContext, PushRegistry, PushWorker};
use crate::{StartError, config, serve};

/// Returns the registry of push targets and the worker that notifies them; `None` if push is disabled.
pub(crate) fn set_up_push(
    settings: &Settings,
    store: &Arc<Store>,
    clock: &Arc<dyn Clock>,
    api: &Api,
) -> Result<(Option<PushRegistry>, Option<PushWorker>), StartError> {
    let Some(push) = settings.push.clone() else { return Ok((None, None)) };
    let registry =
        PushRegistry::new(Arc::clone(store) as _, Arc::clone(clock), delivery_policy(push));
    let worker = registry.start_worker(push_context(store, Arc::clone(clock), api));
    let worker = worker.map_err(|error| StartError::Push { cause: error.message })?;
    Ok((Some(registry), Some(worker)))
}

pub(crate) fn delivery_policy(push: config::PushSettings) -> DeliveryPolicy {
    let config::PushSettings {
        allowed_networks,
        allows_http,
        timeout,
        max_retry_duration,
        certificate_authorities: authorities,
    } = push;
    let certificate_authorities = authorities.iter().cloned().collect();
    DeliveryPolicy {
        allowed_networks,
        allows_http,
        timeout,
        max_retry_duration,
        certificate_authorities,
    }
}

/// Returns the context of the push worker: the ledger, and the rendering of the transports.
fn push_context(store: &Arc<Store>, clock: Arc<dyn Clock>, api: &Api) -> PushContext {
    let (ledger, api): (Arc<dyn Ledger>, _) = (Arc::clone(store) as _, api.clone());
    let (render_ledger, alert_api) = (Arc::clone(&ledger), api.clone());
    let render_body: NotificationBodyFn = Arc::new(move |execution, version, event| {
        let (ledger, api) = (Arc::clone(&render_ledger), api.clone());
        Box::pin(async move {
            match ledger.execution(execution).await {
                Ok(Some(record)) => {
                    serve::a2a::operations::push::notification_body(&api, &record, version, event)
                        .await
                }
                Ok(None) => Ok(None),
                Err(error) => Err(Failure::new(Code::LedgerUnavailable, error.to_string())),
            }
        })
    });
    let on_target_abandoned = Arc::new(move |failures| {
        alert_api.tree.send_to_monitor(AlertInput::PushAbandoned(failures));
    });
    PushContext {
        ledger,
        target_store: Arc::clone(store) as _,
        clock,
        render_body,
        on_target_abandoned,
    }
}
