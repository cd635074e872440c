//! Orders from the holder of a lease to the task that runs its attempt.

use std::sync::Arc;

use algonius_actors::model::interaction::{AnswerValue, WireId};
use tokio::sync::{Mutex, mpsc, watch};

/// Order from the holder of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DriverOrder {
    Run,
    Stop,
    Release,
}

/// Answers to the questions of an agent; `None` cancels its request.
pub(in crate::drivers) type AnswerReceiver = mpsc::UnboundedReceiver<(WireId, Option<AnswerValue>)>;

/// Orders of the holder of a lease. Dropping them without an order means that the holder is gone.
pub(in crate::drivers) struct LeaseOrderSender {
    orders: watch::Sender<DriverOrder>,
    answers: mpsc::UnboundedSender<(WireId, Option<AnswerValue>)>,
}

impl LeaseOrderSender {
    /// Returns the orders of an attempt that is to run, and their receiver.
    pub(in crate::drivers) fn channel() -> (Self, LeaseOrderReceiver) {
        // A watch channel: a receiver that looks late still finds the order, and it notices that the holder is gone.
        let (orders, order_receiver) = watch::channel(DriverOrder::Run);
        let (answers, answer_receiver) = mpsc::unbounded_channel();
        let answer_receiver = Arc::new(Mutex::new(Some(answer_receiver)));
        (
            Self { orders, answers },
            LeaseOrderReceiver { orders: order_receiver, answers: answer_receiver },
        )
    }

    /// Orders the attempt to stop its program, unless an order came before.
    pub(in crate::drivers) fn stop(&self) {
        self.orders.send_if_modified(|order| {
            // A release includes the stop, so a stop that comes later must not replace it.
            let is_new = *order == DriverOrder::Run;
            if is_new {
                *order = DriverOrder::Stop;
            }
            is_new
        });
    }

    /// Orders the attempt to release its program, and to remove what remains of it.
    pub(in crate::drivers) fn release(&self) {
        self.orders.send_replace(DriverOrder::Release);
    }

    /// Sends the answer to a question of the agent.
    pub(in crate::drivers) fn answer(&self, wire: WireId, answer: Option<AnswerValue>) {
        _ = self.answers.send((wire, answer)); // An attempt that has ended needs no answer.
    }
}

/// Receiver of the holder's orders. A dropped lease has ordered nothing.
#[derive(Clone)]
pub(in crate::drivers) struct LeaseOrderReceiver {
    orders: watch::Receiver<DriverOrder>,
    /// Answers, until the task that carries them to the agent has taken their receiver.
    answers: Arc<Mutex<Option<AnswerReceiver>>>,
}

impl LeaseOrderReceiver {
    /// Returns true if a stop was ordered, or if the holder is gone.
    pub(in crate::drivers) fn is_stopped(&self) -> bool {
        *self.orders.borrow() != DriverOrder::Run || self.is_lost()
    }

    /// Returns true if the holder is gone without an order.
    pub(in crate::drivers) fn is_lost(&self) -> bool {
        self.orders.has_changed().is_err()
    }

    /// Returns the receiver of answers for the next program of the attempt: one that does not know its session is
    /// replaced.
    pub(in crate::drivers) fn return_answers(&self, receiver: AnswerReceiver) {
        if let Ok(mut answers) = self.answers.try_lock() {
            *answers = Some(receiver);
        }
    }

    /// Returns when a stop is ordered; never if the holder is lost.
    pub(in crate::drivers) async fn wait_for_stop(&mut self) {
        if self.orders.wait_for(|order| *order != DriverOrder::Run).await.is_err() {
            // A lost holder has ordered nothing: the program continues until another process instance claims it.
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the lease was cleaned or dropped; true if it was cleaned.
    pub(in crate::drivers) async fn wait_for_release(&mut self) -> bool {
        self.orders.wait_for(|order| *order == DriverOrder::Release).await.is_ok()
    }

    /// Takes the receiver of answers; `None` if it was taken before.
    pub(in crate::drivers) fn take_answers(&self) -> Option<AnswerReceiver> {
        self.answers.try_lock().ok()?.take()
    }
}
