//! Names of resources in the `.proto` file of 0.3: `tasks/ID/pushNotificationConfigs/ID`.

/// Returns the resource name of a task.
#[must_use]
pub fn task_name(id: &str) -> String {
    format!("tasks/{id}")
}

/// Returns the id from the resource name of a task.
#[must_use]
pub fn parse_task_id(name: &str) -> Option<&str> {
    name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'))
}

/// Returns the resource name of a push configuration.
#[must_use]
pub fn push_config_name(task_id: &str, id: &str) -> String {
    format!("tasks/{task_id}/pushNotificationConfigs/{id}")
}

/// Returns the ids from the resource name of a push configuration: that of the task and that of the configuration,
/// which the name may omit.
#[must_use]
pub fn parse_push_config_ids(name: &str) -> Option<(&str, Option<&str>)> {
    let (task_id, id) = name.strip_prefix("tasks/")?.split_once("/pushNotificationConfigs")?;
    let id = if id.is_empty() { id } else { id.strip_prefix('/')? };
    let is_well_formed = !task_id.is_empty() && !task_id.contains('/') && !id.contains('/');
    is_well_formed.then_some((task_id, Some(id).filter(|id| !id.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_resource_names_are_parsed() {
        assert_eq!(parse_task_id(&task_name("t")), Some("t"));
        assert_eq!(parse_push_config_ids(&push_config_name("t", "c")), Some(("t", Some("c"))));
        assert_eq!(parse_push_config_ids("tasks/t/pushNotificationConfigs/"), Some(("t", None)));
        assert_eq!(parse_push_config_ids("tasks/t/pushNotificationConfigs"), Some(("t", None)));
        for wrong in ["", "t", "tasks/", "tasks/a/b", "task/t"] {
            assert_eq!(
                (parse_task_id(wrong), parse_push_config_ids(wrong)),
                (None, None),
                "{wrong}"
            );
        }
        for wrong in ["tasks//pushNotificationConfigs/c", "tasks/t/pushNotificationConfigs/a/b"] {
            assert_eq!(parse_push_config_ids(wrong), None, "{wrong}");
        }
    }
}
