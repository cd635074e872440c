//! How a request comes in: checked, put in line, recorded, answered, begun.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::ActorRef;
use tokio::sync::watch;

use super::leaning::is_good;
use super::leaving::removed;
use super::{AgentData, AgentMsg, Recording, Submission, Ticket, Waiting};
use crate::alarm::alarmed;
use crate::decide::admission::{Effect, Event as Arrival, step};
use crate::decide::allowance;
use crate::decide::execution::Event;
use crate::decide::keep::keep;
use crate::execution::Resumption;
use crate::kit::Kit;
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::event::Channel;
use crate::model::execution::{Stamp, State};
use crate::model::exposure::MessageIds;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::model::record::Record;
use crate::model::request::{Keys, Request, Trigger};
use crate::model::trace::Trace;
use crate::ports::ledger::{Accept, Acceptance, LedgerError, Resume};
use crate::recover::settle_unheard;

impl AgentData {
    /// Lets a request in, or refuses it at once. An answer that comes while the actor that asked
    /// is still letting go waits for that.
    pub(super) fn submit(&mut self, me: &ActorRef<AgentMsg>, submission: Submission) {
        let held =
            submission.continues.as_ref().filter(|record| self.live.contains_key(&record.id));
        if let Some(record) = held {
            self.early.insert(record.id, Box::new(submission));
            return;
        }
        let Submission { request, continues, span, reply } = submission;
        if let Err(failure) = self.check(&request, continues.as_ref()) {
            self.counts.refused();
            _ = reply.send(Err(failure));
            return;
        }
        let id = continues.as_ref().map_or_else(ExecutionId::fresh, |record| record.id);
        let from = continues.map_or_else(Resumption::fresh, |record| Resumption::asked(&record));
        let one = Waiting {
            request: Arc::new(request),
            reply: Some(reply),
            progress: watch::Sender::new(Progress::accepted()),
            since: self.args.kit.clock.now(),
            span,
            due: self.due(Duration::ZERO),
            from,
            equal: None,
            parked: None,
            probe: None,
        };
        self.waiting.insert(id, one);
        self.arrive(me, Arrival::Arrived(id));
    }

    fn check(&self, request: &Request, continues: Option<&Record>) -> Result<(), Failure> {
        let spec = &self.args.spec;
        let (given, limit) = (request.input.size(), spec.sizes.input);
        if !spec.enabled && continues.is_none() {
            Err(Failure::new(Code::AgentDisabled, format!("agent `{}` is disabled", spec.id)))
        } else if self.draining.is_some() {
            Err(Failure::new(Code::Draining, "the service is stopping"))
        } else if self.leaving.is_some() {
            Err(removed(&spec.id))
        } else if given > limit {
            let message = format!("the input has {given} bytes, agent `{}` takes {limit}", spec.id);
            Err(Failure::new(Code::InputTooLarge, message))
        } else if let Err(refused) =
            allowance::check(&spec.allowance, &request.overrides(), &self.args.kit.redactor.now())
        {
            Err(refused)
        } else if let Err(refused) = self.within_budget() {
            Err(refused)
        } else if continues.is_some_and(|record| self.waiting.contains_key(&record.id)) {
            Err(closed())
        } else if let Some(refusal) = self.pressed().filter(|_| continues.is_none()) {
            Err(refusal)
        } else {
            Ok(())
        }
    }

    /// An execution of an earlier life takes its place again.
    pub(super) fn recovered(
        &mut self,
        me: &ActorRef<AgentMsg>,
        record: &Record,
        request: Arc<Request>,
    ) {
        let (since, from) = match record.state {
            State::Waiting => (record.changed_at, Resumption::asked(record)),
            _ => (record.accepted_at, Resumption::fresh()),
        };
        let progress = watch::Sender::new(Progress::accepted());
        let one = Waiting {
            request,
            reply: None,
            progress,
            since,
            span: tracing::Span::none(),
            due: self.due(self.waited(since)),
            from,
            equal: None,
            parked: None,
            probe: None,
        };
        self.waiting.insert(record.id, one);
        self.arrive(me, Arrival::Recovered(record.id));
        self.mind_patience(me);
    }

    /// The only place where the line changes, and the only place where its effects are performed.
    pub(super) fn arrive(&mut self, me: &ActorRef<AgentMsg>, event: Arrival) {
        let (line, effects) = step(mem::take(&mut self.line), event);
        self.line = line;
        for effect in effects {
            self.admit(me, effect);
        }
        self.try_credential(me);
        self.mind_places(me);
    }

