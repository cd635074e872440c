//! Remote agents: their address, their credentials, and the keys that they do not have.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::quota::QuotaCredential;
use algonius_actors::model::agent::remote::{RemoteBinding, RemoteSpec};

use super::*;
use crate::config::keys::agent::kind::PROGRAM_KEYS;
use crate::config::keys::cognition::cognitive_agent::COGNITIVE_KEYS;

fn remote_agent_config(agent: &str, remote: &str) -> String {
    format!("[agents.a]\nkind = \"remote\"\n{agent}\n[agents.a.remote]\n{remote}\n")
}

fn remote(lines: &str) -> RemoteSpec {
    match load_settings(&remote_agent_config("", lines)).agents.remove(0).worker {
        AgentWorker::Remote(remote) => (*remote).clone(),
        _ => panic!("another kind"),
    }
}

fn faults(text: &str) -> ConfigFaults {
    load_text(text).unwrap_err()
}

fn fault_keys_and_messages(agent: &str, remote: &str) -> Vec<String> {
    let faults = faults(&remote_agent_config(agent, remote));
    faults.iter().map(|fault| format!("{}: {}", fault.key_path, fault.message)).collect()
}

#[test]
fn a_remote_agent_has_an_address_a_protocol_and_a_token() {
    let spec = remote("url = \"https://agents.example.org/agents/x/v1/\"");
    assert_eq!(spec.url, "https://agents.example.org/agents/x/v1");
    assert_eq!((spec.version, spec.binding), (ProtocolVersion::V1_0, RemoteBinding::JsonRpc));
    assert_eq!(spec.token, None);
    let spec = remote(
        "url = \"http://127.0.0.1:8080\"\nversion = \"0.3\"\nbinding = \"http+json\"\n\
         token_env = \"MY_KEY\"",
    );
    assert_eq!((spec.version, spec.binding), (ProtocolVersion::V0_3, RemoteBinding::HttpJson));
    assert_eq!(spec.token.unwrap().0, CANARY);
    let settings =
        load_settings(&remote_agent_config("", "url = \"https://x.org\"\ntoken_env = \"MY_KEY\""));
    assert!(settings.secrecy.secrets.contains(&CANARY.to_owned()));
    assert!(!format!("{settings:?}").contains(CANARY));
    assert_eq!(settings.agents[0].spec.kind(), AgentKind::Remote);
    // The account is that of the token, so that another token opens it again.
    let credential = &settings.agents[0].spec.quota.credential;
    assert!(matches!(credential, QuotaCredential::SecretDigest(_)), "{credential:?}");
}

#[test]
fn a_remote_url_must_protect_the_token() {
    for url in ["https://x.org", "http://localhost:1/a", "http://127.8.0.1", "http://[::1]:80/v1"] {
        assert_eq!(remote(&format!("url = \"{url}\"")).url, url);
    }
    for (url, message) in [
        ("http://x.org", "must begin with `https://`"),
        ("http://10.0.0.1", "must begin with `https://`"),
        ("http://127.0.0.1.x.org", "must begin with `https://`"),
        ("http://127.0.0.1:80800", "must have a port from 1 to 65535, or none"),
        ("https://x.org:0/a", "must have a port from 1 to 65535, or none"),
        ("http://localhost@x.org", "must not hold a name or password"),
        ("https://me:secret@x.org", "must not hold a name or password"),
        ("https://x.org/a?b=c", "neither a query nor a fragment"),
        ("https://x.org/a#b", "neither a query nor a fragment"),
        ("ftp://x.org", "must be an address"),
        ("x.org", "must be an address"),
        ("", "must not be empty"),
    ] {
        let messages = fault_keys_and_messages("", &format!("url = \"{url}\""));
        assert!(messages.len() == 1 && messages[0].contains(message), "{url}: {messages:?}");
    }
    let internal = remote("url = \"http://10.0.0.1\"\ninsecure_http = true");
    assert_eq!(internal.url, "http://10.0.0.1");
    assert_eq!(fault_keys_and_messages("", ""), ["agents.a.remote.url: is needed"]);
}

#[test]
fn a_token_in_the_file_is_refused() {
    let faults =
        faults(&remote_agent_config("", &format!("url = \"https://x.org\"\ntoken = \"{CANARY}\"")));
    assert!(faults.to_string().contains("use `token_file` or `token_env`"), "{faults}");
    assert!(!faults.to_string().contains(CANARY));
    let both = "url = \"https://x.org\"\ntoken_env = \"MY_KEY\"\ntoken_file = \"x\"";
    assert_eq!(fault_keys_and_messages("", both).len(), 1);
    assert_eq!(
        fault_keys_and_messages("", "url = \"https://x.org\"\ntoken_env = \"NOT_THERE\"").len(),
        1
    );
}

#[test]
fn a_program_key_is_an_error_for_a_remote_agent() {
    let url = "url = \"https://x.org\"";
    let messages = fault_keys_and_messages("command = \"cat\"\nsandbox.writable = [\"x\"]", url);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages.iter().all(|fault| fault.contains("agents with a program only")),
        "{messages:?}"
    );
    // The keys of the preset are not reported one by one.
    assert_eq!(fault_keys_and_messages("preset = \"gemini\"", url).len(), 1);
    let found = faults("[agents.a]\ncommand = \"cat\"\n[agents.a.remote]\nurl = \"https://x.org\"");
    assert!(found.to_string().contains("`kind = \"remote\"` only"), "{found}");
}

#[test]
fn each_agent_key_belongs_to_one_kind_or_to_all_kinds() {
    let schema = schema();
    let keys = &schema["properties"]["agents"]["additionalProperties"]["properties"];
    let common_keys = [
        "a2a",
        "access",
        "answer_timeout",
        "auth",
        "budget",
        "dedup",
        "dedup_window",
        "description",
        "enabled",
        "idle_timeout",
        "kind",
        "max_concurrent",
        "max_input_bytes",
        "max_output_bytes",
        "name",
        "queue_depth",
        "queue_timeout",
        "quota",
        "remote",
        "retry",
        "skills",
        "start_timeout",
        "stop_grace",
        "stream_output",
        "team",
        "timeout",
        "unredacted_response",
        "version",
    ];
    for key in keys.as_object().unwrap().keys() {
        let is_of_programs = PROGRAM_KEYS.contains(&key.as_str())
            || ["preset", "working_dir"].contains(&key.as_str());
        let is_common = common_keys.contains(&key.as_str());
        let is_cognitive = COGNITIVE_KEYS.contains(&key.as_str());
        let count = [is_of_programs, is_common, is_cognitive].iter().filter(|it| **it).count();
        assert_eq!(count, 1, "{key}");
    }
}
