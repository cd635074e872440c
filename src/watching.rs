//! Puts together who looks on from outside: what is counted, and who is told of alerts.

use std::sync::Arc;

use algonius_actors::model::alert::AlertSpec;
use algonius_actors::model::push::Secret;
use tokio::sync::mpsc;

use crate::alert::{Herald, Hooks, Told, WAITING};
use crate::observe::Observatory;
use crate::push::Policy;
use crate::telling::policy;
use crate::warden::wardens::Wardens;
use crate::{StartError, config};

/// Those who look on, before there is anything to see.
pub(super) struct Watching {
    /// Who counts.
    pub(super) observatory: Observatory,
    /// When somebody is told that they should look.
    pub(super) spec: AlertSpec,
    hooks: Option<(Hooks, Policy, mpsc::Receiver<Told>)>,
}

impl Watching {
    /// Those of a configuration. Hooks may be told where push notifications may be sent.
    pub(super) fn prepare(alerts: config::Alerts, push: Option<&config::Push>) -> Self {
        let config::Alerts { spec, webhook, secret, command } = alerts;
        if webhook.is_none() && command.is_none() {
            return Self { observatory: Observatory::new(None), spec, hooks: None };
        }
        let (sender, coming) = mpsc::channel(WAITING);
        let hooks = Hooks { webhook: webhook.map(Secret), secret: secret.map(Secret), command };
        let hooks = Some((hooks, policy(push.cloned().unwrap_or_default()), coming));
        Self { observatory: Observatory::new(Some(sender)), spec, hooks }
    }

    /// Begins to tell those who want to be told.
    pub(super) fn begin(self, wardens: &Arc<Wardens>) -> Result<Option<Herald>, StartError> {
        let Some((hooks, policy, coming)) = self.hooks else { return Ok(None) };
        let herald = Herald::begin(hooks, policy, Arc::clone(wardens) as _, coming);
        herald.map(Some).map_err(|failure| StartError::Alerts { cause: failure.message })
    }
}
