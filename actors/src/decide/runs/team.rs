//! Run of a team: which hop follows, by the facts that the run has recorded.
//!
//! The run records each decision before anything follows from it. After a crash, the run is a fold over the recorded
//! facts, so a decision is never made twice.

#[cfg(test)]
mod tests;

use crate::model::agent::team::{TeamPlan, TeamStep};
use crate::model::code::Code;
use crate::model::execution::Outcome;
use crate::model::execution::event::EventKind;
use crate::model::execution::hop::HopStage;
use crate::model::id::{AgentId, ExecutionId};

/// Run of a team: its plan, and its hops in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRun {
    plan: TeamPlan,
    hops: Vec<Hop>,
}

/// Hop of a run, as far as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Number of the hop in the run, from 1.
    pub number: u32,
    /// Id of the step.
    pub step: String,
    /// Member that receives the request.
    pub agent: AgentId,
    /// Keyed digest of the request's content.
    pub input_digest: String,
    /// Execution of the request, once the member has accepted it.
    pub execution: Option<ExecutionId>,
    /// End of the request.
    pub end: Option<HopEnd>,
}

/// End of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopEnd {
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Code of its failure.
    pub code: Option<Code>,
}

/// Next action of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamAction<'r> {
    /// Record this hop for this step.
    PlanHop(u32, &'r TeamStep),
    /// Send the request of the hop to its member, which may have it already.
    Send(&'r Hop),
    /// Wait for the end of this execution, which performs the hop.
    Wait(&'r Hop, ExecutionId),
    /// End the run: the answer is that of the last hop.
    Complete(&'r Hop),
    /// End the run: this hop has failed.
    Fail(&'r Hop, HopEnd),
    /// End the run without an answer: the plan has no step.
    FailEmptyPlan,
}

impl TeamRun {
    /// Creates a run that has done nothing yet.
    #[must_use]
    pub const fn new(plan: TeamPlan) -> Self {
        Self { plan, hops: Vec::new() }
    }

    /// Restores a run from the events of its execution; `None` if the run has not recorded a plan.
    #[must_use]
    pub fn restore<'e>(events: impl IntoIterator<Item = &'e EventKind>) -> Option<Self> {
        let mut events = events.into_iter();
        let plan = events.find_map(|event| match event {
            EventKind::Planned { plan } => Some(plan.clone()),
            _ => None,
        })?;
        let mut run = Self::new(plan);
        for event in events {
            if let EventKind::Hop { hop, stage } = event {
                run.apply(*hop, stage);
            }
        }
        Some(run)
    }

    /// Applies a recorded stage of a hop. A stage that is repeated counts once, because two processes may have recorded
    /// it.
    pub fn apply(&mut self, number: u32, stage: &HopStage) {
        let hop = self.hops.iter_mut().find(|hop| hop.number == number);
        match (stage, hop) {
            (HopStage::Planned { step, agent, input }, None) => self.hops.push(Hop {
                number,
                step: step.clone(),
                agent: agent.clone(),
                input_digest: input.clone(),
                execution: None,
                end: None,
            }),
            (HopStage::Taken { execution }, Some(hop)) => {
                hop.execution.get_or_insert(*execution);
            }
            (HopStage::Ended { outcome, code }, Some(hop)) => {
                hop.end.get_or_insert(HopEnd { outcome: *outcome, code: *code });
            }
            (HopStage::Planned { .. }, Some(_))
            | (HopStage::Taken { .. } | HopStage::Ended { .. }, None) => {}
        }
    }

    /// Returns the hops, in the order of their numbers.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Returns the hop whose answer is the input of the next hop; `None` for the first hop, whose input is that of the
    /// run.
    #[must_use]
    pub fn answered_hop_before(&self, number: u32) -> Option<&Hop> {
        self.hops.iter().rfind(|hop| hop.number < number && hop.has_succeeded())
    }

    /// Decides the next action.
    #[must_use]
    pub fn next_action(&self) -> TeamAction<'_> {
        let Some(last) = self.hops.last() else {
            return self
                .plan
                .steps
                .first()
                .map_or(TeamAction::FailEmptyPlan, |step| TeamAction::PlanHop(1, step));
        };
        let Some(end) = last.end else {
            return last
                .execution
                .map_or(TeamAction::Send(last), |execution| TeamAction::Wait(last, execution));
        };
        if !last.has_succeeded() {
            return TeamAction::Fail(last, end);
        }
        let next_step = self.plan.steps.iter().skip_while(|step| step.id != last.step).nth(1);
        next_step
            .map_or(TeamAction::Complete(last), |step| TeamAction::PlanHop(last.number + 1, step))
    }
}

impl Hop {
    /// Returns true if the hop has an answer.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        self.end.is_some_and(|end| end.outcome == Outcome::Completed)
    }
}
