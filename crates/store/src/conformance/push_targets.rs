//! Conformance tests of the store of push targets. Each test gets a fresh ledger and its store.

use std::sync::Arc;

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::execution::{Fence, Outcome};
use algonius_actors::model::id::{ExecutionId, PrincipalId};
use algonius_actors::model::push::{
    DeliveryProgress, DeliveryStage, PendingTarget, PushCredentials, PushTarget, Secret,
};
use algonius_actors::ports::push_target_store::{PushTargetStore, RegistrationResult};
use chrono::TimeDelta;
use uuid::Uuid;

use super::{AnyLedger, accept_and_claim, accept_execution, at_second, settlement, warning_event};

pub(crate) type AnyPushTargetStore = Arc<dyn PushTargetStore>;

/// Instantiates all tests for a store of push targets that `$open` returns, with a guard that must live as long.
macro_rules! push_target_conformance {
    ($open:path) => {
        push_target_conformance! { $open:
            a_target_is_read_back_unchanged
            replacing_a_push_target_keeps_its_delivery_position
            the_number_of_targets_of_an_execution_is_limited
            a_target_without_an_execution_is_refused_alone
            only_targets_with_new_events_are_due
            due_targets_are_shared_between_owners
            a_note_for_an_old_registration_changes_nothing
        }
    };
    ($open:path: $($test:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $test() {
            let (ledger, target_store, _guard) = $open().await;
            crate::conformance::push_targets::$test(ledger, target_store).await;
        })*
    };
}
pub(crate) use push_target_conformance;

pub(crate) fn push_target(execution: ExecutionId, id: &str) -> PushTarget {
    PushTarget {
        id: id.to_owned(),
        execution,
        owner: PrincipalId(Uuid::nil()),
        version: ProtocolVersion::V1_0,
        registration_id: Uuid::new_v4(),
        url: Secret("https://example.org/hook?key=canary".to_owned()),
        token: Some(Secret("token".to_owned())),
        authentication: Some(PushCredentials {
            scheme: "Bearer".to_owned(),
            credentials: Some(Secret("credentials".to_owned())),
        }),
        created_at: at_second(0),
    }
}

async fn due_targets(target_store: &AnyPushTargetStore, at: i64, limit: u32) -> Vec<PendingTarget> {
    target_store.due_targets(at_second(at), TimeDelta::seconds(60), limit).await.unwrap().pending
}

async fn due_ids(target_store: &AnyPushTargetStore, at: i64) -> Vec<String> {
    due_targets(target_store, at, 9).await.into_iter().map(|pending| pending.id).collect()
}

fn delivery_progress(
    last_delivered_event: u64,
    due: i64,
    stage: DeliveryStage,
) -> DeliveryProgress {
    DeliveryProgress {
        last_delivered_event,
        next_event_failures: 0,
        failing_since: None,
        due_at: at_second(due),
        stage,
    }
}

pub(crate) async fn a_target_is_read_back_unchanged(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let id = accept_execution(&ledger).await;
    let full = push_target(id, "full");
    let bare = PushTarget {
        version: ProtocolVersion::V0_3,
        token: None,
        authentication: None,
        created_at: at_second(1),
        ..push_target(id, "a/b é")
    };
    for push_target in [&bare, &full] {
        assert_eq!(
            target_store.register(push_target.clone(), 0, 9).await.unwrap(),
            RegistrationResult::Registered
        );
        assert_eq!(
            target_store.get(id, &push_target.id).await.unwrap().as_ref(),
            Some(push_target)
        );
    }
    assert_eq!(target_store.list(id).await.unwrap(), [full, bare]);
    assert_eq!(target_store.get(id, "other").await.unwrap(), None);
    assert_eq!(target_store.list(accept_execution(&ledger).await).await.unwrap(), []);
    assert!(target_store.delete(id, "full").await.unwrap());
    assert!(!target_store.delete(id, "full").await.unwrap());
    assert_eq!(target_store.list(id).await.unwrap().len(), 1);
}

pub(crate) async fn replacing_a_push_target_keeps_its_delivery_position(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let (id, _) = accept_and_claim(&ledger).await;
    assert!(ledger.append_events(id, Fence(1), vec![warning_event("one")]).await.unwrap());
    let old = push_target(id, "it");
    target_store.register(old.clone(), 0, 9).await.unwrap();
    let abandoned = DeliveryProgress {
        next_event_failures: 20,
        failing_since: Some(at_second(3)),
        ..delivery_progress(1, 50, DeliveryStage::Abandoned)
    };
    assert!(target_store.record_progress(old.registration_id, abandoned).await.unwrap());
    assert_eq!(due_ids(&target_store, 60).await, [""; 0]);
    let url = Secret("https://example.org/other".to_owned());
    let new = PushTarget { url, created_at: at_second(2), ..push_target(id, "it") };
    target_store.register(new.clone(), 0, 1).await.unwrap();
    assert_eq!(target_store.list(id).await.unwrap(), [new]);
    let [pending] = due_targets(&target_store, 2, 9).await.try_into().unwrap();
    assert_eq!(pending.progress, delivery_progress(1, 2, DeliveryStage::Open));
}

