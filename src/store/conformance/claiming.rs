//! Stories of claims and their limit.

use algonius_actors::model::event::Fact;
use algonius_actors::model::execution::{Fence, Outcome, State};
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::ports::ledger::{Claim, ClaimOrder};
use tokio::task::JoinSet;

use State::{Failed, Starting};

use super::{
    AnyLedger, accepted, claimed, moved, order, record, retried, second, settlement, warned,
};

pub(in crate::store) async fn claims_of_50_at_once_keep_the_limit(ledger: AnyLedger) {
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(accepted(&ledger).await);
    }
    let mut all = JoinSet::new();
    for id in ids {
        let ledger = ledger.clone();
        all.spawn(async move { (id, ledger.claim(order(id, Some(3))).await.unwrap()) });
    }
    let answers = all.join_all().await;
    let granted: Vec<_> =
        answers.iter().filter(|(_, answer)| *answer == Claim::Granted(Fence(1))).collect();
    let busy: Vec<_> = answers.iter().filter(|(_, answer)| *answer == Claim::Busy).collect();
    assert_eq!((granted.len(), busy.len()), (3, 47));

    let waiting = busy[0].0;
    let done = settlement(granted[0].0, Fence(1), Outcome::Completed);
    assert!(ledger.settle(done).await.unwrap());
    assert_eq!(ledger.claim(order(waiting, Some(3))).await.unwrap(), Claim::Granted(Fence(1)));
    assert_eq!(ledger.claim(order(busy[1].0, Some(3))).await.unwrap(), Claim::Busy);
    assert_eq!(ledger.claim(order(busy[1].0, None)).await.unwrap(), Claim::Granted(Fence(1)));
}

pub(in crate::store) async fn one_of_many_claims_of_an_execution_is_granted(ledger: AnyLedger) {
    let id = accepted(&ledger).await;
    let mut all = JoinSet::new();
    for _ in 0..20 {
        let ledger = ledger.clone();
        all.spawn(async move { ledger.claim(order(id, Some(9))).await.unwrap() });
    }
    let answers = all.join_all().await;
    let granted = answers.iter().filter(|answer| **answer == Claim::Granted(Fence(1))).count();
    let gone = answers.iter().filter(|answer| **answer == Claim::Gone).count();
    assert_eq!((granted, gone), (1, 19));
    let row = record(&ledger, id).await;
    assert_eq!((row.state, row.started_at, row.last_event), (Starting, Some(second(1)), 2));
}

pub(in crate::store) async fn only_what_may_start_is_claimed(ledger: AnyLedger) {
    let (id, fence) = claimed(&ledger).await;
    let again = ClaimOrder { fence, ..order(id, None) };
    assert_eq!(ledger.claim(again).await.unwrap(), Claim::Gone);
    assert_eq!(ledger.claim(order(ExecutionId::fresh(), None)).await.unwrap(), Claim::Gone);
    let waiting = accepted(&ledger).await;
    let elsewhere = AgentId::new("writer").unwrap();
    let other = ClaimOrder { agent: elsewhere, ..order(waiting, None) };
    assert_eq!(ledger.claim(other).await.unwrap(), Claim::Gone);
    let (retried, _) = retried(&ledger).await;
    let row = record(&ledger, retried).await;
    assert_eq!((row.started_at, row.pid), (Some(second(1)), None));
}

pub(in crate::store) async fn an_old_fence_changes_nothing(ledger: AnyLedger) {
    let (id, old) = retried(&ledger).await;
    let before = (record(&ledger, id).await, ledger.events(id, 0).await.unwrap());

    assert!(!ledger.record(id, old, vec![warned("late")]).await.unwrap());
    assert!(!ledger.settle(settlement(id, old, Outcome::Completed)).await.unwrap());
    let late = ClaimOrder { fence: old, ..order(id, None) };
    assert_eq!(ledger.claim(late).await.unwrap(), Claim::Gone);

    assert_eq!((record(&ledger, id).await, ledger.events(id, 0).await.unwrap()), before);
}

/// Of all that a claim asks, only the fence is wrong here.
pub(in crate::store) async fn a_claim_with_an_old_fence_is_gone(ledger: AnyLedger) {
    let (id, old) = retried(&ledger).await;
    let failed = vec![(second(4), Fact::Moved(moved(Starting, Failed, 4)))];
    assert!(ledger.record(id, Fence(2), failed).await.unwrap());
    let late = ClaimOrder { fence: old, ..order(id, None) };
    assert_eq!(ledger.claim(late).await.unwrap(), Claim::Gone);
}
