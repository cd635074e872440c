//! What happens in one simulation, all of it drawn from the seed before anything begins.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::quota::{DeferralPolicy, QuotaCredential, QuotaSpec};
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::testing::{LedgerCallKind, ScriptedAttempt, agent_spec};

use super::seeded_random::SeededRandom;

/// One simulation.
#[derive(Debug)]
pub(crate) struct SimulationPlan {
    pub(crate) agents: Vec<SimulatedAgent>,
    /// The acts of the text `t0`, `t1` and so on.
    pub(crate) scripts: Vec<Vec<AttemptPlan>>,
    /// What happens, each after a pause in seconds.
    pub(crate) steps: Vec<(u64, SimulationStep)>,
}

/// An agent.
#[derive(Debug)]
pub(crate) struct SimulatedAgent {
    pub(crate) spec: AgentSpec,
    pub(crate) folder: Option<&'static str>,
}

/// What one attempt does.
#[derive(Debug, Clone)]
pub(crate) struct AttemptPlan {
    pub(crate) behavior: PlannedBehavior,
    run_time: u64,
    start_delay: u64,
    stop_delay: u64,
    cleanup_time: u64,
    /// For how long its failure says that it lasts.
    retry_after: Option<u64>,
    writes_stderr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedBehavior {
    Succeed,
    Fail(Code),
    /// The quota of its account is used up.
    QuotaExhausted,
    FailBeforeStart(Code),
    IgnoreStop,
    NeverReportStart,
    DropReporter,
    PanicOnStart,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SimulationStep {
    /// Somebody asks an agent, under a message id, for the text of this number.
    Submit { agent_index: usize, message_number: u64, text_number: usize },
    /// What was first recorded under so many ids is called off.
    Cancel(u64),
    /// The next calls to the ledger fail.
    FailLedgerCalls(LedgerCallKind, u32),
    /// The next calls to the ledger take so many seconds.
    DelayLedgerCalls(LedgerCallKind, Vec<u64>),
    /// Whoever reads the clock so many readings later panics; of what lives, so many in a hundred is
    /// held for the next actor.
    Panic { readings_until_panic: u32, preserved_percent: u64 },
    /// The service is killed and comes back; of what lives, so many in a hundred is held meanwhile.
    Restart { downtime: u64, preserved_percent: u64 },
}

impl SimulationPlan {
    pub(crate) fn from_random(random: &mut SeededRandom) -> Self {
        let agents: Vec<_> =
            (0..=random.below(3)).map(|number| simulated_agent(number, random)).collect();
        let account_failure_percent = random.pick(&[0, 0, 30]);
        let attempt_plans = |random: &mut SeededRandom| -> Vec<_> {
            (0..=random.below(3)).map(|_| attempt_plan(account_failure_percent, random)).collect()
        };
        let scripts = (0..8).map(|_| attempt_plans(random)).collect();
        // What is rare elsewhere is frequent in some simulations, and absent from others.
        let odds = StepOdds {
            max_pause: random.pick(&[1, 3, 10]),
            cancel_percent: random.pick(&[0, 10, 30]),
            ledger_fault_percent: random.pick(&[0, 0, 10, 20]),
            restart_percent: random.pick(&[0, 0, 3, 10]),
            panic_percent: random.pick(&[0, 0, 5, 15]),
            message_count: random.pick(&[5, 40, 1000]),
        };
        let step_count = 1 + random.below(40);
        let steps =
            (0..step_count).map(|_| simulation_step(random, &odds, agents.len() as u64)).collect();
        Self { agents, scripts, steps }
    }

    /// Whether something of a kind is to happen.
    pub(crate) fn has_step(&self, predicate: impl Fn(&SimulationStep) -> bool) -> bool {
        self.steps.iter().any(|(_, step)| predicate(step))
    }

    /// Returns true if an attempt has this behavior.
    pub(crate) fn has_behavior(&self, behavior: PlannedBehavior) -> bool {
        self.scripts.iter().flatten().any(|attempt_plan| attempt_plan.behavior == behavior)
    }
}

/// What happens how often.
struct StepOdds {
    max_pause: u64,
    cancel_percent: u64,
    ledger_fault_percent: u64,
    restart_percent: u64,
    panic_percent: u64,
    message_count: u64,
}

fn simulated_agent(number: u64, random: &mut SeededRandom) -> SimulatedAgent {
    let mut spec = agent_spec(&format!("agent-{number}"));
    let folder = random.pick(&[None, Some("/srv/x"), Some("/srv/x/deep"), Some("/srv/y")]);
    if random.random_bool(50) {
        spec.access = Access::ReadWrite;
    } else {
        spec.limits.capacity.max_running =
            random.pick(&[NonZeroU32::new(1), NonZeroU32::new(3), None]);
    }
    spec.limits.capacity.max_waiting = random.pick(&[0, 1, 3, 10, 100]);
    spec.limits.capacity.queue_timeout = Duration::from_secs(random.pick(&[5, 30, 1800]));
    spec.limits.timeouts.start = Duration::from_secs(random.pick(&[2, 30]));
    spec.limits.timeouts.run = Duration::from_secs(random.pick(&[3, 20, 300]));
    spec.limits.timeouts.idle = random.pick(&[None, Some(Duration::from_secs(4))]);
    spec.program_worker_mut().unwrap().heartbeat_interval =
        random.pick(&[None, Some(Duration::from_secs(2))]);
    spec.retry.max_retries = u32::try_from(random.below(4)).unwrap();
    spec.retry.retries_after_start = random.random_bool(20);
    spec.dedup_window = random.pick(&[None, None, Some(Duration::from_secs(60))]);
    spec.quota = quota_spec(random);
    SimulatedAgent { spec, folder }
}

/// Some agents share an account.
fn quota_spec(random: &mut SeededRandom) -> QuotaSpec {
    let seconds =
        |random: &mut SeededRandom, choices: &[u64]| Duration::from_secs(random.pick(choices));
    let (max_wait, first_wait) = (seconds(random, &[0, 30, 600]), seconds(random, &[0, 10]));
    QuotaSpec {
        deferral_policy: DeferralPolicy {
            max_wait,
            first_wait,
            max_deferrals: u32::try_from(random.below(4)).unwrap(),
        },
        credential: random
            .pick(&[QuotaCredential::Own, QuotaCredential::Named("shared".to_owned())]),
        has_breaker: random.random_bool(80),
        credential_refusal_pause: seconds(random, &[10, 1800]),
    }
}

/// So many in a hundred fail for want of an account that serves.
fn attempt_plan(account_failure_percent: u64, random: &mut SeededRandom) -> AttemptPlan {
    use PlannedBehavior as B;
    let transient = random.pick(&[Code::TransientFailure, Code::NoResources]);
    let behavior = match random.below(100) {
        _ if random.random_bool(account_failure_percent) => {
            random.pick(&[B::QuotaExhausted, B::QuotaExhausted, B::Fail(Code::NotAuthenticated)])
        }
        0..50 => B::Succeed,
        50..65 => B::Fail(transient),
        65..72 => B::Fail(Code::Exit),
        72..82 => B::FailBeforeStart(transient),
        82..85 => B::FailBeforeStart(Code::NotStarted),
        85..88 => B::IgnoreStop,
        88..91 => B::NeverReportStart,
        91..95 => B::DropReporter,
        _ => B::PanicOnStart,
    };
    AttemptPlan {
        behavior,
        run_time: random.pick(&[0, 1, 2, 5, 10, 30]),
        start_delay: random.pick(&[0, 0, 0, 1, 5]),
        stop_delay: random.pick(&[0, 0, 1, 7, 20]),
        cleanup_time: random.pick(&[0, 0, 1, 4]),
        retry_after: random.pick(&[None, Some(0), Some(5), Some(40), Some(700)]),
        writes_stderr: random.random_bool(20),
    }
}

impl AttemptPlan {
    pub(crate) fn scripted_attempt(&self) -> ScriptedAttempt {
        let attempt = match self.behavior {
            PlannedBehavior::Succeed => ScriptedAttempt::ok(self.run_time),
            PlannedBehavior::Fail(code) => ScriptedAttempt::fail(self.run_time, code),
            PlannedBehavior::QuotaExhausted => {
                let attempt = ScriptedAttempt::fail(self.run_time, Code::QuotaExceeded);
                self.retry_after
                    .map_or(attempt.clone(), |seconds| attempt.with_retry_after(seconds))
            }
            PlannedBehavior::FailBeforeStart(code) => ScriptedAttempt::failing_to_start(code),
            PlannedBehavior::IgnoreStop => ScriptedAttempt::ignoring_stop(),
            PlannedBehavior::NeverReportStart => ScriptedAttempt::never_reporting_start(),
            PlannedBehavior::DropReporter => ScriptedAttempt::dropping_reporter(self.run_time),
            PlannedBehavior::PanicOnStart => ScriptedAttempt::panicking(),
        };
        let attempt = attempt.with_start_delay(self.start_delay).with_stop_delay(self.stop_delay);
        let attempt = attempt.with_cleanup_time(self.cleanup_time);
        if self.writes_stderr {
            attempt.with_answer("so it is").with_stderr_pauses([1, 2])
        } else {
            attempt
        }
    }
}

fn simulation_step(
    random: &mut SeededRandom,
    odds: &StepOdds,
    agent_count: u64,
) -> (u64, SimulationStep) {
    let pause = if random.random_bool(40) { 0 } else { random.below(odds.max_pause) };
    let happens = |random: &mut SeededRandom, percent| random.random_bool(percent);
    let step = if happens(random, odds.restart_percent) {
        SimulationStep::Restart {
            downtime: random.pick(&[0, 1, 20]),
            preserved_percent: random.pick(&[0, 50, 100]),
        }
    } else if happens(random, odds.panic_percent) {
        let readings_until_panic = 1 + u32::try_from(random.below(8)).unwrap();
        SimulationStep::Panic {
            readings_until_panic,
            preserved_percent: random.pick(&[0, 50, 100]),
        }
    } else if happens(random, odds.ledger_fault_percent) {
        ledger_fault(random)
    } else if happens(random, odds.cancel_percent) {
        SimulationStep::Cancel(random.below(40))
    } else {
        let agent_index = usize::try_from(random.below(agent_count)).unwrap();
        let message = random.below(odds.message_count);
        // The same message says the same but for a few.
        let text_number = if random.random_bool(95) { message % 8 } else { random.below(8) };
        SimulationStep::Submit {
            agent_index,
            message_number: message,
            text_number: usize::try_from(text_number).unwrap(),
        }
    };
    (pause, step)
}

fn ledger_fault(random: &mut SeededRandom) -> SimulationStep {
    let calls = [
        LedgerCallKind::Accept,
        LedgerCallKind::Claim,
        LedgerCallKind::AppendBatch,
        LedgerCallKind::ChangeOutput,
        LedgerCallKind::Settle,
        LedgerCallKind::Read,
    ];
    let call = random.pick(&calls);
    if random.random_bool(50) {
        SimulationStep::FailLedgerCalls(call, 1 + u32::try_from(random.below(4)).unwrap())
    } else {
        SimulationStep::DelayLedgerCalls(
            call,
            (0..=random.below(3)).map(|_| random.below(6)).collect(),
        )
    }
}
