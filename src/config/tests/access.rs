//! Tests of tokens and of the server.

use algonius_actors::model::access::endpoint_config::{
    Binding, CallerAuth, CardDetails, EndpointConfig, LockoutSpec, ProtocolOperation,
    ProtocolVersion, ProviderOrganization, RateLimit,
};
use algonius_actors::model::access::principal::Scope;

use super::*;

#[test]
fn tokens_are_hashed_and_scoped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("me.token");
    fs::write(&file, "another-another-another-another-1\n").unwrap();
    let text = format!(
        "{CAT}[tokens.ci]\ntoken_env = \"CI_TOKEN\"\n\
         [tokens.me]\ntoken_file = \"me.token\"\nscopes = [\"admin\"]\nagents = [\"a\"]\nexpires = 2030-01-31T12:00:00+01:00\n"
    );
    let LoadedConfig { settings, warnings } = load_in_folder(folder.path(), &text).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(settings.service_files.files_with_secrets.secret_files, [file]);
    assert_eq!(settings.secrecy.secrets, [CANARY, "another-another-another-another-1"]);
    let [ci, me] = settings.callers.tokens.as_slice() else {
        panic!("{:?}", settings.callers.tokens)
    };
    assert_eq!(
        (ci.name.as_str(), &ci.scope.rights, &ci.scope.agents),
        ("ci", &vec![Right::Read, Right::Run], &None)
    );
    assert_eq!(
        (&me.scope.rights, me.scope.agents.as_ref().unwrap().len()),
        (&vec![Right::Admin], 1)
    );
    assert_eq!(me.expires_at.unwrap().to_rfc3339(), "2030-01-31T11:00:00+00:00");
    let hash: String = ci.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, "ecbc28e39a74d4144ae3fddd66b21b435bb561ea5ad969cb8d4c1ab149b663f7");
}