pub(crate) async fn the_number_of_targets_of_an_execution_is_limited(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let (id, other) = (accept_execution(&ledger).await, accept_execution(&ledger).await);
    for (execution, name, expected) in [
        (id, "one", RegistrationResult::Registered),
        (id, "two", RegistrationResult::Registered),
        (id, "three", RegistrationResult::Full),
        (id, "two", RegistrationResult::Registered),
        (other, "one", RegistrationResult::Registered),
    ] {
        assert_eq!(
            target_store.register(push_target(execution, name), 0, 2).await.unwrap(),
            expected,
            "{name}"
        );
    }
}

pub(crate) async fn a_target_without_an_execution_is_refused_alone(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let id = accept_execution(&ledger).await;
    let (unknown, registered) = tokio::join!(
        target_store.register(push_target(ExecutionId::generate(), "it"), 0, 9),
        target_store.register(push_target(id, "it"), 0, 9)
    );
    assert_eq!(
        (unknown.unwrap(), registered.unwrap()),
        (RegistrationResult::ExecutionMissing, RegistrationResult::Registered)
    );
}

pub(crate) async fn only_targets_with_new_events_are_due(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let empty = target_store.due_targets(at_second(9), TimeDelta::seconds(60), 9).await.unwrap();
    assert!(!empty.has_open_targets);
    let (id, fence) = accept_and_claim(&ledger).await; // Two events.
    let (early, late) = (push_target(id, "early"), push_target(id, "late"));
    target_store.register(early.clone(), 2, 9).await.unwrap();
    target_store
        .register(PushTarget { created_at: at_second(5), ..late.clone() }, 0, 9)
        .await
        .unwrap();
    assert_eq!(due_ids(&target_store, 4).await, [""; 0], "one knows all, the other is not due");
    assert!(
        target_store
            .due_targets(at_second(4), TimeDelta::seconds(60), 9)
            .await
            .unwrap()
            .has_open_targets
    );
    assert_eq!(due_ids(&target_store, 5).await, ["late"]);
    assert!(ledger.append_events(id, fence, vec![warning_event("one")]).await.unwrap());
    assert_eq!(due_ids(&target_store, 5).await, ["early", "late"]);
    assert_eq!(due_ids(&target_store, -56).await, ["late"], "the clock was set back");
    for registered_target in [&early, &late] {
        assert!(
            target_store
                .record_progress(
                    registered_target.registration_id,
                    delivery_progress(3, 6, DeliveryStage::Open)
                )
                .await
                .unwrap()
        );
    }
    assert_eq!(due_ids(&target_store, 6).await, [""; 0]);
    assert!(ledger.settle(settlement(id, fence, Outcome::Completed)).await.unwrap());
    let ended: Vec<_> = due_targets(&target_store, 6, 9)
        .await
        .iter()
        .map(|pending| pending.has_execution_ended)
        .collect();
    assert_eq!(ended, [true, true]);
    for registered_target in [&early, &late] {
        assert!(
            target_store
                .record_progress(
                    registered_target.registration_id,
                    delivery_progress(4, 6, DeliveryStage::Finished)
                )
                .await
                .unwrap()
        );
    }
    assert!(
        !target_store
            .due_targets(at_second(9), TimeDelta::seconds(60), 9)
            .await
            .unwrap()
            .has_open_targets
    );
}

pub(crate) async fn due_targets_are_shared_between_owners(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let (id, _) = accept_and_claim(&ledger).await;
    for number in 0..5 {
        let created_at = at_second(number);
        let greedy = PushTarget { created_at, ..push_target(id, &format!("greedy-{number}")) };
        target_store.register(greedy, 0, 9).await.unwrap();
    }
    let owner = PrincipalId(Uuid::max());
    let modest = PushTarget { owner, created_at: at_second(8), ..push_target(id, "modest") };
    target_store.register(modest, 0, 9).await.unwrap();
    let due_ids: Vec<_> =
        due_targets(&target_store, 9, 2).await.into_iter().map(|pending| pending.id).collect();
    assert_eq!(due_ids, ["greedy-0", "greedy-1", "modest"]);
}

pub(crate) async fn a_note_for_an_old_registration_changes_nothing(
    ledger: AnyLedger,
    target_store: AnyPushTargetStore,
) {
    let (id, _) = accept_and_claim(&ledger).await;
    let (old, new) = (push_target(id, "it"), push_target(id, "it"));
    target_store.register(old.clone(), 0, 9).await.unwrap();
    target_store.register(new.clone(), 0, 9).await.unwrap();
    let finished = delivery_progress(1, 9, DeliveryStage::Finished);
    assert!(!target_store.record_progress(old.registration_id, finished).await.unwrap());
    assert_eq!(due_ids(&target_store, 9).await, ["it"]);
    assert!(target_store.record_progress(new.registration_id, finished).await.unwrap());
    assert_eq!(due_ids(&target_store, 9).await, [""; 0]);
}
