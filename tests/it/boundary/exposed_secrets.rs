//! Files with secrets that other users of the machine can read: the service does not start with them, and an agent with
//! a user of its own is kept away from those that it may read.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::trust::{expect_refusal_and_repair, set_mode};
use super::users::{AGENT_USER_AND_ID, with_open_folder};
use crate::harness::certificate_authority::CertificateAuthority;
use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};
use crate::read_only::skip_without_requirement;

const SECRET: &str = "a-secret-that-is-long-enough-for-a-token";

/// Returns a setup in folders that everyone can pass, with a secret in the file `secret`.
fn open_setup(agent_settings: &str, other_tables: &str, mode: u32) -> (Setup, PathBuf) {
    let text = format!(
        "[agents.one]\ncommand = 'cat'\n{agent_settings}\n{other_tables}\n[pressure]\nenabled = false\n"
    );
    let setup = with_open_folder(Setup::new(&text));
    let secret = setup.test_folder().join("secret");
    fs::write(&secret, SECRET).unwrap();
    set_mode(&secret, mode);
    (setup, secret)
}

#[tokio::test]
async fn secrets_that_others_can_read_stop_the_start() {
    for (agent_settings, other_tables) in [
        ("env_file.KEY = 'HERE/secret'", ""),
        ("", "[tokens.ci]\ntoken_file = 'HERE/secret'"),
        ("", "[redaction]\nsecret_files = ['HERE/secret']"),
        (
            "",
            "[alerts]\nwebhook = 'http://127.0.0.1:9/'\nallow = ['127.0.0.1/32']\nwebhook_secret_file = 'HERE/secret'",
        ),
        (
            "",
            "[agents.far]\nkind = 'remote'\n[agents.far.remote]\nurl = 'http://127.0.0.1:9/'\n\
             token_file = 'HERE/secret'",
        ),
    ] {
        let (setup, secret) = open_setup(agent_settings, other_tables, 0o644);
        // The URL of a webhook is a secret, too.
        set_mode(setup.write_config(), 0o600);
        // The service does not start with a file with a secret that other users can read
        expect_refusal_and_repair(setup, &secret, "is readable by other users").await;
    }
}

#[tokio::test]
async fn a_configuration_with_a_secret_is_closed_to_others() {
    const REASON: &str = "contains a secret, and other users can read it";
    let (setup, _) = open_setup("env.API_KEY = 'inline-secret'", "", 0o600);
    let config = setup.write_config().to_owned();
    // The service does not start with a file with a secret that other users can read
    expect_refusal_and_repair(setup, &config, REASON).await;
    let (setup, _) = open_setup("", "", 0o600);
    let presets = setup.config_sibling_path("presets");
    fs::create_dir(&presets).unwrap();
    let preset = presets.join("spare.toml");
    fs::write(&preset, "[about]\n[agent]\ncommand = 'cat'\nenv.API_KEY = 'inline-secret'\n")
        .unwrap();
    expect_refusal_and_repair(setup, &preset, REASON).await;
    // Without a secret both may be read by others, and a preset that cannot be parsed may be anything.
    let (setup, _) = open_setup("", "", 0o600);
    let presets = setup.config_sibling_path("presets");
    fs::create_dir(&presets).unwrap();
    fs::write(presets.join("spare.toml"), "not toml").unwrap();
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
}

#[tokio::test]
async fn a_tls_key_that_others_can_read_stops_the_start() {
    let settings = "tls = { cert = 'HERE/cert.pem', key = 'HERE/key.pem' }\n";
    let setup = Setup::with_server_settings(settings, "[agents.one]\ncommand = 'cat'\n");
    CertificateAuthority::new().issue(&["localhost"]).write_files(setup.test_folder());
    let key = setup.test_folder().join("key.pem");
    set_mode(&key, 0o644);
    let (setup, output) = setup.try_start().await.err().unwrap();
    let repair_command = format!("chmod 600 {}", key.display());
    let expected = format!(
        "server.tls.key: {} is accessible to other users; run `{repair_command}`",
        key.display()
    );
    assert!(output.stderr.contains(&expected), "{output:?}");
    let repair = std::process::Command::new("sh").args(["-c", &repair_command]).status().unwrap();
    assert!(repair.success());
    assert!(setup.try_start().await.is_ok());
}

