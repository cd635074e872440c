//! Restores the home of an agent that was removed while the service runs, for example by a clean-up of the data folder.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;

use tokio::fs;
use tokio::task::spawn_blocking;

use super::PendingAttempt;
use crate::drivers::files::agent_home;

impl PendingAttempt {
    /// Creates the home of the agent with its configured files if it is missing.
    pub(super) async fn restore_home(&self) -> Result<(), Failure> {
        let Some(home) = self.program.runtime_settings.agent_home.clone() else { return Ok(()) };
        if fs::metadata(&home.path).await.is_ok_and(|metadata| metadata.is_dir()) {
            return Ok(());
        }
        let agent = &self.work.spec.id;
        tracing::warn!(%agent, "the home of the agent was removed; it is created again, without its logins");
        let user = self.program.user.ids;
        let created = spawn_blocking(move || agent_home::restore(&home, user)).await;
        let cause = match created {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.kind().to_string(),
            Err(error) => error.to_string(),
        };
        let message = format!("the home of the agent is missing and cannot be created: {cause}");
        Err(Failure::new(Code::NotStarted, message))
    }
}
