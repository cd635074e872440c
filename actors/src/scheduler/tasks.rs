//! Tasks of the scheduler, which end with it.

use ractor::ActorRef;
use tokio::task::JoinSet;

use super::SchedulerMsg;
use crate::services::panic_guard::run_with_panic_guard;

/// Running tasks of the scheduler. A panic of a task stops the actor, because the result of the task never arrives; the
/// successor repeats the work from the store.
pub(super) struct SchedulerBackgroundTasks {
    scheduler: ActorRef<SchedulerMsg>,
    running_tasks: JoinSet<()>,
}

impl SchedulerBackgroundTasks {
    /// Creates an empty set of tasks, which report to this actor.
    pub(super) fn new(scheduler: ActorRef<SchedulerMsg>) -> Self {
        Self { scheduler, running_tasks: JoinSet::new() }
    }

    /// Returns the actor to which the tasks report.
    pub(super) const fn scheduler(&self) -> &ActorRef<SchedulerMsg> {
        &self.scheduler
    }

    /// Starts a task that ends with the actor.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let scheduler = self.scheduler.clone();
        self.running_tasks.spawn(run_with_panic_guard(task, move || {
            _ = scheduler.cast(SchedulerMsg::BackgroundFuturePanicked);
        }));
    }

    /// Starts a task whose result is a message to the actor.
    pub(super) fn spawn_and_send_result(
        &mut self,
        task: impl Future<Output = SchedulerMsg> + Send + 'static,
    ) {
        let scheduler = self.scheduler.clone();
        self.spawn(async move { _ = scheduler.cast(task.await) }); // Fails if the actor has stopped.
    }

    /// Drops finished tasks, which a set keeps until they are joined.
    pub(super) fn drop_finished(&mut self) {
        while self.running_tasks.try_join_next().is_some() {}
    }
}
