//! How an agent comes to rest: for the service that stops, or because it is configured no longer.

use ractor::RpcReplyPort;
use tokio::task::AbortHandle;

use super::{AgentData, AgentMsg, Waiting};
use crate::alarm::alarmed;
use crate::decide::execution::Event;
use crate::execution::ExecutionMsg;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;
use crate::recover::settle_questions;

/// An agent that is configured no longer, and finishes what it has.
pub(super) struct Leaving {
    /// Who waits for that.
    replies: Vec<RpcReplyPort<()>>,
    /// What ends the questions that nobody can answer any more.
    settling: Option<AbortHandle>,
}

impl Drop for Leaving {
    /// Who stays keeps its questions.
    fn drop(&mut self) {
        if let Some(settling) = &self.settling {
            settling.abort();
        }
    }
}

impl AgentData {
    pub(super) fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.draining.get_or_insert_default().push(reply);
        self.tell_drained();
    }

    /// Tells it when nothing runs and nobody waits to hear whether the request was recorded.
    pub(super) fn tell_drained(&mut self) {
        let is_unheard = |one: &Waiting| one.reply.is_some();
        if self.live.is_empty() && !self.waiting.values().any(is_unheard) {
            for reply in self.draining.iter_mut().flat_map(std::mem::take) {
                _ = reply.send(());
            }
        }
        self.settle_when_empty();
    }

    pub(super) fn cancel_all(&self, why: &str) {
        for live in self.live.values() {
            let why = why.to_owned();
            _ = live.actor.cast(ExecutionMsg::Happened(Event::Cancel { why }));
        }
    }

    /// Lets nothing more in. What runs and what waits was promised, and goes on to its end.
    pub(super) fn leave(&mut self, reply: RpcReplyPort<()>) {
        let leaving = Leaving { replies: Vec::new(), settling: None };
        self.leaving.get_or_insert(leaving).replies.push(reply);
        self.settle_when_empty();
    }

    /// Ends the open questions of an agent that leaves, once nothing runs and nothing waits.
    fn settle_when_empty(&mut self) {
        let is_empty = self.live.is_empty() && self.waiting.is_empty() && self.early.is_empty();
        let Some(leaving) = self.leaving.as_mut().filter(|it| is_empty && it.settling.is_none())
        else {
            return;
        };
        let (me, kit, agent) = (self.me.clone(), self.args.kit.clone(), self.args.spec.id.clone());
        let (told, broken) = (me.clone(), me);
        let settling = async move {
            settle_questions(&kit, &agent, &removed(&agent)).await;
            _ = told.cast(AgentMsg::QuestionsSettled);
        };
        let alarm = move || _ = broken.cast(AgentMsg::Broken);
        leaving.settling = Some(self.tasks.spawn(alarmed(settling, alarm)));
    }

    /// It has nothing left.
    pub(super) fn questions_settled(&mut self) {
        for reply in self.leaving.iter_mut().flat_map(|it| std::mem::take(&mut it.replies)) {
            _ = reply.send(());
        }
    }
}

/// The refusal of an agent that was taken out of the configuration.
pub(crate) fn removed(agent: &AgentId) -> Failure {
    let message = format!("agent `{agent}` was taken out of the configuration");
    Failure::new(Code::AgentRemoved, message)
}
