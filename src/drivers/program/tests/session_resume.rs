//! Tests of new conversations and of the ids that they get.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;

use super::fixture::shell_fixture;
use crate::drivers::program::session_resume::derive_session_id;

#[test]
fn an_attempt_has_one_stable_session_id_of_its_own() {
    let mut work = shell_fixture("", &[]).attempt_work();
    let first = derive_session_id(&work);
    assert_eq!((derive_session_id(&work), first.get_version_num()), (first, 4));
    work.attempt_id = AttemptId { attempt: 2, ..AttemptId::FIRST };
    assert_ne!(derive_session_id(&work), first);
    (work.attempt_id, work.execution) = (AttemptId::FIRST, ExecutionId::generate());
    assert_ne!(derive_session_id(&work), first);
}
