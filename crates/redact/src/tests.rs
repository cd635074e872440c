//! Tests: what is redacted, what is not, and independence of both from the pieces of the text.

use std::borrow::Cow;

use super::*;
use crate::configuration::{Pattern, RedactionConfig};

mod corpus;
mod harmless;
mod long_lines;
mod patterns;
mod streaming;
mod tail;

use corpus::{
    PASSWORD_TEXT_TEMPLATES, SECRET_TEMPLATES, SECRET_TEXT_TEMPLATES, SeededRng,
    TOKEN_TEXT_TEMPLATES,
};
use harmless::{HARMLESS_TEXTS, SECRETS_LIKE_NUMBERS};

fn default_redactor() -> Redactor {
    Redactor::new([])
}

fn redactor_with_value(value: &str) -> Redactor {
    Redactor::new([value.to_owned()])
}

/// Returns every secret of the corpus in every place: the secret and the text.
fn corpus_cases(seed: u64) -> Vec<(String, String)> {
    let mut rng = SeededRng(seed);
    let mut cases = Vec::new();
    let mut add_cases = |places: &[&str], secret: &str| {
        cases.extend(places.iter().map(|place| (secret.to_owned(), insert_secret(place, secret))));
    };
    for template in SECRET_TEMPLATES {
        let secret = rng.expand(template);
        add_cases(SECRET_TEXT_TEMPLATES, &secret);
    }
    for length in [6, 8, 12, 19, 20, 40] {
        add_cases(PASSWORD_TEXT_TEMPLATES, &rng.expand(&format!("{{p{length}}}")));
    }
    for length in [20, 32, 40, 88] {
        add_cases(TOKEN_TEXT_TEMPLATES, &rng.expand(&format!("{{a{length}}}")));
    }
    cases
}

/// Inserts a secret into a template; the second of two adjacent `@` stands for an `@`, unless the template is `@@`
/// alone.
fn insert_secret(text_template: &str, secret: &str) -> String {
    if text_template == "@@" {
        return format!("{secret} {secret}");
    }
    let text = text_template.replace("@@", "@\u{0}");
    text.replace('@', secret).replace('\u{0}', "@")
}

/// Returns true if more than the last four characters of a secret are visible.
fn shows_secret(text: &str, secret: &str) -> bool {
    let visible = super::text::ansi::VisibleText::from_raw(text.as_bytes());
    let text = String::from_utf8_lossy(&visible.text).into_owned();
    let third = secret.len() / 3;
    let middle = secret.get(third..secret.len() - third).unwrap();
    text.contains(secret) || (middle.len() >= 5 && text.contains(middle))
}

#[test]
fn all_constants_compile() {
    use super::rules::{context_rules, email, key_value, numeric_values, pem, personal_numbers};
    use super::text::pattern;
    for (token_format, compiled) in rules::COMPILED_FORMATS.iter() {
        assert!(compiled.is_some(), "{}", token_format.pattern);
    }
    assert!(rules::COMPILED_FORMATS.len() <= 128 && rules::RULE_FAMILIES_BY_KEYWORD.len() <= 32);
    let constants = [
        key_value::KEY_PATTERN,
        key_value::TYPE_PATTERN,
        key_value::SCHEME_PATTERN,
        key_value::WRAPPER_PATTERN,
        context_rules::AUTHORIZATION_PATTERN,
        context_rules::BEARER_PATTERN,
        context_rules::USERINFO_PATTERN,
        context_rules::OPTION_PATTERN,
        context_rules::USER_OPTION_PATTERN,
        context_rules::NETRC_PATTERN,
        context_rules::SENTENCE_PATTERN,
        context_rules::COOKIE_HEADER_PATTERN,
        context_rules::COOKIE_PATTERN,
        email::EMAIL_PATTERN,
        numeric_values::NUMBER_PATTERN,
        numeric_values::SHARE_PATTERN,
        numeric_values::PACKAGE_SOURCE_PATTERN,
        numeric_values::QUANTITY_PATTERN,
        numeric_values::VERSION_PATTERN,
        numeric_values::TIME_PATTERN,
        numeric_values::ADDRESS_PATTERN,
        numeric_values::COLOUR_PATTERN,
        personal_numbers::CARD_PATTERN,
        personal_numbers::SOCIAL_SECURITY_PATTERN,
        personal_numbers::PHONE_PATTERN,
        pem::HEADER_PATTERN,
        pem::FOOTER_PATTERN,
    ];
    for constant in constants {
        assert!(pattern::try_compile(constant).is_ok(), "{constant}");
    }
}

