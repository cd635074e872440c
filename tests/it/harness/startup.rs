//! The start of a service, up to the banner that contains its address.

use std::fs;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

use super::client::ServiceClient;
use super::service::{CommandOutput, Setup};
use super::wait::soon;

/// Starts the program and waits for its banner, or for its exit.
pub(super) async fn start_process(
    setup: &Setup,
) -> Result<(Child, ServiceClient, watch::Receiver<String>), CommandOutput> {
    let config = setup.write().display().to_string();
    let words = ["serve", "--config", &config, "--listen", &setup.listen];
    let mut child = setup.command(&words).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (sender, mut said) = watch::channel(String::new());
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|said| said.extend([line.as_str(), "\n"]));
        }
    });
    let (ready, last) = ("is ready on ", r#""text":"hello"}"#);
    let seen = soon("the banner", said.wait_for(|said| said.contains(last))).await;
    let Some(banner) = seen.ok().map(|said| said.clone()) else {
        let ended = soon("the end of what did not start", child.wait()).await.unwrap();
        let stderr = said.borrow().clone();
        return Err(CommandOutput { code: ended.code(), stdout: String::new(), stderr });
    };
    let line = banner.split(ready).nth(1).and_then(|rest| rest.lines().next()).unwrap();
    // The public address may follow in the same line.
    let address = line.split("://").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let token = fs::read_to_string(setup.token_file()).unwrap().trim().to_owned();
    Ok((child, ServiceClient { address: address.parse().unwrap(), token }, said))
}
