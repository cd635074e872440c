//! Names of resources in the `.proto` file of 0.3: `tasks/ID/pushNotificationConfigs/ID`.

/// Returns the resource name of a task.
#[must_use]
pub fn task(id: &str) -> String {
    format!("tasks/{id}")
}

/// Returns the id from the resource name of a task.
#[must_use]
pub fn task_id(name: &str) -> Option<&str> {
    name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'))
}

/// Returns the resource name of a push configuration.
#[must_use]
pub fn push(task: &str, id: &str) -> String {
    format!("tasks/{task}/pushNotificationConfigs/{id}")
}

/// Returns the ids from the resource name of a push configuration: that of the task and that of the configuration,
/// which the name may omit.
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
    fn only_well_formed_resource_names_are_parsed() {
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
