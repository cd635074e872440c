//! `algonius serve`: starts the service, prints its address, and stops or hands over on a signal.

mod notify;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use nix::unistd::geteuid;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::configuration::{ConfigLocation, ConfigOrigin};
use super::error::CliError;
use crate::config::{ConfigFault, ConfigSource, LoadedConfig, LogFormat, ServerSettings, Settings};
use crate::observe::logging::{self, LineFormat, LogHandle};
use crate::platform::login_session;
use crate::{InheritedProcessState, RunningService, start_with_source};
use notify::SystemdNotifier;

/// Serves until SIGTERM or SIGINT, then drains; a second signal kills running executions. SIGHUP reloads the
/// configuration. SIGUSR2 stops the service for the next binary, which takes over the running executions.
pub(super) async fn run(
    config_location: &ConfigLocation,
    listen_override: Option<SocketAddr>,
    inherited_state: &InheritedProcessState,
) -> Result<(), CliError> {
    let source =
        ConfigSource::new(config_location.file.as_deref()).with_listen_address(listen_override);
    let LoadedConfig { settings, warnings } =
        source.read().map_err(CliError::InvalidConfiguration)?;
    let log_handle = init_logging(&settings, &warnings);
    warn_of_inherited_state(inherited_state);
    let result =
        serve_until_stopped((source, settings), config_location, listen_override, &log_handle)
            .await;
    // An error is printed after the lines that explain it.
    log_handle.flush();
    result
}

async fn serve_until_stopped(
    (source, settings): (ConfigSource, Settings),
    config_location: &ConfigLocation,
    listen_override: Option<SocketAddr>,
    log_handle: &LogHandle,
) -> Result<(), CliError> {
    if listen_override.is_some() {
        warn_about_plain_http(&settings.server);
    }
    warn_of_root();
    warn_of_runtime_dir_removal(&settings.server);
    let mut signals = register_stop_signals()?;
    let mut upgrade_signal = register_signal(SignalKind::user_defined2())?;
    let mut hangup = register_signal(SignalKind::hangup())?;
    let drain_timeout = settings.server.drain_timeout;
    let agent_descriptions: Vec<_> =
        settings.agents.iter().map(|agent| describe_agent(&agent.spec)).collect();
    let token_file = settings.server.token_file.clone();
    let service = start_with_source(source, settings).await?;
    log_handle.export_to(service.instruments());
    let mut level_changes = service.watch_log_level();
    log_handle.write_plain_text(&banner(
        &service,
        config_location,
        &token_file,
        &agent_descriptions,
    ));
    let notifier = SystemdNotifier::from_env();
    notifier.notify_ready(service.scheme(), service.address());
    loop {
        tokio::select! {
            () = wait_for_stop_signal(&mut signals) => {
                notifier.notify_stopping();
                drain_or_kill(service, drain_timeout, &mut signals).await;
                return Ok(());
            }
            _ = upgrade_signal.recv() => {
                hand_over(service, log_handle).await;
                return Ok(());
            }
            _ = hangup.recv() => service.reload("SIGHUP"),
            Ok(()) = level_changes.changed() => log_handle.set_level(*level_changes.borrow_and_update()),
        }
    }
}

fn warn_of_inherited_state(inherited_state: &InheritedProcessState) {
    let InheritedProcessState { suppressed_signals, replaced_umask, insufficient_limits } =
        inherited_state;
    if !suppressed_signals.is_empty() {
        let signals = suppressed_signals.join(", ");
        tracing::warn!(%signals, "the parent process ignored or blocked signals; they act again");
    }
    if let Some((inherited, used)) = replaced_umask {
        let (inherited, used) = (format!("{inherited:04o}"), format!("{used:04o}"));
        tracing::warn!(%inherited, %used, "the inherited umask was changed, also for agents");
    }
    for limit in insufficient_limits {
        let (description, remedy) = (&limit.description, &limit.remedy);
        tracing::warn!(%remedy, "the system lets the service and its agents use only {description}");
    }
}

fn warn_of_root() {
    if geteuid().is_root() {
        tracing::warn!(
            "the service runs as root; give agents users of their own (`user`), or run it as another user"
        );
    }
}