/// The service of a user without rights cannot change the mode of a file of root, and must be able to read it.
#[tokio::test]
async fn a_secret_of_root_is_closed_for_the_services_group() {
    if skip_without_requirement("root") {
        return;
    }
    let (setup, secret) = open_setup("env_file.KEY = 'HERE/secret'", "", 0o644);
    let setup = setup.with_unprivileged_user();
    let secret_file = fs::File::open(&secret).unwrap(); // The folder is removed with the service.
    expect_refusal_and_repair(setup, &secret, "is readable by other users").await;
    let metadata = secret_file.metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (0, 65_532, 0o640));
}

/// Root that checks the configuration of a service must not take a file from the user of the service.
#[tokio::test]
async fn the_check_prints_the_command_for_the_user_of_the_unit() {
    if skip_without_requirement("root") {
        return;
    }
    let (setup, secret) = open_setup("env_file.KEY = 'HERE/secret'", "", 0o644);
    let config = setup.write_config().display().to_string();
    let unit_folder = setup.test_folder().join("home/.config/systemd/user");
    fs::create_dir_all(&unit_folder).unwrap();
    let unit = format!(
        "# algonius as a service of systemd, as `algonius service install` writes it.\n[Service]\n\
         User=daemon\nExecStart=/bin/algonius serve --config {config}\n"
    );
    fs::write(unit_folder.join("algonius.service"), unit).unwrap();
    let command = format!("chgrp daemon {0} && chmod 640 {0}", secret.display());
    let check = setup.run_command(&["check", &config], "").await;
    assert!(check.stderr.contains(&format!("run `{command}`")), "{check:?}");
    let doctor = setup.run_command(&["doctor", &config], "").await;
    assert!(doctor.stdout.contains(&format!("fix: {command}")), "{doctor:?}");
    fs::remove_dir_all(&unit_folder).unwrap();
    let check = setup.run_command(&["check", &config], "").await;
    assert!(check.stderr.contains(&format!("run `chmod 600 {}`", secret.display())), "{check:?}");
}

#[tokio::test]
async fn the_environment_of_a_unit_is_closed_to_others() {
    let (setup, _) = open_setup("", "", 0o600);
    let environment = setup.config_sibling_path("environment");
    fs::write(&environment, "PATH=/usr/bin\nAPI_KEY=\n").unwrap();
    set_mode(&environment, 0o644);
    let config = setup.write_config().display().to_string();
    let check = setup.run_command(&["check", &config], "").await;
    assert!(!check.stderr.contains("refuses to start"), "it contains no secret: {check:?}");
    fs::write(&environment, "PATH=/usr/bin\nAPI_KEY=abcdefgh\n").unwrap();
    expect_refusal_and_repair(setup, &environment, "is readable by other users").await;
    let (setup, _) = open_setup("", "", 0o600);
    let environment = setup.config_sibling_path("environment");
    fs::write(&environment, b"PATH=/usr/bin:\xFF\n").unwrap();
    set_mode(&environment, 0o644);
    expect_refusal_and_repair(setup, &environment, "is readable by other users").await;
}

/// A folder that others cannot pass protects what is in it.
#[tokio::test]
async fn a_secret_in_a_closed_folder_may_have_any_mode() {
    let (setup, _) = open_setup("env_file.KEY = 'HERE/closed/secret'", "", 0o600);
    let closed = setup.test_folder().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("secret"), SECRET).unwrap();
    set_mode(&closed.join("secret"), 0o644);
    set_mode(&closed, 0o700);
    let service = setup.start().await;
    assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
    let config = service.setup.write_config().display().to_string();
    let check = service.setup.run_command(&["check", &config], "").await;
    assert!(!check.stderr.contains("secret"), "{check:?}");
}

/// The service continues with the settings that it has.
#[tokio::test]
async fn a_reload_refuses_a_secret_that_others_can_read() {
    let (setup, secret) = open_setup("", "", 0o644);
    let service = setup.start().await;
    let config = service.setup.config_sibling_path("supervisor.toml");
    let text = fs::read_to_string(&config).unwrap();
    let changed_agent = format!("command = 'cat'\nenv_file.KEY = '{}'", secret.display());
    fs::write(&config, text.replace("command = 'cat'", &changed_agent)).unwrap();
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!(reload.exit_code, Some(4), "{reload:?}");
    assert!(
        reload.stderr.contains("a secret file: `secret` is readable by other users"),
        "{reload:?}"
    );
    assert!(!reload.stderr.contains(&secret.display().to_string()), "a path: {reload:?}");
    assert_eq!(task_outcome(&service.send("one", "hello").await), completed_outcome("hello"));
    set_mode(&secret, 0o600);
    assert_eq!(service.run_command(&["reload"], "").await.exit_code, Some(0));
}

