//! Tests of rules that depend on the machine: its programs, variables and folders.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::*;

#[test]
fn a_command_is_found_on_the_path_of_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tool");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    let agent = |command: &str| {
        let path = folder.path().display();
        let text = format!(
            "[agents.a]\ncommand = \"{command}\"\nenv = {{ PATH = \"{path}:${{PATH}}\" }}\n"
        );
        load_in_folder(folder.path(), &text).unwrap().settings.agents.remove(0)
    };
    let command = |name: &str| agent(name).program().unwrap().command.clone();
    let find_program = |agent: &ConfiguredAgent| match &agent.worker {
        AgentWorker::Program { search, .. } => search.find(),
        _ => None,
    };
    let agent_without_program = agent("tool");
    assert_eq!(
        agent_without_program.spec.program_worker().unwrap().missing_program.as_deref(),
        Some("tool"),
        "it is not executable yet"
    );
    assert_eq!(find_program(&agent_without_program), None);
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(find_program(&agent_without_program), Some(tool.clone()));
    assert_eq!(
        (command("tool"), agent("tool").spec.program_worker().unwrap().missing_program.clone()),
        (tool.clone(), None)
    );
    assert_eq!(command("./tool").canonicalize().unwrap(), tool.canonicalize().unwrap());
    assert!(command("cat").is_absolute());
}

#[test]
fn a_program_that_cannot_be_executed_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent");
    let path = file.display();
    let messages = |settings: &str| {
        let text = format!("[agents.a]\ncommand = \"{path}\"\n{settings}");
        let found = fault_messages(&text);
        found.iter().map(|it| it.replace(&path.to_string(), "AGENT")).collect::<Vec<_>>()
    };
    let write = |text: &str, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let warning_prefix = "c:2:11: warning: agents.a.command = \"AGENT\":";
    write("#!/bin/sh\n", 0o755);
    assert_eq!(messages(""), [""; 0]);
    for (text, expected) in [
        (
            "#!/no/such/interpreter\n",
            "cannot be executed: its interpreter `interpreter` does not exist; provide /no/such/interpreter; every run \
             fails until then",
        ),
        (
            "#!/bin/sh\r\necho hi\r\n",
            "cannot be executed: its first line ends in a carriage return, so that its interpreter `sh` does not exist; \
             save the file with the line ends of Unix; every run fails until then",
        ),
        (
            "#!/usr/bin/env no-such-node\n",
            "cannot be executed: its interpreter `no-such-node` does not exist; provide no-such-node; every run fails \
             until then",
        ),
    ] {
        write(text, 0o755);
        assert_eq!(messages(""), [format!("{warning_prefix} {expected}")], "{text:?}");
    }
    // The program of a check too.
    let check =
        "command = \"cat\"\nsuccess.check = [\"AGENT\"]".replace("AGENT", &path.to_string());
    let found = fault_messages(&format!("[agents.a]\n{check}\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("its interpreter `no-such-node` does not exist"), "{found:?}");
    write("#!/bin/sh\n", 0o644);
    let install = "install it; the agent is unavailable until then";
    let not_executable_message =
        format!("{warning_prefix} may not be executed; `chmod +x` permits it; {install}");
    assert_eq!(messages(""), [not_executable_message]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(messages(""), [format!("{warning_prefix} is a folder; {install}")]);
    fs::remove_dir(&file).unwrap();
    assert_eq!(messages(""), [format!("{warning_prefix} does not exist; {install}")]);
}

#[test]
fn a_missing_command_is_explained() {
    for (command, expected) in [
        (
            "gone",
            "c:2:11: warning: agents.a.command = \"gone\": no such program on the PATH; install it; the agent is unavailable until then",
        ),
        (
            "cat -n",
            "c:2:11: error: agents.a.command = \"cat -n\": no such program on the PATH; put the arguments into `args`",
        ),
        (
            "./gone",
            "c:2:11: warning: agents.a.command = \"./gone\": does not exist; install it; the agent is unavailable until then",
        ),
        (
            "~/gone",
            "c:2:11: error: agents.a.command = \"~/gone\": does not exist; `~` means nothing here: write the whole path",
        ),
        ("", "c:2:11: error: agents.a.command = \"\": must not be empty"),
    ] {
        assert_eq!(fault_messages(&format!("[agents.a]\ncommand = \"{command}\"\n")), [expected]);
    }
    assert_eq!(fault_messages("[agents.a]\n"), ["c:1:1: error: agents.a.command: is needed"]);
}

#[test]
fn a_disabled_agent_may_lack_its_program() {
    let lines = "command = \"~/gone\"\nworking_dir = \"/gone\"\nenv_from = { A_KEY = \"GONE\" }\nenv_file = { B = \"gone\" }\nenv = { C = \"${GONE}\" }\n";
    let while_disabled = fault_messages(&format!("[agents.a]\nenabled = false\n{lines}"));
    assert_eq!(while_disabled.len(), 5);
    assert!(while_disabled.iter().all(|line| line.contains(": warning: ")), "{while_disabled:#?}");
    let while_enabled = fault_messages(&format!("[agents.a]\nenabled = true\n{lines}"));
    assert_eq!(
        while_enabled,
        while_disabled.iter().map(|line| line.replace("warning", "error")).collect::<Vec<_>>()
    );
    assert_eq!(
        fault_messages("[agents.a]\nenabled = false\ncommand = 5\n").len(),
        1,
        "a wrong file stays wrong"
    );
}

#[test]
fn variables_are_expanded_and_secrets_registered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "from-a-file\n").unwrap();
    let text = format!(
        "{CAT}[agents.a.env]\nPLAIN = \"${{HOME}}/x $$5\"\nNUMBER = 5\nA_KEY = \"written-here\"\nB = \"x${{MY_KEY}}\"\n\
         [agents.a.env_from]\nC = \"MY_KEY\"\n[agents.a.env_file]\nD = \"key\"\n"
    );
    let settings = load_in_folder(folder.path(), &text).unwrap().settings;
    let env = &settings.agents[0].program().unwrap().env;
    let values = env.iter().map(|(name, variable)| {
        (name.as_str(), variable.value.as_str(), variable.secrecy == VariableSecrecy::Secret)
    });
    let b = format!("x{CANARY}");
    assert_eq!(
        values.collect::<Vec<_>>(),
        [
            ("A_KEY", "written-here", true),
            ("B", b.as_str(), true),
            ("C", CANARY, true),
            ("D", "from-a-file", true),
            ("NUMBER", "5", false),
            ("PLAIN", "/people/me/x $5", false),
        ]
    );
    assert_eq!(settings.secrecy.secrets, ["written-here", &b, CANARY, "from-a-file"]);
    assert!(!format!("{settings:?}").contains(CANARY));
}

