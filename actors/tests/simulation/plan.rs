//! What happens in one simulation, all of it drawn from the seed before anything begins.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::quota::{Parking, QuotaCredential, QuotaSpec};
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::testing::{Act, GatedCall, spec};

use crate::chance::Chance;

/// One simulation.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) agents: Vec<Player>,
    /// The acts of the text `t0`, `t1` and so on.
    pub(crate) acts: Vec<Vec<Deed>>,
    /// What happens, each after a pause in seconds.
    pub(crate) steps: Vec<(u64, Step)>,
}

/// An agent.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) spec: AgentSpec,
    pub(crate) folder: Option<&'static str>,
}

/// What one attempt does.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    pub(crate) manner: Manner,
    runs_for: u64,
    starts_after: u64,
    stops_after: u64,
    clears_for: u64,
    /// For how long its failure says that it lasts.
    lasts: Option<u64>,
    is_loud: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Succeed,
    Fail(Code),
    /// The quota of its account is used up.
    UsedUp,
    Stillborn(Code),
    Deaf,
    Mute,
    Desert,
    Bomb,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Somebody asks an agent, under a message id, for the text of this number.
    Ask { agent: usize, message: u64, text: usize },
    /// What was first recorded under so many ids is called off.
    Cancel(u64),
    /// The next calls to the ledger fail.
    Fail(GatedCall, u32),
    /// The next calls to the ledger take so many seconds.
    Slow(GatedCall, Vec<u64>),
    /// Whoever reads the clock so many readings later panics; of what lives, so many in a hundred is
    /// held for the next actor.
    Crash { readings: u32, held: u64 },
    /// The service is killed and comes back; of what lives, so many in a hundred is held meanwhile.
    Restart { away: u64, held: u64 },
}

impl Plan {
    pub(crate) fn of(chance: &mut Chance) -> Self {
        let agents: Vec<_> = (0..=chance.below(3)).map(|number| player(number, chance)).collect();
        let bounded = chance.one(&[0, 0, 30]);
        let deeds = |chance: &mut Chance| -> Vec<_> {
            (0..=chance.below(3)).map(|_| deed(bounded, chance)).collect()
        };
        let acts = (0..8).map(|_| deeds(chance)).collect();
        // What is rare elsewhere is frequent in some worlds, and absent from others.
        let odds = Odds {
            pause: chance.one(&[1, 3, 10]),
            cancel: chance.one(&[0, 10, 30]),
            fault: chance.one(&[0, 0, 10, 20]),
            restart: chance.one(&[0, 0, 3, 10]),
            crash: chance.one(&[0, 0, 5, 15]),
            messages: chance.one(&[5, 40, 1000]),
        };
        let steps = 1 + chance.below(40);
        let steps = (0..steps).map(|_| step(chance, &odds, agents.len() as u64)).collect();
        Self { agents, acts, steps }
    }

    /// Whether something of a kind is to happen.
    pub(crate) fn has(&self, is_it: impl Fn(&Step) -> bool) -> bool {
        self.steps.iter().any(|(_, step)| is_it(step))
    }

    /// Whether some act is of a manner.
    pub(crate) fn acts_as(&self, manner: Manner) -> bool {
        self.acts.iter().flatten().any(|deed| deed.manner == manner)
    }
}

/// What happens how often.
struct Odds {
    pause: u64,
    cancel: u64,
    fault: u64,
    restart: u64,
    crash: u64,
    messages: u64,
}

fn player(number: u64, chance: &mut Chance) -> Player {
    let mut spec = spec(&format!("agent-{number}"));
    let folder = chance.one(&[None, Some("/srv/x"), Some("/srv/x/deep"), Some("/srv/y")]);
    if chance.percent(50) {
        spec.access = Access::ReadWrite;
    } else {
        spec.limits.capacity.running = chance.one(&[NonZeroU32::new(1), NonZeroU32::new(3), None]);
    }
    spec.limits.capacity.waiting = chance.one(&[0, 1, 3, 10, 100]);
    spec.limits.capacity.patience = Duration::from_secs(chance.one(&[5, 30, 1800]));
    spec.limits.deadlines.start = Duration::from_secs(chance.one(&[2, 30]));
    spec.limits.deadlines.run = Duration::from_secs(chance.one(&[3, 20, 300]));
    spec.limits.deadlines.idle = chance.one(&[None, Some(Duration::from_secs(4))]);
    spec.program_mut().unwrap().heartbeat = chance.one(&[None, Some(Duration::from_secs(2))]);
    spec.retry.max = u32::try_from(chance.below(4)).unwrap();
    spec.retry.after_start = chance.percent(20);
    spec.dedup_window = chance.one(&[None, None, Some(Duration::from_secs(60))]);
    spec.quota = quota(chance);
    Player { spec, folder }
}

