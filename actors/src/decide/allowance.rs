//! Whether a caller may choose what it chose.

use std::path::{Component, Path};

use super::redact::Redactor;
use crate::model::agent::Allowance;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::request::Overrides;

/// Checks what a caller chose, as far as words tell. Where a folder really leads is seen when the
/// program starts.
///
/// # Errors
/// `override-refused`. The sentence names what the caller named, and nothing of the machine.
pub fn check(
    allowance: &Allowance,
    overrides: &Overrides,
    redactor: &Redactor,
) -> Result<(), Failure> {
    if let Some(folder) = &overrides.working_dir
        && !is_below(allowance, Path::new(folder))
    {
        return Err(refused("the working directory is not below a folder that the agent allows"));
    }
    for (name, value) in &overrides.env {
        if !allowance.variables.contains(name) {
            return Err(refused("the agent does not let callers set one of these variables"));
        }
        if value.contains('\0') {
            return Err(refused("the value of a variable must not hold a NUL character"));
        }
    }
    let texts = overrides.working_dir.iter().chain(overrides.env.values());
    if texts.into_iter().any(|text| redactor.redact(text) != text.as_str()) {
        return Err(refused("a choice looks like a secret, and choices are stored as they are"));
    }
    Ok(())
}

/// Whether a folder is written plainly, from the root on, and stands in one that is allowed.
fn is_below(allowance: &Allowance, folder: &Path) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    folder.is_absolute()
        && folder.components().all(is_plain)
        && allowance.folders.iter().any(|allowed| folder.starts_with(allowed))
}

fn refused(message: &str) -> Failure {
    Failure::new(Code::OverrideRefused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance() -> Allowance {
        Allowance {
            folders: vec!["/srv/repos".into(), "/data/repos".into()],
            variables: vec!["BRANCH".to_owned()],
        }
    }

    fn may(allowance: &Allowance, overrides: &Overrides) -> bool {
        let redactor = Redactor::new([]);
        check(allowance, overrides, &redactor).is_ok()
    }

    fn folder(path: &str) -> Overrides {
        Overrides { working_dir: Some(path.to_owned()), ..Overrides::default() }
    }

    fn variable(name: &str, value: &str) -> Overrides {
        let env = [(name.to_owned(), value.to_owned())].into();
        Overrides { env, ..Overrides::default() }
    }

    #[test]
    fn a_folder_is_chosen_below_those_that_are_allowed() {
        for (path, may_be) in [
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
            assert_eq!(may(&allowance(), &folder(path)), may_be, "{path}");
        }
    }

    #[test]
    fn variables_are_those_that_are_allowed_and_hold_no_secrets() {
        for (name, value, may_be) in [
            ("BRANCH", "main", true),
            ("BRANCH", "", true),
            ("branch", "main", false),
            ("PATH", "/tmp", false),
            ("BRANCH", "a\0b", false),
            ("BRANCH", "ghp_0123456789abcdefghijABCDEFGHIJ012345", false),
        ] {
            assert_eq!(may(&allowance(), &variable(name, value)), may_be, "{name}={value}");
        }
    }

    #[test]
    fn by_default_nothing_is_to_be_chosen() {
        let none = Allowance::default();
        assert!(may(&none, &Overrides::default()));
        assert!(!may(&none, &folder("/srv/repos")) && !may(&none, &variable("BRANCH", "main")));
    }
}
