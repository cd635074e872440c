//! Tests of the decisions of a run.

use proptest::prelude::*;

use super::*;

fn plan(count: usize) -> TeamPlan {
    let step = |number: usize| TeamStep { id: format!("step-{number}"), agent: agent(number) };
    TeamPlan { steps: (1..=count).map(step).collect() }
}

fn agent(number: usize) -> AgentId {
    AgentId::new(format!("agent-{number}")).unwrap()
}

fn execution(number: u32) -> ExecutionId {
    ExecutionId(uuid::Uuid::from_u128(number.into()))
}

fn ended_stage(outcome: Outcome) -> HopStage {
    let code = (outcome != Outcome::Completed).then_some(Code::Exit);
    HopStage::Ended { outcome, code }
}

/// Returns the events of a run whose hops end with these outcomes, as long as the run continues.
fn events_of_run(plan: &TeamPlan, outcomes: &[Outcome]) -> Vec<EventKind> {
    let mut run = TeamRun::new(plan.clone());
    let mut events = vec![EventKind::Planned { plan: plan.clone() }];
    let mut outcomes = outcomes.iter();
    loop {
        let (hop, stage) = match run.next_action() {
            TeamAction::PlanHop(hop, step) => {
                let (step, agent) = (step.id.clone(), step.agent.clone());
                (hop, HopStage::Planned { step, agent, input: String::new() })
            }
            TeamAction::Send(hop) => {
                (hop.number, HopStage::Taken { execution: execution(hop.number) })
            }
            TeamAction::Wait(hop, hop_execution) => {
                assert_eq!(hop_execution, execution(hop.number));
                (hop.number, ended_stage(*outcomes.next().unwrap_or(&Outcome::Completed)))
            }
            TeamAction::Complete(_) | TeamAction::Fail(..) | TeamAction::FailEmptyPlan => {
                return events;
            }
        };
        run.apply(hop, &stage);
        events.push(EventKind::Hop { hop, stage });
    }
}

#[test]
fn the_steps_follow_in_order_and_the_last_answer_counts() {
    let plan = plan(3);
    let run = TeamRun::restore(&events_of_run(&plan, &[])).unwrap();
    let steps: Vec<_> = run.hops().iter().map(|hop| hop.step.as_str()).collect();
    assert_eq!(steps, ["step-1", "step-2", "step-3"]);
    let TeamAction::Complete(last) = run.next_action() else { panic!("{run:?}") };
    assert_eq!((last.number, last.execution), (3, Some(execution(3))));
    assert_eq!(run.answered_hop_before(1), None);
    assert_eq!(run.answered_hop_before(3).map(|hop| hop.number), Some(2));
}

#[test]
fn a_failed_hop_ends_the_run() {
    for outcome in [Outcome::Failed, Outcome::Timeout, Outcome::Cancelled] {
        let events = events_of_run(&plan(3), &[Outcome::Completed, outcome]);
        let run = TeamRun::restore(&events).unwrap();
        let TeamAction::Fail(hop, end) = run.next_action() else { panic!("{run:?}") };
        assert_eq!((hop.number, end.outcome), (2, outcome));
        assert_eq!(run.hops().len(), 2);
    }
}

#[test]
fn a_run_without_a_recorded_plan_is_unknown() {
    assert_eq!(TeamRun::restore(&[]), None);
    assert_eq!(TeamRun::restore(&[EventKind::ProcessStarted { pid: 1 }]), None);
    assert_eq!(TeamRun::new(TeamPlan::default()).next_action(), TeamAction::FailEmptyPlan);
}

proptest! {
    /// A crash may lose the end of the facts, and another process may repeat some of them.
    #[test]
    fn a_repeated_fact_counts_once(
        step_count in 1..6_usize,
        failing_hop_index in prop::option::of(0..6_usize),
        lost_event_count in 0..20_usize,
        repeated_event_indices in prop::collection::vec(0..20_usize, 0..8),
    ) {
        let mut outcomes = vec![Outcome::Completed; failing_hop_index.unwrap_or(0)];
        outcomes.extend(failing_hop_index.map(|_| Outcome::Failed));
        let mut events = events_of_run(&plan(step_count), &outcomes);
        events.truncate(events.len().saturating_sub(lost_event_count).max(1));
        let run = TeamRun::restore(&events).unwrap();
        let mut repeated_events = events.clone();
        repeated_events.extend(repeated_event_indices.iter().filter_map(|index| events.get(*index).cloned()));
        prop_assert_eq!(TeamRun::restore(&repeated_events), Some(run.clone()));
        let numbers: Vec<_> = run.hops().iter().map(|hop| hop.number).collect();
        let expected: Vec<_> = (1..).take(numbers.len()).collect();
        prop_assert_eq!(numbers, expected);
    }
}
