//! Public paths of the service, built anew for each configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::api::Api;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::id::AgentId;
use algonius_warden::MemoryUse;
use algonius_warden::wardens::ProcessHolders;
use chrono::{DateTime, Utc};

use crate::app::program_versions::Programs;
use crate::config::{LockoutSettings, Settings};
use crate::observe::Instruments;
use crate::push::PushRegistry;
use crate::serve::a2a::card::public_address::{GivenGrpcUrls, Sites};
use crate::serve::agent_directory::{AgentDirectory, ProgramFactsFn};
use crate::serve::api::schedules::ScheduleDefaults;
use crate::serve::auth::AccessControl;
use crate::serve::auth::authenticator::Authenticator;
use crate::serve::auth::host::Hosts;
use crate::serve::auth::lockout::Lockouts;
use crate::serve::auth::rate_limit::Rates;
use crate::serve::http::body_budget::BodyLimits;
use crate::serve::ops::admin::Admin;
use crate::serve::ops::pages;
use crate::serve::ops::single_flight::SingleFlight;
use crate::serve::ops::status::{MachineFacts, Monitoring};
use crate::serve::ops::storage_stats_cache::StatsCache;
use crate::serve::router::hot_swap::RoutedPaths;
use crate::serve::{App, SharedState};
use crate::wire::api::OutputMemoryStatus;

/// Agents by id, as the API shows them.
pub(crate) type Specs = BTreeMap<AgentId, Arc<AgentSpec>>;

/// State that is independent of the configuration.
pub(crate) struct Fixed {
    pub(crate) address: SocketAddr,
    /// URL scheme of the listening address.
    pub(crate) scheme: &'static str,
    pub(crate) api: Api,
    pub(crate) push_registry: Option<PushRegistry>,
    pub(crate) capabilities: HostCapabilities,
    pub(crate) holders: Arc<ProcessHolders>,
    pub(crate) instruments: Instruments,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) programs: Programs,
}

/// HTTP state: serves the configuration in force.
pub(crate) struct HttpState {
    fixed: Fixed,
    lockouts: Arc<Lockouts>,
    rates: Arc<Rates>,
    paths: RoutedPaths,
}

impl HttpState {
    /// Creates the state without any served configuration.
    pub(crate) fn new(fixed: Fixed, lockout: &LockoutSettings) -> Self {
        // Rates and lockouts outlive a configuration: a reload must not give a caller a new allowance.
        let (lockouts, rates) = (lockouts(lockout), Arc::default());
        Self { fixed, lockouts, rates, paths: RoutedPaths::default() }
    }

    /// Returns the api to the supervision tree.
    pub(crate) const fn api(&self) -> &Api {
        &self.fixed.api
    }

    /// Returns the address on which the service listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.fixed.address
    }

    /// Returns the served paths.
    pub(crate) const fn paths(&self) -> &RoutedPaths {
        &self.paths
    }

    /// Resets the count of wrong credentials and sets new limits.
    pub(crate) fn lock_out(&mut self, lockout: &LockoutSettings) {
        self.lockouts = lockouts(lockout);
    }

    /// Serves this configuration from now on. Requests in progress continue with the configuration with which they
    /// started.
    pub(crate) fn show(
        &self,
        settings: &Settings,
        agents: Specs,
        guard: Authenticator,
        since: DateTime<Utc>,
    ) {
        self.paths.show(App::new(self.shared(settings, agents, guard, since)));
    }

    /// Creates the state that requests share.
    fn shared(
        &self,
        settings: &Settings,
        agents: Specs,
        guard: Authenticator,
        since: DateTime<Utc>,
    ) -> SharedState {
        let (Settings { server, default_agent, scheduling, .. }, fixed) =
            (settings.clone(), &self.fixed);
        let entry = server.entry;
        let url = url(server.public.url.as_deref(), fixed.scheme, fixed.address);
        pages::set_address(&url);
        let grpc = GivenGrpcUrls { v0_3: entry.grpc_url_0_3, v1_0: entry.grpc_url_1_0 };
        SharedState {
            api: fixed.api.clone(),
            admin: Arc::clone(&fixed.admin),
            push: fixed.push_registry.clone(),
            access: AccessControl {
                authenticator: guard,
                lockouts: Arc::clone(&self.lockouts),
                rates: Arc::clone(&self.rates),
                hosts: Hosts::new(fixed.address, &url, entry.allowed_hosts)
                    .with_origins(entry.allowed_origins),
                proxies: entry.trusted_proxies,
                public_card: server.public.card,
            },
            agents: AgentDirectory::new(agents, default_agent, known(&fixed.programs)),
            schedules: ScheduleDefaults { zone: scheduling.timezone, seconds: scheduling.seconds },
            sites: match server.public.url.is_none() && fixed.address.ip().is_unspecified() {
                true => Sites::of_callers(url, fixed.scheme, grpc),
                false => Sites::fixed(url, grpc),
            },
            bodies: BodyLimits::new(server.requests.max_body_bytes, server.requests.body_timeout),
            monitoring: Monitoring {
                instruments: fixed.instruments.clone(),
                metrics: settings.observability.metrics,
                ledger_bytes: sizes(server.data_dir),
                storage_stats: StatsCache::default(),
                status: SingleFlight::default(),
            },
            machine: MachineFacts {
                capabilities: fixed.capabilities.clone(),
                holders: living(&fixed.holders),
            },
            begun: since,
        }
    }
}

/// Returns the base URL at which callers reach the service.
pub(crate) fn url(public: Option<&str>, scheme: &str, address: SocketAddr) -> String {
    public.map_or_else(|| format!("{scheme}://{address}"), str::to_owned)
}

fn lockouts(lockout: &LockoutSettings) -> Arc<Lockouts> {
    Arc::new(Lockouts::new(lockout.spec, lockout.exempt.clone()))
}

/// Returns a function that reports the process ids of the process holders and the usage of the memory for output.
fn living(
    wardens: &Arc<ProcessHolders>,
) -> Arc<dyn Fn() -> (Vec<u32>, OutputMemoryStatus) + Send + Sync> {
    let wardens = Arc::clone(wardens);
    Arc::new(move || {
        let MemoryUse { limit, used, waiting } = wardens.memory();
        (wardens.pids(), OutputMemoryStatus { limit_bytes: limit, used_bytes: used, waiting })
    })
}

/// Returns a function that reports the known facts about a program.
fn known(programs: &Programs) -> ProgramFactsFn {
    let programs = programs.clone();
    Arc::new(move |id| programs.of(id))
}

/// Returns a function that reports the size of the ledger's files, in bytes.
fn sizes(data_dir: PathBuf) -> Arc<dyn Fn() -> u64 + Send + Sync> {
    Arc::new(move || {
        let files = ["ledger.db", "ledger.db-wal", "ledger.db-shm"].map(|name| data_dir.join(name));
        files.iter().filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum()
    })
}
