//! Tests of the text of units.

use std::path::Path;

use super::super::install_paths::{DirectoryVariables, UnitOwner};
use super::{Unit, is_generated};

fn unit_text(
    owner: UnitOwner,
    program: &str,
    config: &str,
    search_path: &str,
) -> Result<String, String> {
    let unit = Unit::new(owner, Path::new(program), Path::new(config), search_path.as_ref());
    unit.map(|unit| unit.text()).map_err(|error| error.to_string())
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|candidate| candidate == line)
}

#[test]
fn the_unit_of_a_machine_equals_the_shipped_one() {
    let (owner, directories) = (UnitOwner::Machine, DirectoryVariables::default());
    let config_file = owner.config_file(&directories).unwrap();
    let search_path = owner.search_path(&directories);
    let text = unit_text(
        owner,
        "/usr/local/bin/algonius",
        config_file.to_str().unwrap(),
        search_path.to_str().unwrap(),
    )
    .unwrap();
    assert_eq!(text, include_str!("../../../../config/systemd/algonius.service"));
    assert!(is_generated(&text));
}

#[test]
fn a_user_unit_needs_no_privileges() {
    let text = unit_text(UnitOwner::User, "/o/algonius", "/o/s.toml", "/o/bin:/bin").unwrap();
    for line in [
        "Type=notify",
        "KillMode=process",
        "NoNewPrivileges=yes",
        "ExecStart=/o/algonius serve --config /o/s.toml",
        "ConditionPathExists=/o/s.toml",
        "Environment=PATH=/o/bin:/bin",
        "EnvironmentFile=-/o/environment",
        "WantedBy=default.target",
    ] {
        assert!(has_line(&text, line), "no {line} in {text}");
    }
    for line in ["User=", "Protect", "Capability", "StateDirectory", "network-online"] {
        assert!(!text.contains(line), "{line} in {text}");
    }
    assert!(is_generated(&text));
}

#[test]
fn unit_values_are_quoted_and_unsafe_ones_are_refused() {
    let text =
        unit_text(UnitOwner::User, "/my tools/algonius", "/o/50%.toml", r#"/a b:/c"d"#).unwrap();
    assert!(
        has_line(&text, r#"ExecStart="/my tools/algonius" serve --config /o/50%%.toml"#),
        "{text}"
    );
    assert!(has_line(&text, r#"Environment="PATH=/a b:/c\"d""#), "{text}");
    for (program, config, search_path) in
        [("/a\nUser=root", "/b", "/c"), ("/a", "/$b", "/c"), ("/a", "/b", "/c\nUser=root")]
    {
        let refused = unit_text(UnitOwner::User, program, config, search_path).unwrap_err();
        assert!(refused.contains("cannot be written into a unit"), "{refused}");
    }
}
