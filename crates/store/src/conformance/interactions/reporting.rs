//! Conformance tests of the events and counts that report interactions.

use std::sync::Arc;

use algonius_actors::model::execution::Outcome;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::interaction::AnswerValue;
use algonius_actors::ports::interaction_store::CloseInteractionOutcome;
use tokio::task::JoinSet;

use super::{InteractionPorts, answered_end, permission_request};
use crate::conformance::ExecutionState::Cleanup;
use crate::conformance::{
    at_second, event_numbers, load_record, settlement, state_change, warning_event,
};

pub(crate) async fn events_about_interactions_leave_no_gap(ports: InteractionPorts) {
    let ports = Arc::new(ports);
    let (id, fence) = ports.running_execution().await;
    let mut tasks = JoinSet::new();
    for number in 0..30 {
        let ports = Arc::clone(&ports);
        tasks.spawn(async move {
            let interaction =
                ports.open(permission_request(id, &number.to_string(), 5), fence).await;
            assert!(
                ports
                    .ledger
                    .append_events(id, fence, vec![warning_event("meanwhile")])
                    .await
                    .unwrap()
            );
            if number % 3 > 0 {
                let closing =
                    ports.close(interaction.id, &answered_end(AnswerValue::Allow, 6)).await;
                assert!(matches!(closing, CloseInteractionOutcome::Closed(_)));
            }
        });
    }
    tasks.join_all().await;
    // Three events precede the tasks: the message, the start and the run.
    assert_eq!(event_numbers(&ports.ledger, id).await, (1..=83).collect::<Vec<_>>());
    assert_eq!(ports.open_count_and_state(id).await, (10, PublicState::InputRequired));
    assert!(ports.ledger.settle(settlement(id, fence, Outcome::Cancelled)).await.unwrap());
    let cleanup_event = EventKind::StateChanged(state_change(
        crate::conformance::ExecutionState::Cancelled,
        Cleanup,
        10,
    ));
    assert!(
        ports.ledger.append_events(id, fence, vec![(at_second(10), cleanup_event)]).await.unwrap()
    );
    assert_eq!(event_numbers(&ports.ledger, id).await, (1..=95).collect::<Vec<_>>());
    assert_eq!(load_record(&ports.ledger, id).await.last_event_number, 95);
}

pub(crate) async fn repeated_polls_see_each_interaction(ports: InteractionPorts) {
    let (id, fence) = ports.running_execution().await;
    let poll = async || {
        let mut last = (0, 0);
        for _ in 0..3 {
            let events = ports.ledger.events(id, 0).await.unwrap().len();
            last = (
                load_record(&ports.ledger, id).await.requested_input.open_interaction_count,
                events,
            );
        }
        last
    };
    assert_eq!(poll().await, (0, 3));
    let interaction = ports.open(permission_request(id, "1", 5), fence).await;
    assert_eq!(poll().await, (1, 4));
    ports.close(interaction.id, &answered_end(AnswerValue::Allow, 6)).await;
    assert_eq!(poll().await, (0, 5));
}
