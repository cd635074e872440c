//! Commands from the holder of a lease to the task that runs its attempt.

use std::sync::Arc;

use algonius_actors::model::interaction::{AnswerValue, WireId};
use tokio::sync::{Mutex, mpsc, watch};

/// Command from the holder of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseCommand {
    Run,
    Stop,
    Release,
}

/// Answers to the questions of an agent; `None` cancels its request.
pub(in crate::drivers) type AnswerReceiver = mpsc::UnboundedReceiver<(WireId, Option<AnswerValue>)>;

/// Sender of the commands of the holder of a lease. Dropping it without a command means that the holder is gone.
pub(in crate::drivers) struct LeaseCommandSender {
    commands: watch::Sender<LeaseCommand>,
    answers: mpsc::UnboundedSender<(WireId, Option<AnswerValue>)>,
}

impl LeaseCommandSender {
    /// Returns the sender of the commands of an attempt that is to run, and their receiver.
    pub(in crate::drivers) fn channel() -> (Self, LeaseCommandReceiver) {
        // A watch channel: a receiver that looks late still finds the command, and it notices that the holder is gone.
        let (commands, command_receiver) = watch::channel(LeaseCommand::Run);
        let (answers, answer_receiver) = mpsc::unbounded_channel();
        let answer_receiver = Arc::new(Mutex::new(Some(answer_receiver)));
        (
            Self { commands, answers },
            LeaseCommandReceiver { commands: command_receiver, answers: answer_receiver },
        )
    }

    /// Orders the attempt to stop its program, unless a command came before.
    pub(in crate::drivers) fn stop(&self) {
        self.commands.send_if_modified(|command| {
            // A release includes the stop, so a stop that comes later must not replace it.
            let is_new = *command == LeaseCommand::Run;
            if is_new {
                *command = LeaseCommand::Stop;
            }
            is_new
        });
    }

    /// Commands the attempt to release its program, and to remove what remains of it.
    pub(in crate::drivers) fn release(&self) {
        self.commands.send_replace(LeaseCommand::Release);
    }

    /// Sends the answer to a question of the agent.
    pub(in crate::drivers) fn answer(&self, wire_id: WireId, answer: Option<AnswerValue>) {
        _ = self.answers.send((wire_id, answer)); // An attempt that has ended needs no answer.
    }
}

/// Receiver of the holder's commands. A dropped lease has ordered nothing.
#[derive(Clone)]
pub(in crate::drivers) struct LeaseCommandReceiver {
    commands: watch::Receiver<LeaseCommand>,
    /// Answers, until the task that carries them to the agent has taken their receiver.
    answers: Arc<Mutex<Option<AnswerReceiver>>>,
}

impl LeaseCommandReceiver {
    /// Returns true if a stop or a release was ordered, or if the lease was dropped.
    pub(in crate::drivers) fn should_stop(&self) -> bool {
        *self.commands.borrow() != LeaseCommand::Run || self.is_lease_dropped()
    }

    /// Returns true if the lease was dropped without a command.
    pub(in crate::drivers) fn is_lease_dropped(&self) -> bool {
        self.commands.has_changed().is_err()
    }

    /// Returns the receiver of answers for the next program of the attempt: one that does not know its session is
    /// replaced.
    pub(in crate::drivers) fn restore_answer_receiver(&self, receiver: AnswerReceiver) {
        if let Ok(mut answers) = self.answers.try_lock() {
            *answers = Some(receiver);
        }
    }

    /// Returns when a stop is ordered; never if the holder is lost.
    pub(in crate::drivers) async fn wait_for_stop(&mut self) {
        if self.commands.wait_for(|command| *command != LeaseCommand::Run).await.is_err() {
            // A lost holder has ordered nothing: the program continues until another process instance takes it over.
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the release is ordered or the lease is dropped; true if the release was ordered.
    pub(in crate::drivers) async fn wait_for_release_or_drop(&mut self) -> bool {
        self.commands.wait_for(|command| *command == LeaseCommand::Release).await.is_ok()
    }

    /// Takes the receiver of answers; `None` if it was taken before.
    pub(in crate::drivers) fn take_answer_receiver(&self) -> Option<AnswerReceiver> {
        self.answers.try_lock().ok()?.take()
    }
}
