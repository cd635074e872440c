//! Tests of templates, and of their rejections.

use super::*;

/// Returns the values of one execution.
fn values() -> ExecutionValues {
    ExecutionValues {
        input: "say {{ hi }}".into(),
        paths: AttemptPaths {
            input_file: "/run/1/input.txt".into(),
            output_file: "/run/1/output.txt".into(),
            file_list: "/run/1/files/1-a.txt\nhttps://e.example/b".to_owned(),
            own_folder: "/run/1".into(),
        },
        params: [("model".to_owned(), "small".to_owned())].into(),
        ids: RequestIds { execution_id: "e-1".into(), ..RequestIds::default() },
        attempt: 2,
        ..ExecutionValues::default()
    }
}

/// Returns the rendered template, or its error.
fn render_or_describe_error(source: &str) -> String {
    match Template::new(source).and_then(|template| template.render(&values())) {
        Ok(text) => text,
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn values_are_expanded_once_and_verbatim() {
    for (source, expected) in [
        ("--plain", "--plain"),
        ("", ""),
        ("line\n", "line\n"),
        ("{{ input }}", "say {{ hi }}"),
        ("{{ input_file }}>{{ output_file }}", "/run/1/input.txt>/run/1/output.txt"),
        ("{{ own_folder }}", "/run/1"),
        ("{{ files }}", "/run/1/files/1-a.txt\nhttps://e.example/b"),
        ("{{ execution_id }}#{{ attempt }}", "e-1#2"),
        ("{{ param.model | upper }}", "SMALL"),
        ("{{ param.style | default('plain') }}", "plain"),
        ("{% if param.style is defined %}{{ param.style }}{% else %}none{% endif %}", "none"),
        ("{{ '{{' }} < & >", "{{ < & >"),
    ] {
        assert_eq!(render_or_describe_error(source), expected, "{source}");
    }
}

#[test]
fn unsafe_templates_are_refused_before_they_run() {
    for (source, expected) in [
        ("{{ inptu }}", r#"UnknownVariable { name: "inptu" }"#),
        ("{{ input.secret }}", r#"UnknownVariable { name: "input.secret" }"#),
        ("{{ range(9) }}", r#"UnknownVariable { name: "range" }"#),
        ("{{ param }}", "UnnamedParameter"),
        ("{% for x in input %}{% endfor %}", r#"ForbiddenStatement { tag: "for" }"#),
        ("{%- include '/etc/passwd' %}", r#"ForbiddenStatement { tag: "include" }"#),
        ("{% macro m() %}{% endmacro %}", r#"ForbiddenStatement { tag: "macro" }"#),
        ("{{ input | readfile }}", "Syntax { cause: \"filter readfile is unknown\" }"),
    ] {
        assert_eq!(render_or_describe_error(source), expected, "{source}");
    }
    assert!(
        render_or_describe_error("{{ input").starts_with("Syntax"),
        "{}",
        render_or_describe_error("{{ input")
    );
}

#[test]
fn a_parameter_without_a_value_is_reported() {
    assert_eq!(
        render_or_describe_error("{{ param.style }}"),
        r#"MissingParameter { name: "style" }"#
    );
    let both = "{{ param.model }}{{ param.style }}";
    assert_eq!(render_or_describe_error(both), r#"MissingParameter { name: "style" }"#);
}

#[test]
fn a_template_lists_the_names_it_uses() {
    let template = Template::new("{{ param.model }} {{ input }}").unwrap();
    assert_eq!(template.used_variables().iter().collect::<Vec<_>>(), ["input", "param"]);
}

#[test]
fn a_template_takes_a_bounded_number_of_steps() {
    let long = "{{ attempt }}".repeat(20_000);
    assert!(
        render_or_describe_error(&long).contains("fuel"),
        "{}",
        render_or_describe_error(&long)
    );
}
