//! Tests of the acceptance of a known request.

use super::*;

#[test]
fn keys_must_name_one_execution_with_the_same_digest() {
    let (one, other) = (ExecutionId::generate(), ExecutionId::generate());
    let digest = [1; 32];
    assert_eq!(AcceptResult::for_known_keys(&[], digest), None);
    assert_eq!(
        AcceptResult::for_known_keys(&[(one, digest)], digest),
        Some(AcceptResult::Duplicate(one))
    );
    assert_eq!(
        AcceptResult::for_known_keys(&[(one, digest), (one, digest)], digest),
        Some(AcceptResult::Duplicate(one))
    );
    for known_executions in [vec![(one, [2; 32])], vec![(one, digest), (other, digest)]] {
        assert_eq!(
            AcceptResult::for_known_keys(&known_executions, digest),
            Some(AcceptResult::Conflict)
        );
    }
}