/// Some agents share an account.
fn quota(chance: &mut Chance) -> QuotaSpec {
    let seconds = |chance: &mut Chance, of: &[u64]| Duration::from_secs(chance.one(of));
    let (max, usual) = (seconds(chance, &[0, 30, 600]), seconds(chance, &[0, 10]));
    QuotaSpec {
        parking: Parking { max, usual, times: u32::try_from(chance.below(4)).unwrap() },
        credential: chance
            .one(&[QuotaCredential::Own, QuotaCredential::Named("shared".to_owned())]),
        breaker: chance.percent(80),
        refused: seconds(chance, &[10, 1800]),
    }
}

/// So many in a hundred fail for want of an account that serves.
fn deed(bounded: u64, chance: &mut Chance) -> Deed {
    use Manner as M;
    let transient = chance.one(&[Code::TransientFailure, Code::NoResources]);
    let manner = match chance.below(100) {
        _ if chance.percent(bounded) => {
            chance.one(&[M::UsedUp, M::UsedUp, M::Fail(Code::NotAuthenticated)])
        }
        0..50 => M::Succeed,
        50..65 => M::Fail(transient),
        65..72 => M::Fail(Code::Exit),
        72..82 => M::Stillborn(transient),
        82..85 => M::Stillborn(Code::NotStarted),
        85..88 => M::Deaf,
        88..91 => M::Mute,
        91..95 => M::Desert,
        _ => M::Bomb,
    };
    Deed {
        manner,
        runs_for: chance.one(&[0, 1, 2, 5, 10, 30]),
        starts_after: chance.one(&[0, 0, 0, 1, 5]),
        stops_after: chance.one(&[0, 0, 1, 7, 20]),
        clears_for: chance.one(&[0, 0, 1, 4]),
        lasts: chance.one(&[None, Some(0), Some(5), Some(40), Some(700)]),
        is_loud: chance.percent(20),
    }
}

impl Deed {
    pub(crate) fn act(&self) -> Act {
        let act = match self.manner {
            Manner::Succeed => Act::ok(self.runs_for),
            Manner::Fail(code) => Act::fail(self.runs_for, code),
            Manner::UsedUp => {
                let act = Act::fail(self.runs_for, Code::QuotaExceeded);
                self.lasts.map_or(act.clone(), |seconds| act.lasting(seconds))
            }
            Manner::Stillborn(code) => Act::stillborn(code),
            Manner::Deaf => Act::deaf(),
            Manner::Mute => Act::mute(),
            Manner::Desert => Act::desert(self.runs_for),
            Manner::Bomb => Act::bomb(),
        };
        let act = act.starting_for(self.starts_after).stopping_for(self.stops_after);
        let act = act.clearing_for(self.clears_for);
        if self.is_loud { act.saying("so it is").murmuring([1, 2]) } else { act }
    }
}

fn step(chance: &mut Chance, odds: &Odds, agents: u64) -> (u64, Step) {
    let pause = if chance.percent(40) { 0 } else { chance.below(odds.pause) };
    let is = |chance: &mut Chance, percent| chance.percent(percent);
    let step = if is(chance, odds.restart) {
        Step::Restart { away: chance.one(&[0, 1, 20]), held: chance.one(&[0, 50, 100]) }
    } else if is(chance, odds.crash) {
        let readings = 1 + u32::try_from(chance.below(8)).unwrap();
        Step::Crash { readings, held: chance.one(&[0, 50, 100]) }
    } else if is(chance, odds.fault) {
        fault(chance)
    } else if is(chance, odds.cancel) {
        Step::Cancel(chance.below(40))
    } else {
        let agent = usize::try_from(chance.below(agents)).unwrap();
        let message = chance.below(odds.messages);
        // The same message says the same but for a few.
        let text = if chance.percent(95) { message % 8 } else { chance.below(8) };
        Step::Ask { agent, message, text: usize::try_from(text).unwrap() }
    };
    (pause, step)
}

fn fault(chance: &mut Chance) -> Step {
    let calls = [
        GatedCall::Accept,
        GatedCall::Claim,
        GatedCall::Record,
        GatedCall::Append,
        GatedCall::Settle,
        GatedCall::Read,
    ];
    let call = chance.one(&calls);
    if chance.percent(50) {
        Step::Fail(call, 1 + u32::try_from(chance.below(4)).unwrap())
    } else {
        Step::Slow(call, (0..=chance.below(3)).map(|_| chance.below(6)).collect())
    }
}