/// Nobody can change the mode of a secret that a container engine has mounted.
#[tokio::test]
async fn secrets_that_a_container_engine_mounts_are_accepted() {
    if skip_without_requirement("root") {
        return;
    }
    // Other users can enter the mount, but not the folder from which it is mounted.
    let read_only_mount = "mount --bind \"$0/closed/source\" \"$0/mounted\" && \
                           mount -o remount,bind,ro \"$0/mounted\" && exec \"$@\"";
    let run_secrets = "mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/secrets && \
                       cp \"$0/closed/source/secret\" /run/secrets/ && exec \"$@\"";
    for (mount, path) in
        [(read_only_mount, "HERE/mounted/secret"), (run_secrets, "/run/secrets/secret")]
    {
        let (setup, secret) = open_setup(&format!("env_file.KEY = '{path}'"), "", 0o644);
        let test_folder = setup.test_folder().to_owned();
        fs::create_dir(test_folder.join("mounted")).unwrap();
        let source = test_folder.join("closed/source");
        fs::create_dir_all(&source).unwrap();
        fs::rename(secret, source.join("secret")).unwrap();
        set_mode(&test_folder.join("closed"), 0o700);
        let args = ["unshare", "--mount", "sh", "-c", mount, test_folder.to_str().unwrap()];
        let service = setup.with_launcher(&args).start().await;
        let task = service.send("one", "hello").await;
        assert_eq!(task_outcome(&task), completed_outcome("hello"), "{path}");
    }
}

#[tokio::test]
async fn a_secret_that_is_mounted_at_an_open_place_is_refused() {
    if skip_without_requirement("root") {
        return;
    }
    let mount = "mount --bind \"$0/closed/source\" \"$0/mounted\" && exec \"$@\"";
    let (setup, secret) = open_setup("env_file.KEY = 'HERE/closed/source/secret'", "", 0o644);
    let test_folder = setup.test_folder().to_owned();
    let source = test_folder.join("closed/source");
    fs::create_dir_all(&source).unwrap();
    fs::create_dir(test_folder.join("mounted")).unwrap();
    fs::rename(secret, source.join("secret")).unwrap();
    set_mode(&test_folder.join("closed"), 0o700);
    let args = ["unshare", "--mount", "sh", "-c", mount, test_folder.to_str().unwrap()];
    let (_, output) = setup.with_launcher(&args).try_start().await.err().unwrap();
    let repair_command = format!("chmod 600 {}", test_folder.join("mounted/secret").display());
    assert!(output.stderr.contains(&repair_command), "{output:?}");
}

/// A unit of systemd has a read-only view (`ProtectSystem`) of files that other users can change.
#[tokio::test]
async fn a_read_only_view_of_a_unit_protects_nothing() {
    if skip_without_requirement("root") {
        return;
    }
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    for (secret_mode, config_mode, expected) in [
        (0o644, 0o600, "is readable by other users; run `chmod 600 "),
        (0o600, 0o666, "is writable by other users; run `chmod go-w "),
    ] {
        let (setup, secret) = open_setup("env_file.KEY = 'HERE/config/secret'", "", secret_mode);
        let folder = setup.test_folder().join("config");
        fs::create_dir(&folder).unwrap();
        fs::rename(&secret, folder.join("secret")).unwrap();
        let config = folder.join("supervisor.toml");
        fs::copy(setup.write_config(), &config).unwrap();
        set_mode(&config, config_mode);
        let args = ["unshare", "--mount", "sh", "-c", mount, folder.to_str().unwrap()];
        let setup = setup.with_config_file(&config).with_launcher(&args);
        let (_, output) = setup.env("INVOCATION_ID", "1").try_start().await.err().unwrap();
        assert!(output.stderr.contains(expected), "{output:?}");
    }
}

/// Place of a secret in a folder of its own.
const SECRET_PATH: &str = "HERE/keys/secret";