#[test]
fn token_errors_are_reported() {
    for (lines, expected) in [
        ("[tokens.t]", "c:3:9: error: tokens.t: needs `token_env` or `token_file`"),
        (
            "[tokens.t]\ntoken = \"x\"",
            "c:4:9: error: tokens.t.token: a token is not written into the configuration, which is read by many; use `token_file` or `token_env`",
        ),
        (
            "[tokens.t]\ntoken_env = \"GONE\"",
            "c:4:13: error: tokens.t.token_env: this variable is not set in the service's environment",
        ),
        (
            "[tokens.t]\ntoken_env = \"NEARLY_TOKEN\"",
            "c:4:13: error: tokens.t.token_env: the token must have 32 characters at least",
        ),
        (
            "[tokens.t]\ntoken_env = \"BAD_TOKEN\"",
            "c:4:13: error: tokens.t.token_env: the token must be of visible ASCII characters without spaces",
        ),
        (
            "[tokens.t]\ntoken_file = \"gone\"",
            "c:4:14: error: tokens.t.token_file: cannot be read: No such file or directory (os error 2)",
        ),
        (
            "[tokens.t]\ntoken_file = \"/dev/zero\"",
            "c:4:14: error: tokens.t.token_file: cannot be read: it is not a file",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\ntoken_file = \"x\"",
            "c:5:14: error: tokens.t.token_file: give one of `token_env`, `token_file`",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\nscopes = [\"rnu\"]",
            "c:5:11: error: tokens.t.scopes[0] = \"rnu\": unknown scope; did you mean `run`?",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\nscopes = []",
            "c:3:1: error: tokens.t.scopes: must name one scope at least",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\nagents = [\"b\"]",
            "c:5:11: error: tokens.t.agents[0] = \"b\": there is no such agent; did you mean `a`?",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\nexpires = 2030-01-31",
            "c:5:11: error: tokens.t.expires = 2030-01-31: must be a date and time with its zone, such as 2030-01-31T12:00:00Z",
        ),
        (
            "[tokens.t]\ntoken_env = \"CI_TOKEN\"\n[tokens.u]\ntoken_env = \"SAME_TOKEN\"",
            "c:5:9: error: tokens.u: has the same text as the token `t`",
        ),
        (
            "[[tokens]]\nname = \"t\"",
            "c:3:1: error: tokens: must be tables with a name; write `[tokens.a-name]`",
        ),
    ] {
        assert_eq!(fault_messages(&format!("{CAT}{lines}\n")), [expected], "{lines}");
    }
}

#[test]
fn server_errors_are_reported() {
    for (line, expected) in [
        (
            "default_agent = \"b\"",
            "c:4:17: error: server.default_agent = \"b\": there is no such agent; did you mean `a`?",
        ),
        (
            "listen = \"0.0.0.0:80\"",
            "c:4:10: warning: server.listen = \"0.0.0.0:80\": others can reach this address, and connections are not encrypted; set `server.tls`, or name the proxy that speaks TLS in `trusted_proxies`",
        ),
        (
            "public_url = \"example.org\"",
            "c:4:14: error: server.public_url = \"example.org\": must be an address such as \"https://agents.example.org\"",
        ),
        (
            "public_url = \"https://me:pw@example.org\"",
            "c:4:14: error: server.public_url: must not hold a name or password",
        ),
        (
            "data_dir = \"~/x\"",
            "c:4:12: error: server.data_dir = \"~/x\": `~` means nothing here: write the whole path",
        ),
        (
            "durability = \"disk\"",
            "c:4:14: error: server.durability = \"disk\": must be \"process\" or \"power\"",
        ),
        (
            "max_body_bytes = 1",
            "c:4:18: error: server.max_body_bytes = 1: must be 1024 to 1073741824",
        ),
    ] {
        assert_eq!(fault_messages(&format!("{CAT}[server]\n{line}\n")), [expected], "{line}");
    }
}

#[test]
fn a_secret_in_the_wrong_place_is_not_printed() {
    for lines in [
        format!("[tokens]\nci = \"{CANARY}\""),
        format!("[tokens.ci]\ntoken = \"{CANARY}\""),
        format!("[tokens.ci]\ntoken_env = \"{CANARY}\""),
        format!("[tokens.ci]\ntoken_file = \"{CANARY}\""),
        format!("[tokens.ci]\ntoken_env = [\"{CANARY}\"]"),
        format!("[tokens.ci]\ntokn = \"{CANARY}\""),
        format!("args = [\"--key={CANARY}\", \"{{{{ input }}}}{CANARY}\", \"{{{{ {CANARY}\"]"),
        format!("args = \"{CANARY}\""),
        format!("cli_args = {{ \"--key\" = \"{{{{ inptu }}}}{CANARY}\" }}"),
        format!("params = {{ key = [\"{CANARY}\"], \"a-b\" = \"{CANARY}\" }}"),
        format!("env = {{ KEY = \"$ {CANARY}\", OTHER = [\"{CANARY}\"] }}"),
        format!("env_from = {{ KEY = \"{CANARY}\" }}"),
        format!("env_file = {{ KEY = \"{CANARY}\" }}"),
        format!("env = \"{CANARY}\""),
        format!("api_key = \"{CANARY}\""),
        format!("api_key = {CANARY}"),
    ] {
        let faults = load_text(&format!("{CAT}{lines}\n")).unwrap_err();
        assert!(!format!("{faults} {faults:?}").contains("canary-canary"), "{lines}\n{faults}");
    }
}

#[test]
fn a_token_of_32_characters_with_a_line_break_is_accepted() {
    let text = format!("{CAT}[tokens.t]\ntoken_env = \"LINE_TOKEN\"\n");
    assert_eq!(load_settings(&text).secrecy.secrets, ["canary-canary-canary-canary-32-c"]);
}

#[test]
fn the_exposure_of_an_agent_is_read() {
    let text = format!(
        "{CAT}[agents.a.a2a]\nversions = [\"1.0\"]\nbindings = [\"grpc\", \"jsonrpc\"]\n\
         base_path = \"/bots/x/v1/\"\nmethods = [\"send\", \"stream\", \"push\"]\nstreaming = false\n\
         input_modes = [\"Image/*\"]\nrate_limit = {{ burst = 2 }}\n\
         [agents.a.auth]\ntype = \"api_key\"\nheader = \"X-Key\"\ntoken_env = \"CI_TOKEN\"\n\
         [agents.b]\ncommand = \"cat\"\nauth = {{ required = false, insecure = true }}\n\
         [lockout]\nfailures = 3\nexempt = [\"127.0.0.1\", \"fd00::/8\"]\n"
    );
    let Settings { agents, callers: CallerSettings { tokens, lockout }, .. } = load_settings(&text);
    let [a, b] = agents.as_slice() else { panic!("{agents:?}") };
    let expected = EndpointConfig {
        versions: vec![ProtocolVersion::V1_0],
        bindings: vec![Binding::Grpc, Binding::JsonRpc],
        card_bindings: vec![Binding::Grpc, Binding::JsonRpc],
        base_path: Some("/bots/x".to_owned()),
        operations: vec![ProtocolOperation::Send, ProtocolOperation::Push],
        input_modes: vec!["image/*".to_owned()],
        caller_auth: CallerAuth::ApiKeyHeader("x-key".to_owned()),
        rate_limit: Some(RateLimit { per_second: 10.0, burst: 2 }),
        ..EndpointConfig::default()
    };
    assert_eq!(*a.spec.endpoint_config, expected);
    assert_eq!(
        *b.spec.endpoint_config,
        EndpointConfig { allows_anonymous: true, ..EndpointConfig::default() }
    );
    let [token] = tokens.as_slice() else { panic!("{tokens:?}") };
    let scope =
        Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![a.spec.id.clone()]) };
    assert_eq!((token.name.as_str(), &token.scope), ("agent:a", &scope));
    assert_eq!(lockout.spec, Some(LockoutSpec { max_failures: 3, ..LockoutSpec::default() }));
    assert_eq!(lockout.exempt_networks.len(), 2);
}

