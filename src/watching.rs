//! Puts together who looks on from outside: what is counted, and who is told of alerts.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::push::Secret;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::sync::mpsc;

use crate::alert::{Herald, Hooks, Told, WAITING};
use crate::observe::{Collector, Observatory};
use crate::push::{Courier, Policy, check_url};
use crate::telling::policy;
use crate::warden::wardens::Wardens;
use crate::{StartError, config};

/// How long a collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Those who look on, before there is anything to see.
pub(super) struct Watching {
    /// Who counts.
    pub(super) observatory: Observatory,
    hooks: Option<(Hooks, Policy, mpsc::Receiver<Told>)>,
}

impl Watching {
    /// Those of a configuration. Hooks may be told where push notifications may be sent.
    pub(super) fn prepare(settings: &config::Settings) -> Result<Self, StartError> {
        let collector = settings.telemetry.clone().map(collector).transpose()?;
        let config::Alerts { webhook, secret, command, .. } = settings.alerts.clone();
        if webhook.is_none() && command.is_none() {
            let observatory = Observatory::new(None, collector);
            return Ok(Self { observatory, hooks: None });
        }
        let (sender, coming) = mpsc::channel(WAITING);
        let hooks = Hooks { webhook: webhook.map(Secret), secret: secret.map(Secret), command };
        let hooks = Some((hooks, policy(settings.push.clone().unwrap_or_default()), coming));
        Ok(Self { observatory: Observatory::new(Some(sender), collector), hooks })
    }

    /// Begins to tell those who want to be told.
    pub(super) fn begin(self, wardens: &Arc<Wardens>) -> Result<Onlookers, StartError> {
        let observatory = self.observatory;
        let Some((hooks, policy, coming)) = self.hooks else {
            return Ok(Onlookers { observatory, herald: None });
        };
        let herald = Herald::begin(hooks, policy, Arc::clone(wardens) as _, coming);
        let herald = herald.map_err(|failure| StartError::Alerts { cause: failure.message })?;
        Ok(Onlookers { observatory, herald: Some(herald) })
    }
}

/// Those who look on.
pub(super) struct Onlookers {
    /// Who counts.
    pub(super) observatory: Observatory,
    herald: Option<Herald>,
}

impl Onlookers {
    /// Sends what waits to be sent, for a moment, and tells nobody any more.
    pub(super) async fn stop(self) {
        self.herald.into_iter().for_each(Herald::stop);
        self.observatory.flush().await;
    }
}

/// The collector, and who goes there. It is the operator's own, wherever it is.
fn collector(telemetry: config::Telemetry) -> Result<(Collector, Courier), StartError> {
    let config::Telemetry { endpoint, headers, logs } = telemetry;
    let everywhere = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let allow =
        Policy { allow: everywhere.to_vec(), timeout: TIMEOUT, ..policy(Default::default()) };
    check_url(&endpoint, &allow)
        .map_err(|failure| StartError::Telemetry { cause: failure.message })?;
    let courier =
        Courier::new(allow).map_err(|error| StartError::Telemetry { cause: error.to_string() })?;
    let headers = headers.into_iter().map(|(name, value)| (name, Secret(value))).collect();
    Ok((Collector { endpoint, headers, logs }, courier))
}
