//! Reload of the configuration: applied as a whole, or not at all.

use algonius_actors::model::failure::Failure;

use super::difference::{changed_live_keys, changed_restart_keys, diff_by_name};
use super::schedules::{apply_schedules, schedule_changes};
use super::{Reloader, auto_reload_state, report};
use crate::StartError;
use crate::app::credentials::OPERATOR_TOKEN_NAME;
use crate::app::file_trust;
use crate::config::{LoadedConfig, Settings};
use crate::wire::admin::{AppliedChanges, Changes, ConfigurationError, ReloadResult};

impl Reloader {
    /// Reads the configuration, and applies the changes that need no restart.
    ///
    /// # Errors
    /// Fails if a ledger operation failed. The status reports the configuration in force then.
    pub(super) async fn reload(&mut self, reason: &'static str) -> Result<ReloadResult, Failure> {
        let (result, failure) = match self.files.read().await {
            Ok(Ok(loaded)) => self.apply_config(loaded).await,
            Ok(Err(faults)) => {
                let Settings { referenced_files: files, server, .. } = &self.settings;
                let own_files = files.iter().chain([&server.token_file]).cloned();
                self.files.set_files(faults.referenced_files().iter().cloned().chain(own_files));
                (self.status_publisher.rejected_report(report::configuration_errors(&faults)), None)
            }
            Err(error) => {
                tracing::error!(%error, "panic while the configuration was read");
                (self.status_publisher.rejected_report(vec![unreadable_config_error()]), None)
            }
        };
        report::log_result(&result, reason);
        let auto_reload_state = auto_reload_state(&self.protection, &self.settings);
        let overridden_agents = self.switches.overridden_agents();
        self.status_publisher.publish_result(&result, auto_reload_state, overridden_agents);
        failure.map_or(Ok(result), Err)
    }

    /// Returns the result of the reload, and the failure of the ledger if there was one.
    async fn apply_config(&mut self, loaded: LoadedConfig) -> (ReloadResult, Option<Failure>) {
        let LoadedConfig { settings, warnings } = loaded;
        let token_file = self.startup_settings.server.token_file.clone();
        self.files.set_files(settings.referenced_files.iter().cloned().chain([token_file]));
        let warnings = warnings.iter().map(report::configuration_error).collect();
        match self.apply_settings(settings).await {
            Ok((reload_result, failure)) => (ReloadResult { warnings, ..reload_result }, failure),
            Err(error) => {
                let failure = report::ledger_failure(&error);
                let rejected =
                    self.status_publisher.rejected_report(vec![report::rejection(&error)]);
                (ReloadResult { warnings, ..rejected }, failure)
            }
        }
    }

    /// Applies settings. The steps that can fail come first, and change nothing that callers see.
    async fn apply_settings(
        &mut self,
        mut settings: Settings,
    ) -> Result<(ReloadResult, Option<Failure>), StartError> {
        file_trust::check_trust_and_close_folders(&settings, self.files.source().file())?;
        let mut pending_keys = changed_restart_keys(&self.startup_settings, &settings);
        restore_startup_files(&self.startup_settings, &mut settings);
        let mut switches = self.switches.clone();
        switches.record_and_apply_to(&mut settings.agents);
        let agent_changes = self.agents.prepare_changes(&self.settings, &mut settings)?;
        self.agents.hide_service_files(settings.service_files.clone()).await;
        let mut specs = self.agents.specs().clone();
        specs.extend(agent_changes.specs());
        // New secrets are redacted before any agent that knows them can start.
        let secrets = settings.secrecy.secrets.iter().cloned();
        self.redaction.add_secrets_and_set_config(secrets, &settings.secrecy.redaction).await;
        let credentials =
            self.tokens.store_and_load_credentials(&settings, &specs, &mut self.redaction).await?;
        let mut applied =
            applied_changes(&self.settings, &settings, agent_changes.reported_changes.clone());
        if credentials.operator_token != self.tokens.operator_token() {
            applied.tokens.changed.push(OPERATOR_TOKEN_NAME.to_owned());
        }
        if self.settings.callers.lockout != settings.callers.lockout {
            self.http_state.reset_lockouts(&settings.callers.lockout);
        }
        self.status_publisher.publish_log_level(settings.observability.log.level);
        self.tokens.replace(credentials);
        let previous_settings = std::mem::replace(&mut self.settings, settings);
        self.switches = switches;
        self.agents.apply_changes(agent_changes).await;
        self.protect_files();
        self.breakers.reset_rejected_credentials(); // The operator who requested the reload may have repaired a credential.
        let scheduling = (previous_settings.scheduling, &mut self.settings.scheduling);
        let schedule_failure =
            apply_schedules(self.http_state.api(), scheduling, &mut applied).await.err();
        if schedule_failure.is_some() {
            pending_keys.push("schedules".to_owned());
        }
        let reload_result =
            self.status_publisher.start_generation_and_report(applied, pending_keys);
        self.publish_http_state();
        Ok((reload_result, schedule_failure))
    }
}

/// Keeps the paths of files whose change takes effect only after a restart.
fn restore_startup_files(startup_settings: &Settings, settings: &mut Settings) {
    // The new path may follow from a new data directory, which takes effect only after a restart.
    settings.server.token_file.clone_from(&startup_settings.server.token_file);
    // Folders and keys stay unchanged until the service is restarted.
    settings.service_files.extend(&startup_settings.service_files);
}

/// Returns the differences that a reload applies.
fn applied_changes(before: &Settings, after: &Settings, agents: Changes) -> AppliedChanges {
    let (old, new) = (&before.callers.tokens, &after.callers.tokens);
    AppliedChanges {
        agents,
        tokens: diff_by_name(old, new, |it| it.name.clone(), is_equal),
        schedules: schedule_changes(&before.scheduling, &after.scheduling),
        settings: changed_live_keys(before, after),
    }
}

fn is_equal<T: PartialEq>(one: &T, other: &T) -> bool {
    one == other
}

fn unreadable_config_error() -> ConfigurationError {
    let message = "the configuration could not be read; see the log for the cause".to_owned();
    ConfigurationError { file: None, line: None, column: None, key: None, message, hint: None }
}
