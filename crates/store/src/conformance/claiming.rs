//! Conformance tests of claims, their limit and their workspaces.

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::{ExecutionState, Fence, Outcome};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::ports::ledger::{AcceptCommand, ClaimCommand, ClaimResult};
use tokio::task::JoinSet;
use uuid::Uuid;

use ExecutionState::{Failed, Running, Starting};

use super::{
    AnyLedger, accept_and_claim, accept_execution, at_second, load_record, new_accept_command,
    new_claim_command, reclaimed_execution, settlement, state_change, warning_event,
};

pub(crate) async fn fifty_concurrent_claims_keep_the_limit(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(accept_execution(&ledger).await);
    }
    let mut tasks = JoinSet::new();
    for id in ids {
        let ledger = ledger.clone();
        tasks.spawn(
            async move { (id, ledger.claim(new_claim_command(id, Some(3))).await.unwrap()) },
        );
    }
    let claim_results = tasks.join_all().await;
    let granted: Vec<_> = claim_results
        .iter()
        .filter(|(_, answer)| *answer == ClaimResult::Granted(Fence(1)))
        .collect();
    let busy: Vec<_> = claim_results
        .iter()
        .filter(|(_, answer)| *answer == ClaimResult::Busy(QueueReason::AgentBusy))
        .collect();
    assert_eq!((granted.len(), busy.len()), (3, 47));

    let waiting_id = busy[0].0;
    let done = settlement(granted[0].0, Fence(1), Outcome::Completed);
    assert!(ledger.settle(done).await.unwrap());
    assert_eq!(
        ledger.claim(new_claim_command(waiting_id, Some(3))).await.unwrap(),
        ClaimResult::Granted(Fence(1))
    );
    assert_eq!(
        ledger.claim(new_claim_command(busy[1].0, Some(3))).await.unwrap(),
        ClaimResult::Busy(QueueReason::AgentBusy)
    );
    assert_eq!(
        ledger.claim(new_claim_command(busy[1].0, None)).await.unwrap(),
        ClaimResult::Granted(Fence(1))
    );
}

pub(crate) async fn one_of_many_claims_of_an_execution_is_granted(ledger: AnyLedger) {
    let id = accept_execution(&ledger).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let ledger = ledger.clone();
        tasks.spawn(async move { ledger.claim(new_claim_command(id, Some(9))).await.unwrap() });
    }
    let claim_results = tasks.join_all().await;
    let granted =
        claim_results.iter().filter(|answer| **answer == ClaimResult::Granted(Fence(1))).count();
    let superseded =
        claim_results.iter().filter(|answer| **answer == ClaimResult::Superseded).count();
    assert_eq!((granted, superseded), (1, 19));
    let row = load_record(&ledger, id).await;
    assert_eq!(
        (row.state, row.started_at, row.last_event_number),
        (Starting, Some(at_second(1)), 2)
    );
}

pub(crate) async fn only_executions_that_may_start_are_claimed(ledger: AnyLedger) {
    let (id, fence) = accept_and_claim(&ledger).await;
    let second_claim = ClaimCommand { fence, ..new_claim_command(id, None) };
    assert_eq!(ledger.claim(second_claim).await.unwrap(), ClaimResult::Superseded);
    assert_eq!(
        ledger.claim(new_claim_command(ExecutionId::generate(), None)).await.unwrap(),
        ClaimResult::Superseded
    );
    let waiting_id = accept_execution(&ledger).await;
    let other_agent = AgentId::new("writer").unwrap();
    let other = ClaimCommand { agent: other_agent, ..new_claim_command(waiting_id, None) };
    assert_eq!(ledger.claim(other).await.unwrap(), ClaimResult::Superseded);
    let (retried, _) = reclaimed_execution(&ledger).await;
    let row = load_record(&ledger, retried).await;
    assert_eq!((row.started_at, row.pid), (Some(at_second(1)), None));
}

pub(crate) async fn an_old_fence_changes_nothing(ledger: AnyLedger) {
    let (id, old_fence) = reclaimed_execution(&ledger).await;
    let before = (load_record(&ledger, id).await, ledger.events(id, 0).await.unwrap());

    assert!(!ledger.append_events(id, old_fence, vec![warning_event("late")]).await.unwrap());
    assert!(!ledger.settle(settlement(id, old_fence, Outcome::Completed)).await.unwrap());
    let late = ClaimCommand { fence: old_fence, ..new_claim_command(id, None) };
    assert_eq!(ledger.claim(late).await.unwrap(), ClaimResult::Superseded);

    assert_eq!((load_record(&ledger, id).await, ledger.events(id, 0).await.unwrap()), before);
}

/// Only the fence of this claim is invalid.
pub(crate) async fn a_claim_with_an_old_fence_is_refused(ledger: AnyLedger) {
    let (id, old_fence) = reclaimed_execution(&ledger).await;
    let failed = vec![(at_second(4), EventKind::StateChanged(state_change(Starting, Failed, 4)))];
    assert!(ledger.append_events(id, Fence(2), failed).await.unwrap());
    let late = ClaimCommand { fence: old_fence, ..new_claim_command(id, None) };
    assert_eq!(ledger.claim(late).await.unwrap(), ClaimResult::Superseded);
}

/// Returns the claim of a new execution of an agent that starts in a directory.
async fn new_workspace_claim(
    ledger: &AnyLedger,
    agent: &str,
    folder: Option<&str>,
) -> ClaimCommand {
    let agent = AgentId::new(agent).unwrap();
    let command = AcceptCommand { agent: agent.clone(), ..new_accept_command("change this") };
    let id = command.id;
    ledger.accept(command).await.unwrap();
    ClaimCommand { agent, workspace: folder.map(Workspace::new), ..new_claim_command(id, Some(1)) }
}

