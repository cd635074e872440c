//! What is masked, what is not, and that neither depends on how the text arrives.

use std::borrow::Cow;

use super::*;
use crate::model::redaction::{Pattern, Redaction};

mod corpus;
mod ends;
mod harmless;
mod patterns;
mod pieces;

use corpus::{Dice, PASSWORD_PLACES, PLACES, SHAPED, TOKEN_PLACES};
use harmless::HARMLESS;

fn none() -> Redactor {
    Redactor::new([])
}

fn registered(value: &str) -> Redactor {
    Redactor::new([value.to_owned()])
}

/// Every secret of the corpus in every place: the secret and the text.
fn corpus(seed: u64) -> Vec<(String, String)> {
    let mut dice = Dice(seed);
    let mut found = Vec::new();
    let mut place = |places: &[&str], secret: &str| {
        found.extend(places.iter().map(|place| (secret.to_owned(), set(place, secret))));
    };
    for kind in SHAPED {
        let secret = dice.fill(kind);
        place(PLACES, &secret);
    }
    for length in [6, 8, 12, 19, 20, 40] {
        place(PASSWORD_PLACES, &dice.fill(&format!("{{p{length}}}")));
    }
    for length in [20, 32, 40, 88] {
        place(TOKEN_PLACES, &dice.fill(&format!("{{a{length}}}")));
    }
    found
}

/// Puts a secret in its place; the last of two `@` that stand together is an `@`, unless alone.
fn set(place: &str, secret: &str) -> String {
    if place == "@@" {
        return format!("{secret} {secret}");
    }
    let text = place.replace("@@", "@\u{0}");
    text.replace('@', secret).replace('\u{0}', "@")
}

/// Whether more than the last four characters of a secret are to be seen.
fn shows(text: &str, secret: &str) -> bool {
    let visible = super::ansi::Visible::of(text.as_bytes());
    let text = String::from_utf8_lossy(&visible.text).into_owned();
    let third = secret.len() / 3;
    let middle = secret.get(third..secret.len() - third).unwrap();
    text.contains(secret) || (middle.len() >= 5 && text.contains(middle))
}

#[test]
fn all_constants_compile() {
    use super::{email, pairs, pattern, pem, personal, places};
    for (shape, compiled) in rules::COMPILED.iter() {
        assert!(compiled.is_some(), "{}", shape.pattern);
    }
    assert!(rules::COMPILED.len() <= 128 && rules::FAMILIES.len() <= 32);
    let constants = [
        pairs::HEAD,
        pairs::TYPED,
        pairs::SCHEME,
        pairs::WRAPPED,
        places::HEADER,
        places::BEARER,
        places::USERINFO,
        places::OPTION,
        places::USER,
        places::NETRC,
        places::SENTENCE,
        places::COOKIES,
        places::COOKIE,
        email::ADDRESS,
        personal::CARD,
        personal::SECURITY,
        personal::PHONE,
        pem::BEGIN,
        pem::END,
    ];
    for constant in constants {
        assert!(pattern::build(constant).is_ok(), "{constant}");
    }
}

#[test]
fn no_secret_of_the_corpus_is_shown() {
    let redactor = none();
    let mut shown = Vec::new();
    let all = [7, 11, 1234].map(corpus).concat();
    for (secret, text) in &all {
        let masked = redactor.redact(text);
        if shows(&masked, secret) {
            shown.push(format!("{text:?} -> {masked:?}"));
        }
    }
    assert!(shown.is_empty(), "{} of {}:\n{}", shown.len(), all.len(), shown.join("\n"));
}

#[test]
fn what_is_harmless_is_not_touched() {
    let redactor = none();
    let touched = |text: &&&str| redactor.redact(text) != **text;
    let touched: Vec<_> =
        HARMLESS.iter().filter(touched).map(|text| (text, redactor.redact(text))).collect();
    assert!(touched.is_empty(), "{touched:#?}");
}

#[test]
fn a_text_without_a_hit_is_borrowed() {
    assert!(matches!(none().redact("nothing to see\nhere"), Cow::Borrowed(_)));
}

#[test]
fn the_old_shapes_have_their_form() {
    let redactor = none();
    let body = Dice(3).fill("{a20}");
    let last = body.get(16..).unwrap();
    let upper = Dice(3).fill("{U16}");
    let cases = [
        (format!("sk-{body}"), format!("sk-...{last}")),
        (format!("AKIA{upper}"), format!("AKIA...{}", upper.get(12..).unwrap())),
        (format!("token={body}"), format!("token=...{last}")),
        (format!("password={body}"), "password=***".to_owned()),
        ("mail jane.doe@host.test now".to_owned(), "mail j***@host.test now".to_owned()),
    ];
    for (text, masked) in cases {
        assert_eq!(redactor.redact(&text), masked);
    }
}

