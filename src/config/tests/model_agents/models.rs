//! Providers of models and tools: their values, their bounds, and their faults with positions.

use algonius_actors::model::agent::cognitive::{InputType, ToolHandler, ToolSpec};
use algonius_actors::model::agent::model_provider::ModelProvider;

use super::*;

const CLOCK: &str = "source = \"handler\"\nhandler = { kind = \"clock\" }";

/// Cognitive agent of the provider `p`.
const AGENT: &str = "[agents.a]\nkind = \"cognitive\"\nlayer = \"abstract\"\nmodel_id = \"p/m\"\n";

fn provider(lines: &str) -> Arc<ModelProvider> {
    let text = format!("{AGENT}[models.p]\n{lines}\n");
    match load_settings(&text).agents.remove(0).worker {
        AgentWorker::Cognitive { provider, .. } => provider,
        _ => panic!("another kind"),
    }
}

fn tool(lines: &str) -> Arc<ToolSpec> {
    let text = format!(
        "{AGENT}tools = [\"t\"]\n[models.p]\nbase_url = \"https://x.org\"\n[tools.t]\n{lines}\n"
    );
    let spec = load_settings(&text).agents.remove(0).spec;
    Arc::clone(&spec.cognitive().unwrap().tools[0])
}

/// Checks the faults of a section after `cat`; its first line is line 3.
fn assert_section_faults(rows: &[(&str, &[&str])]) {
    for (lines, expected) in rows {
        assert_eq!(fault_messages(&format!("{CAT}{lines}\n")), *expected, "{lines}");
    }
}

#[test]
fn a_provider_has_an_address_a_key_and_limits() {
    let external = provider("base_url = \"https://x.org/v1/\"\napi_key_env = \"MY_KEY\"");
    assert_eq!((external.name.as_str(), external.base_url.as_str()), ("p", "https://x.org/v1"));
    assert_eq!(external.api_key.as_ref().unwrap().0, CANARY);
    assert_eq!((external.timeout, external.max_concurrent.get()), (Duration::from_secs(120), 5));
    assert_eq!(external.requests_per_minute.get(), 60);
    for url in ["http://127.0.0.1:11434/v1", "http://localhost:1", "https://[::1]/v1"] {
        let local = provider(&format!("base_url = \"{url}\""));
        assert_eq!((&*local.base_url, &local.api_key), (url, &None));
        assert_eq!((local.max_concurrent.get(), local.requests_per_minute.get()), (1, 100_000));
    }
    let full_url_provider = provider("base_url = \"https://x.org/v1/chat/completions/\"");
    assert_eq!(full_url_provider.base_url, "https://x.org/v1");
    let changed = provider(
        "base_url = \"http://10.0.0.1\"\ninsecure_http = true\ntimeout = \"5m\"\n\
         max_concurrent = 7\nrequests_per_minute = 9",
    );
    assert_eq!((changed.timeout, changed.max_concurrent.get()), (Duration::from_secs(300), 7));
    assert_eq!(changed.requests_per_minute.get(), 9);
}

#[test]
fn the_key_of_a_provider_is_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("model.key");
    fs::write(&key_file, "canary-of-the-model\n").unwrap();
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
    let models = "[models.p]\nbase_url = \"https://x.org\"\napi_key_file = \"model.key\"\n";
    let loaded = load_in_folder(folder.path(), &format!("{AGENT}{models}")).unwrap();
    let settings = &loaded.settings;
    assert_eq!((loaded.warnings.len(), settings.secrecy.secrets.len()), (0, 1));
    assert!(!format!("{settings:?}").contains("canary-of-the-model"));
    assert!(settings.referenced_files.contains(&key_file));
    assert!(settings.service_files.hidden_paths.contains(&key_file));
}

#[test]
fn a_missing_key_is_an_error_of_an_enabled_agent_only() {
    let models = "[models.p]\nbase_url = \"https://x.org\"\napi_key_env = \"NOT_THERE\"\n";
    let fault = "models.p.api_key_env = \"NOT_THERE\": \
                 this variable is not set in the service's environment";
    let enabled = fault_messages(&format!("{AGENT}{models}"));
    assert_eq!(enabled, [format!("c:7:15: error: {fault}")]);
    let disabled = fault_messages(&format!("{AGENT}enabled = false\n{models}"));
    assert_eq!(disabled, [format!("c:8:15: warning: {fault}")]);
    let unused = fault_messages(&format!("{CAT}{models}"));
    assert_eq!(unused, [format!("c:5:15: warning: {fault}")]);
}

