//! Protection of the configuration from agents and other users: restores modes and owners of files, and does not apply
//! such changes.

use std::path::{Path, PathBuf};

use crate::app::file_trust::{
    ChangedFile, ModeWatcher, RecordedPermissions, automatic_reload_obstacle, service_created_files,
};
use crate::config::Settings;

/// Protection of the service's files.
pub(super) struct FileProtection {
    /// File of the configuration; `None` for the shipped one.
    config_file: Option<PathBuf>,
    /// Recorded rights of the service's files, which an agent of the same user may widen.
    recorded_permissions: RecordedPermissions,
    /// True if an operator accepted the present modes, which the next configuration in force records.
    are_modes_accepted: bool,
    /// Detector of modes that changed only for a moment.
    mode_watcher: ModeWatcher,
    /// Reason why a file may have been open to other users since an operator last requested a reload.
    exposure_reason: Option<String>,
    /// Reason why changed files are not applied automatically.
    auto_reload_obstacle: Option<String>,
}

impl FileProtection {
    /// Returns the protection of no files, for a configuration in this file.
    pub(super) fn new(file: Option<&Path>) -> Self {
        let (recorded_permissions, mode_watcher) =
            (RecordedPermissions::default(), ModeWatcher::default());
        let file = file.map(Path::to_owned);
        Self {
            config_file: file,
            recorded_permissions,
            are_modes_accepted: false,
            mode_watcher,
            exposure_reason: None,
            auto_reload_obstacle: None,
        }
    }

    /// Returns true if changed files are applied automatically.
    pub(super) fn applies_changes_automatically(&self, settings: &Settings) -> bool {
        settings.server.configuration.reloads_on_change && self.auto_reload_obstacle.is_none()
    }

    /// Returns the reason why changed files are not applied automatically.
    pub(super) const fn auto_reload_obstacle(&self) -> Option<&String> {
        self.auto_reload_obstacle.as_ref()
    }

    /// Accepts the detected changes of modes, because an operator requested a reload.
    pub(super) fn accept_mode_changes(&mut self) {
        _ = self.mode_watcher.take_changed_path();
        self.exposure_reason = None;
        self.are_modes_accepted = true;
    }

    /// Records the files of the configuration in force that need protection, and watches their modes.
    pub(super) fn record_and_watch_files(&mut self, settings: &Settings) {
        let server = &settings.server;
        let secret_files =
            server.tls.iter().map(|pair| &*pair.key_file).chain([&*server.token_file]);
        let files_to_read = settings.service_files.protected_paths().chain(secret_files);
        if std::mem::take(&mut self.are_modes_accepted) {
            self.recorded_permissions = RecordedPermissions::default();
        }
        self.recorded_permissions = RecordedPermissions::from_files(
            files_to_read,
            &service_created_files(server),
            &self.recorded_permissions,
        );
        let mode_watcher = ModeWatcher::new(settings, self.config_file.as_deref());
        self.stop_auto_reload_on_mode_change(settings); // Until the new watches exist, the old ones count.
        self.mode_watcher = mode_watcher;
        self.update_auto_reload_obstacle(settings);
    }

    /// Determines whether changed files may be applied automatically, and logs when that ends.
    pub(super) fn update_auto_reload_obstacle(&mut self, settings: &Settings) {
        let obstacle = automatic_reload_obstacle(settings, self.config_file.as_deref());
        let obstacle = obstacle.or_else(|| self.exposure_reason.clone());
        let is_watch_requested =
            self.config_file.is_some() && settings.server.configuration.reloads_on_change;
        if let Some(reason) = obstacle
            .as_ref()
            .filter(|_| is_watch_requested && self.auto_reload_obstacle != obstacle)
        {
            tracing::warn!(reason, "changed files are applied only by `algonius reload`");
        }
        self.auto_reload_obstacle = obstacle;
    }

    /// Restores the rights of the service's files that were changed while the service runs. Other users may have used
    /// the access that they received, so nothing is applied automatically until an operator requests it.
    pub(super) fn restore_modes(&mut self, settings: &Settings) {
        self.are_modes_accepted = false; // The reload that the operator requested was refused.
        self.stop_auto_reload_on_mode_change(settings);
        let changed = self.recorded_permissions.restore();
        self.recorded_permissions.record_created_files(&service_created_files(&settings.server));
        for ChangedFile { path, was_exposed, restore_result } in changed {
            let name = path.file_name().unwrap_or(path.as_os_str()).display();
            if was_exposed {
                let reason = format!("`{name}` was opened to other users while the service ran");
                self.exposure_reason = Some(reason);
            }
            let path = path.display();
            match (was_exposed, restore_result) {
                (true, Ok(())) => {
                    tracing::error!(%path, "a file was opened to other users; its mode and owner are restored");
                }
                (true, Err(error)) => {
                    tracing::error!(%path, %error, "a file was opened to other users; its mode and owner cannot be restored");
                }
                (false, Ok(())) => {
                    tracing::error!(%path, "a file was closed to the service; its mode is restored");
                }
                (false, Err(error)) => {
                    tracing::error!(%path, %error, "a file was closed to the service; its mode cannot be restored");
                }
            }
        }
    }

    /// Stops applying changes automatically after the mode or the owner of a file of the configuration changed. Another
    /// user may have opened the file, and can write it until an operator has checked it.
    fn stop_auto_reload_on_mode_change(&mut self, settings: &Settings) {
        let Some(path) = self.mode_watcher.take_changed_path() else { return };
        if self.exposure_reason.is_some() {
            return;
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).display();
        self.exposure_reason =
            Some(format!("the mode or the owner of `{name}` changed while the service ran"));
        tracing::warn!(path = %path.display(), "the mode or the owner of a file changed");
        self.update_auto_reload_obstacle(settings);
    }
}