    fn admit(&mut self, me: &ActorRef<AgentMsg>, effect: Effect) {
        match effect {
            Effect::Record(id) => self.record(me, id),
            Effect::Run(id) => self.run(me, id),
            Effect::Queue(id, position) => {
                self.show_place(id, position);
                self.answer(id, Ok(()));
                self.mind_patience(me);
            }
            Effect::Join(id, twin) => self.join(id, twin),
            Effect::Refuse(id) => {
                self.counts.refused();
                let (agent, depth) = (&self.args.spec.id, self.args.spec.capacity.waiting);
                let message = format!("queue of agent `{agent}` is full ({depth} waiting)");
                self.answer(id, Err(Failure::new(Code::QueueFull, message)));
                self.waiting.remove(&id);
            }
        }
    }

    fn record(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        let Some(one) = self.waiting.get(&id) else {
            return;
        };
        let (me, kit, since) = (me.clone(), self.args.kit.clone(), one.since);
        let (request, spec) = (Arc::clone(&one.request), Arc::clone(&self.args.spec));
        let from = one.from.clone();
        // Not among the tasks that end with this actor: a record that is under way is finished.
        let broken = me.clone();
        let recording = async move {
            let result = match from.state {
                State::Waiting => resume(&kit, &request, id, (&spec, &from), since).await,
                _ => accept(&kit, &request, id, &spec, since).await,
            };
            let is_in = result.as_ref().is_ok_and(|recording| recording.is_in());
            if me.cast(AgentMsg::Recorded(id, result)).is_err() && is_in {
                settle_unheard(&kit, id).await; // A new actor may have looked too early.
            }
        };
        tokio::spawn(alarmed(recording, move || _ = broken.cast(AgentMsg::Broken)));
    }

    /// The ledger has answered: the request is in, is another's twin, or is out.
    pub(super) fn recorded(
        &mut self,
        me: &ActorRef<AgentMsg>,
        id: ExecutionId,
        result: Result<Recording, LedgerError>,
    ) {
        let failure = match result {
            Ok(Recording::In) => return self.heard(me, Arrival::Recorded(id)),
            Ok(Recording::Equal(of)) => return self.lean(me, id, of),
            Ok(Recording::Answered(of)) => return self.take(me, id, of),
            Ok(Recording::Twin(twin)) => return self.heard(me, Arrival::Twin(id, twin)),
            Ok(Recording::Conflict) => reused(),
            Ok(Recording::Closed) => closed(),
            Err(error) => {
                tracing::error!(agent = %self.args.spec.id, %error, "accept failed");
                Failure::new(Code::LedgerUnavailable, "the request could not be recorded")
            }
        };
        self.answer(id, Err(failure));
        self.waiting.remove(&id);
        self.heard(me, Arrival::Left(id));
        self.free_those_who_lean(me, id);
    }

    /// A submitter has its answer: the last one may be what a drain waits for.
    pub(super) fn heard(&mut self, me: &ActorRef<AgentMsg>, event: Arrival) {
        self.arrive(me, event);
        self.tell_drained();
    }

    fn run(&mut self, me: &ActorRef<AgentMsg>, id: ExecutionId) {
        self.answer(id, Ok(()));
        if self.draining.is_some() {
            return; // It stays in the ledger, for the next start.
        }
        if let Some(one) = self.waiting.remove(&id) {
            let patience = self.args.spec.capacity.patience;
            self.counts.begun(&one, patience, self.line.running().len());
            let first = match (self.within_budget(), one.from.state) {
                (Err(failure), _) => Event::Denied { failure },
                (Ok(()), State::Waiting) => Event::Answered,
                (Ok(()), State::Failed) => Event::RetryDue { at: one.from.stamp },
                (Ok(()), _) => Event::Begin,
            };
            self.begin(me, id, one, first);
        }
    }

    /// Answers the submitter, once.
    fn answer(&mut self, id: ExecutionId, result: Result<(), Failure>) {
        let Some(one) = self.waiting.get_mut(&id) else {
            return;
        };
        let Some(reply) = one.reply.take() else {
            return;
        };
        let progress = Some(one.progress.subscribe());
        _ = reply.send(result.map(|()| Ticket {
            execution: id,
            joined: false,
            progress,
            ended: None,
        }));
    }

    fn join(&mut self, id: ExecutionId, twin: ExecutionId) {
        let progress = self.watch(twin);
        if let Some(reply) = self.waiting.remove(&id).and_then(|one| one.reply) {
            _ = reply.send(Ok(Ticket { execution: twin, joined: true, progress, ended: None }));
        }
    }
}

/// The refusal of a message whose id was used before.
pub(crate) fn reused() -> Failure {
    Failure::new(Code::MessageReused, "this message id or key was used for another message")
}