#[test]
fn no_secret_of_the_corpus_is_shown() {
    let redactor = default_redactor();
    let mut leaks = Vec::new();
    let all = [7, 11, 1234].map(corpus_cases).concat();
    for (secret, text) in &all {
        let redacted = redactor.redact(text);
        if shows_secret(&redacted, secret) {
            leaks.push(format!("{text:?} -> {redacted:?}"));
        }
    }
    assert!(leaks.is_empty(), "{} of {}:\n{}", leaks.len(), all.len(), leaks.join("\n"));
}

#[test]
fn harmless_text_is_unchanged() {
    let redactor = default_redactor();
    let is_changed = |text: &&&str| redactor.redact(text) != **text;
    let changed: Vec<_> = HARMLESS_TEXTS
        .iter()
        .filter(is_changed)
        .map(|text| (text, redactor.redact(text)))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn values_that_only_begin_like_numbers_are_redacted() {
    let redactor = default_redactor();
    let unchanged: Vec<_> =
        SECRETS_LIKE_NUMBERS.iter().filter(|text| redactor.redact(text) == **text).collect();
    assert!(unchanged.is_empty(), "{unchanged:#?}");
}

#[test]
fn a_text_without_a_hit_is_borrowed() {
    assert!(matches!(default_redactor().redact("nothing to see\nhere"), Cow::Borrowed(_)));
}

#[test]
fn masked_tokens_keep_their_documented_form() {
    let redactor = default_redactor();
    let body = SeededRng(3).expand("{a20}");
    let last_four = body.get(16..).unwrap();
    let capitals = SeededRng(3).expand("{U16}");
    let cases = [
        (format!("sk-{body}"), format!("sk-...{last_four}")),
        (format!("AKIA{capitals}"), format!("AKIA...{}", capitals.get(12..).unwrap())),
        (format!("token={body}"), format!("token=...{last_four}")),
        (format!("password={body}"), "password=***".to_owned()),
        ("mail jane.doe@host.test now".to_owned(), "mail j***@host.test now".to_owned()),
    ];
    for (text, expected) in cases {
        assert_eq!(redactor.redact(&text), expected);
    }
}

#[test]
fn context_rules_keep_text_that_is_not_secret() {
    let redactor = default_redactor();
    let cases = [
        ("postgres://me:Hunter22@host.test/db", "postgres://me:***@host.test/db"),
        ("{\"password\": \"a\\\"b c,d\", \"n\": 1}", "{\"password\": \"***\", \"n\": 1}"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("Cookie: sid=abcdef12; lang=en", "Cookie: sid=***; lang=en"),
        ("\u{1b}[31mpassword=Hunter22\u{1b}[0m ok", "\u{1b}[31mpassword=***\u{1b}[0m ok"),
        ("machine h login me password Hunter22", "machine h login me password ***"),
        ("password=Hunter22, user=x", "password=***, user=x"),
        (
            "\u{1b}]8;;https://me:Hunter22@h.test\u{1b}\\text",
            "\u{1b}]8;;https://me:***@h.test\u{1b}\\text",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(redactor.redact(text), expected);
    }
}

#[test]
fn no_suffix_of_a_password_is_shown() {
    let token = SeededRng(4).expand("ghp_{a36}");
    let redacted = default_redactor()
        .redact(&format!("password={token} url=db://me:{token}@host"))
        .into_owned();
    assert_eq!(redacted, "password=*** url=db://me:***@host");
    assert_eq!(redactor_with_value(&token).redact(&token), "***");
}

#[test]
fn a_private_key_is_masked_up_to_its_end() {
    let body = SeededRng(5).expand("{b64}\n{b64}\n{b30}==\n");
    for kind in ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let (header, footer) = (
            format!("-----BEGIN {kind}PRIVATE KEY-----"),
            format!("-----END {kind}PRIVATE KEY-----"),
        );
        let text = format!("a\n{header}\n{body}{footer}\nb");
        assert_eq!(default_redactor().redact(&text), format!("a\n{header}***{footer}\nb"));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(default_redactor().redact(&crlf), format!("a\r\n{header}***{footer}\r\nb"));
        let escaped = format!("{{\"k\":\"{header}\\n{}{footer}\\n\"}}", body.replace('\n', "\\n"));
        assert_eq!(
            default_redactor().redact(&escaped),
            format!("{{\"k\":\"{header}***{footer}\\n\"}}")
        );
        let endless = format!("  {header}\n  {body}and more");
        assert_eq!(default_redactor().redact(&endless), format!("  {header}***"));
    }
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{body}-----END PGP PRIVATE KEY BLOCK-----"
    );
    assert_eq!(
        default_redactor().redact(&pgp),
        "-----BEGIN PGP PRIVATE KEY BLOCK-----***-----END PGP PRIVATE KEY BLOCK-----"
    );
}

#[test]
fn a_registered_value_is_masked_in_all_its_forms() {
    let value = "käse \"und\" <brot> & 'mehr'/1\\2$3";
    let redactor = redactor_with_value(value);
    for form in super::literals::encode::encoded_forms(value) {
        let form = String::from_utf8(form).unwrap();
        assert_eq!(redactor.redact(&format!("a {form} b")), "a *** b", "{form}");
    }
    let json = serde_json::Value::from(value).to_string();
    let twice = serde_json::Value::from(json.clone()).to_string();
    assert_eq!(redactor.redact(&json), "\"***\"");
    assert!(!redactor.redact(&twice).contains("brot"));
}

/// Text that the named programs wrote: one value with all characters that they escape.
#[test]
fn a_registered_value_is_found_in_every_serialization() {
    let value = "kä'se \"ü\" €/x,y:z=1!$HOME`\\😀~#";
    let serialized_forms = [
        ("json.dumps", r#""k\u00e4'se \"\u00fc\" \u20ac/x,y:z=1!$HOME`\\\ud83d\ude00~#""#),
        (
            "twice",
            r#""\"k\\u00e4'se \\\"\\u00fc\\\" \\u20ac/x,y:z=1!$HOME`\\\\\\ud83d\\ude00~#\"""#,
        ),
        ("json_encode", r#""k\u00e4'se \"\u00fc\" \u20ac\/x,y:z=1!$HOME`\\\ud83d\ude00~#""#),
        ("capitals", r#""k\u00E4'se \"\u00FC\" \u20AC/x,y:z=1!$HOME`\\\uD83D\uDE00~#""#),
        ("ascii", r#"'k\xe4\'se "\xfc" \u20ac/x,y:z=1!$HOME`\\\U0001f600~#'"#),
        ("bytes", r#"b'k\xc3\xa4\'se "\xc3\xbc" \xe2\x82\xac/x,y:z=1!$HOME`\\\xf0\x9f\x98\x80~#'"#),
        ("shlex.quote", r#"'kä'"'"'se "ü" €/x,y:z=1!$HOME`\😀~#'"#),
        ("bash @Q", r#"'kä'\''se "ü" €/x,y:z=1!$HOME`\😀~#'"#),
        (
            "bash @Q, C",
            r#"$'k\303\244\'se "\303\274" \342\202\254/x,y:z=1!$HOME`\\\360\237\230\200~#'"#,
        ),
        ("bash declare", r#""kä'se \"ü\" €/x,y:z=1!\$HOME\`\\😀~#""#),
        ("bash %q", r#"kä\'se\ \"ü\"\ €/x\,y:z=1\!\$HOME\`\\😀~#"#),
        ("escape_default", r#""k\u{e4}\'se \"\u{fc}\" \u{20ac}/x,y:z=1!$HOME`\\\u{1f600}~#""#),
        ("sh in JSON", r#""'kä'\\''se \"ü\" €/x,y:z=1!$HOME`\\😀~#'""#),
    ];
    let redactor = redactor_with_value(value);
    for (program, text) in serialized_forms {
        let redacted = redactor.redact(&format!("a {text} b")).into_owned();
        assert!(!redacted.contains("HOME") && redacted.len() < 20, "{program}: {redacted}");
    }
}

/// No part of a short value in two scripts remains when its characters are escaped.
#[test]
fn no_suffix_of_an_escaped_value_is_left() {
    for value in ["pässwörd", "密码密码密码密码", "😀😀😀😀secret", "ключ-от-дома"]
    {
        let escape_all = |is_upper_case: bool| {
            let escape_unit = |unit: u16| {
                if is_upper_case { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }
            };
            let escape = |character: char| {
                if character.is_ascii() {
                    character.to_string()
                } else {
                    character
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|code_unit| escape_unit(*code_unit))
                        .collect()
                }
            };
            value.chars().map(escape).collect::<String>()
        };
        for form in [escape_all(false), escape_all(true)] {
            for form in [form.clone(), form.replace('\\', "\\\\")] {
                assert_eq!(
                    redactor_with_value(value).redact(&format!("[{form}]")),
                    "[***]",
                    "{form}"
                );
            }
        }
    }
}

#[test]
fn base64_of_a_registered_value_is_found_at_every_shift() {
    let value = "registered value 1";
    for (before, encoded) in [
        ("", "cmVnaXN0ZXJlZCB2YWx1ZSAx"),
        ("x", "eHJlZ2lzdGVyZWQgdmFsdWUgMQ=="),
        ("xy", "eHlyZWdpc3RlcmVkIHZhbHVlIDE="),
    ] {
        let redacted = redactor_with_value(value).redact(encoded).into_owned();
        assert!(redacted.len() < 10, "{before}: {redacted}");
    }
}

#[test]
fn registered_values_match_across_overlaps_lines_and_colors() {
    let redactor =
        Redactor::new(["first-value".to_owned(), "value-second".to_owned(), "short".to_owned()]);
    assert_eq!(redactor.redact("a first-value-second short"), "a *** short");
    assert_eq!(redactor.redact("fir\u{1b}[1mst-va\u{1b}[0mlue"), "***");
    let multi_line_redactor = redactor_with_value("ab\ncd\nefgh\nthe last line");
    assert_eq!(
        multi_line_redactor.redact("x ab\ncd\nefgh\nthe last line y"),
        "x ***\n***\n***\n*** y"
    );
    assert_eq!(multi_line_redactor.redact("x ab\ncd\n the last line y"), "x ab\ncd\n *** y");
}

#[test]
fn personal_data_is_masked_if_configured() {
    let redactor = default_redactor().with_configuration(RedactionConfig {
        redacts_personal_numbers: true,
        ..RedactionConfig::default()
    });
    assert_eq!(
        redactor.redact("card 4111 1111 1111 1111, 4111 1111 1111 1112"),
        "card ***, 4111 1111 1111 1112"
    );
    assert_eq!(redactor.redact("call +49 30 1234567 or 078-05-1120"), "call *** or ***");
}

#[test]
fn redacted_places_are_counted() {
    let (redacted, count) =
        default_redactor().redact_and_count("password=Hunter22 a@b.test\nok\nb@c.test");
    assert_eq!((redacted.as_ref(), count), ("password=*** a***@b.test\nok\nb***@c.test", 3));
}
