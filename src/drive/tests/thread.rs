//! Conversations that nothing is known of, and ids that are given.

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::session::{Conversation, Session};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::sessions::Sessions;
use async_trait::async_trait;

use super::world::shell;
use crate::drive::thread::fresh_id;

/// Keeps no session.
pub(super) struct Unkept;

#[async_trait]
impl Sessions for Unkept {
    async fn session(&self, _: &Conversation) -> Result<Option<Session>, LedgerError> {
        Ok(None)
    }

    async fn keep(&self, _: Conversation, _: Session) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn forget(&self, _: Conversation) -> Result<(), LedgerError> {
        Ok(())
    }
}

#[test]
fn an_attempt_gives_the_same_id_whenever_it_is_asked_and_no_other_attempt_does() {
    let mut work = shell("", &[]).work();
    let first = fresh_id(&work);
    assert_eq!((fresh_id(&work), first.get_version_num()), (first, 4));
    work.stamp = Stamp { attempt: 2, ..Stamp::FIRST };
    assert_ne!(fresh_id(&work), first);
    (work.stamp, work.execution) = (Stamp::FIRST, ExecutionId::fresh());
    assert_ne!(fresh_id(&work), first);
}
