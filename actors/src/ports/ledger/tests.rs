//! Tests of the acceptance of a known request.

use super::*;

#[test]
fn keys_must_name_one_execution_with_the_same_digest() {
    let (one, other) = (ExecutionId::fresh(), ExecutionId::fresh());
    let digest = [1; 32];
    assert_eq!(AcceptResult::from_known(&[], digest), None);
    assert_eq!(
        AcceptResult::from_known(&[(one, digest)], digest),
        Some(AcceptResult::Duplicate(one))
    );
    assert_eq!(
        AcceptResult::from_known(&[(one, digest), (one, digest)], digest),
        Some(AcceptResult::Duplicate(one))
    );
    for known_executions in [vec![(one, [2; 32])], vec![(one, digest), (other, digest)]] {
        assert_eq!(
            AcceptResult::from_known(&known_executions, digest),
            Some(AcceptResult::Conflict)
        );
    }
}