#[test]
fn an_empty_variable_is_set() {
    let text = format!(
        "{CAT}env = {{ A = \"<${{EMPTY}}>\", B = \"\" }}\nenv_allow = [\"EMPTY\", \"GONE\"]\n\
         env_from = {{ C = \"EMPTY\" }}\n"
    );
    let loaded = load_text(&text).unwrap();
    let env = &loaded.settings.agents[0].program().unwrap().env;
    let value = |name: &str| env.get(name).map(|variable| variable.value.as_str());
    assert_eq!(["A", "B", "C", "EMPTY"].map(value), [Some("<>"), Some(""), Some(""), Some("")]);
    assert_eq!(value("GONE"), None);
    let token_config = format!("{CAT}[tokens.n]\ntoken_env = \"EMPTY\"\n");
    let faults = load_text(&token_config).unwrap_err().to_string();
    assert!(faults.contains("this variable is empty"), "{faults}");
}

#[test]
fn a_dollar_sign_only_begins_a_variable_or_an_escape() {
    let expand = |text| {
        expand(text, &|name| Ok(test_env(name).and_then(|value| value.into_string().ok())))
            .map(|expanded| expanded.text)
    };
    assert_eq!(expand("a$$b${HOME}c"), Ok("a$b/people/mec".into()));
    assert_eq!(expand("${GONE}"), Err(ExpandError::Unset { name: "GONE".into() }));
    for text in ["$", "$HOME", "${", "${}", "${HOME", "${a-b}", "a$ b"] {
        assert_eq!(expand(text), Err(ExpandError::StrayDollar), "{text}");
    }
    assert_agent_faults(&[
        (
            "env = { A = \"$x\" }",
            &[
                "c:3:13: error: agents.a.env.A: `$` must be followed by `{NAME}`, or by `$` for a dollar sign",
            ],
        ),
        (
            "env = { \"A=B\" = \"x\" }",
            &["c:3:9: error: agents.a.env.A=B: is not the name of a variable"],
        ),
        (
            "env = { A = \"x\" }\nenv_from = { A = \"MY_KEY\" }",
            &["c:4:14: error: agents.a.env_from.A: this variable is set twice"],
        ),
        (
            "env_from = { A = \"SHORT\" }",
            &[
                "c:3:18: warning: agents.a.env_from.A: a secret of fewer than 8 characters is not redacted in the output",
            ],
        ),
        (
            "env_from = { A = \"SEVEN\" }",
            &[
                "c:3:18: warning: agents.a.env_from.A: a secret of fewer than 8 characters is not redacted in the output",
            ],
        ),
    ]);
}

