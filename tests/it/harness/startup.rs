//! The start of a service, up to the banner that contains its address.

use std::fs;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

use super::client::ServiceClient;
use super::service::{CommandOutput, Setup};
use super::wait::within_deadline;

/// Starts the program and waits for its banner, or for its exit.
pub(super) async fn start_process(
    setup: &Setup,
) -> Result<(Child, ServiceClient, watch::Receiver<String>), CommandOutput> {
    let config_file = setup.write_config().display().to_string();
    let args = ["serve", "--config", &config_file, "--listen", &setup.listen_address];
    let mut child = setup.command(&args).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (sender, mut stderr) = watch::channel(String::new());
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|text| text.extend([line.as_str(), "\n"]));
        }
    });
    let (address_mark, banner_end) = ("is ready on ", r#""text":"hello"}"#);
    let banner =
        within_deadline("the banner", stderr.wait_for(|text| text.contains(banner_end))).await;
    let Some(banner) = banner.ok().map(|text| text.clone()) else {
        let exit_status =
            within_deadline("the end of what did not start", child.wait()).await.unwrap();
        let stderr = stderr.borrow().clone();
        return Err(CommandOutput { exit_code: exit_status.code(), stdout: String::new(), stderr });
    };
    let line = banner.split(address_mark).nth(1).and_then(|rest| rest.lines().next()).unwrap();
    // The public address may follow in the same line.
    let address = line.split("://").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let token = fs::read_to_string(setup.token_file()).unwrap().trim().to_owned();
    Ok((child, ServiceClient { address: address.parse().unwrap(), token }, stderr))
}
