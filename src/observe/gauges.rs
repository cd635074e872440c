//! Gauges: values at the moment of a scrape.

use std::sync::atomic::AtomicU64;

use algonius_actors::model::agent::budget::BudgetMeasure;
use algonius_actors::model::agent::quota;
use algonius_actors::model::host::pressure::Shortage;
use algonius_actors::model::observation::alert::AlertCause;
use algonius_actors::model::observation::status::{AgentStatus, Health, TreeStatus};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::Labels;
use super::process::{self, to_f64};

/// State at the moment of a scrape.
#[derive(Debug, Clone)]
pub struct GaugeValues {
    /// Status of the supervision tree.
    pub tree: TreeStatus,
    /// Size of the ledger's files, in bytes.
    pub ledger_bytes: u64,
}

/// Gauges of one name.
type GaugeFamily = Family<Labels, Gauge<f64, AtomicU64>>;

/// All resources that the machine may lack.
const SHORTAGES: [Shortage; 5] =
    [Shortage::Cpu, Shortage::Memory, Shortage::Io, Shortage::Load, Shortage::Disk];

impl GaugeValues {
    /// Returns the registry with the gauges.
    pub(super) fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let service_registry = registry.sub_registry_with_prefix("algonius");
        self.register_agent_gauges(service_registry);
        self.register_budget_gauges(service_registry);
        self.register_host_gauges(service_registry);
        process::register_metrics(&mut registry);
        registry
    }

    fn register_agent_gauges(&self, registry: &mut Registry) {
        let register_for_agents =
            |registry: &mut Registry, name, help, value_of: fn(&AgentStatus) -> f64| {
                let family = GaugeFamily::default();
                for agent in &self.tree.agents {
                    let labels = vec![("agent", agent.id.to_string().into())];
                    family.get_or_create(&labels).set(value_of(agent));
                }
                registry.register(name, help, family);
            };
        register_for_agents(registry, "running", "Executions that hold a slot.", |agent| {
            count_to_f64(agent.work.running.len())
        });
        register_for_agents(registry, "queued", "Executions in the queue.", |agent| {
            count_to_f64(agent.work.queued.len())
        });
        let help = "Restarts of the actor of an agent.";
        register_for_agents(registry, "agent_restarts", help, |agent| {
            f64::from(agent.actor_starts.restarts)
        });
        let help = "1 if the actor of an agent failed too often and is not restarted.";
        register_for_agents(registry, "agent_quarantined", help, |agent| {
            f64::from(u8::from(agent.health == Health::Quarantined))
        });
    }

    fn register_budget_gauges(&self, registry: &mut Registry) {
        let (spent, remaining, blocked_accounts) =
            (GaugeFamily::default(), GaugeFamily::default(), GaugeFamily::default());
        for agent in &self.tree.agents {
            let Some(budget) = &agent.budget else { continue };
            let labels = |measure: BudgetMeasure| {
                vec![("agent", agent.id.to_string().into()), ("measure", measure.as_str().into())]
            };
            for measure in BudgetMeasure::ALL {
                spent
                    .get_or_create(&labels(*measure))
                    .set(amount_in_public_unit(*measure, measure.amount_in(budget.spent)));
            }
            for bound in &budget.bounds {
                remaining
                    .get_or_create(&labels(bound.measure))
                    .set(amount_in_public_unit(bound.measure, bound.remaining));
            }
        }
        for cause in [
            quota::DeferralCause::QuotaExhausted,
            quota::DeferralCause::CredentialRefused,
            quota::DeferralCause::RateLimited,
        ] {
            let count =
                self.tree.credentials.iter().filter(|account| account.cause == cause).count();
            let labels = vec![("cause", cause.as_str().to_owned().into())];
            blocked_accounts.get_or_create(&labels).set(count_to_f64(count));
        }
        let help = "Budget of an agent that it has spent today: counts, US dollars or seconds.";
        registry.register("budget_spent", help, spent);
        registry.register("budget_remaining", "Budget of an agent that remains today.", remaining);
        registry.register(
            "accounts_blocked",
            "Accounts that agents cannot use at present.",
            blocked_accounts,
        );
    }

    fn register_host_gauges(&self, registry: &mut Registry) {
        let pressure = GaugeFamily::default();
        let shortages = self.tree.pressure.as_ref().map(|pressure| pressure.short.as_slice());
        for shortage in SHORTAGES {
            let is_short = shortages.unwrap_or_default().contains(&shortage);
            let labels = vec![("resource", shortage_label(shortage).to_owned().into())];
            pressure.get_or_create(&labels).set(f64::from(u8::from(is_short)));
        }
        registry.register("pressure", "1 if the host is short of the resource.", pressure);
        let open_alerts = GaugeFamily::default();
        for cause in AlertCause::ALL {
            let alerts = self.tree.alerts.iter().filter(|alert| alert.cause == *cause);
            let labels = vec![("cause", cause.as_str().to_owned().into())];
            open_alerts.get_or_create(&labels).set(count_to_f64(alerts.count()));
        }
        registry.register("alerts_open", "Active alerts.", open_alerts);
        let ledger_gauge = Gauge::<f64, AtomicU64>::default();
        ledger_gauge.set(to_f64(self.ledger_bytes));
        registry.register("ledger_bytes", "Bytes of the ledger on its disk.", ledger_gauge);
    }
}

const fn shortage_label(shortage: Shortage) -> &'static str {
    match shortage {
        Shortage::Cpu => "cpu",
        Shortage::Memory => "memory",
        Shortage::Io => "io",
        Shortage::Load => "load",
        Shortage::Disk => "disk",
    }
}

/// Returns an amount in its public unit.
fn amount_in_public_unit(measure: BudgetMeasure, amount: u64) -> f64 {
    match measure {
        BudgetMeasure::CostUsd => to_f64(amount) / 1e6,
        BudgetMeasure::WallTime => to_f64(amount) / 1e3,
        BudgetMeasure::Turns
        | BudgetMeasure::InputTokens
        | BudgetMeasure::OutputTokens
        | BudgetMeasure::Tokens => to_f64(amount),
    }
}

fn count_to_f64(count: usize) -> f64 {
    to_f64(u64::try_from(count).unwrap_or(u64::MAX))
}
