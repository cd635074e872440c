//! Programs that create sandboxes themselves: they cannot reach the service's files either.

use super::{attack, hostile_setup, with_unprivileged_user, write_private_file};
use crate::harness::client::task_outcome;
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

const NESTED_SETTING: &str = "sandbox.nested = true";

#[tokio::test]
async fn an_agent_with_a_sandbox_of_its_own_reaches_nothing() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    attack(hostile_setup(NESTED_SETTING))
        .await
        .expect_attack_result(&[], "mount-namespace", &["user-files"])
        .await;
    if !skip_without_requirement("root") {
        let attack = attack(with_unprivileged_user(hostile_setup(NESTED_SETTING))).await;
        attack.expect_attack_result(&[], "mount-namespace", &["user-files"]).await;
    }
}

/// Makes a user namespace in which it is root with all capabilities, and tries to uncover what is hidden.
const NEST_SCRIPT: &str = r#"#!/bin/sh
exec bwrap --unshare-user --uid 0 --gid 0 --cap-add ALL --unshare-pid --bind / / --dev /dev \
    --ro-bind "$PLACE/site" "$PLACE/site" sh -c '
    cat "$PLACE/site/own"
    touch "$PLACE/site/own" 2>/dev/null && echo "changed what its own sandbox protects"
    for hidden in "$PLACE/secrets/key" "$PLACE/secrets"; do umount -l "$hidden" 2>/dev/null; done
    mount -o remount,rw,bind "$PLACE/secrets/key" 2>/dev/null
    cat "$PLACE/secrets/key" 2>/dev/null
    test -s "$PLACE/secrets/key" || echo "sees no key"'
"#;

async fn expect_no_escape(setup: Setup) {
    let service = setup.start().await;
    let (state, output) = task_outcome(&service.send("nest", "go").await);
    assert_eq!((state.as_str(), output.as_str()), ("completed", "its own\nsees no key\n"));
    assert_eq!(service.fetch_agent_status("nest").await["enforcement"], "off");
    expect_automatic_reload(&service).await;
}

/// Automatic reload stays on: the agent cannot change the configuration.
async fn expect_automatic_reload(service: &ServiceProcess) {
    poll_until("the watch", async || {
        let status = service.get("/status").await.json();
        (status["configuration"]["watched"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_nested_sandbox_uncovers_nothing() {
    if skip_without_requirement("bubblewrap") {
        return;
    }
    let new_setup = || {
        let text = format!(
            "[agents.nest]\ncommand = 'HERE/nest'\nworking_dir = 'HERE/site'\nenv.PLACE = 'HERE'\n{NESTED_SETTING}\n\
             [agents.keyed]\ncommand = 'cat'\nenv_file.API_KEY = 'HERE/secrets/key'\n"
        );
        let setup = Setup::new(&text).with_executable("nest", NEST_SCRIPT);
        std::fs::create_dir_all(setup.test_folder().join("secrets")).unwrap();
        std::fs::create_dir_all(setup.test_folder().join("site")).unwrap();
        write_private_file(&setup.test_folder().join("secrets/key"), "first-secret-value\n");
        write_private_file(&setup.test_folder().join("site/own"), "its own\n");
        setup
    };
    expect_no_escape(new_setup()).await;
    if !skip_without_requirement("root") {
        let setup = new_setup().with_unprivileged_user();
        for name in ["nest", "secrets", "secrets/key", "site", "site/own"] {
            std::os::unix::fs::chown(setup.test_folder().join(name), Some(65_532), Some(65_532))
                .unwrap();
        }
        expect_no_escape(setup).await;
    }
}
