//! Names of resources in the `.proto` file of 0.3: `tasks/ID/pushNotificationConfigs/ID`.

/// The name of a task.
#[must_use]
pub fn task(id: &str) -> String {
    format!("tasks/{id}")
}

/// The id in the name of a task.
#[must_use]
pub fn task_id(name: &str) -> Option<&str> {
    name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'))
}

/// The name of a push configuration.
#[must_use]
pub fn push(task: &str, id: &str) -> String {
    format!("tasks/{task}/pushNotificationConfigs/{id}")
}

/// The ids in the name of a push configuration: the task's and its own, which may be left out.
#[must_use]
pub fn push_ids(name: &str) -> Option<(&str, Option<&str>)> {
    let (task, id) = name.strip_prefix("tasks/")?.split_once("/pushNotificationConfigs")?;
    let id = if id.is_empty() { id } else { id.strip_prefix('/')? };
    let is_sound = !task.is_empty() && !task.contains('/') && !id.contains('/');
    is_sound.then_some((task, Some(id).filter(|id| !id.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_ids_and_nothing_else_is_a_name() {
        assert_eq!(task_id(&task("t")), Some("t"));
        assert_eq!(push_ids(&push("t", "c")), Some(("t", Some("c"))));
        assert_eq!(push_ids("tasks/t/pushNotificationConfigs/"), Some(("t", None)));
        assert_eq!(push_ids("tasks/t/pushNotificationConfigs"), Some(("t", None)));
        for wrong in ["", "t", "tasks/", "tasks/a/b", "task/t"] {
            assert_eq!((task_id(wrong), push_ids(wrong)), (None, None), "{wrong}");
        }
        for wrong in ["tasks//pushNotificationConfigs/c", "tasks/t/pushNotificationConfigs/a/b"] {
            assert_eq!(push_ids(wrong), None, "{wrong}");
        }
    }
}