#[test]
fn contexts_keep_what_is_not_secret() {
    let redactor = none();
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
    for (text, masked) in cases {
        assert_eq!(redactor.redact(text), masked);
    }
}

#[test]
fn a_password_never_shows_its_end_whatever_its_shape() {
    let token = Dice(4).fill("ghp_{a36}");
    let masked = none().redact(&format!("password={token} url=db://me:{token}@host")).into_owned();
    assert_eq!(masked, "password=*** url=db://me:***@host");
    assert_eq!(registered(&token).redact(&token), "***");
}

#[test]
fn a_private_key_is_masked_to_its_end_wherever_that_is() {
    let body = Dice(5).fill("{b64}\n{b64}\n{b30}==\n");
    for kind in ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let (head, foot) = (
            format!("-----BEGIN {kind}PRIVATE KEY-----"),
            format!("-----END {kind}PRIVATE KEY-----"),
        );
        let whole = format!("a\n{head}\n{body}{foot}\nb");
        assert_eq!(none().redact(&whole), format!("a\n{head}***{foot}\nb"));
        let crlf = whole.replace('\n', "\r\n");
        assert_eq!(none().redact(&crlf), format!("a\r\n{head}***{foot}\r\nb"));
        let escaped = format!("{{\"k\":\"{head}\\n{}{foot}\\n\"}}", body.replace('\n', "\\n"));
        assert_eq!(none().redact(&escaped), format!("{{\"k\":\"{head}***{foot}\\n\"}}"));
        let endless = format!("  {head}\n  {body}and more");
        assert_eq!(none().redact(&endless), format!("  {head}***"));
    }
    let pgp = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{body}-----END PGP PRIVATE KEY BLOCK-----"
    );
    assert_eq!(
        none().redact(&pgp),
        "-----BEGIN PGP PRIVATE KEY BLOCK-----***-----END PGP PRIVATE KEY BLOCK-----"
    );
}

#[test]
fn a_registered_value_is_masked_in_all_its_forms() {
    let value = "käse \"und\" <brot> & 'mehr'/1\\2$3";
    let redactor = registered(value);
    for form in super::encode::forms(value) {
        let form = String::from_utf8(form).unwrap();
        assert_eq!(redactor.redact(&format!("a {form} b")), "a *** b", "{form}");
    }
    let json = serde_json::Value::from(value).to_string();
    let twice = serde_json::Value::from(json.clone()).to_string();
    assert_eq!(redactor.redact(&json), "\"***\"");
    assert!(!redactor.redact(&twice).contains("brot"));
}

#[test]
fn base64_at_every_shift_is_known() {
    let value = "registered value 1";
    for (before, encoded) in [
        ("", "cmVnaXN0ZXJlZCB2YWx1ZSAx"),
        ("x", "eHJlZ2lzdGVyZWQgdmFsdWUgMQ=="),
        ("xy", "eHlyZWdpc3RlcmVkIHZhbHVlIDE="),
    ] {
        let masked = registered(value).redact(encoded).into_owned();
        assert!(masked.len() < 10, "{before}: {masked}");
    }
}

#[test]
fn registered_values_may_overlap_span_lines_and_hide_behind_colors() {
    let two =
        Redactor::new(["first-value".to_owned(), "value-second".to_owned(), "short".to_owned()]);
    assert_eq!(two.redact("a first-value-second short"), "a *** short");
    assert_eq!(two.redact("fir\u{1b}[1mst-va\u{1b}[0mlue"), "***");
    let lines = registered("ab\ncd\nefgh\nthe last line");
    assert_eq!(lines.redact("x ab\ncd\nefgh\nthe last line y"), "x ***\n***\n***\n*** y");
    assert_eq!(lines.redact("x ab\ncd\n the last line y"), "x ab\ncd\n *** y");
}

#[test]
fn personal_numbers_are_masked_where_asked_for() {
    let personal = none().with(Redaction { personal: true, ..Redaction::default() });
    assert_eq!(
        personal.redact("card 4111 1111 1111 1111, 4111 1111 1111 1112"),
        "card ***, 4111 1111 1111 1112"
    );
    assert_eq!(personal.redact("call +49 30 1234567 or 078-05-1120"), "call *** or ***");
}

#[test]
fn places_are_counted() {
    let (masked, count) = none().redact_and_count("password=Hunter22 a@b.test\nok\nb@c.test");
    assert_eq!((masked.as_ref(), count), ("password=*** a***@b.test\nok\nb***@c.test", 3));
}
