//! Tests of the sandbox requirements.

use algonius_actors::model::host::sandbox::{Isolation, Requirement, Sandbox};

use super::*;

fn sandbox(lines: &str) -> Sandbox {
    settings(&format!("{CAT}{lines}\n")).agents[0].program().unwrap().sandbox.clone()
}

#[test]
fn extra_sandbox_features_are_required_by_default() {
    for (lines, required) in [
        ("", Requirement::Nothing),
        ("sandbox.isolation = 'landlock'", Requirement::Nothing),
        ("sandbox.isolation = 'bubblewrap'", Requirement::Sandbox),
        ("sandbox.hidden = ['/usr/share']", Requirement::Sandbox),
        ("sandbox.protected = ['.git/hooks']", Requirement::Sandbox),
        ("sandbox = { hidden = ['/usr/share'], required = false }", Requirement::Nothing),
        ("sandbox.required = true", Requirement::Boundary),
    ] {
        assert_eq!(sandbox(lines).required, required, "{lines}");
    }
}

#[test]
fn protected_paths_are_relative_to_the_workspace_or_absolute() {
    let found = sandbox("sandbox.protected = ['.git/hooks', '/usr/share']");
    assert_eq!(found.protected, [Path::new(".git/hooks"), Path::new("/usr/share")]);
    assert_eq!(found.isolation, None);
    let found = sandbox("sandbox = { isolation = 'bubblewrap', hidden = ['/usr/share'] }");
    assert_eq!(found.hidden, [Path::new("/usr/share")]);
    assert_eq!(found.isolation, Some(Isolation::Bubblewrap));
}

#[test]
fn invalid_hidden_and_protected_paths_are_reported() {
    let nowhere = "there is no such file or folder";
    for (lines, expected) in [
        ("sandbox.hidden = ['/none']", nowhere),
        ("sandbox.protected = ['/none']", nowhere),
        ("sandbox.protected = ['~/none']", nowhere),
        ("sandbox.protected = ['../x']", "without `..`"),
        ("sandbox.protected = ['']", "without `..`"),
        ("sandbox.hidden = ['/usr']", "the agent's program is in it"),
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
