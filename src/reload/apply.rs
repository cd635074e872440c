//! Reads the configuration again, and brings it into force: as a whole, or not at all.

use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::Ledger;
use tokio::task::spawn_blocking;

use super::difference::{changes, live, pending};
use super::{Reloader, told};
use crate::StartError;
use crate::admit::Keys;
use crate::config::{Checked, Settings};
use crate::front::Specs;
use crate::wire::admin::{Applied, ConfigurationStatus, Reloaded, Wrong};

impl Reloader {
    /// Reads the configuration, and applies what can be applied.
    ///
    /// # Errors
    /// When the ledger did not do what is needed of it. Then what is in force is told by the status.
    pub(super) async fn reload(&mut self, why: &'static str) -> Result<Reloaded, Failure> {
        self.sight.begin();
        let source = self.world.source.clone();
        let read = spawn_blocking(move || source.read()).await;
        let (told, failure) = match read {
            Ok(Ok(checked)) => self.checked(checked).await,
            Ok(Err(faults)) => {
                self.sight.known(faults.files().iter().cloned().chain(self.own_files()));
                (self.refused(told::errors(&faults)), None)
            }
            Err(error) => {
                tracing::error!(%error, "the reading of the configuration panicked");
                (self.refused(vec![broken()]), None)
            }
        };
        told::log(&told, why);
        self.tell(&told);
        failure.map_or(Ok(told), Err)
    }

    /// What came of it, and what the ledger did not do.
    async fn checked(&mut self, checked: Checked) -> (Reloaded, Option<Failure>) {
        let Checked { settings, warnings } = checked;
        let token_file = self.booted.server.token_file.clone();
        self.sight.known(settings.files.iter().cloned().chain([token_file]));
        let warnings = warnings.iter().map(told::wrong).collect();
        match self.apply(settings).await {
            Ok((told, failure)) => (Reloaded { warnings, ..told }, failure),
            Err(error) => {
                let failure = told::failure(&error);
                (Reloaded { warnings, ..self.refused(vec![told::unfit(&error)]) }, failure)
            }
        }
    }

    /// Brings settings into force. What can fail comes first, and changes nothing that callers see.
    async fn apply(
        &mut self,
        mut settings: Settings,
    ) -> Result<(Reloaded, Option<Failure>), StartError> {
        let mut pending = pending(&self.booted, &settings);
        // It may have moved only because its folder shall, which is where it was until the restart.
        settings.server.token_file.clone_from(&self.booted.server.token_file);
        let mut switches = self.switches.clone();
        switches.put(&mut settings.agents);
        let agents = self.prepare(&mut settings)?;
        let mut specs = self.specs.clone();
        specs.extend(agents.specs());
        let secrets = settings.secrets.iter().cloned();
        self.world.masks.extend(secrets, &settings.redaction).await;
        let keys = self.seed(&settings, &specs).await?;
        let of = |agents| Applied {
            agents,
            tokens: changes(&self.settings.tokens, &settings.tokens, |it| it.name.clone(), eq),
            schedules: self.rescheduled(&settings),
            settings: live(&self.settings, &settings),
        };
        let mut applied = of(agents.told.clone());
        if keys.own != self.keys.own {
            applied.tokens.changed.push(crate::admit::OPERATOR.to_owned());
        }
        if self.settings.lockout != settings.lockout {
            self.world.front.lock_out(&settings.lockout);
        }
        self.levels.send_if_modified(|level| {
            std::mem::replace(level, settings.log.level) != settings.log.level
        });
        let before = self.settings.scheduling.clone();
        (self.keys, self.settings, self.switches) = (keys, settings, switches);
        self.change_over(agents).await;
        self.world.circuits.mended(); // Whoever reads it again may have mended a credential.
        let unwritten = self.reschedule(&mut applied, before).await.err();
        if unwritten.is_some() {
            pending.push("schedules".to_owned());
        }
        if !applied.is_empty() {
            self.since = self.world.clock.now();
        }
        self.show();
        let generation = self.status.borrow().generation + u64::from(!applied.is_empty());
        let (rejected, warnings) = (Vec::new(), Vec::new());
        Ok((Reloaded { generation, applied, pending, rejected, warnings }, unwritten))
    }

    /// Has those enter who may by these settings.
    pub(super) async fn seed(
        &mut self,
        settings: &Settings,
        specs: &Specs,
    ) -> Result<Keys, StartError> {
        let ledger: &dyn Ledger = &*self.world.store;
        let keys = Keys::seed(ledger, settings, specs, &*self.world.clock).await?;
        self.world.masks.add(keys.own.clone()).await;
        Ok(keys)
    }

    /// Nothing was applied.
    fn refused(&self, rejected: Vec<Wrong>) -> Reloaded {
        let ConfigurationStatus { generation, pending, .. } = self.status.borrow().clone();
        let (applied, warnings) = (Applied::default(), Vec::new());
        Reloaded { generation, applied, pending, rejected, warnings }
    }

    fn own_files(&self) -> impl Iterator<Item = std::path::PathBuf> + use<> {
        let Settings { files, server, .. } = &self.settings;
        files.clone().into_iter().chain([server.token_file.clone()])
    }

    fn tell(&self, told: &Reloaded) {
        self.status.send_replace(ConfigurationStatus {
            generation: told.generation,
            since: self.since,
            read_at: self.world.clock.now(),
            watched: self.settings.server.watch,
            pending: told.pending.clone(),
            rejected: told.rejected.clone(),
            switched: self.switches.told(),
        });
    }
}

fn eq<T: PartialEq>(one: &T, other: &T) -> bool {
    one == other
}

fn broken() -> Wrong {
    let message = "the configuration could not be read; the log has the cause".to_owned();
    Wrong { file: None, line: None, column: None, key: None, message, hint: None }
}
