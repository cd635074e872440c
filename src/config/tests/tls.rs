//! Tests of `[server.tls]`.

use rcgen::{KeyPair, generate_simple_self_signed};

use super::*;

const TLS: &str = "[server]\ntls = { cert = \"c.pem\", key = \"k.pem\" }\n";

/// Creates a folder with a valid pair.
fn folder_with_key_pair() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let certified_key = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = folder.path().join("k.pem");
    fs::write(folder.path().join("c.pem"), certified_key.cert.pem()).unwrap();
    fs::write(&key, certified_key.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join("other.pem"), KeyPair::generate().unwrap().serialize_pem())
        .unwrap();
    folder
}

/// Returns the faults of a text in such a folder.
fn fault_messages_with_key_pair(text: &str) -> Vec<String> {
    let folder = folder_with_key_pair();
    let faults = match load_in_folder(folder.path(), text) {
        Ok(checked) => checked.warnings,
        Err(faults) => faults.iter().cloned().collect(),
    };
    let folder_path = folder.path().display().to_string();
    faults.iter().map(|fault| fault_text(fault).replace(&folder_path, "HERE")).collect()
}

#[test]
fn a_certificate_pair_is_read_relative_to_the_file() {
    let folder = folder_with_key_pair();
    let LoadedConfig { settings, warnings } =
        load_in_folder(folder.path(), &format!("{TLS}{CAT}")).unwrap();
    assert_eq!(warnings, []);
    let [cert, key] = ["c.pem", "k.pem"].map(|name| folder.path().join(name));
    assert_eq!(
        settings.server.tls,
        Some(crate::platform::tls::CertificateFiles { cert_file: cert, key_file: key })
    );
    assert_eq!(load_text(CAT).unwrap().settings.server.tls, None);
}

#[test]
fn tls_errors_are_reported_for_the_faulty_file() {
    for (tls, expected) in [
        ("{ cert = \"c.pem\" }", "c:2:7: error: server.tls.key: is needed"),
        ("{}", "c:2:7: error: server.tls.cert: is needed"),
        (
            "{ cert = \"no.pem\", key = \"k.pem\" }",
            "c:2:16: error: server.tls.cert = \"no.pem\": HERE/no.pem cannot be read: No such file or directory (os error 2)",
        ),
        (
            "{ cert = \"other.pem\", key = \"k.pem\" }",
            "c:2:16: error: server.tls.cert = \"other.pem\": HERE/other.pem holds no certificate in PEM form",
        ),
        (
            "{ cert = \"c.pem\", key = \"c.pem\" }",
            "c:2:31: error: server.tls.key = \"c.pem\": HERE/c.pem holds no private key without a password in PEM form",
        ),
        (
            "{ cert = \"c.pem\", key = \"other.pem\" }",
            "c:2:31: error: server.tls.key = \"other.pem\": the key in HERE/other.pem is not that of the first certificate in HERE/c.pem",
        ),
        (
            "{ cert = \"c.pem\", key = \"k.pem\", ca = \"c.pem\" }",
            "c:2:40: error: server.tls.ca: unknown key; known: cert, key",
        ),
    ] {
        let messages = fault_messages_with_key_pair(&format!("[server]\ntls = {tls}\n{CAT}"));
        assert!(messages.iter().any(|line| line == expected), "{expected} is not in {messages:?}");
    }
}

#[test]
fn a_public_listen_address_without_tls_is_warned_of() {
    let is_warned = |lines: &str| {
        let messages = fault_messages_with_key_pair(&format!("{lines}{CAT}"));
        messages.iter().any(|line| line.contains("not encrypted"))
    };
    let public_listen_line = "listen = \"0.0.0.0:80\"\n";
    assert!(is_warned(&format!("[server]\n{public_listen_line}")));
    assert!(!is_warned(&format!("{TLS}{public_listen_line}")));
    assert!(!is_warned(&format!(
        "[server]\n{public_listen_line}trusted_proxies = [\"10.0.0.1\"]\n"
    )));
}
