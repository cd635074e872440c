//! Looks at the work of an attempt that seems to have succeeded: at its answer, at the file that it was
//! to make, and with a command that is held as the program was.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::contract::SuccessContract;
use algonius_actors::model::event::Fact;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::Exit;
use algonius_actors::report::{LastWords, Reporter};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::process::Orders;
use super::reach::{Reach, Refusal};
use super::sandbox::{self, Hold};
use crate::form::Form;
use crate::warden::{Launch, Pipe, Spawned, Warden};

/// What is kept of each output of a check that fails, in bytes.
const SAID: usize = 4096;
/// How long its pipes may stay open after all of it has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// What is asked of the work. Settled before the program starts.
#[derive(Default)]
pub(super) struct Proof {
    /// What the answer has to fit.
    pub(super) schema: Option<Value>,
    /// The file that has to be there, and where it may stand.
    pub(super) artifact: Option<(String, Reach)>,
    /// What is run.
    pub(super) check: Option<Check>,
}

/// A command that is run once.
pub(super) struct Check {
    /// How it is held.
    pub(super) hold: Hold,
    /// It, and where it starts.
    pub(super) launch: Launch,
    /// Who starts it.
    pub(super) warden: Arc<dyn Warden>,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Proof {
    /// Whether the contract asks for any.
    pub(super) const fn is_asked(contract: &SuccessContract) -> bool {
        contract.schema.is_some() || contract.artifact.is_some() || contract.check.is_some()
    }

    /// Looks at everything that is asked for. The command is run last, and once.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) async fn show(
        self,
        answer: &str,
        (report, orders): (&Reporter, &mut Orders),
    ) -> Result<(), Failure> {
        let Self { schema, artifact, check } = self;
        if let Some(schema) = schema {
            let fits = Form::read(&schema).and_then(|form| form.fits(answer));
            fits.map_err(|why| Failure::new(Code::SchemaMismatch, format!("the answer {why}")))?;
        }
        if let Some((path, reach)) = artifact {
            made(&path, &reach).await?;
        }
        match check {
            Some(check) => check.run((report, orders)).await,
            None => Ok(()),
        }
    }
}

/// Whether the file is there and holds anything.
async fn made(path: &str, reach: &Reach) -> Result<(), Failure> {
    let why = match reach.read(path, 1, |bytes| bytes.is_empty()).await {
        Ok(false) | Err(Refusal::TooLarge(_)) => return Ok(()),
        Ok(true) => "it is empty",
        Err(refusal) => refusal.clause(),
    };
    let message = format!("the file that it was to make was not found: {why}");
    Err(Failure::new(Code::ArtifactMissing, message))
}

impl Check {
    async fn run(self, (report, orders): (&Reporter, &mut Orders)) -> Result<(), Failure> {
        let Self { hold, launch, warden, limit } = self;
        let launch = sandbox::give_apart(hold, launch).await?;
        let spawned = warden.launch(launch).await.map_err(|error| unstarted(&error))?;
        let Spawned { stdout, stderr, mut ending, tree, .. } = spawned;
        let said = [stdout, stderr].map(|pipe| tokio::spawn(hear(pipe, report.last_words(SAID))));
        let ended = async {
            tokio::select! {
                exit = &mut ending => Some(exit),
                () = orders.stopped() => None,
            }
        };
        let ended = timeout(limit, ended).await;
        tree.kill();
        tree.sweep().await;
        let failed = match ended {
            Ok(Some(Ok(Exit::Code(0)))) => return Ok(()),
            Ok(Some(Ok(Exit::Code(code)))) => failed(&format!("exited with code {code}")),
            Ok(Some(Ok(Exit::Signal(signal)))) => failed(&format!("was killed by signal {signal}")),
            Ok(Some(Err(_lost))) => failed("was lost"),
            Ok(None) => return Err(failed("was called off")),
            Err(_elapsed) => failed(&format!("did not finish within {} s", limit.as_secs_f64())),
        };
        record(said, report).await;
        Err(failed)
    }
}

/// Reads to the end, so that nobody waits for room to write, and keeps the last of it.
async fn hear(mut pipe: Pipe, mut words: LastWords) -> String {
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut piece).await {
        words.take(piece.get(..read).unwrap_or_default());
    }
    words.close()
}

/// Records what a check said that failed. The verdict does not hang on that.
async fn record(said: [JoinHandle<String>; 2], report: &Reporter) {
    let [stdout, stderr] = said.map(|words| async {
        let words = timeout(DRAIN, words).await;
        words.map_or_else(|_held_open| String::new(), Result::unwrap_or_default)
    });
    let (stdout, stderr) = tokio::join!(stdout, stderr);
    if stdout.is_empty() && stderr.is_empty() {
        return;
    }
    if let Err(error) = report.note(Fact::Checked { stdout, stderr }).await {
        tracing::warn!(%error, "what a check said is not recorded");
    }
}

fn failed(how: &str) -> Failure {
    Failure::new(Code::CheckFailed, format!("the check of its work {how}"))
}

fn unstarted(error: &io::Error) -> Failure {
    tracing::error!(%error, "a check is not started");
    failed("could not be started")
}
