//! Setup of observability: metrics, telemetry and alert hooks.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::push::Secret;
use algonius_actors::services::RedactorHandle;
use algonius_warden::process_holders::ProcessHolders;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::sync::mpsc;

use crate::alert::{ALERT_QUEUE_CAPACITY, AlertDispatcher, AlertNotice, HookSettings};
use crate::app::push_setup::delivery_policy;
use crate::observe::{Instruments, OtlpCollector};
use crate::push::{DeliveryPolicy, WebhookClient, check_url};
use crate::{StartError, config};

/// Time limit for the answer of a collector.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(10);

/// Observability of a service before its start.
pub(crate) struct Observability {
    /// Metrics and telemetry.
    pub(crate) instruments: Instruments,
    alert_setup: Option<(HookSettings, DeliveryPolicy, mpsc::Receiver<AlertNotice>)>,
}

impl Observability {
    /// Prepares the observability of a configuration. The webhook may use each address that push
    /// notifications may use, and those that the operator allows for alerts alone.
    pub(crate) fn prepare(settings: &config::Settings) -> Result<Self, StartError> {
        let collector =
            settings.observability.telemetry.clone().map(set_up_collector).transpose()?;
        let config::AlertSettings {
            webhook_url,
            signing_secret,
            command,
            allowed_networks,
            certificate_authorities: authorities,
            ..
        } = *settings.observability.alerts.clone();
        if webhook_url.is_none() && command.is_none() {
            let instruments = Instruments::new(None, collector);
            return Ok(Self { instruments, alert_setup: None });
        }
        let (sender, notices) = mpsc::channel(ALERT_QUEUE_CAPACITY);
        let hook_settings = HookSettings {
            webhook_url: webhook_url.map(Secret),
            signing_secret: signing_secret.map(Secret),
            command,
        };
        let mut push_settings = settings.push.clone().unwrap_or_default();
        push_settings.allowed_networks.extend(allowed_networks);
        push_settings.certificate_authorities =
            push_settings.certificate_authorities.union_with(&authorities);
        let alert_setup = Some((hook_settings, delivery_policy(push_settings), notices));
        Ok(Self { instruments: Instruments::new(Some(sender), collector), alert_setup })
    }

    /// Starts the alert hooks.
    pub(crate) fn start(
        self,
        holders: &Arc<ProcessHolders>,
        redactor: RedactorHandle,
    ) -> Result<RunningObservability, StartError> {
        let instruments = self.instruments;
        let Some((hook_settings, delivery_policy, notices)) = self.alert_setup else {
            return Ok(RunningObservability { instruments, alert_dispatcher: None });
        };
        let alert_dispatcher = AlertDispatcher::start(
            hook_settings,
            delivery_policy,
            (
                Arc::clone(holders) as _,
                Arc::new(move |text| redactor.current().redact(text).into_owned()),
            ),
            notices,
        );
        let alert_dispatcher =
            alert_dispatcher.map_err(|failure| StartError::Alerts { cause: failure.message })?;
        Ok(RunningObservability { instruments, alert_dispatcher: Some(alert_dispatcher) })
    }
}

/// Metrics, telemetry and alert hooks of a running service.
pub(crate) struct RunningObservability {
    /// Metrics and telemetry.
    pub(crate) instruments: Instruments,
    alert_dispatcher: Option<AlertDispatcher>,
}

impl RunningObservability {
    /// Stops the alert hooks, and flushes the telemetry for a moment.
    pub(crate) async fn stop(self) {
        self.alert_dispatcher.into_iter().for_each(AlertDispatcher::stop);
        self.instruments.flush().await;
    }
}

/// Returns the collector, and a client for it. The client may use any address, because the operator chose the
/// collector.
fn set_up_collector(
    telemetry: config::TelemetrySettings,
) -> Result<(OtlpCollector, WebhookClient), StartError> {
    let config::TelemetrySettings { endpoint, headers, exports_logs } = telemetry;
    let all_networks = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let policy = DeliveryPolicy {
        allowed_networks: all_networks.to_vec(),
        timeout: COLLECTOR_TIMEOUT,
        ..delivery_policy(Default::default())
    };
    check_url(&endpoint, &policy)
        .map_err(|failure| StartError::Telemetry { cause: failure.message })?;
    let client = WebhookClient::new(policy)
        .map_err(|error| StartError::Telemetry { cause: error.to_string() })?;
    let headers = headers.into_iter().map(|(name, value)| (name, Secret(value))).collect();
    Ok((OtlpCollector { endpoint, headers, exports_logs }, client))
}
