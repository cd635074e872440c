//! Setup of observability: metrics, telemetry and alert hooks.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::push::Secret;
use algonius_warden::wardens::ProcessHolders;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::sync::mpsc;

use crate::alert::{AlertDispatcher, AlertNotice, HookSettings, QUEUE_CAPACITY};
use crate::app::push_setup::address_policy;
use crate::observe::{Instruments, OtlpCollector};
use crate::push::{AddressPolicy, WebhookClient, check_url};
use crate::{StartError, config};

/// Time limit for the answer of a collector.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(10);

/// Observability of a service before its start.
pub(crate) struct Observability {
    /// Metrics and telemetry.
    pub(crate) instruments: Instruments,
    hooks: Option<(HookSettings, AddressPolicy, mpsc::Receiver<AlertNotice>)>,
}

impl Observability {
    /// Prepares the observability of a configuration. The webhook may use each address that push
    /// notifications may use, and those that the operator allows for alerts alone.
    pub(crate) fn prepare(settings: &config::Settings) -> Result<Self, StartError> {
        let collector = settings.observability.telemetry.clone().map(collector).transpose()?;
        let config::AlertSettings { webhook, secret, command, allow, authorities, .. } =
            *settings.observability.alerts.clone();
        if webhook.is_none() && command.is_none() {
            let instruments = Instruments::new(None, collector);
            return Ok(Self { instruments, hooks: None });
        }
        let (sender, notices) = mpsc::channel(QUEUE_CAPACITY);
        let hooks =
            HookSettings { webhook: webhook.map(Secret), secret: secret.map(Secret), command };
        let mut push = settings.push.clone().unwrap_or_default();
        push.allow.extend(allow);
        push.authorities = push.authorities.and(&authorities);
        let hooks = Some((hooks, address_policy(push), notices));
        Ok(Self { instruments: Instruments::new(Some(sender), collector), hooks })
    }

    /// Starts the alert hooks.
    pub(crate) fn start(
        self,
        wardens: &Arc<ProcessHolders>,
    ) -> Result<RunningObservability, StartError> {
        let instruments = self.instruments;
        let Some((hooks, address_policy, notices)) = self.hooks else {
            return Ok(RunningObservability { instruments, alerts: None });
        };
        let alerts =
            AlertDispatcher::begin(hooks, address_policy, Arc::clone(wardens) as _, notices);
        let alerts = alerts.map_err(|failure| StartError::Alerts { cause: failure.message })?;
        Ok(RunningObservability { instruments, alerts: Some(alerts) })
    }
}

/// Metrics, telemetry and alert hooks of a running service.
pub(crate) struct RunningObservability {
    /// Metrics and telemetry.
    pub(crate) instruments: Instruments,
    alerts: Option<AlertDispatcher>,
}

impl RunningObservability {
    /// Stops the alert hooks, and flushes the telemetry for a moment.
    pub(crate) async fn stop(self) {
        self.alerts.into_iter().for_each(AlertDispatcher::stop);
        self.instruments.flush().await;
    }
}

/// Returns the collector, and a client for it. The client may use any address, because the operator chose the
/// collector.
fn collector(
    telemetry: config::TelemetrySettings,
) -> Result<(OtlpCollector, WebhookClient), StartError> {
    let config::TelemetrySettings { endpoint, headers, logs } = telemetry;
    let all_networks = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let allow = AddressPolicy {
        allow: all_networks.to_vec(),
        timeout: COLLECTOR_TIMEOUT,
        ..address_policy(Default::default())
    };
    check_url(&endpoint, &allow)
        .map_err(|failure| StartError::Telemetry { cause: failure.message })?;
    let client = WebhookClient::new(allow)
        .map_err(|error| StartError::Telemetry { cause: error.to_string() })?;
    let headers = headers.into_iter().map(|(name, value)| (name, Secret(value))).collect();
    Ok((OtlpCollector { endpoint, headers, logs }, client))
}