async fn try_claim(ledger: &AnyLedger, command: &ClaimCommand) -> bool {
    match ledger.claim(command.clone()).await.unwrap() {
        ClaimResult::Granted(_) => true,
        ClaimResult::Busy(QueueReason::WorkspaceBusy) => false,
        other @ (ClaimResult::Busy(_) | ClaimResult::Superseded) => panic!("{other:?}"),
    }
}

pub(crate) async fn overlapping_workspaces_are_claimed_once(ledger: AnyLedger) {
    for (agent, folder, expected) in [
        ("one", Some("/srv/a"), true),
        ("same", Some("/srv/a"), false),
        ("inner", Some("/srv/a/b"), false),
        ("outer", Some("/srv"), false),
        ("other", Some("/srv/ab"), true),
        ("reader", None, true),
        ("another-reader", None, true),
    ] {
        let command = new_workspace_claim(&ledger, agent, folder).await;
        assert_eq!(try_claim(&ledger, &command).await, expected, "{agent}");
        let state = load_record(&ledger, command.id).await.state;
        assert_eq!(state == Starting, expected, "{agent}");
    }
}

pub(crate) async fn a_workspace_is_free_unless_its_claimant_runs(ledger: AnyLedger) {
    let holding_claim = new_workspace_claim(&ledger, "one", Some("/srv/a")).await;
    let next = new_workspace_claim(&ledger, "two", Some("/srv/a")).await;
    assert!(try_claim(&ledger, &holding_claim).await);
    let events =
        |from, to| vec![(at_second(3), EventKind::StateChanged(state_change(from, to, 3)))];
    for (from, to) in [(Starting, Running), (Running, Failed)] {
        assert!(!try_claim(&ledger, &next).await, "{from} holds");
        assert!(ledger.append_events(holding_claim.id, Fence(1), events(from, to)).await.unwrap());
    }
    assert!(try_claim(&ledger, &next).await);

    let retry = ClaimCommand {
        fence: Fence(1),
        state_change: state_change(Failed, Starting, 4),
        ..holding_claim
    };
    assert!(!try_claim(&ledger, &retry).await);
    // The directory of the first claim is not the one to which the link leads now.
    let other_workspace = ClaimCommand { workspace: Some(Workspace::new("/srv/b")), ..retry };
    assert!(try_claim(&ledger, &other_workspace).await);
    let end = settlement(next.id, Fence(1), Outcome::Completed);
    assert!(ledger.settle(end).await.unwrap());
    let third = new_workspace_claim(&ledger, "three", Some("/srv/b/c")).await;
    assert!(!try_claim(&ledger, &third).await);
    let third = ClaimCommand { workspace: Some(Workspace::new("/srv/a")), ..third };
    assert!(try_claim(&ledger, &third).await);
}

pub(crate) async fn one_of_50_claims_of_one_workspace_is_granted(ledger: AnyLedger) {
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let command =
            new_workspace_claim(&ledger, &format!("agent-{number}"), Some("/srv/a")).await;
        let ledger = ledger.clone();
        tasks.spawn(async move { try_claim(&ledger, &command).await });
    }
    let granted = tasks.join_all().await.into_iter().filter(|granted| *granted).count();
    assert_eq!(granted, 1);
}

/// Returns the claim of a new execution of a conversation that is ready to start.
async fn new_conversation_claim(
    ledger: &AnyLedger,
    (owner, agent, context): (u128, &str, &str),
) -> ClaimCommand {
    let (owner, agent) = (PrincipalId(Uuid::from_u128(owner)), AgentId::new(agent).unwrap());
    let context = ContextId(context.to_owned());
    let command =
        AcceptCommand { owner, agent: agent.clone(), context, ..new_accept_command("and then?") };
    let id = command.id;
    ledger.accept(command).await.unwrap();
    ClaimCommand { agent, runs_turns_in_order: true, ..new_claim_command(id, None) }
}

pub(crate) async fn messages_of_one_conversation_are_claimed_in_order(ledger: AnyLedger) {
    let conversation = (1, "one", "c");
    let first = new_conversation_claim(&ledger, conversation).await;
    let second = new_conversation_claim(&ledger, conversation).await;
    let third = new_conversation_claim(&ledger, conversation).await;
    let busy = ClaimResult::Busy(QueueReason::ConversationBusy);
    let claim = async |command: &ClaimCommand| ledger.claim(command.clone()).await.unwrap();
    assert_eq!(claim(&second).await, busy, "the first is to be");
    assert_eq!(claim(&first).await, ClaimResult::Granted(Fence(1)));
    assert_eq!(claim(&second).await, busy, "the first is at work");
    for other in [(2, "one", "c"), (1, "two", "c"), (1, "one", "d")] {
        let command = new_conversation_claim(&ledger, other).await;
        assert_eq!(claim(&command).await, ClaimResult::Granted(Fence(1)), "{other:?} is another");
    }
    let failed =
        vec![(super::at_second(3), EventKind::StateChanged(state_change(Starting, Failed, 3)))];
    assert!(ledger.append_events(first.id, Fence(1), failed).await.unwrap());
    assert_eq!(claim(&second).await, busy, "the first is to be tried again");
    ledger.settle(settlement(first.id, Fence(1), Outcome::Failed)).await.unwrap();
    assert_eq!(claim(&third).await, busy, "the second is to be");
    assert_eq!(claim(&second).await, ClaimResult::Granted(Fence(1)));
    let out_of_turn = ClaimCommand { runs_turns_in_order: false, ..third };
    assert_eq!(claim(&out_of_turn).await, ClaimResult::Granted(Fence(1)));
}
