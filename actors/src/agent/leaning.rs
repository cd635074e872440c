//! Equal requests: the later one waits for the result of the earlier, and takes it if it is good.

use std::sync::Arc;

use ractor::ActorRef;

use super::{AgentData, AgentMsg};
use crate::decide::admission::Event as Arrival;
use crate::model::execution::{Outcome, Stamp, State};
use crate::model::id::ExecutionId;
use crate::ports::ledger::Ledger;

impl AgentData {
    /// A request is recorded, and the result is there: it takes it when its turn comes.
    pub(super) fn take(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, of: ExecutionId) {
        if let Some(one) = self.waiting.get_mut(&id) {
            one.equal = Some(of);
        }
        self.heard(me, Arrival::Recorded(id));
    }

    /// A request is recorded, and `of`, which is under way, was asked the same.
    pub(super) fn lean(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, of: ExecutionId) {
        self.heard(me, Arrival::Leans(id));
        if self.live.contains_key(&of) || self.waiting.contains_key(&of) {
            self.leaning.entry(of).or_default().push(id);
        } else {
            self.free(me, id, of);
        }
    }

    /// An execution has ended, or rests: those who waited for it wait no longer.
    pub(super) fn free_those_who_lean(&mut self, me: &ActorRef<AgentMsg>, of: ExecutionId) {
        for id in self.leaning.remove(&of).unwrap_or_default() {
            self.free(me, id, of);
        }
    }

    /// Asks the ledger how the other one ended: only what is good is taken.
    fn free(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId, of: ExecutionId) {
        let (me, ledger) = (me.clone(), Arc::clone(&self.args.kit.ledger));
        self.spawn(async move {
            let equal = is_good(&ledger, of).await.then_some(of);
            _ = me.cast(AgentMsg::Freed(id, equal));
        });
    }

    /// It may begin now, with a result that is there or with work of its own.
    pub(super) fn freed(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        equal: Option<ExecutionId>,
    ) {
        // One that has begun its own work meanwhile, and asked, waits for something else now.
        let one = self.waiting.get_mut(&id).filter(|one| one.from.state != State::Waiting);
        if let Some(one) = one {
            one.equal = equal;
            self.arrive(me, Arrival::Freed(id));
        }
    }
}

/// Whether an execution has ended well, without a question: an answer to one was asked of nobody else.
/// One that cannot be read gives no result.
pub(super) async fn is_good(ledger: &Arc<dyn Ledger>, of: ExecutionId) -> bool {
    let record = ledger.execution(of).await.unwrap_or_else(|error| {
        tracing::error!(execution = %of, %error, "read failed");
        None
    });
    record.is_some_and(|one| {
        one.outcome == Some(Outcome::Completed) && one.stamp.turn == Stamp::FIRST.turn
    })
}
