//! Tests of additional redaction.

use super::*;

fn redaction_config(lines: &str) -> String {
    format!("{CAT}[redaction]\n{lines}\n")
}

#[test]
fn no_extra_redaction_is_configured_by_default() {
    let redaction = load_settings(CAT).secrecy.redaction;
    assert_eq!((redaction.patterns.len(), redaction.redacts_personal_numbers), (0, false));
    let lines = "pii = true\n[[redaction.patterns]]\nname = 'a'\nregex = 'A[0-9]{3}'\nkeep = 1";
    let redaction = load_settings(&redaction_config(lines)).secrecy.redaction;
    let [pattern] = redaction.patterns.as_slice() else { panic!("{redaction:?}") };
    assert_eq!(
        (pattern.name(), pattern.visible_prefix_bytes(), redaction.redacts_personal_numbers),
        ("a", 1, true)
    );
    assert!(pattern.regex().is_match(b"of A123"));
}

#[test]
fn an_invalid_pattern_is_reported_with_its_position() {
    for (pattern, expected) in [
        (
            "{ name = 'a', regex = '(' }",
            "c:4:35: error: redaction.patterns[0].regex = '(': is not a regular expression: unclosed group",
        ),
        (
            "{ name = 'a', regex = 'a*' }",
            "c:4:35: error: redaction.patterns[0].regex = 'a*': matches the empty text; let it need one character at least",
        ),
        (
            "{ name = 'a', regex = 'a+' }",
            "c:4:35: error: redaction.patterns[0].regex = 'a+': can match more than 1024 bytes; write `{1,64}` for `+`, and `{0,64}` for `*`",
        ),
        (
            "{ name = 'a', regex = 'abc', keep = 2 }",
            "c:4:49: error: redaction.patterns[0].keep = 2: `keep` is more than half of the shortest match, which has 3 bytes",
        ),
        ("{ name = 'a' }", "c:4:13: error: redaction.patterns[0].regex: is needed"),
        ("{ regex = 'abc' }", "c:4:13: error: redaction.patterns[0].name: is needed"),
        (
            "{ name = 'a', regex = 'abc' }, { name = 'a', regex = 'abcd' }",
            "c:4:44: error: redaction.patterns[1]: another pattern has the name `a`",
        ),
        (
            "{ name = 'a', regexp = 'abc', regex = 'abc' }",
            "c:4:27: error: redaction.patterns[0].regexp: unknown key; did you mean `regex`?",
        ),
    ] {
        let messages = fault_messages(&redaction_config(&format!("patterns = [{pattern}]")));
        assert_eq!(messages, [expected], "{pattern}");
    }
}

#[test]
fn more_than_64_patterns_are_refused() {
    let patterns = |count: usize| -> String {
        let pattern = |number| format!("{{ name = 'p{number}', regex = 'abc' }},");
        redaction_config(&format!("patterns = [{}]", (0..count).map(pattern).collect::<String>()))
    };
    assert_eq!(load_settings(&patterns(64)).secrecy.redaction.patterns.len(), 64);
    let messages = fault_messages(&patterns(65)).join("\n");
    assert!(messages.contains("patterns[64]: there are 65 patterns; 64 are allowed"), "{messages}");
}

#[test]
fn secret_files_are_masked_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words");
    fs::write(&file, format!("{CANARY}\r\n\nshort\nanother secret of ours\n")).unwrap();
    let text = redaction_config("secret_files = ['words']");
    let loaded = load_in_folder(folder.path(), &text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.settings.secrecy.secrets, [CANARY, "another secret of ours"]);
    let messages: Vec<_> = loaded.warnings.iter().map(fault_text).collect();
    let expected = [
        "c:4:17: warning: redaction.secret_files[0] = 'words': 1 of its lines have fewer than 8 characters; they are not redacted",
    ];
    assert_eq!(messages, expected);
    let messages = fault_messages(&redaction_config("secret_files = ['none']")).join("\n");
    assert!(messages.contains("secret_files[0] = 'none': cannot be read: "), "{messages}");
}
