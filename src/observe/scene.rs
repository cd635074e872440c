//! What is to be seen at the moment at which somebody looks.

use std::sync::atomic::AtomicU64;

use algonius_actors::model::alert::Cause;
use algonius_actors::model::budget::Measure;
use algonius_actors::model::pressure::Shortage;
use algonius_actors::model::quota;
use algonius_actors::model::status::{AgentStatus, Health, TreeStatus};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::metrics::Labels;
use super::process;

/// What is to be seen just now.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The tree.
    pub tree: TreeStatus,
    /// How much room the ledger takes, in bytes.
    pub ledger_bytes: u64,
}

/// Numbers that go up and down.
type Level = Family<Labels, Gauge<f64, AtomicU64>>;

/// All that the machine may be short of.
const SHORTAGES: [Shortage; 5] =
    [Shortage::Cpu, Shortage::Memory, Shortage::Io, Shortage::Load, Shortage::Disk];

impl Scene {
    /// The page that has it.
    pub(super) fn page(&self) -> Registry {
        let mut page = Registry::default();
        let ours = page.sub_registry_with_prefix("algonius");
        self.agents(ours);
        self.budgets(ours);
        self.machine(ours);
        process::figures(&mut page);
        page
    }

    fn agents(&self, page: &mut Registry) {
        let of_agents = |page: &mut Registry, name, help, count: fn(&AgentStatus) -> f64| {
            let level = Level::default();
            for agent in &self.tree.agents {
                let labels = vec![("agent", agent.id.to_string().into())];
                level.get_or_create(&labels).set(count(agent));
            }
            page.register(name, help, level);
        };
        of_agents(page, "running", "Executions that hold a slot.", |agent| {
            number(agent.running.len())
        });
        of_agents(page, "queued", "Executions that wait.", |agent| number(agent.queued.len()));
        let help = "How often the actor of an agent was started again.";
        of_agents(page, "agent_restarts", help, |agent| f64::from(agent.restarts));
        let help = "Whether an agent failed too often and is not started again.";
        of_agents(page, "agent_quarantined", help, |agent| {
            f64::from(u8::from(agent.health == Health::Quarantined))
        });
    }

    fn budgets(&self, page: &mut Registry) {
        let (spent, left, credentials) = (Level::default(), Level::default(), Level::default());
        for agent in &self.tree.agents {
            let Some(budget) = &agent.budget else { continue };
            let labels = |of: Measure| {
                vec![("agent", agent.id.to_string().into()), ("of", of.as_str().into())]
            };
            for of in Measure::ALL {
                spent.get_or_create(&labels(*of)).set(amount(*of, of.of(budget.spent)));
            }
            for bound in &budget.bounds {
                left.get_or_create(&labels(bound.of)).set(amount(bound.of, bound.left));
            }
        }
        for cause in [quota::Cause::UsedUp, quota::Cause::Refused] {
            let shut = self.tree.credentials.iter().filter(|one| one.cause == cause).count();
            let labels = vec![("cause", cause.as_str().to_owned().into())];
            credentials.get_or_create(&labels).set(number(shut));
        }
        let help = "What an agent has used up today: numbers, US dollars, seconds.";
        page.register("budget_spent", help, spent);
        page.register("budget_left", "What is left of what an agent may use up today.", left);
        page.register("credentials_shut", "Credentials that are of no use for now.", credentials);
    }

    fn machine(&self, page: &mut Registry) {
        let pressure = Level::default();
        let short = self.tree.pressure.as_ref().map(|pressure| pressure.short.as_slice());
        for shortage in SHORTAGES {
            let is_short = short.unwrap_or_default().contains(&shortage);
            let labels = vec![("resource", word(shortage).to_owned().into())];
            pressure.get_or_create(&labels).set(f64::from(u8::from(is_short)));
        }
        page.register("pressure", "Whether the machine is short of something.", pressure);
        let open = Level::default();
        for cause in Cause::ALL {
            let alerts = self.tree.alerts.iter().filter(|alert| alert.cause == *cause);
            let labels = vec![("cause", cause.as_str().to_owned().into())];
            open.get_or_create(&labels).set(number(alerts.count()));
        }
        page.register("alerts_open", "Alerts that are open.", open);
        let ledger = Gauge::<f64, AtomicU64>::default();
        ledger.set(rounded(self.ledger_bytes));
        page.register("ledger_bytes", "Room that the ledger takes on its disk.", ledger);
    }
}

const fn word(shortage: Shortage) -> &'static str {
    match shortage {
        Shortage::Cpu => "cpu",
        Shortage::Memory => "memory",
        Shortage::Io => "io",
        Shortage::Load => "load",
        Shortage::Disk => "disk",
    }
}

/// An amount in its published unit.
fn amount(of: Measure, amount: u64) -> f64 {
    match of {
        Measure::CostUsd => rounded(amount) / 1e6,
        Measure::WallTime => rounded(amount) / 1e3,
        Measure::Turns | Measure::InputTokens | Measure::OutputTokens | Measure::Tokens => {
            rounded(amount)
        }
    }
}

fn number(count: usize) -> f64 {
    rounded(u64::try_from(count).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "sixteen digits are enough for a gauge")]
pub(super) const fn rounded(count: u64) -> f64 {
    count as f64
}