#[test]
fn agents_with_the_default_exposure_share_one_value() {
    let more_agents = "[agents.b]\ncommand = \"cat\"\n[agents.c]\ncommand = \"cat\"\nunredacted_response = true\n";
    let Settings { agents, .. } = load_settings(&format!("{CAT}{more_agents}"));
    let [a, b, c] = agents.as_slice() else { panic!("{agents:?}") };
    assert!(Arc::ptr_eq(&a.spec.endpoint_config, &b.spec.endpoint_config));
    assert_eq!(*a.spec.endpoint_config, EndpointConfig::default());
    assert_eq!(
        *c.spec.endpoint_config,
        EndpointConfig { returns_raw_answers: true, ..EndpointConfig::default() }
    );
}

#[test]
fn card_metadata_is_read() {
    let text = format!(
        "[server.provider]\norganization = \"us\"\nurl = \"https://us.example\"\n{CAT}\
         skills = [{{ id = \"x\", examples = [\"do x\"], input_modes = [\"Image/*\"], \
         output_modes = [\"text/html\"] }}]\n\
         [agents.a.a2a]\ncard_bindings = [\"jsonrpc\", \"http+json\"]\n\
         documentation_url = \"https://us.example/docs?a=b#c\"\n\
         icon_url = \"http://us.example/icon.png\"\n\
         [agents.b]\ncommand = \"cat\"\n\
         [agents.b.a2a]\nprovider = {{ organization = \"them\", url = \"https://them.example\" }}\n"
    );
    let Settings { agents, .. } = load_settings(&text);
    let [a, b] = agents.as_slice() else { panic!("{agents:?}") };
    let provider = |organization: &str, url: &str| {
        Some(ProviderOrganization { organization: organization.to_owned(), url: url.to_owned() })
    };
    let expected = EndpointConfig {
        card_bindings: vec![Binding::JsonRpc, Binding::HttpJson],
        card_details: CardDetails {
            provider: provider("us", "https://us.example"),
            documentation_url: Some("https://us.example/docs?a=b#c".to_owned()),
            icon_url: Some("http://us.example/icon.png".to_owned()),
        },
        ..EndpointConfig::default()
    };
    assert_eq!(*a.spec.endpoint_config, expected);
    assert_eq!(
        b.spec.endpoint_config.card_details.provider,
        provider("them", "https://them.example")
    );
    let [skill] = a.spec.profile.skills.as_slice() else { panic!("{:?}", a.spec.profile.skills) };
    assert_eq!(
        (&skill.examples[..], &skill.input_modes[..], &skill.output_modes[..]),
        (&["do x".to_owned()][..], &["image/*".to_owned()][..], &["text/html".to_owned()][..])
    );
}

