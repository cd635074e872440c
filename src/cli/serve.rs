//! `algonius serve`: starts the service, says where it is, stops or hands over when it is told to.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use nix::unistd::geteuid;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::fault::CliError;
use super::notify::Notifier;
use super::out::Out;
use crate::config::{Checked, Fault, LogFormat, Server, Settings, Source};
use crate::telemetry::{self, Form, Tap};
use crate::{Running, start_as};

/// Serves until SIGTERM or SIGINT, then drains; a second signal ends it at once. SIGHUP has the
/// configuration read again. SIGUSR2 ends it for the binary that is started next, which takes up what runs.
pub(super) async fn run(
    file: Option<&Path>,
    listen: Option<SocketAddr>,
    out: &Out,
) -> Result<(), CliError> {
    let source = Source::new(file).listening(listen);
    let Checked { settings, warnings } = source.read().map_err(CliError::Configuration)?;
    let tap = begin_to_log(&settings, &warnings);
    if listen.is_some() {
        warn_of_listeners(&settings.server);
    }
    warn_of_root();
    let mut signals = signals()?;
    let mut upgrade = on(SignalKind::user_defined2())?;
    let mut hangup = on(SignalKind::hangup())?;
    let drain = settings.server.drain_timeout;
    let agents: Vec<_> = settings.agents.iter().map(|agent| agent.spec.id.to_string()).collect();
    let token_file = settings.server.token_file.clone();
    let running = start_as(source, settings).await?;
    tap.lead_to(running.observatory());
    let mut levels = running.levels();
    out.note(&banner(&running, file, &token_file, &agents));
    let notifier = Notifier::of_environment();
    notifier.ready(running.scheme(), running.address());
    loop {
        tokio::select! {
            () = asked_to_stop(&mut signals) => {
                notifier.stopping();
                drain_or_stop(running, drain, &mut signals).await;
                return Ok(());
            }
            _ = upgrade.recv() => {
                hand_over(running, out).await;
                return Ok(());
            }
            _ = hangup.recv() => running.reload("SIGHUP"),
            Ok(()) = levels.changed() => tap.turn(*levels.borrow_and_update()),
        }
    }
}

fn warn_of_root() {
    if geteuid().is_root() {
        tracing::warn!("runs as root, and so do the agents: nothing keeps them from anything");
    }
}

/// The configuration says so of its own address; here another was given.
fn warn_of_listeners(server: &Server) {
    let is_secured = server.tls.is_some() || !server.entry.trusted_proxies.is_empty();
    if !server.listen.ip().is_loopback() && !is_secured {
        let address = server.listen;
        tracing::warn!(%address, "what is said there can be overheard; give `server.tls`");
    }
}

fn begin_to_log(settings: &Settings, warnings: &[Fault]) -> Tap {
    let form = match settings.log.format {
        LogFormat::Auto => Form::Auto,
        LogFormat::Human => Form::Human,
        LogFormat::Json => Form::Json,
    };
    let tap = telemetry::begin(form, settings.log.level);
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    tap
}

/// A second signal ends what the first began.
async fn drain_or_stop(running: Running, deadline: Duration, signals: &mut [Signal; 2]) {
    tracing::info!(deadline_s = deadline.as_secs_f64(), "draining");
    tokio::select! {
        () = running.stop(deadline) => tracing::info!("stopped"),
        () = asked_to_stop(signals) => tracing::warn!("stopped at once"),
    }
}

fn signals() -> Result<[Signal; 2], CliError> {
    Ok([on(SignalKind::terminate())?, on(SignalKind::interrupt())?])
}

fn on(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|source| CliError::Input { source })
}

/// Says what was left to the next service, and for how long it stays.
async fn hand_over(running: Running, out: &Out) {
    tracing::info!("handing over");
    let left = running.hand_over().await;
    out.note(&format!(
        "ended for the next service: {} running go on for {} s (reattach_grace) until it is there, \
         {} end (on_supervisor_loss)",
        left.going_on,
        left.patience.as_secs_f64(),
        left.ending,
    ));
}

async fn asked_to_stop([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn banner(running: &Running, file: Option<&Path>, token: &Path, agents: &[String]) -> String {
    let (url, token) = (format!("{}://{}", running.scheme(), running.address()), token.display());
    let config = file
        .map_or("shipped (`algonius init` writes one of your own)".to_owned(), |file| {
            file.display().to_string()
        });
    let agent = agents.first().map_or("echo", String::as_str);
    format!(
        r#"algonius {version} is ready on {url}{public}
  agents  {agents}
  config  {config}
  token   {token}

Ask an agent:
  algonius send {agent} hello --url {url} --token-file {token}
or from any program:
  curl -s {url}/agents/{agent}/v1 -H "Authorization: Bearer $(cat {token})" \
    -H 'Content-Type: application/json' -d '{{"jsonrpc":"2.0","id":1,"method":"message/send",
    "params":{{"message":{{"kind":"message","role":"user","messageId":"'$(date +%s%N)'",
    "parts":[{{"kind":"text","text":"hello"}}]}}}}}}'"#,
        version = env!("CARGO_PKG_VERSION"),
        public = if running.url() == url {
            String::new()
        } else {
            format!(", for others {}", running.url())
        },
        agents = agents.join(", "),
    )
}
