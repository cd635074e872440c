//! Visible state of scripted work, and the guards that count it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::driver::Work;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::id::{AgentId, ExecutionId};

/// Visible state of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageState {
    /// Attempts in the order of their start, as `text#attempt@second`.
    pub begun: Vec<String>,
    /// Number of running attempts.
    pub alive: usize,
    /// Highest number of attempts that ran at one time.
    pub most_alive: usize,
    /// Number of held leases.
    pub leases: usize,
    /// All attempts that ever ran, in the order of their start.
    pub lives: Vec<Life>,
    /// Answers in the order of their delivery, as `wire:answer`. Work that is resumed asks nothing again that is here.
    pub answers: Vec<String>,
    /// Number of starts and ends.
    turns: u64,
}

/// Attempt that ran. Events at one moment of paused time are nevertheless ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Id of the agent.
    pub agent: AgentId,
    /// Id of the execution.
    pub execution: ExecutionId,
    /// Id of the attempt.
    pub stamp: AttemptId,
    /// True if an earlier process of the service had started it.
    pub again: bool,
    /// Workspace that was claimed for it.
    pub workspace: Option<Workspace>,
    /// Position of its start among all starts and ends.
    pub begun: u64,
    /// Position of its end; `None` while it runs.
    pub ended: Option<u64>,
}

impl Life {
    /// Returns true if both ran at the same moment.
    #[must_use]
    pub fn met(&self, other: &Self) -> bool {
        let before = |one: &Self, two: &Self| one.ended.is_some_and(|ended| ended < two.begun);
        !before(self, other) && !before(other, self)
    }
}

/// Guard that counts running work.
pub(super) struct Alive(Arc<watch::Sender<StageState>>, usize);

impl Alive {
    pub(super) fn enter(
        stage: &Arc<watch::Sender<StageState>>,
        Work { execution, stamp, spec, workspace, .. }: &Work,
        again: bool,
    ) -> Self {
        let mut place = 0;
        stage.send_modify(|stage| {
            stage.alive += 1;
            stage.most_alive = stage.most_alive.max(stage.alive);
            stage.turns += 1;
            place = stage.lives.len();
            stage.lives.push(Life {
                agent: spec.id.clone(),
                execution: *execution,
                stamp: *stamp,
                again,
                workspace: workspace.clone(),
                begun: stage.turns,
                ended: None,
            });
        });
        Self(Arc::clone(stage), place)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|stage| {
            stage.alive -= 1;
            stage.turns += 1;
            let ended = stage.turns;
            if let Some(life) = stage.lives.get_mut(self.1) {
                life.ended = Some(ended);
            }
        });
    }
}

/// Guard that counts leases.
pub(super) struct LeaseCounter(Arc<watch::Sender<StageState>>);

impl LeaseCounter {
    pub(super) fn enter(stage: &Arc<watch::Sender<StageState>>) -> Self {
        stage.send_modify(|stage| stage.leases += 1);
        Self(Arc::clone(stage))
    }
}

impl Drop for LeaseCounter {
    fn drop(&mut self) {
        self.0.send_modify(|stage| stage.leases -= 1);
    }
}