#[test]
fn a_data_directory_is_required_without_a_home() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    fs::write(&file, "[agents.a]\ncommand = \"/bin/cat\"\n").unwrap();
    let faults = load(&file, &|_| None).unwrap_err();
    let lines: Vec<_> = faults.iter().map(fault_text).collect();
    assert_eq!(
        lines,
        ["c:1:1: error: server.data_dir: is needed where neither XDG_STATE_HOME nor HOME is set"]
    );
    let xdg = |name: &str| name.starts_with("XDG_").then(|| format!("/x/{name}").into());
    let server = load(&file, &xdg).unwrap().settings.server;
    assert_eq!(server.data_dir, Path::new("/x/XDG_STATE_HOME/algonius"));
    assert_eq!(server.runtime_dir, Path::new("/x/XDG_RUNTIME_DIR/algonius"));
}

#[test]
fn a_variable_that_is_not_utf_8_is_an_error() {
    for (lines, subject) in [
        ("env_allow = [\"LATIN\"]\n", "this variable"),
        ("env_from = { MINE = \"LATIN\" }\n", "this variable"),
        ("env = { MINE = \"${LATIN}\" }\n", "`LATIN`"),
        ("[tokens.ci]\ntoken_env = \"LATIN\"\n", "this variable"),
    ] {
        let faults = fault_messages(&format!("{CAT}{lines}"));
        let text = format!("{subject} is not UTF-8 in the service's environment");
        assert!(faults.len() == 1 && faults[0].contains(&text), "{lines}: {faults:?}");
    }
    // As for all that this machine lacks, a disabled agent does not prevent the start.
    let disabled = format!("{CAT}enabled = false\nenv_from = {{ MINE = \"LATIN\" }}\n");
    assert!(load_text(&disabled).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("supervisor.toml");
    fs::write(&file, CAT).unwrap();
    let latin_home = |name: &str| test_env(if name == "HOME" { "LATIN" } else { name });
    let faults = load(&file, &latin_home).unwrap_err().to_string();
    let text = "the variable `HOME` of the service's environment is not UTF-8";
    assert_eq!(faults.matches(text).count(), 1, "{faults}");
}

#[test]
fn folders_whose_paths_programs_cannot_get_are_errors() {
    let outer_folder = tempfile::tempdir().unwrap();
    let folder = outer_folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    let not_utf8 = "the whole path is not UTF-8, so programs cannot get it";
    for (lines, expected) in [
        ("[server]\ndata_dir = \"data\"\n", Some(("server.data_dir", not_utf8))),
        ("[server]\nruntime_dir = \"run\"\n", Some(("server.runtime_dir", not_utf8))),
        (
            "working_dir = \".\"\nprotocol = \"acp\"\n",
            Some(("agents.a.working_dir", "the path is not UTF-8, which `protocol` requires")),
        ),
        // Programs get these folders from the system, byte for byte.
        ("working_dir = \".\"\n", None),
        ("[server]\ntoken_file = \"token\"\n", None),
    ] {
        let faults = load_in_folder(&folder, &format!("{CAT}{lines}")).err();
        let faults = faults.map(|faults| faults.to_string()).unwrap_or_default();
        match expected {
            Some((key, text)) => {
                assert!(faults.contains(&format!("{key}: {text}")), "{lines}: {faults}");
            }
            None => assert_eq!(faults, "", "{lines}"),
        }
    }
}

#[test]
fn relative_paths_are_resolved_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("work")).unwrap();
    let text = format!(
        "{CAT}working_dir = \"work\"\n[server]\ndata_dir = \"data\"\nruntime_dir = \"run\"\n"
    );
    let Settings { server, agents, .. } = load_in_folder(folder.path(), &text).unwrap().settings;
    assert_eq!(server.data_dir, folder.path().join("data"));
    assert_eq!(server.runtime_dir, folder.path().join("run"));
    assert_eq!(agents[0].program().unwrap().working_dir, folder.path().join("work"));
}

#[test]
fn commands_that_may_prompt_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let is_warned = |command: &str, args: &str| {
        let file = folder.path().join(command);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let text = format!("[agents.a]\ncommand = \"./{command}\"\nargs = [{args}]\n");
        load_in_folder(folder.path(), &text).unwrap().warnings.len() == 1
    };
    for (command, prompting_args, batch_args) in [
        ("claude", "\"--verbose\"", "\"--print\""),
        ("codex", "", "\"exec\""),
        ("gemini", "\"-m\"", "\"hello\""),
        ("copilot", "", "\"--prompt=x\""),
        ("cn", "", "\"-p\""),
        ("opencode", "", "\"run\""),
        ("aider", "", "\"--message-file\", \"x\""),
        ("goose", "", "\"run\""),
        ("ssh", "\"host\"", "\"-oBatchMode=yes\""),
        ("top", "", "\"-b\""),
        ("bash", "\"-i\"", "\"-c\", \"x\""),
        ("python", "\"-i\"", "\"x.py\""),
    ] {
        assert!(is_warned(command, prompting_args), "{command} {prompting_args}");
        assert!(!is_warned(command, batch_args), "{command} {batch_args}");
    }
    assert!(is_warned("vim", "\"-s\"") && is_warned("less", "") && !is_warned("cat", ""));
}