#[test]
fn card_errors_are_reported() {
    let address = "must be an address such as \"https://example.org/agents\"";
    for (lines, expected) in [
        (
            "a2a = { card_bindings = [] }",
            "c:3:7: error: agents.a.a2a.card_bindings: must name one at least".to_owned(),
        ),
        (
            "a2a = { card_bindings = [\"http\"] }",
            "c:3:26: error: agents.a.a2a.card_bindings[0] = \"http\": is not known; known: jsonrpc, http+json, grpc".to_owned(),
        ),
        (
            "a2a = { bindings = [\"jsonrpc\"], card_bindings = [\"grpc\"] }",
            "c:3:7: error: agents.a.a2a.card_bindings: lists `grpc`, which `bindings` leaves out; \
             a card can list only what the agent is served over"
                .to_owned(),
        ),
        (
            "a2a = { icon_url = \"icon.png\" }",
            format!("c:3:20: error: agents.a.a2a.icon_url = \"icon.png\": {address}"),
        ),
        (
            "a2a = { documentation_url = \"ftp://a/b\" }",
            format!("c:3:29: error: agents.a.a2a.documentation_url = \"ftp://a/b\": {address}"),
        ),
        (
            "a2a = { documentation_url = \"https://a/b c\" }",
            format!("c:3:29: error: agents.a.a2a.documentation_url = \"https://a/b c\": {address}"),
        ),
        (
            "a2a = { documentation_url = \"https://me:canary-canary@a/b\" }",
            "c:3:29: error: agents.a.a2a.documentation_url: must not hold a name or password"
                .to_owned(),
        ),
        (
            "a2a = { provider = { organization = \"us\" } }",
            "c:3:20: error: agents.a.a2a.provider.url: is needed".to_owned(),
        ),
        (
            "a2a = { provider = { url = \"https://us.example\" } }",
            "c:3:20: error: agents.a.a2a.provider.organization: is needed".to_owned(),
        ),
        (
            "skills = [{ id = \"x\", examples = [\" \"] }]",
            "c:3:35: error: agents.a.skills[0].examples[0] = \" \": must not be empty".to_owned(),
        ),
        (
            "skills = [{ id = \"x\", input_modes = [\"text\"] }]",
            "c:3:38: error: agents.a.skills[0].input_modes[0] = \"text\": must be a media type \
             such as \"text/plain\""
                .to_owned(),
        ),
    ] {
        let text = format!("{CAT}{lines}\n");
        let faults = fault_messages(&text);
        assert_eq!(faults, [expected], "{lines}");
    }
}

