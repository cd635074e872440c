//! Tests of the overrides of callers.

use algonius_actors::model::agent::OverridePolicy;

use super::*;

#[test]
fn overrides_are_empty_by_default() {
    let mut agents = load_settings(CAT).agents;
    assert!(agents.remove(0).spec.override_policy == OverridePolicy::default());
    let lines = "[agents.a.overrides]\nworking_dirs = [\"/usr\"]\nenv = [\"BRANCH\", \"CI\"]\n";
    let mut agents = load_settings(&format!("{CAT}{lines}")).agents;
    let override_policy = agents.remove(0).spec.override_policy.clone();
    assert_eq!(override_policy.working_dir_roots, [PathBuf::from("/usr")]);
    assert_eq!(override_policy.variables, ["BRANCH", "CI"]);
}

#[test]
fn an_allowed_link_is_allowed_under_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) =
        (folder.path().canonicalize().unwrap().join("real"), folder.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let lines =
        format!("[agents.a.overrides]\nworking_dirs = [{:?}]\n", link.display().to_string());
    let mut agents = load_settings(&format!("{CAT}{lines}")).agents;
    assert_eq!(agents.remove(0).spec.override_policy.working_dir_roots, [link, real]);
}

#[test]
fn overrides_of_code_paths_and_secrets_are_refused() {
    let code_path_message =
        "callers may not set this variable: it decides what runs, or the service sets it";
    let secret_message = "callers may not set a secret: what they choose is stored as it is";
    for (name, expected) in [
        ("PATH", code_path_message),
        ("LD_PRELOAD", code_path_message),
        ("ALGONIUS_AGENT_ID", code_path_message),
        ("A2A_TASK_ID", code_path_message),
        ("API_KEY", secret_message),
        ("MINE", secret_message),
        ("1X", "is not the name of a variable"),
        ("A=B", "is not the name of a variable"),
    ] {
        let lines =
            format!("env_from = {{ MINE = \"HOME\" }}\n[agents.a.overrides]\nenv = [\"{name}\"]\n");
        let messages = fault_messages(&format!("{CAT}{lines}")).join("\n");
        assert!(messages.contains(expected), "{name}: {messages}");
    }
    let messages =
        fault_messages(&format!("{CAT}[agents.a.overrides]\nworking_dirs = [\"/none\"]\n"));
    assert!(messages.join("").contains("there is no such folder"), "{messages:?}");
}

#[test]
fn an_overridable_parameter_must_exist() {
    let config_with =
        |lines: &str| format!("{CAT}args = ['--style={{{{ param.style }}}}']\n{lines}");
    let lines = "params.model = 'small'\noverrides.params = ['model', 'style']\n";
    let override_policy =
        load_settings(&config_with(lines)).agents.remove(0).spec.override_policy.clone();
    assert_eq!(override_policy.params, ["model", "style"]);
    let messages = fault_messages(&config_with("overrides.params = ['other', '1']\n"));
    assert!(messages.len() == 2 && messages[0].contains("has no such parameter"), "{messages:?}");
    assert!(messages[1].contains("is not the name of a parameter"), "{messages:?}");
}

#[test]
fn a_parameter_of_a_persistent_program_needs_a_template() {
    let config_with_message = |message: &str| {
        format!(
            "[agents.a]\ncommand = \"cat\"\nmode = \"interactive\"\nparams.style = \"plain\"\n\
             overrides.params = [\"style\"]\nturn = {{ end_line = \"END\", message = \"{message}\" }}\n"
        )
    };
    let warnings = fault_messages(&config_with_message("{{ input }}\\n"));
    assert!(warnings.join("").contains("so it changes nothing"), "{warnings:?}");
    let warnings_if_used = fault_messages(&config_with_message("{{ input }} {{ param.style }}\\n"));
    assert!(!warnings_if_used.join("").contains("changes nothing"), "{warnings_if_used:?}");
}
