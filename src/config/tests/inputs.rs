//! Tests of `[inputs]`: the key file, and its faults.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn write_key_file(folder: &Path, text: &str, mode: u32) -> String {
    let file = folder.join("key");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    file.display().to_string()
}

fn config_with_key_file(file: &str) -> String {
    format!("{CAT}[inputs]\nkey_file = '{file}'\n")
}

#[test]
fn inputs_have_no_key_and_a_day_for_retries_by_default() {
    let inputs = load_settings(CAT).secrecy.inputs;
    assert_eq!((inputs.key_file, inputs.keys.len()), (None, 0));
    assert_eq!(inputs.retry_window, Duration::from_secs(86_400));
}

#[test]
fn a_key_file_holds_base64_and_hexadecimal_keys() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}\n\n{}\n", STANDARD.encode([7; 32]), "0a".repeat(32));
    let inputs = load_settings(&config_with_key_file(&write_key_file(folder.path(), &text, 0o600)))
        .secrecy
        .inputs;
    assert_eq!(inputs.keys, [InputSealingKey([7; 32]), InputSealingKey([10; 32])]);
    assert_eq!(format!("{:?}", inputs.keys), "[InputKey, InputKey]");
}

#[test]
fn an_unprotected_key_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let valid_key = STANDARD.encode([7; 32]);
    for (text, mode, message) in [
        (valid_key.as_str(), 0o640, "others may read this file; chmod 600 it"),
        ("", 0o600, "has no key: each line is 32 bytes in base64 or hexadecimal"),
        ("c2hvcnQ=", 0o600, "has no key: each line is 32 bytes"),
        (valid_key.strip_prefix('B').unwrap(), 0o600, "has no key: each line is 32 bytes"),
    ] {
        let faults =
            fault_messages(&config_with_key_file(&write_key_file(folder.path(), text, mode)));
        assert!(faults[0].contains(message), "{faults:?}");
        assert!(text.is_empty() || !faults[0].contains(text), "{faults:?}");
    }
    let missing = fault_messages(&config_with_key_file("/nowhere/key"));
    assert!(
        missing[0].contains("cannot be read") && missing[0].contains("/dev/urandom"),
        "{missing:?}"
    );
}

#[test]
fn a_key_in_the_data_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = write_key_file(folder.path(), &STANDARD.encode([7; 32]), 0o600);
    let data = format!("[server]\ndata_dir = '{}'\n", folder.path().display());
    let faults = fault_messages(&(config_with_key_file(&file) + &data));
    assert!(faults[0].contains("a backup of the ledger would have the key"), "{faults:?}");
}
