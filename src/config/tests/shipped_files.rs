//! Tests of the shipped files, and of arbitrary text.

use super::*;

#[test]
fn the_shipped_files_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let shipped = load(&folder.join("supervisor.toml"), &test_env)
        .unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(shipped.warnings, []);
    let ids: Vec<_> = shipped.settings.agents.iter().map(|agent| agent.spec.id.as_str()).collect();
    assert_eq!(ids, ["echo", "sort", "greet", "word-count", "welcome"]);
    let mut example_count = 0;
    for entry in fs::read_dir(folder.join("examples")).unwrap() {
        let loaded =
            load(&entry.unwrap().path(), &test_env).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(loaded.settings.agents.iter().all(|agent| !agent.spec.enabled));
        example_count += 1;
    }
    assert_eq!(example_count, 4);
}

/// Keys that exist somewhere, and some that do not.
const KEYS: &[&str] = &[
    "command",
    "args",
    "timeout",
    "env",
    "skills",
    "retry.max",
    "input",
    "access",
    "name",
    "expires",
    "token_env",
    "scopes",
    "listen",
    "\"é\"",
    "a.b.c",
    "timeout_min",
    "success",
    "params",
    "enabled",
];

/// Values of every type, and some of none.
const VALUES: &[&str] = &[
    "\"cat\"",
    "5",
    "-5",
    "1e999",
    "inf",
    "true",
    "[]",
    "{}",
    "[{}]",
    "[\"{{ input }}\"]",
    "{ a = 1 }",
    "\"\"\"\né\"\"\"",
    "2030-01-31",
    "99999999999999999999999999999999999999999",
    "0x_",
    "\"{{\"",
    "\"${\"",
    "",
];

/// Tables that exist, and some that do not.
const HEADERS: &[&str] = &[
    "[agents.a]",
    "[agents.b]",
    "[agents]",
    "[[agents.a.skills]]",
    "[tokens.t]",
    "[server]",
    "[limits]",
    "[[agents]]",
    "[agents.a.env]",
    "[agents.a.retry]",
    "[",
    "[agents.\"é\"]",
    "agents.a.b = 1",
];

/// Strategy for lines that are almost configurations.
fn config_lines() -> impl Strategy<Value = String> {
    use prop::sample::select;
    let line = prop_oneof![
        2 => (select(KEYS), select(VALUES)).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => select(HEADERS).prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_loader_panic(text in prop_oneof![config_lines(), any::<String>()]) {
        match load_text(&text) {
            Ok(loaded) => prop_assert!(!loaded.settings.agents.is_empty()),
            Err(faults) => {
                prop_assert!(faults.error_count() > 0);
                prop_assert_eq!(faults.to_string().lines().count(), faults.iter().count());
            }
        }
    }
}

#[test]
fn a_renamed_key_is_refused_with_its_new_name() {
    for (lines, expected) in [
        (
            "[agents.a]\ncommand = \"cat\"\nreturn_raw = true\n",
            "c:3:1: error: agents.a.return_raw: unknown key; its name is now `unredacted_response`",
        ),
        (
            "[agents.a]\ncommand = \"cat\"\nquota.park_max = 1\n",
            "c:3:7: error: agents.a.quota.park_max: unknown key; its name is now `max_wait`",
        ),
        // A key of another table has no such name.
        (
            "[agents.a]\ncommand = \"cat\"\nquota.lost_regex = \"x\"\n",
            "c:3:7: error: agents.a.quota.lost_regex: unknown key; known: max_deferrals, max_wait, \
             first_wait, credential, breaker, blocked_time",
        ),
    ] {
        assert_eq!(fault_messages(lines).first().map(String::as_str), Some(expected));
    }
}
