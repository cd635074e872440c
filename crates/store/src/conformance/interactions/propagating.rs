//! Conformance tests of questions in the runs of teams: callers of a run see those of its members.

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::hop::HopPosition;
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::execution::request::Trigger;
use algonius_actors::model::execution::{Fence, Outcome};
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::interaction::{
    AnswerValue, Interaction, InteractionFilter, InteractionOrigin, InteractionState,
};
use algonius_actors::ports::ledger::{AcceptCommand, ClaimResult};

use super::{InteractionPorts, answered_end, filter_by_execution, permission_request};
use crate::conformance::ExecutionState::{Running, Starting};
use crate::conformance::{
    at_second, new_accept_command, new_claim_command, settlement, state_change,
};

/// A nested team with the execution of its innermost member, from the outside in; all of them run.
pub(crate) struct NestedRuns {
    outer: (ExecutionId, Fence),
    inner: (ExecutionId, Fence),
    member: (ExecutionId, Fence),
}

fn agent_id(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

impl InteractionPorts {
    /// Returns a running execution of an agent, as a hop of a run.
    async fn running_execution_of(
        &self,
        agent: &str,
        parent_and_root: Option<(ExecutionId, ExecutionId)>,
    ) -> (ExecutionId, Fence) {
        let trigger = parent_and_root.map_or(Trigger::Api, |(parent, root)| {
            Trigger::Hop(HopPosition { parent, root, number: 1 })
        });
        let command =
            AcceptCommand { agent: agent_id(agent), trigger, ..new_accept_command("look at this") };
        let execution = command.id;
        self.ledger.accept(command).await.unwrap();
        let mut claim = new_claim_command(execution, None);
        claim.agent = agent_id(agent);
        let ClaimResult::Granted(fence) = self.ledger.claim(claim).await.unwrap() else {
            panic!("a free slot was refused");
        };
        let running_event = EventKind::StateChanged(state_change(Starting, Running, 2));
        self.ledger
            .append_events(execution, fence, vec![(at_second(2), running_event)])
            .await
            .unwrap();
        (execution, fence)
    }

    pub(crate) async fn nested_runs(&self) -> NestedRuns {
        let outer = self.running_execution_of("outer", None).await;
        let inner = self.running_execution_of("inner", Some((outer.0, outer.0))).await;
        let member = self.running_execution_of("coder", Some((inner.0, outer.0))).await;
        NestedRuns { outer, inner, member }
    }

    /// Opens a question of the member.
    pub(crate) async fn open_question(&self, runs: &NestedRuns, wire_id: &str) -> Interaction {
        let (member, fence) = runs.member;
        let mut interaction = permission_request(member, wire_id, 5);
        interaction.origin.agent = agent_id("coder");
        self.open(interaction, fence).await
    }

    /// Returns the number of open questions and the public state of the runs and the member. Later reads of the same
    /// state come from the cache.
    pub(crate) async fn open_counts_and_states(
        &self,
        runs: &NestedRuns,
    ) -> [(u32, PublicState); 3] {
        let mut states = [(0, PublicState::Working); 3];
        for _ in 0..3 {
            for (state, (execution, _)) in
                states.iter_mut().zip([runs.outer, runs.inner, runs.member])
            {
                *state = self.open_count_and_state(execution).await;
            }
        }
        states
    }
}

pub(crate) async fn a_question_of_a_member_is_one_of_its_runs(ports: InteractionPorts) {
    let runs = ports.nested_runs().await;
    let first = ports.open_question(&runs, "1").await;
    assert_eq!(ports.open_counts_and_states(&runs).await, [(1, PublicState::InputRequired); 3]);
    let second = ports.open_question(&runs, "2").await;
    assert_eq!(ports.open_counts_and_states(&runs).await, [(2, PublicState::InputRequired); 3]);
    ports.close(first.id, &answered_end(AnswerValue::Allow, 6)).await;
    assert_eq!(ports.open_counts_and_states(&runs).await, [(1, PublicState::InputRequired); 3]);
    let (member, fence) = runs.member;
    assert!(ports.ledger.settle(settlement(member, fence, Outcome::Cancelled)).await.unwrap());
    let [outer, inner, _] = ports.open_counts_and_states(&runs).await;
    assert_eq!([outer, inner], [(0, PublicState::Working); 2]);
    let events = ports.interaction_events(runs.member.0).await;
    assert_eq!(events.len(), 4, "{events:?}");
    for (run, _) in [runs.inner, runs.outer] {
        assert_eq!(ports.interaction_events(run).await, events);
    }
    assert_eq!(ports.load(second.id).await.state, InteractionState::Withdrawn);
}

pub(crate) async fn questions_are_listed_with_each_run_and_team(ports: InteractionPorts) {
    let runs = ports.nested_runs().await;
    let other_runs = ports.nested_runs().await;
    let question = ports.open_question(&runs, "1").await;
    let other_question = ports.open_question(&other_runs, "1").await;
    for (execution, _) in [runs.outer, runs.inner, runs.member] {
        assert_eq!(ports.list_ids(filter_by_execution(execution)).await, [question.id]);
    }
    let by_agents = |ids: &[&str]| InteractionFilter {
        agents: Some(ids.iter().map(|id| agent_id(id)).collect()),
        ..InteractionFilter::default()
    };
    for ids in [&["outer"][..], &["other", "inner"], &["coder"]] {
        assert_eq!(ports.list_ids(by_agents(ids)).await, [other_question.id, question.id]);
    }
    assert_eq!(ports.list_ids(by_agents(&["other"])).await, []);
    let InteractionOrigin { agent: member, teams, .. } = ports.load(question.id).await.origin;
    assert_eq!((member, teams), (agent_id("coder"), vec![agent_id("outer"), agent_id("inner")]));
}

pub(crate) async fn a_run_that_has_ended_gets_no_question(ports: InteractionPorts) {
    let runs = ports.nested_runs().await;
    let first = ports.open_question(&runs, "1").await;
    let (outer, fence) = runs.outer;
    assert!(ports.ledger.settle(settlement(outer, fence, Outcome::Cancelled)).await.unwrap());
    let events = ports.ledger.events(outer, 0).await.unwrap();
    ports.open_question(&runs, "2").await;
    ports.close(first.id, &answered_end(AnswerValue::Allow, 6)).await;
    assert_eq!(ports.ledger.events(outer, 0).await.unwrap(), events);
    let [_, inner, member] = ports.open_counts_and_states(&runs).await;
    assert_eq!([inner, member], [(1, PublicState::InputRequired); 2]);
}
