//! Tests of the sandbox requirements.

use algonius_actors::model::host::sandbox::{Isolation, IsolationRequirement, Sandbox};

use super::*;

fn sandbox(lines: &str) -> Sandbox {
    load_settings(&format!("{CAT}{lines}\n")).agents[0].program().unwrap().sandbox.clone()
}

#[test]
fn extra_sandbox_features_are_required_by_default() {
    for (lines, required) in [
        ("", IsolationRequirement::Nothing),
        ("sandbox.isolation = 'landlock'", IsolationRequirement::Nothing),
        ("sandbox.isolation = 'bubblewrap'", IsolationRequirement::Sandbox),
        ("sandbox.hidden = ['/usr/share']", IsolationRequirement::Sandbox),
        ("sandbox.protected = ['.git/hooks']", IsolationRequirement::Sandbox),
        ("sandbox = { hidden = ['/usr/share'], required = false }", IsolationRequirement::Nothing),
        ("sandbox.required = true", IsolationRequirement::SandboxAndServiceFiles),
    ] {
        assert_eq!(sandbox(lines).isolation_requirement, required, "{lines}");
    }
}

#[test]
fn protected_paths_are_relative_to_the_workspace_or_absolute() {
    let sandbox_settings = sandbox("sandbox.protected = ['.git/hooks', '/usr/share']");
    assert_eq!(sandbox_settings.protected, [Path::new(".git/hooks"), Path::new("/usr/share")]);
    assert_eq!(sandbox_settings.isolation, None);
    let sandbox_settings =
        sandbox("sandbox = { isolation = 'bubblewrap', hidden = ['/usr/share'] }");
    assert_eq!(sandbox_settings.hidden, [Path::new("/usr/share")]);
    assert_eq!(sandbox_settings.isolation, Some(Isolation::Bubblewrap));
}

#[test]
fn invalid_hidden_and_protected_paths_are_reported() {
    let missing_path_message = "there is no such file or folder";
    for (lines, expected) in [
        ("sandbox.hidden = ['/none']", missing_path_message),
        ("sandbox.protected = ['/none']", missing_path_message),
        ("sandbox.protected = ['~/none']", missing_path_message),
        ("sandbox.protected = ['../x']", "without `..`"),
        ("sandbox.protected = ['']", "without `..`"),
        ("sandbox.hidden = ['/usr']", "the program is in it"),
        ("sandbox.isolation = 'docker'", "must be \"landlock\" or \"bubblewrap\""),
        ("sandbox.enforce = false\nsandbox.protected = ['x']", "leaves nothing to require"),
        ("sandbox = { nested = true, writable = [] }", "the program decides itself"),
        ("sandbox = { nested = true, enforce = false }", "the program decides itself"),
        (
            "sandbox = { isolation = 'landlock', protected = ['x'] }",
            "Landlock can neither hide nor protect a path",
        ),
    ] {
        let messages = fault_messages(&format!("{CAT}{lines}\n"));
        assert!(messages.len() == 1 && messages[0].contains(expected), "{lines}: {messages:?}");
    }
}

#[test]
fn a_tilde_needs_a_home() {
    for (home, line, expected) in [
        (None, "sandbox.hidden = ['~/.ssh']", "has no meaning: `HOME` is not set"),
        (Some(""), "sandbox.writable = ['~/.cache']", "has no meaning: `HOME` is not set"),
        (Some("rel"), "sandbox.protected = ['~/x']", "has no meaning: `HOME` is not set"),
        (Some("/people/me"), "sandbox.hidden = ['~/.ssh']", "there is no such file or folder"),
    ] {
        let text = format!("[server]\ndata_dir = '/people/me/data'\n{CAT}{line}\n");
        let env = |name: &str| match name {
            "HOME" => home.map(Into::into),
            other => test_env(other),
        };
        let faults = crate::config::load_text(Path::new("c.toml"), &text, &env).unwrap_err();
        let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert!(messages.len() == 1 && messages[0].contains(expected), "{home:?}: {messages:?}");
    }
}

#[test]
fn agents_with_one_user_are_marked() {
    for (range, users, expected) in [
        ("61184-61199", ["user = 'nobody'", "user = 'nobody'", ""], [true, true, false]),
        ("61184-61199", ["user = 'nobody'", "user = 'dynamic'", ""], [false; 3]),
        // The number of `nobody` is 65534, which the service may pick too.
        ("65530-65534", ["user = 'nobody'", "user = 'dynamic'", ""], [true, true, false]),
        ("65530-65534", ["user = 'nobody'", "", ""], [false; 3]),
        ("61184-61199", ["user = 'dynamic'", "user = 'dynamic'", ""], [false; 3]),
    ] {
        let agent = |(id, user)| format!("[agents.{id}]\ncommand = 'cat'\n{user}\n");
        let agents: String = ["a", "b", "c"].into_iter().zip(users).map(agent).collect();
        let settings = load_settings(&format!("[server]\nagent_users = '{range}'\n{agents}"));
        let are_shared: Vec<_> =
            settings.agents.iter().map(|agent| agent.program().unwrap().user.is_shared).collect();
        assert_eq!(are_shared, expected, "{range} {users:?}");
    }
}