#[test]
fn faults_of_providers_have_a_position() {
    assert_section_faults(&[
        ("[models.p]", &["c:3:1: error: models.p.base_url: is needed"]),
        (
            "[models.p]\nbase_url = \"http://x.org/v1\"",
            &["c:4:12: error: models.p.base_url: must begin with `https://`: the key and the \
               messages would be readable; `insecure_http = true` permits it within a trusted \
               network"],
        ),
        (
            "[models.p]\nbase_url = \"https://me:pw@x.org\"",
            &["c:4:12: error: models.p.base_url: must not hold a name or password; use \
               `api_key_file` or `api_key_env`"],
        ),
        (
            "[models.p]\nbase_url = \"https://x.org\"\napi_key = \"canary-canary\"",
            &["c:5:11: error: models.p.api_key: a key is not written into the configuration, \
               which is read by many; use `api_key_file` or `api_key_env`"],
        ),
        (
            "[models.p]\nbase_url = \"https://x.org\"\napi_key_env = \"MY_KEY\"\n\
             api_key_file = \"x\"",
            &["c:6:16: error: models.p.api_key_file: give one of `api_key_env`, `api_key_file`"],
        ),
        (
            "[models.p]\nbase_url = \"https://x.org\"\ntimeout = 0\nmax_concurrent = 101\n\
             requests_per_minute = 0",
            &[
                "c:5:11: error: models.p.timeout = 0: must be 1 to 3600 seconds",
                "c:6:18: error: models.p.max_concurrent = 101: must be 1 to 100",
                "c:7:23: error: models.p.requests_per_minute = 0: must be 1 to 100000",
            ],
        ),
        (
            "[models.\"a b\"]\nbase_url = \"https://x.org\"",
            &["c:3:9: error: models.a b: `a b` is not a name: 1 to 64 of the characters A-Z a-z \
               0-9 _ -"],
        ),
    ]);
    let unknown = fault_messages(&format!("{CAT}[models.p]\nbase_ur = \"https://x.org\"\n"));
    assert_eq!(unknown[1], "c:4:1: error: models.p.base_ur: unknown key; did you mean `base_url`?");
}

#[test]
fn each_handler_has_its_inputs_and_a_description() {
    let clock = tool(CLOCK);
    assert_eq!((clock.name.as_str(), clock.handler), ("t", ToolHandler::Clock));
    assert!(
        clock.inputs.as_ref().unwrap().is_empty()
            && !clock.description.is_empty()
            && clock.idempotent
    );
    assert_eq!(clock.timeout, Duration::from_secs(60));
    for (operation, handler, name, optional) in [
        ("add", ToolHandler::AddNote, "text", false),
        ("search", ToolHandler::SearchNotes, "query", true),
    ] {
        let notes = tool(&format!(
            "source = \"handler\"\nhandler = {{ kind = \"notes\", operation = \"{operation}\" }}\n\
             description = \"Notes.\"\nidempotent = false\ntimeout = 5"
        ));
        assert_eq!((notes.handler, notes.description.as_str()), (handler, "Notes."));
        let inputs: Vec<_> = notes.inputs.as_ref().unwrap().iter().collect();
        assert_eq!((inputs.len(), inputs[0].0.as_str()), (1, name));
        assert_eq!((inputs[0].1.input_type, inputs[0].1.optional), (InputType::String, optional));
        assert_eq!((notes.idempotent, notes.timeout), (false, Duration::from_secs(5)));
    }
}

#[test]
fn faults_of_tools_have_a_position() {
    let tool_section = |name: &str| format!("[tools.{name}]\n{CLOCK}");
    assert_section_faults(&[
        (
            &tool_section("final_answer"),
            &["c:3:8: error: tools.final_answer: `final_answer` is the name of the call with the \
               answer"],
        ),
        (
            &tool_section("\"a.b\""),
            &["c:3:8: error: tools.a.b: `a.b` is not a name: 1 to 64 of the characters A-Z a-z \
               0-9 _ -"],
        ),
        ("[tools.t]", &["c:3:1: error: tools.t.source: is needed"]),
        (
            "[tools.t]\nsource = \"extension\"",
            &["c:4:10: error: tools.t.source = \"extension\": must be \"handler\" or \"mcp\""],
        ),
        ("[tools.t]\nsource = \"handler\"", &["c:3:1: error: tools.t.handler: is needed"]),
        (
            "[tools.t]\nsource = \"handler\"\nhandler = {}",
            &["c:5:11: error: tools.t.handler.kind: is needed"],
        ),
        (
            "[tools.t]\nsource = \"handler\"\nhandler = { kind = \"clok\" }",
            &["c:5:20: error: tools.t.handler.kind = \"clok\": must be \"clock\" or \
               \"command\" or \"notes\"; did you mean `clock`?"],
        ),
        (
            "[tools.t]\nsource = \"handler\"\nhandler = { kind = \"notes\" }",
            &["c:5:11: error: tools.t.handler.operation: is needed"],
        ),
        (
            "[tools.t]\nsource = \"handler\"\nhandler = { kind = \"clock\", operation = \"add\" }",
            &["c:5:41: error: tools.t.handler.operation = \"add\": has a meaning with `kind = \
               \"notes\"` only"],
        ),
        (
            &format!("{}\ntimeout = 3601", tool_section("t")),
            &["c:6:11: error: tools.t.timeout = 3601: must be 1 to 3600 seconds"],
        ),
    ]);
}

#[test]
fn handlers_and_keys_of_later_tools_are_refused() {
    for kind in ["prompt", "agent"] {
        let text =
            format!("{CAT}[tools.t]\nsource = \"handler\"\nhandler = {{ kind = \"{kind}\" }}\n");
        let expected =
            format!("c:5:20: error: tools.t.handler.kind = \"{kind}\": is not supported yet");
        assert_eq!(fault_messages(&text), [expected]);
    }
    for line in [
        "handler_class = \"ClockHandler\"",
        "energy_cost = 1",
        "max_result_bytes = 1",
        "tool_calling_only = true",
    ] {
        let (key, _) = line.split_once(" = ").unwrap();
        let column = key.len() + 4;
        let found = fault_messages(&format!("{CAT}[tools.t]\n{CLOCK}\n{line}\n"));
        assert_eq!(found, [format!("c:6:{column}: error: tools.t.{key}: is not supported yet")]);
    }
}
