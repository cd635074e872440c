//! Public paths of the service, built anew for each configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::api::Api;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::id::AgentId;
use algonius_warden::OutputMemoryUsage;
use algonius_warden::process_holders::ProcessHolders;
use chrono::{DateTime, Utc};

use crate::app::program_versions::ProgramStatuses;
use crate::config::{LockoutSettings, Settings};
use crate::observe::Instruments;
use crate::push::PushRegistry;
use crate::serve::a2a::card::public_address::{GrpcUrlConfig, PublicAddressResolver};
use crate::serve::agent_directory::{AgentDirectory, ProgramStatusFn};
use crate::serve::api::schedules::ScheduleDefaults;
use crate::serve::auth::AccessControl;
use crate::serve::auth::authenticator::Authenticator;
use crate::serve::auth::host::HostPolicy;
use crate::serve::auth::lockout::LockoutTracker;
use crate::serve::auth::rate_limit::RateLimiter;
use crate::serve::http::body_limits::BodyLimits;
use crate::serve::ops::admin::Administration;
use crate::serve::ops::error_pages::{self, ErrorPages};
use crate::serve::ops::single_flight::SingleFlight;
use crate::serve::ops::status::{MachineFacts, Monitoring};
use crate::serve::ops::storage_stats_cache::StorageStatsCache;
use crate::serve::router::hot_swap::RoutePublisher;
use crate::serve::{AppState, SharedState};
use crate::wire::api::OutputMemoryStatus;

/// Agents by id, as the API shows them.
pub(crate) type AgentSpecs = BTreeMap<AgentId, Arc<AgentSpec>>;

/// State that is independent of the configuration.
pub(crate) struct StaticState {
    pub(crate) address: SocketAddr,
    /// URL scheme of the listening address.
    pub(crate) scheme: &'static str,
    pub(crate) api: Api,
    pub(crate) push_registry: Option<PushRegistry>,
    pub(crate) capabilities: HostCapabilities,
    pub(crate) holders: Arc<ProcessHolders>,
    pub(crate) instruments: Instruments,
    pub(crate) admin: Arc<dyn Administration>,
    pub(crate) program_statuses: ProgramStatuses,
}

/// HTTP state: serves the configuration in force.
pub(crate) struct HttpState {
    static_state: StaticState,
    lockout_tracker: Arc<LockoutTracker>,
    rate_limiter: Arc<RateLimiter>,
    route_publisher: RoutePublisher,
}

impl HttpState {
    /// Creates the state without any served configuration.
    pub(crate) fn new(static_state: StaticState, lockout: &LockoutSettings) -> Self {
        // Rates and lockouts outlive a configuration: a reload must not give a caller a new allowance.
        let (lockouts, rate_limiter) = (new_lockout_tracker(lockout), Arc::default());
        Self {
            static_state,
            lockout_tracker: lockouts,
            rate_limiter,
            route_publisher: RoutePublisher::default(),
        }
    }

    /// Returns the api to the supervision tree.
    pub(crate) const fn api(&self) -> &Api {
        &self.static_state.api
    }