/// Returns a setup with a secret that root has given to the group of the agent's user, and an agent that counts the
/// bytes that it can read.
fn setup_with_group_secret(path: &str, settings: &str, mode: u32) -> Setup {
    let (user, gid) = AGENT_USER_AND_ID;
    let script = format!("wc -c < {path} 2>/dev/null || echo closed");
    let agent = format!(
        "[agents.reader]\nuser = '{user}'\ncommand = 'sh'\nargs = ['-c', '{script}']\nworking_dir = '/'\n{settings}\n"
    );
    let (setup, initial_file) = open_setup(&format!("env_file.KEY = '{path}'"), &agent, mode);
    let secret = PathBuf::from(path.replace("HERE", setup.test_folder().to_str().unwrap()));
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    fs::rename(initial_file, &secret).unwrap();
    chown(&secret, Some(0), Some(gid)).unwrap();
    setup
}

async fn reader_result(service: &ServiceProcess) -> (String, Value) {
    let (state, text) = task_outcome(&service.send("reader", "go").await);
    assert_eq!(state, "completed");
    (text, service.fetch_agent_status("reader").await["boundary"].clone())
}

#[tokio::test]
async fn a_secret_of_the_agents_group_is_hidden_or_a_gap() {
    if skip_without_requirement("root") || skip_without_requirement("Landlock 6") {
        return;
    }
    let closed = json!({"level": "own-user"});
    let open = json!({"level": "own-user", "gaps": ["service-files"]});
    let secret_length = format!("{}\n", SECRET.len());
    let data_path = "HERE/../service/state/algonius/keys/secret";
    for (path, settings, mode, expected) in [
        (SECRET_PATH, "access = 'read-write'", 0o640, (secret_length.as_str(), &open)),
        (SECRET_PATH, "access = 'read-write'", 0o600, ("closed\n", &closed)),
        // A read-only agent has a list of files that it may read, with those that it may change.
        (SECRET_PATH, "", 0o640, ("closed\n", &closed)),
        (SECRET_PATH, "sandbox.writable = ['HERE/keys']", 0o640, (&secret_length, &open)),
        (SECRET_PATH, "sandbox.enforce = false", 0o640, (&secret_length, &open)),
        (data_path, "access = 'read-write'", 0o640, (&secret_length, &open)),
    ] {
        let setup = setup_with_group_secret(path, settings, mode).without_bubblewrap();
        let (text, boundary) = reader_result(&setup.start().await).await;
        // An agent with its own user reads no secret file of its group, or has the gap `service-files`
        assert_eq!((text.as_str(), &boundary), expected, "{path} {settings} {mode:o}");
    }
    let settings = "access = 'read-write'\nsandbox.required = true";
    let setup = setup_with_group_secret(SECRET_PATH, settings, 0o640).without_bubblewrap();
    let (_, output) = setup.try_start().await.err().unwrap();
    assert!(output.stderr.contains("read the service's token"), "{output:?}");
}

/// The service restores the closed mode of a secret file while it runs. A requested reload accepts the present mode,
/// and decides about the gaps again.
#[tokio::test]
async fn a_reload_decides_again_about_modes() {
    if skip_without_requirement("root") || skip_without_requirement("Landlock 6") {
        return;
    }
    let setup = setup_with_group_secret(SECRET_PATH, "access = 'read-write'", 0o600);
    let service = setup.without_bubblewrap().start().await;
    assert_eq!(reader_result(&service).await.1, json!({"level": "own-user"}));
    set_mode(&service.setup.test_folder().join("keys/secret"), 0o640);
    let config = service.setup.config_sibling_path("supervisor.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("'cat'", "'/bin/cat'")).unwrap();
    let reload = service.run_command(&["reload"], "").await;
    let boundary = reader_result(&service).await.1;
    assert_eq!(boundary, json!({"level": "own-user", "gaps": ["service-files"]}), "{reload:?}");
}

#[tokio::test]
async fn bubblewrap_hides_a_secret_of_the_agents_group() {
    if skip_without_requirement("root") || skip_without_requirement("bubblewrap") {
        return;
    }
    let service =
        setup_with_group_secret(SECRET_PATH, "access = 'read-write'", 0o640).start().await;
    let (text, boundary) = reader_result(&service).await;
    // An agent with its own user reads no secret file of its group, or has the gap `service-files`
    assert_eq!((text.as_str(), boundary), ("0\n", json!({"level": "own-user"})));
}
