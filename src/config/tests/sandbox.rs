//! What is asked of the system.

use algonius_actors::model::sandbox::{Isolation, Sandbox};

use super::*;

fn sandbox(lines: &str) -> Sandbox {
    settings(&format!("{CAT}{lines}\n")).agents[0].program.sandbox.clone()
}

#[test]
fn what_is_more_than_the_usual_is_required_unless_said_otherwise() {
    for (lines, required) in [
        ("", false),
        ("sandbox.isolation = 'landlock'", false),
        ("sandbox.isolation = 'bubblewrap'", true),
        ("sandbox.hidden = ['/usr/share']", true),
        ("sandbox.protected = ['.git/hooks']", true),
        ("sandbox = { hidden = ['/usr/share'], required = false }", false),
    ] {
        assert_eq!(sandbox(lines).required, required, "{lines}");
    }
}

#[test]
fn protected_paths_stand_below_the_working_folder_or_are_whole() {
    let found = sandbox("sandbox.protected = ['.git/hooks', '/usr/share']");
    assert_eq!(found.protected, [Path::new(".git/hooks"), Path::new("/usr/share")]);
    assert_eq!(found.isolation, None);
    let found = sandbox("sandbox = { isolation = 'bubblewrap', hidden = ['/usr/share'] }");
    assert_eq!(found.hidden, [Path::new("/usr/share")]);
    assert_eq!(found.isolation, Some(Isolation::Bubblewrap));
}

#[test]
fn what_cannot_be_hidden_or_protected_is_told() {
    let nowhere = "there is no such file or folder";
    for (lines, wanted) in [
        ("sandbox.hidden = ['/none']", nowhere),
        ("sandbox.protected = ['/none']", nowhere),
        ("sandbox.protected = ['~/none']", nowhere),
        ("sandbox.protected = ['../x']", "without `..`"),
        ("sandbox.protected = ['']", "without `..`"),
        ("sandbox.hidden = ['/usr']", "the agent's program is in it"),
        ("sandbox.isolation = 'docker'", "must be \"landlock\" or \"bubblewrap\""),
        ("sandbox.enforce = false\nsandbox.protected = ['x']", "leaves nothing to require"),
        (
            "sandbox = { isolation = 'landlock', protected = ['x'] }",
            "Landlock can neither hide nor protect a path",
        ),
    ] {
        let said = said_of(&format!("{CAT}{lines}\n"));
        assert!(said.len() == 1 && said[0].contains(wanted), "{lines}: {said:?}");
    }
}
