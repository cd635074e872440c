//! Wait for resources, and what a blocked claim keeps.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn workspace(path: &str) -> Workspace {
    Workspace::new(path)
}

fn claim(resources: &AttemptResources) -> ResourceClaim {
    ResourceClaim::new(ExecutionId::generate(), Some(6), resources, (Duration::ZERO, None))
}

fn blocked_claim(reason: QueueReason, workspace: Option<Workspace>) -> ClaimBlocked {
    ClaimBlocked { attempt_id: AttemptId::FIRST, reason, workspace }
}

#[tokio::test(start_paused = true)]
async fn a_wait_begins_in_the_queue_of_the_agent() {
    let resources = AttemptResources::default();
    let claim = ResourceClaim::new(ExecutionId::generate(), None, &resources, (5 * SECOND, None));
    tokio::time::advance(2 * SECOND).await;
    assert_eq!(claim.total_wait(), 7 * SECOND);
}

#[test]
fn a_blocked_claim_keeps_memory_only_if_memory_is_short() {
    use QueueReason::{AgentBusy, InsufficientMemory, WorkspaceBusy};
    let requested_workspace = || Some(workspace("/srv/a"));
    for (reason, keeps_memory, queued_workspace) in [
        (WorkspaceBusy, false, requested_workspace()),
        (AgentBusy, false, None),
        (InsufficientMemory, true, None),
    ] {
        assert_eq!(
            WaitPlan::new(reason, requested_workspace()),
            WaitPlan { keeps_memory, queued_workspace },
            "{reason:?}"
        );
    }
}

#[test]
fn memory_of_a_blocked_claim_is_free_for_others() {
    let resources = AttemptResources::with_memory_limit(Some(10));
    let (mut first, mut second) = (claim(&resources), claim(&resources));
    assert!(first.try_reserve_memory_for_claim() && !second.try_reserve_memory_for_claim());
    first.handle_blocked_claim(blocked_claim(QueueReason::AgentBusy, None));
    assert!(second.try_reserve_memory_for_claim() && !first.try_reserve_memory_for_claim());
    first.reserve_memory_unchecked();
    second.release_memory();
    assert!(!second.try_reserve_memory_for_claim(), "a resumed attempt holds its memory");
}

#[test]
fn a_claim_keeps_its_place_until_it_is_granted() {
    let resources = AttemptResources::default();
    let (mut first, mut second) = (claim(&resources), claim(&resources));
    let wait_position = |claim: &mut ResourceClaim| {
        claim
            .handle_blocked_claim(blocked_claim(
                QueueReason::WorkspaceBusy,
                Some(workspace("/srv/a")),
            ))
            .position
    };
    assert_eq!(
        [wait_position(&mut first), wait_position(&mut second), wait_position(&mut first)],
        [1, 2, 1]
    );
    first.apply_grant(Some(workspace("/srv/a")));
    assert_eq!(first.workspace(), Some(workspace("/srv/a")));
    assert_eq!(wait_position(&mut second), 1, "the granted claim has left the queue");
    assert!(
        second.try_reserve_memory_for_claim() && !second.release_notices.has_changed().unwrap()
    );
    first.release_workspace();
    assert!(second.release_notices.has_changed().unwrap(), "the next claim is notified");
}
