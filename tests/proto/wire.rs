//! The wire of gRPC: what `proto/` says is what the protocol says, and what the code says.
//!
//! The code in `crates/a2a/src/grpc/proto` is generated and checked in, so that a build needs no
//! generator. After a change of `proto/`, or of the generator's version, write it anew:
//!
//! ```text
//! REGENERATE=1 cargo test -p algonius-proto
//! ```
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, ServiceDescriptorProto,
};

/// The protocol's versions: their source, the facts about it, the package, our code.
const PROTOCOL_VERSIONS: [(&str, &str, &str, &str); 2] = [
    ("a2a/v1/a2a.proto", "facts_v03.txt", "a2a.v1", "a2a_v1.rs"),
    ("lf/a2a/v1/a2a.proto", "facts_v10.txt", "lf.a2a.v1", "lf_a2a_v1.rs"),
];

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compile_proto(source: &str) -> FileDescriptorSet {
    let folder = repository_root().join("proto");
    protox::compile([folder.join(source)], [folder]).expect("proto/ compiles")
}

#[test]
fn our_proto_files_match_the_official_sdks() {
    for (source, expected_file, package, _) in PROTOCOL_VERSIONS {
        let file_set = compile_proto(source);
        let file = file_set.file.iter().find(|file| file.package() == package).expect("our file");
        let actual: BTreeSet<String> = describe_file(file).into_iter().collect();
        let text = fs::read_to_string(repository_root().join("tests/proto").join(expected_file))
            .expect("the facts");
        let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let mut differences = String::new();
        for line in actual.symmetric_difference(&expected) {
            let side = if actual.contains(line) { "only ours" } else { "missing" };
            _ = writeln!(differences, "  {side}: {line}");
        }
        assert!(differences.is_empty(), "{source} differs from {expected_file}:\n{differences}");
    }
}

#[test]
fn the_generated_code_matches_the_proto_files() {
    for (source, _, package, code_file) in PROTOCOL_VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        tonic_prost_build::configure()
            .out_dir(folder.path())
            .emit_rerun_if_changed(false)
            .compile_fds(compile_proto(source))
            .expect("the generator runs");
        let generated_code =
            fs::read_to_string(folder.path().join(format!("{package}.rs"))).expect("code");
        let generated_code = format!(
            "//! The messages and the service of `{package}`. Generated from `proto/{source}` by \
             tests/proto; not to be edited.\n\n{generated_code}"
        );
        let path = repository_root().join("crates/a2a/src/grpc/proto").join(code_file);
        if std::env::var_os("REGENERATE").is_some() {
            fs::write(&path, &generated_code).expect("the code is written");
        }
        let present_code = fs::read_to_string(&path).unwrap_or_default();
        let first_difference = present_code
            .lines()
            .zip(generated_code.lines())
            .position(|(left, right)| left != right);
        assert!(
            present_code == generated_code,
            "{code_file} is not what the generator makes (first difference in line {first_difference:?}); run \
             REGENERATE=1 cargo test -p algonius-proto"
        );
    }
}

fn describe_file(file: &FileDescriptorProto) -> Vec<String> {
    let package = file.package();
    let mut lines = Vec::new();
    for message in &file.message_type {
        describe_message(&mut lines, &format!("{package}.{}", message.name()), message);
    }
    for enumeration in &file.enum_type {
        describe_enum(&mut lines, &format!("{package}.{}", enumeration.name()), enumeration);
    }
    for service in &file.service {
        describe_service(&mut lines, &format!("{package}.{}", service.name()), service);
    }
    lines
}

fn describe_message(lines: &mut Vec<String>, name: &str, message: &DescriptorProto) {
    for field in &message.field {
        let (number, kind) = (field.number(), field_type(field));
        lines.push(format!(
            "{name}.{} = {number} {kind} {}",
            field.name(),
            field_label(message, field)
        ));
    }
    for inner in &message.nested_type {
        let inner_name = format!("{name}.{}", inner.name());
        if inner.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry) {
            lines.push(format!("{inner_name} is a map"));
        }
        describe_message(lines, &inner_name, inner);
    }
    for inner in &message.enum_type {
        describe_enum(lines, &format!("{name}.{}", inner.name()), inner);
    }
}

fn describe_enum(lines: &mut Vec<String>, name: &str, enumeration: &EnumDescriptorProto) {
    for value in &enumeration.value {
        lines.push(format!("{name}.{} = {}", value.name(), value.number()));
    }
}

fn describe_service(lines: &mut Vec<String>, name: &str, service: &ServiceDescriptorProto) {
    let stream = |is_stream| if is_stream { "stream " } else { "" };
    for method in &service.method {
        lines.push(format!(
            "{name}/{} = {}{} -> {}{}",
            method.name(),
            stream(method.client_streaming()),
            method.input_type().trim_start_matches('.'),
            stream(method.server_streaming()),
            method.output_type().trim_start_matches('.'),
        ));
    }
}

fn field_type(field: &FieldDescriptorProto) -> String {
    if !field.type_name().is_empty() {
        return field.type_name().trim_start_matches('.').to_owned();
    }
    Type::as_str_name(&field.r#type()).trim_start_matches("TYPE_").to_lowercase()
}

fn field_label(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    if field.label() == Label::Repeated {
        return "repeated".to_owned();
    }
    if field.proto3_optional() {
        return "optional".to_owned();
    }
    let oneof = field.oneof_index.and_then(|index| usize::try_from(index).ok());
    match oneof.and_then(|index| message.oneof_decl.get(index)) {
        Some(oneof) => format!("oneof {}", oneof.name()),
        None => "single".to_owned(),
    }
}
