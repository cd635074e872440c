//! Override policy: decides whether a caller may choose its overrides.

use std::path::{Component, Path};

use algonius_redact::Redactor;

use crate::model::agent::OverridePolicy;
use crate::model::code::Code;
use crate::model::execution::request::Overrides;
use crate::model::failure::Failure;

/// Longest parameter name that an error repeats, in bytes.
const MAX_REPORTED_NAME_BYTES: usize = 64;

/// Checks the overrides of a caller, as far as their text allows. Links in the path of a folder are resolved at the
/// start of the program.
///
/// # Errors
/// Returns `override-refused`. The sentence names only what the caller named, and nothing of the machine.
pub fn check_overrides(
    override_policy: &OverridePolicy,
    overrides: &Overrides,
    redactor: &Redactor,
) -> Result<(), Failure> {
    if let Some(folder) = &overrides.working_dir
        && !is_in_allowed_folder(override_policy, Path::new(folder))
    {
        return Err(override_refused_failure(
            "the working directory is not below a folder that the agent allows",
        ));
    }
    for (name, value) in &overrides.env {
        if !override_policy.variables.contains(name) {
            return Err(override_refused_failure(
                "the agent does not let callers set one of these variables",
            ));
        }
        if value.contains('\0') {
            return Err(override_refused_failure(
                "the value of a variable must not hold a NUL character",
            ));
        }
    }
    let texts = overrides.working_dir.iter().chain(overrides.env.values());
    if texts.into_iter().any(|text| redactor.redact(text) != text.as_str()) {
        return Err(override_refused_failure(
            "a choice looks like a secret, and choices are stored as they are",
        ));
    }
    Ok(())
}

/// Checks the parameters of a caller.
///
/// # Errors
/// Returns `override-refused` with the first parameter that callers may not set.
pub fn check_params<'p>(
    override_policy: &OverridePolicy,
    params: impl IntoIterator<Item = &'p String>,
) -> Result<(), Failure> {
    let is_allowed = |name: &&String| override_policy.params.contains(*name);
    let Some(name) = params.into_iter().find(|name| !is_allowed(name)) else { return Ok(()) };
    // A text that is not a valid name may be anything, such as a secret in the wrong place.
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain =
        name.len() <= MAX_REPORTED_NAME_BYTES && !name.is_empty() && name.chars().all(is_name);
    let name = if is_plain { format!("`{name}`") } else { "of this name".to_owned() };
    Err(override_refused_failure(&format!(
        "the agent has no parameter {name} that callers may set"
    )))
}

/// Returns true if a path is absolute, has no `.` or `..` components, and lies in an allowed folder.
fn is_in_allowed_folder(override_policy: &OverridePolicy, folder: &Path) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    folder.is_absolute()
        && folder.components().all(is_plain)
        && override_policy.working_dir_roots.iter().any(|allowed| folder.starts_with(allowed))
}

fn override_refused_failure(message: &str) -> Failure {
    Failure::new(Code::OverrideRefused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_policy() -> OverridePolicy {
        OverridePolicy {
            working_dir_roots: vec!["/srv/repos".into(), "/data/repos".into()],
            variables: vec!["BRANCH".to_owned()],
            params: vec!["style".to_owned()],
        }
    }

    fn is_allowed(override_policy: &OverridePolicy, overrides: &Overrides) -> bool {
        let redactor = Redactor::new([]);
        check_overrides(override_policy, overrides, &redactor).is_ok()
    }

    fn folder_override(path: &str) -> Overrides {
        Overrides { working_dir: Some(path.to_owned()), ..Overrides::default() }
    }

    fn variable_override(name: &str, value: &str) -> Overrides {
        let env = [(name.to_owned(), value.to_owned())].into();
        Overrides { env, ..Overrides::default() }
    }

    #[test]
    fn a_working_directory_must_be_below_an_allowed_one() {
        for (path, expected) in [
            ("/srv/repos", true),
            ("/srv/repos/a/b", true),
            ("/data/repos/x", true),
            ("/srv/reposx", false),
            ("/srv", false),
            ("/srv/repos/../../etc", false),
            ("srv/repos", false),
            ("", false),
            ("~/x", false),
        ] {
            assert_eq!(is_allowed(&test_policy(), &folder_override(path)), expected, "{path}");
        }
    }

    #[test]
    fn only_allowed_variables_without_secrets_can_be_set() {
        for (name, value, expected) in [
            ("BRANCH", "main", true),
            ("BRANCH", "", true),
            ("branch", "main", false),
            ("PATH", "/tmp", false),
            ("BRANCH", "a\0b", false),
            ("BRANCH", "ghp_0123456789abcdefghijABCDEFGHIJ012345", false),
        ] {
            assert_eq!(
                is_allowed(&test_policy(), &variable_override(name, value)),
                expected,
                "{name}={value}"
            );
        }
    }

    #[test]
    fn no_overrides_are_allowed_by_default() {
        let empty_policy = OverridePolicy::default();
        assert!(is_allowed(&empty_policy, &Overrides::default()));
        assert!(
            !is_allowed(&empty_policy, &folder_override("/srv/repos"))
                && !is_allowed(&empty_policy, &variable_override("BRANCH", "main"))
        );
    }

    #[test]
    fn only_allowed_parameters_can_be_set() {
        let refusal_of = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            check_params(&test_policy(), &names).err().map(|failure| failure.message)
        };
        let refusal_message =
            |name: &str| Some(format!("the agent has no parameter {name} that callers may set"));
        assert_eq!(refusal_of(&[]), None);
        assert_eq!(refusal_of(&["style"]), None);
        assert_eq!(refusal_of(&["style", "model"]), refusal_message("`model`"));
        assert_eq!(refusal_of(&["sk-ant-0123456789"]), refusal_message("of this name"));
        assert_eq!(refusal_of(&[&"x".repeat(65)]), refusal_message("of this name"));
    }
}