/// The refusal of an answer that nobody asked for.
pub(crate) fn closed() -> Failure {
    Failure::new(Code::Unsupported, "the task has not asked for input")
}

/// The params of a request, redacted, and whether redaction left them as they were.
fn params(kit: &Kit, request: &Request) -> (BTreeMap<String, String>, bool) {
    let redactor = kit.redactor.now();
    let mask = |text: &str| redactor.redact(text).into_owned();
    let given = &request.input.params;
    let params: BTreeMap<_, _> =
        given.iter().map(|(name, value)| (name.clone(), mask(value))).collect();
    let is_whole = params == *given;
    (params, is_whole)
}

/// Where in a trace a request is asked. What systems on the way have to say goes where it looks like
/// a secret.
fn trace(kit: &Kit, request: &Request) -> Option<Trace> {
    let Trace { state, .. } = request.trace.as_ref()?;
    let is_plain = kit.redactor.now().redact(state) == *state;
    let state = if is_plain { state.clone() } else { String::new() };
    request.trace.clone().map(|trace| Trace { state, ..trace })
}

/// Records a new request: all text of it is redacted.
async fn accept(
    kit: &Kit,
    request: &Request,
    id: ExecutionId,
    spec: &AgentSpec,
    at: DateTime<Utc>,
) -> Result<Recording, LedgerError> {
    let (params, is_plain) = params(kit, request);
    let parts = &request.input.parts;
    let kept = keep(parts, &kit.redactor.now(), Stamp::FIRST, Channel::Input, 0);
    let keys = keys(kit, request, spec, (id, Stamp::FIRST.turn));
    let accept = Accept {
        id,
        agent: request.agent.clone(),
        owner: request.owner,
        message: request.message.clone(),
        keys,
        digest: kit.keyring.body(request),
        content: content(kit, request, spec, at),
        context: request.context.clone(),
        trigger: request.trigger.clone(),
        trace: trace(kit, request),
        access: spec.access,
        replayable: kept.is_whole && is_plain,
        input: kept.text,
        pieces: kept.pieces,
        params,
        overrides: request.overrides(),
        at,
    };
    Ok(match kit.ledger.accept(accept).await? {
        Acceptance::Fresh => Recording::In,
        Acceptance::Equal(of) if is_good(&kit.ledger, of).await => Recording::Answered(of),
        Acceptance::Equal(of) => Recording::Equal(of),
        Acceptance::Twin(twin) => Recording::Twin(twin),
        Acceptance::Conflict => Recording::Conflict,
    })
}

/// Under what a turn of an execution is known.
fn keys(kit: &Kit, request: &Request, spec: &AgentSpec, (id, turn): (ExecutionId, u32)) -> Keys {
    let mut keys = kit.keyring.keys(request);
    if spec.exposure.message_ids == MessageIds::Reused && request.trigger == Trigger::Api {
        keys.message = kit.keyring.key_of(id, turn);
    }
    keys
}

/// By what an equal request is found, where the agent wants that. Who names its requests knows
/// them apart.
fn content(
    kit: &Kit,
    request: &Request,
    spec: &AgentSpec,
    at: DateTime<Utc>,
) -> Option<([u8; 32], DateTime<Utc>)> {
    let window = spec.dedup_window.filter(|_| request.idempotency.is_none())?;
    let is_asked = match request.trigger {
        Trigger::Api => true,
        Trigger::Schedule { .. } => false, // Each of its times is meant.
        Trigger::Probe => false,           // An answer of earlier would tell nothing.
    };
    let since = at.checked_sub_signed(TimeDelta::from_std(window).ok()?)?;
    is_asked.then(|| (kit.keyring.content(request), since))
}

/// Records the answer to a question.
async fn resume(
    kit: &Kit,
    request: &Request,
    id: ExecutionId,
    (spec, from): (&AgentSpec, &Resumption),
    at: DateTime<Utc>,
) -> Result<Recording, LedgerError> {
    let (params, is_plain) = params(kit, request);
    let stamp = from.stamp.continued();
    let kept = keep(&request.input.parts, &kit.redactor.now(), stamp, Channel::Input, 0);
    let resume = Resume {
        id,
        agent: request.agent.clone(),
        owner: request.owner,
        fence: from.fence,
        stamp,
        message: request.message.clone(),
        keys: keys(kit, request, spec, (id, stamp.turn)),
        digest: kit.keyring.body(request),
        replayable: kept.is_whole && is_plain,
        input: kept.text,
        pieces: kept.pieces,
        params,
        overrides: request.overrides(),
        at,
    };
    let taken = kit.ledger.resume(resume).await?;
    Ok(if taken { Recording::In } else { Recording::Closed })
}
