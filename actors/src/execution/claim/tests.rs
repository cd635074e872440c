//! Wait for resources, and what a blocked claim keeps.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn folder(path: &str) -> Workspace {
    Workspace::new(path)
}

fn claim(resources: &AttemptResources) -> ResourceClaim {
    ResourceClaim::new(ExecutionId::fresh(), Some(6), resources, Duration::ZERO)
}

fn blocked_claim(reason: QueueReason, workspace: Option<Workspace>) -> ClaimBlocked {
    ClaimBlocked { attempt_id: AttemptId::FIRST, reason, workspace }
}

#[test]
fn a_repeated_claim_of_an_attempt_continues_its_wait() {
    let now = Instant::now();
    let initial = ClaimWait { attempt_id: None, since: now, earlier_wait: 5 * SECOND };
    let first = initial.after_claim(AttemptId::FIRST, now + SECOND);
    assert_eq!(first.waited(now + 3 * SECOND), 7 * SECOND, "the queue of the agent counts");
    assert_eq!(first.after_claim(AttemptId::FIRST, now + 2 * SECOND), first);
    let second = AttemptId { attempt: 2, ..AttemptId::FIRST };
    let retried = first.after_claim(second, now + 9 * SECOND);
    assert_eq!(retried.waited(now + 10 * SECOND), SECOND, "an earlier wait does not count");
}

#[test]
fn a_blocked_claim_keeps_memory_only_if_memory_is_short() {
    use QueueReason::{AgentBusy, InsufficientMemory, WorkspaceBusy};
    let requested = || Some(folder("/srv/a"));
    for (reason, keeps_memory, queued_workspace) in [
        (WorkspaceBusy, false, requested()),
        (AgentBusy, false, None),
        (InsufficientMemory, true, None),
    ] {
        assert_eq!(
            WaitPlan::of(reason, requested()),
            WaitPlan { keeps_memory, queued_workspace },
            "{reason:?}"
        );
    }
}

#[test]
fn memory_of_a_blocked_claim_is_free_for_others() {
    let resources = AttemptResources::with_memory(Some(10));
    let (mut first, mut second) = (claim(&resources), claim(&resources));
    assert!(first.begin(AttemptId::FIRST) && !second.begin(AttemptId::FIRST));
    first.handle_blocked(blocked_claim(QueueReason::AgentBusy, None));
    assert!(second.begin(AttemptId::FIRST) && !first.begin(AttemptId::FIRST));
    first.hold_memory();
    second.release_memory();
    assert!(!second.begin(AttemptId::FIRST), "a resumed attempt holds its memory");
}

#[test]
fn a_claim_keeps_its_place_until_it_is_granted() {
    let resources = AttemptResources::default();
    let (mut first, mut second) = (claim(&resources), claim(&resources));
    let wait = |claim: &mut ResourceClaim| {
        claim
            .handle_blocked(blocked_claim(QueueReason::WorkspaceBusy, Some(folder("/srv/a"))))
            .position
    };
    assert_eq!([wait(&mut first), wait(&mut second), wait(&mut first)], [1, 2, 1]);
    first.apply_grant(Some(folder("/srv/a")));
    assert_eq!(first.workspace(), Some(folder("/srv/a")));
    assert_eq!(wait(&mut second), 1, "the granted claim has left the queue");
    assert!(second.begin(AttemptId::FIRST) && !second.release_notices.has_changed().unwrap());
    first.release_workspace();
    assert!(second.release_notices.has_changed().unwrap(), "the next claim is notified");
}