#[test]
fn interface_errors_are_reported() {
    let open_access_message = "admits every caller who can reach the service; this needs `insecure = true`, and a `server.listen` that is on loopback";
    let path_message = "must be a path of the characters A-Z a-z 0-9 _ -, such as \"/bots/x\"";
    for (lines, expected) in [
        ("auth = { type = \"none\" }", format!("c:3:8: error: agents.a.auth: {open_access_message}")),
        ("auth = { required = false }", format!("c:3:8: error: agents.a.auth: {open_access_message}")),
        (
            "auth = { type = \"api_key\" }",
            "c:3:8: error: agents.a.auth: needs `token_env` or `token_file`".to_owned(),
        ),
        (
            "auth = { header = \"X-Key\" }",
            "c:3:19: error: agents.a.auth.header = \"X-Key\": has a meaning with `type = \"api_key\"` only".to_owned(),
        ),
        (
            "auth = { token_env = \"CI_TOKEN\" }\n[tokens.ci]\ntoken_env = \"SAME_TOKEN\"",
            "c:3:8: error: agents.a.auth: has the same text as the token `ci`".to_owned(),
        ),
        (
            "a2a = { bindings = [\"grcp\"] }",
            "c:3:21: error: agents.a.a2a.bindings[0] = \"grcp\": is not known; did you mean `grpc`?".to_owned(),
        ),
        (
            "a2a = { base_path = \"x\" }",
            format!("c:3:21: error: agents.a.a2a.base_path = \"x\": {path_message}"),
        ),
        (
            "a2a = { base_path = \"/\" }",
            format!("c:3:21: error: agents.a.a2a.base_path = \"/\": {path_message}"),
        ),
        (
            "a2a = { base_path = \"/api/x\" }",
            "c:3:21: error: agents.a.a2a.base_path = \"/api/x\": begins like a path of the service itself".to_owned(),
        ),
        (
            "a2a = { base_path = \"/b\" }\n[agents.b]\ncommand = \"cat\"\na2a = { base_path = \"/b/c\" }",
            "c:6:21: error: agents.b.a2a.base_path = \"/b/c\": is, or lies within, the path of another agent".to_owned(),
        ),
        (
            "a2a = { input_modes = [\"text\"] }",
            "c:3:24: error: agents.a.a2a.input_modes[0] = \"text\": must be a media type such as \"text/plain\"".to_owned(),
        ),
        (
            "[server]\nallowed_hosts = [\"http://x\"]",
            "c:4:18: error: server.allowed_hosts[0] = \"http://x\": must be a name such as \"agents.lan\"".to_owned(),
        ),
        (
            "[lockout]\nexempt = [\"10.0.0\"]",
            "c:4:11: error: lockout.exempt[0] = \"10.0.0\": must be an address or a network; write `10.0.0.0/8`".to_owned(),
        ),
    ] {
        assert_eq!(fault_messages(&format!("{CAT}{lines}\n")), [expected], "{lines}");
    }
}

#[test]
fn private_push_addresses_must_be_listed() {
    let default_push = load_settings(CAT).push.unwrap();
    let times = (default_push.timeout, default_push.max_retry_duration);
    assert_eq!(times, (Duration::from_secs(15), Duration::from_secs(86_400)));
    assert!(default_push.allowed_networks.is_empty() && !default_push.allows_http);
    let text = "[push]\nallow = [\"127.0.0.0/8\", \"10.1.2.3\", \"fd00::/8\"]\nmax_age = \"1h\"\n";
    let configured_push = load_settings(&format!("{CAT}{text}")).push.unwrap();
    let allow: Vec<_> = configured_push.allowed_networks.iter().map(ToString::to_string).collect();
    assert_eq!(allow, ["127.0.0.0/8", "10.1.2.3/32", "fd00::/8"]);
    assert_eq!(configured_push.max_retry_duration, Duration::from_secs(3600));
    assert_eq!(load_settings(&format!("{CAT}[push]\nenabled = false\n")).push, None);
    assert_eq!(
        fault_messages(&format!("{CAT}[push]\nallow = [\"localhost\", \"10.0.0.0/33\"]\n")),
        [
            "c:4:10: error: push.allow[0] = \"localhost\": must be addresses such as \"127.0.0.0/8\" or \"10.1.2.3\"",
            "c:4:23: error: push.allow[1] = \"10.0.0.0/33\": must be addresses such as \"127.0.0.0/8\" or \"10.1.2.3\"",
        ]
    );
}