/// Warns that the runtime folder is removed while the service runs.
fn warn_of_runtime_dir_removal(server: &ServerSettings) {
    if login_session::is_bound_to_login_session(&server.runtime_dir) {
        tracing::warn!(
            folder = %server.runtime_dir.display(),
            "the system removes the runtime folder when you log out, and the service then starts no agent; run \
             `loginctl enable-linger`, install the service by `algonius service install`, or set `server.runtime_dir`"
        );
    }
}

/// Warns about plain HTTP on the address of the command line; the configuration warns about its own address.
fn warn_about_plain_http(server: &ServerSettings) {
    let is_secured = server.tls.is_some() || !server.request_access.trusted_proxies.is_empty();
    if !server.listen_address.ip().is_loopback() && !is_secured {
        let address = server.listen_address;
        tracing::warn!(%address, "connections are not encrypted; set `server.tls`");
    }
}

fn init_logging(settings: &Settings, warnings: &[ConfigFault]) -> LogHandle {
    let format = match settings.observability.log.format {
        LogFormat::Auto => LineFormat::Auto,
        LogFormat::Human => LineFormat::Human,
        LogFormat::Json => LineFormat::Json,
    };
    let log_handle = logging::init(format, settings.observability.log.level);
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    log_handle
}

/// Lets running executions finish. A second signal kills them.
async fn drain_or_kill(
    service: RunningService,
    drain_timeout: Duration,
    signals: &mut [Signal; 2],
) {
    tracing::info!(deadline_s = drain_timeout.as_secs_f64(), "draining");
    let (kill_sender, kill_receiver) = watch::channel(false);
    let second_signal = async {
        wait_for_stop_signal(signals).await;
        tracing::warn!("second signal: killing all running programs");
        kill_sender.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = service.stop_or_kill(drain_timeout, kill_receiver) => tracing::info!("stopped"),
        () = second_signal => {}
    }
}

fn register_stop_signals() -> Result<[Signal; 2], CliError> {
    Ok([register_signal(SignalKind::terminate())?, register_signal(SignalKind::interrupt())?])
}

fn register_signal(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|source| CliError::Input { source })
}

/// Reports the executions that remain for the next service, and for how long.
async fn hand_over(service: RunningService, log_handle: &LogHandle) {
    tracing::info!("handing over");
    let handover = service.hand_over().await;
    log_handle.write_plain_text(&format!(
        "ended for the next service: {} running go on for {} s (reattach_grace) until it is there, \
         {} end (on_supervisor_loss)",
        handover.running,
        handover.reattach_grace.as_secs_f64(),
        handover.ending,
    ));
}

async fn wait_for_stop_signal([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Returns the description of an agent in the first lines of the service.
fn describe_agent(spec: &AgentSpec) -> String {
    let id = &spec.id;
    match spec.unavailable_reason() {
        Some(reason) => format!("{id} (unavailable: {reason})"),
        None => id.to_string(),
    }
}

fn banner(
    service: &RunningService,
    config_location: &ConfigLocation,
    token_file: &Path,
    agent_descriptions: &[String],
) -> String {
    let (url, token_file) =
        (format!("{}://{}", service.scheme(), service.address()), token_file.display());
    let config = match &config_location.file {
        Some(file) if config_location.origin == ConfigOrigin::Named => file.display().to_string(),
        Some(_) => config_location.describe(),
        None => "shipped (`algonius init` writes one of your own)".to_owned(),
    };
    let available_agent = agent_descriptions
        .iter()
        .find(|agent| !agent.contains(' '))
        .or_else(|| agent_descriptions.first());
    let agent = available_agent.and_then(|agent| agent.split(' ').next()).unwrap_or("echo");
    format!(
        r#"algonius {version} is ready on {url}{public}
  agents  {agents}
  config  {config}
  token   {token_file}

Ask an agent:
  algonius send {agent} hello --url {url} --token-file {token_file}
or from any program:
  curl -s {url}/agents/{agent}/v1 -H "Authorization: Bearer $(cat {token_file})" \
    -H 'Content-Type: application/json' -d '{{"jsonrpc":"2.0","id":1,"method":"message/send",
    "params":{{"message":{{"kind":"message","role":"user","messageId":"'$(date +%s%N)'",
    "parts":[{{"kind":"text","text":"hello"}}]}}}}}}'"#,
        version = env!("CARGO_PKG_VERSION"),
        public = if service.public_url() == url {
            String::new()
        } else {
            format!(", for others {}", service.public_url())
        },
        agents = agent_descriptions.join(", "),
    )
}
