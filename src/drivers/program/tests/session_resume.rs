//! Tests of new conversations and of the ids that they get.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;

use super::fixture::shell;
use crate::drivers::program::session_resume::fresh_id;

#[test]
fn an_attempt_has_one_stable_session_id_of_its_own() {
    let mut work = shell("", &[]).work();
    let first = fresh_id(&work);
    assert_eq!((fresh_id(&work), first.get_version_num()), (first, 4));
    work.attempt_id = AttemptId { attempt: 2, ..AttemptId::FIRST };
    assert_ne!(fresh_id(&work), first);
    (work.attempt_id, work.execution) = (AttemptId::FIRST, ExecutionId::fresh());
    assert_ne!(fresh_id(&work), first);
}
