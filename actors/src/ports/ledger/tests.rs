//! Tests of the acceptance of a known request.

use super::*;

#[test]
fn keys_must_name_one_execution_with_the_same_digest() {
    let (one, other) = (ExecutionId::fresh(), ExecutionId::fresh());
    let asked = [1; 32];
    assert_eq!(Acceptance::from_known(&[], asked), None);
    assert_eq!(Acceptance::from_known(&[(one, asked)], asked), Some(Acceptance::Duplicate(one)));
    assert_eq!(
        Acceptance::from_known(&[(one, asked), (one, asked)], asked),
        Some(Acceptance::Duplicate(one))
    );
    for found in [vec![(one, [2; 32])], vec![(one, asked), (other, asked)]] {
        assert_eq!(Acceptance::from_known(&found, asked), Some(Acceptance::Conflict));
    }
}
