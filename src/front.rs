//! What callers meet: the paths of the service, made anew for each configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::door::Gateway;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::rungs::Rungs;
use chrono::{DateTime, Utc};

use crate::config::{Lockout, Settings};
use crate::observe::Observatory;
use crate::programs::Programs;
use crate::push::Desk;
use crate::serve::admin::Admin;
use crate::serve::auth::Guard;
use crate::serve::card::GrpcUrls;
use crate::serve::changing::Paths;
use crate::serve::exposure::Rates;
use crate::serve::host::Hosts;
use crate::serve::lockout::Lockouts;
use crate::serve::looks::Looks;
use crate::serve::stocktaking::Stocktaking;
use crate::serve::{App, Known, Shared, gate};
use crate::warden::wardens::Wardens;

/// The agents, as callers meet them.
pub(super) type Specs = BTreeMap<AgentId, Arc<AgentSpec>>;

/// What stays the same for callers, whatever the configuration says.
pub(super) struct Fixed {
    pub(super) address: SocketAddr,
    /// How it is spoken to where it listens.
    pub(super) scheme: &'static str,
    pub(super) gateway: Gateway,
    pub(super) desk: Option<Desk>,
    pub(super) rungs: Rungs,
    pub(super) wardens: Arc<Wardens>,
    pub(super) observatory: Observatory,
    pub(super) admin: Arc<dyn Admin>,
    pub(super) programs: Programs,
}

/// Shows callers the configuration in force.
pub(super) struct Front {
    fixed: Fixed,
    lockouts: Arc<Lockouts>,
    rates: Arc<Rates>,
    paths: Paths,
}

impl Front {
    /// Nothing is shown yet.
    pub(super) fn new(fixed: Fixed, lockout: &Lockout) -> Self {
        let (lockouts, rates) = (lockouts(lockout), Arc::default());
        Self { fixed, lockouts, rates, paths: Paths::default() }
    }

    /// The door to the tree.
    pub(super) const fn gateway(&self) -> &Gateway {
        &self.fixed.gateway
    }

    /// Where the service listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.fixed.address
    }

    /// What is served.
    pub(super) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Counts wrong credentials anew, under other bounds.
    pub(super) fn lock_out(&mut self, lockout: &Lockout) {
        self.lockouts = lockouts(lockout);
    }

    /// Shows this to whoever asks from now on. A request that is under way goes on with what it saw.
    pub(super) fn show(
        &self,
        settings: &Settings,
        agents: Specs,
        guard: Guard,
        since: DateTime<Utc>,
    ) {
        self.paths.show(App::new(self.shared(settings, agents, guard, since)));
    }

    /// What requests share.
    fn shared(
        &self,
        settings: &Settings,
        agents: Specs,
        guard: Guard,
        since: DateTime<Utc>,
    ) -> Shared {
        let (Settings { server, default_agent, scheduling, .. }, fixed) =
            (settings.clone(), &self.fixed);
        let (entry, url) =
            (server.entry, url(server.public_url.as_deref(), fixed.scheme, fixed.address));
        Shared {
            gateway: fixed.gateway.clone(),
            guard,
            lockouts: Arc::clone(&self.lockouts),
            rates: Arc::clone(&self.rates),
            admin: Arc::clone(&fixed.admin),
            hosts: Hosts::new(fixed.address, &url, entry.allowed_hosts)
                .with_origins(entry.allowed_origins),
            proxies: entry.trusted_proxies,
            aliases: gate::aliases(agents.values().map(|spec| &**spec)),
            grpc: GrpcUrls::new(entry.grpc_url_0_3, entry.grpc_url_1_0, &url),
            push: fixed.desk.clone(),
            agents,
            zone: scheduling.timezone,
            seconds: scheduling.seconds,
            default_agent,
            rungs: fixed.rungs.clone(),
            wardens: living(&fixed.wardens),
            programs: known(&fixed.programs),
            observatory: fixed.observatory.clone(),
            metrics: settings.metrics,
            ledger_bytes: sizes(server.data_dir),
            stocktaking: Stocktaking::default(),
            looks: Looks::default(),
            begun: since,
            public_url: url,
            public_card: server.public_card,
            max_body: server.max_body_bytes,
            body_timeout: server.body_timeout,
        }
    }
}

/// Where callers reach the service.
pub(super) fn url(public: Option<&str>, scheme: &str, address: SocketAddr) -> String {
    public.map_or_else(|| format!("{scheme}://{address}"), str::to_owned)
}

fn lockouts(lockout: &Lockout) -> Arc<Lockouts> {
    Arc::new(Lockouts::new(lockout.spec, lockout.exempt.clone()))
}

/// Tells which wardens live.
fn living(wardens: &Arc<Wardens>) -> Arc<dyn Fn() -> Vec<u32> + Send + Sync> {
    let wardens = Arc::clone(wardens);
    Arc::new(move || wardens.pids())
}

/// Tells what is known of a program.
fn known(programs: &Programs) -> Known {
    let programs = programs.clone();
    Arc::new(move |id| programs.of(id))
}

/// How much room the files of the ledger take.
fn sizes(data_dir: PathBuf) -> Arc<dyn Fn() -> u64 + Send + Sync> {
    Arc::new(move || {
        let files = ["ledger.db", "ledger.db-wal", "ledger.db-shm"].map(|name| data_dir.join(name));
        files.iter().filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum()
    })
}
