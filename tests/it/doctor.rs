//! What the machine offers, as the doctor and the service tell it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::Uid;
use serde_json::{Value, json};

use crate::harness::{Service, Setup, fake};

/// The doctor's findings, as JSON.
async fn examined(setup: &Setup) -> (Option<i32>, Value) {
    let config = setup.write().display().to_string();
    let output = setup.run(&["doctor", &config, "--json"], "").await;
    (output.code, serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

fn weight<'r>(report: &'r Value, about: &str) -> &'r Value {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["about"] == about);
    &found.unwrap_or_else(|| panic!("{about} is not in {report}"))["weight"]
}

#[tokio::test]
async fn the_doctor_needs_no_service_and_finds_a_sound_machine_good() {
    let setup = Setup::new(&fake("echo", "echo", ""));
    let (code, report) = examined(&setup).await;
    assert_eq!(code, Some(0), "{report}");
    for about in ["kernel", "labels", "data_dir", "runtime_dir"] {
        assert_eq!(weight(&report, about), "good", "{report}");
    }
    let root = if Uid::effective().is_root() { "warning" } else { "good" };
    assert_eq!(
        (weight(&report, "user"), weight(&report, "agent echo")),
        (&json!(root), &json!("good"))
    );
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(report["rungs"]["kernel"], release.trim());
    let shown = setup.run(&["doctor", setup.write().to_str().unwrap()], "").await;
    assert!(shown.stdout.contains("good     agent echo: runs ") && shown.code == Some(0));
}

#[tokio::test]
async fn the_doctor_ends_with_1_when_something_keeps_the_service_from_working() {
    let setup = Setup::new("[agents.a]\ncommand = 'no-such-program'\n");
    let (code, report) = examined(&setup).await;
    assert_eq!((code, weight(&report, "configuration")), (Some(1), &json!("bad")));
    assert!(report.to_string().contains("no such program on the PATH"), "{report}");
}

#[tokio::test]
async fn the_doctor_sees_folders_that_others_can_look_into() {
    let setup = Setup::new(&fake("echo", "echo", ""));
    let folder = setup.here().join("state/algonius");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, report) = examined(&setup).await;
    assert_eq!((code, weight(&report, "data_dir")), (Some(0), &json!("warning")));
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    let (code, report) = examined(&setup).await;
    assert_eq!((code, weight(&report, "data_dir")), (Some(1), &json!("bad")));
}

#[tokio::test]
async fn bubblewrap_counts_when_it_works() {
    for (script, word) in [("exit 0", "usable"), ("exit 1", "unusable")] {
        let setup = Setup::new(&fake("echo", "echo", ""));
        let setup = setup.executable("bwrap", &format!("#!/bin/sh\n{script}\n"));
        let path = format!("{}:/usr/bin:/bin", setup.here().display());
        let setup = setup.env("PATH", &path);
        assert_eq!(examined(&setup).await.1["rungs"]["bubblewrap"], word);
    }
}

#[tokio::test]
async fn the_status_tells_the_rungs_and_the_living_warden() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let status = service.get("/status").await.json();
    let (_, report) = examined(&service.setup).await;
    let of_service = &status["machine"];
    for rung in ["kernel", "labels", "landlock", "bubblewrap", "cgroup", "root"] {
        assert_eq!(of_service[rung], report["rungs"][rung], "{rung}: {status}");
    }
    let warden = of_service["wardens"][0].as_u64().unwrap();
    let name = fs::read_to_string(format!("/proc/{warden}/comm")).unwrap();
    assert_eq!(name, "algonius-warden\n");
    let shown = service.command(&["status"], "").await.stdout;
    assert!(shown.contains(&format!("held by warden {warden}")), "{shown}");
}
