//! What can be seen of scripted work, and the guards that count it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::model::execution::Stamp;
use crate::model::id::{AgentId, ExecutionId};
use crate::model::workspace::Workspace;
use crate::ports::driver::Work;

/// What can be seen of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// Attempts in the order in which they were started, as `text#attempt@second`.
    pub begun: Vec<String>,
    /// Work that lives.
    pub alive: usize,
    /// The most that lived at one time.
    pub most_alive: usize,
    /// Leases that are held.
    pub leases: usize,
    /// All work that ever lived, in the order in which it began.
    pub lives: Vec<Life>,
    /// How often something came to life or ended.
    turns: u64,
}

/// Work that lived. What happened in one moment of paused time has an order all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Whose work it was.
    pub agent: AgentId,
    /// For which execution.
    pub execution: ExecutionId,
    /// Which attempt.
    pub stamp: Stamp,
    /// Whether an earlier life of the service had begun it.
    pub again: bool,
    /// What was claimed for it.
    pub workspace: Option<Workspace>,
    /// Its place among all beginnings and ends.
    pub begun: u64,
    /// The place of its end; `None` while it lives.
    pub ended: Option<u64>,
}

impl Life {
    /// Whether there was a moment at which both lived.
    #[must_use]
    pub fn met(&self, other: &Self) -> bool {
        let before = |one: &Self, two: &Self| one.ended.is_some_and(|ended| ended < two.begun);
        !before(self, other) && !before(other, self)
    }
}

/// Counts living work while it is held.
pub(super) struct Alive(Arc<watch::Sender<Stage>>, usize);

impl Alive {
    pub(super) fn enter(
        stage: &Arc<watch::Sender<Stage>>,
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

/// Counts leases while they are held.
pub(super) struct Held(Arc<watch::Sender<Stage>>);

impl Held {
    pub(super) fn enter(stage: &Arc<watch::Sender<Stage>>) -> Self {
        stage.send_modify(|stage| stage.leases += 1);
        Self(Arc::clone(stage))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|stage| stage.leases -= 1);
    }
}
