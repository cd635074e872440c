//! What callers may choose.

use super::*;

#[test]
fn nothing_is_left_to_callers_unless_it_is_listed() {
    let mut agents = settings(CAT).agents;
    assert!(agents.remove(0).spec.allowance.is_empty());
    let lines = "[agents.a.overrides]\nworking_dirs = [\"/usr\"]\nenv = [\"BRANCH\", \"CI\"]\n";
    let mut agents = settings(&format!("{CAT}{lines}")).agents;
    let allowance = agents.remove(0).spec.allowance.clone();
    assert_eq!(allowance.folders, [PathBuf::from("/usr")]);
    assert_eq!(allowance.variables, ["BRANCH", "CI"]);
}

#[test]
fn a_folder_that_is_a_link_is_allowed_under_both_names() {
    let here = tempfile::tempdir().unwrap();
    let (real, link) = (here.path().canonicalize().unwrap().join("real"), here.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let lines =
        format!("[agents.a.overrides]\nworking_dirs = [{:?}]\n", link.display().to_string());
    let mut agents = settings(&format!("{CAT}{lines}")).agents;
    assert_eq!(agents.remove(0).spec.allowance.folders, [link, real]);
}

#[test]
fn what_decides_over_code_and_what_is_secret_is_never_left_to_callers() {
    let code = "callers may not set this variable: it decides what runs, or the service sets it";
    let secret = "callers may not set a secret: what they choose is stored as it is";
    for (name, wanted) in [
        ("PATH", code),
        ("LD_PRELOAD", code),
        ("ALGONIUS_AGENT_ID", code),
        ("A2A_TASK_ID", code),
        ("API_KEY", secret),
        ("MINE", secret),
        ("1X", "is not the name of a variable"),
        ("A=B", "is not the name of a variable"),
    ] {
        let lines =
            format!("env_from = {{ MINE = \"HOME\" }}\n[agents.a.overrides]\nenv = [\"{name}\"]\n");
        let said = said_of(&format!("{CAT}{lines}")).join("\n");
        assert!(said.contains(wanted), "{name}: {said}");
    }
    let said = said_of(&format!("{CAT}[agents.a.overrides]\nworking_dirs = [\"/none\"]\n"));
    assert!(said.join("").contains("there is no such folder"), "{said:?}");
}