    /// Returns the address on which the service listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.static_state.address
    }

    /// Returns the publisher of the routes.
    pub(crate) const fn route_publisher(&self) -> &RoutePublisher {
        &self.route_publisher
    }

    /// Resets the count of wrong credentials and sets new limits.
    pub(crate) fn reset_lockouts(&mut self, lockout: &LockoutSettings) {
        self.lockout_tracker = new_lockout_tracker(lockout);
    }

    /// Serves this configuration from now on. Requests in progress continue with the configuration with which they
    /// started.
    pub(crate) fn publish(
        &self,
        settings: &Settings,
        agents: AgentSpecs,
        authenticator: Authenticator,
        in_force_since: DateTime<Utc>,
    ) {
        self.route_publisher.publish(AppState::new(self.build_shared_state(
            settings,
            agents,
            authenticator,
            in_force_since,
        )));
    }

    /// Creates the state that requests share.
    fn build_shared_state(
        &self,
        settings: &Settings,
        agents: AgentSpecs,
        authenticator: Authenticator,
        in_force_since: DateTime<Utc>,
    ) -> SharedState {
        let (Settings { server, default_agent, scheduling, .. }, static_state) =
            (settings.clone(), &self.static_state);
        let access = server.request_access;
        let url = base_url(server.public.url.as_deref(), static_state.scheme, static_state.address);
        error_pages::set_service_url(&url);
        let grpc = GrpcUrlConfig { v0_3: access.grpc_url_0_3, v1_0: access.grpc_url_1_0 };
        SharedState {
            api: static_state.api.clone(),
            admin: Arc::clone(&static_state.admin),
            push_registry: static_state.push_registry.clone(),
            access_control: AccessControl {
                authenticator,
                lockouts: Arc::clone(&self.lockout_tracker),
                rate_limiter: Arc::clone(&self.rate_limiter),
                host_policy: HostPolicy::new(static_state.address, &url, access.allowed_hosts)
                    .with_origins(access.allowed_origins),
                trusted_proxies: access.trusted_proxies,
                has_public_cards: server.public.is_card_public,
            },
            agents: AgentDirectory::new(
                agents,
                default_agent,
                program_status_fn(&static_state.program_statuses),
            ),
            schedule_defaults: ScheduleDefaults {
                zone: scheduling.timezone,
                allows_seconds: scheduling.allows_seconds,
            },
            public_addresses: match server.public.url.is_none()
                && static_state.address.ip().is_unspecified()
            {
                true => {
                    PublicAddressResolver::with_url_of_request_host(url, static_state.scheme, grpc)
                }
                false => PublicAddressResolver::with_fixed_url(url, grpc),
            },
            body_limits: BodyLimits::new(
                server.request_limits.max_body_bytes,
                server.request_limits.body_timeout,
            ),
            monitoring: Monitoring {
                instruments: static_state.instruments.clone(),
                exposes_metrics: settings.observability.serves_metrics,
                ledger_bytes_fn: ledger_size_fn(server.data_dir),
                storage_stats: StorageStatsCache::default(),
                shared_status: SingleFlight::default(),
            },
            machine: MachineFacts {
                capabilities: static_state.capabilities.clone(),
                holder_status_fn: holder_status_fn(&static_state.holders),
            },
            error_pages: ErrorPages::default(),
            config_in_force_since: in_force_since,
        }
    }
}

/// Returns the base URL at which callers reach the service.
pub(crate) fn base_url(public_url: Option<&str>, scheme: &str, address: SocketAddr) -> String {
    public_url.map_or_else(|| format!("{scheme}://{address}"), str::to_owned)
}

fn new_lockout_tracker(lockout: &LockoutSettings) -> Arc<LockoutTracker> {
    Arc::new(LockoutTracker::new(lockout.spec, lockout.exempt_networks.clone()))
}

/// Returns a function that reports the process ids of the process holders and the usage of the memory for output.
fn holder_status_fn(
    holders: &Arc<ProcessHolders>,
) -> Arc<dyn Fn() -> (Vec<u32>, OutputMemoryStatus) + Send + Sync> {
    let holders = Arc::clone(holders);
    Arc::new(move || {
        let OutputMemoryUsage { limit_bytes: limit, used_bytes: used, waiting_streams } =
            holders.output_memory_usage();
        (
            holders.pids(),
            OutputMemoryStatus { limit_bytes: limit, used_bytes: used, waiting: waiting_streams },
        )
    })
}

/// Returns a function that reports the known facts about a program.
fn program_status_fn(program_statuses: &ProgramStatuses) -> ProgramStatusFn {
    let program_statuses = program_statuses.clone();
    Arc::new(move |id| program_statuses.status_of(id))
}

/// Returns a function that reports the size of the ledger's files, in bytes.
fn ledger_size_fn(data_dir: PathBuf) -> Arc<dyn Fn() -> u64 + Send + Sync> {
    Arc::new(move || {
        let files = ["ledger.db", "ledger.db-wal", "ledger.db-shm"].map(|name| data_dir.join(name));
        files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    })
}
