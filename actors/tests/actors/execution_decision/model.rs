//! Model of an execution that knows the rules: it applies events, and panics when a rule is broken.

use std::time::Duration;

use algonius_actors::decide::execution::{
    ExecutionDeadline, ExecutionEffect, ExecutionEvent, ExecutionPhase, ExecutionPolicy,
    NextAttempt, apply_event,
};
use algonius_actors::decide::retry::{
    FailedAttempt, RetryDecision, RetryHistory, RetryPolicy, decide_retry,
};
use algonius_actors::model::agent::quota::DeferralPolicy;
use algonius_actors::model::agent::{Access, PhaseTimeouts, RetrySpec};
use algonius_actors::model::execution::{AttemptId, ExecutionState, Outcome};
use algonius_actors::model::failure::Failure;
use chrono::DateTime;

fn policy() -> ExecutionPolicy {
    ExecutionPolicy {
        timeouts: PhaseTimeouts {
            start: Duration::from_secs(30),
            run: Duration::from_secs(300),
            idle: Some(Duration::from_secs(60)),
            grace: Duration::from_secs(5),
            question: Duration::from_secs(600),
        },
        heartbeat_interval: Some(Duration::from_secs(30)),
        queue_timeout: Duration::from_secs(60),
    }
}

/// The attempt an event speaks of.
fn attempt_of_event(event: &ExecutionEvent) -> Option<AttemptId> {
    match event {
        ExecutionEvent::Claimed { attempt_id }
        | ExecutionEvent::ResourceBusy { attempt_id, .. }
        | ExecutionEvent::ClaimRetryDue { attempt_id }
        | ExecutionEvent::ClaimFailed { attempt_id }
        | ExecutionEvent::Started { attempt_id }
        | ExecutionEvent::TakenOver { attempt_id, .. }
        | ExecutionEvent::Ended { attempt_id, .. }
        | ExecutionEvent::FailedWithRetryAfter { attempt_id, .. }
        | ExecutionEvent::NextAttemptDecided { attempt_id, .. }
        | ExecutionEvent::LimitExceeded { attempt_id, .. }
        | ExecutionEvent::NeedsInput { attempt_id, .. }
        | ExecutionEvent::Suspended { attempt_id }
        | ExecutionEvent::RunDeadlineNear { attempt_id }
        | ExecutionEvent::SilenceMeasured { attempt_id, .. }
        | ExecutionEvent::UsageReadingDue { attempt_id }
        | ExecutionEvent::DeadlinePassed { attempt_id, .. }
        | ExecutionEvent::RetryDue { attempt_id }
        | ExecutionEvent::CleanUpCompleted { attempt_id } => Some(*attempt_id),
        ExecutionEvent::SlotAvailable
        | ExecutionEvent::SettledElsewhere
        | ExecutionEvent::InputReceived
        | ExecutionEvent::QueueExpired
        | ExecutionEvent::StartRefused { .. }
        | ExecutionEvent::CancelRequested { .. }
        | ExecutionEvent::Settled => None,
    }
}

/// The attempt a phase is in.
fn attempt_of_phase(phase: &ExecutionPhase) -> Option<AttemptId> {
    match phase {
        ExecutionPhase::Claiming { attempt_id, .. }
        | ExecutionPhase::Starting { attempt_id }
        | ExecutionPhase::Running { attempt_id }
        | ExecutionPhase::Stopping { attempt_id, .. }
        | ExecutionPhase::Waiting { attempt_id }
        | ExecutionPhase::AwaitingRetryDecision { attempt_id, .. }
        | ExecutionPhase::Paused { attempt_id }
        | ExecutionPhase::Suspended { attempt_id }
        | ExecutionPhase::Finalizing { attempt_id, .. } => Some(*attempt_id),
        ExecutionPhase::Idle | ExecutionPhase::Done { .. } => None,
    }
}

/// Model that knows the rules and panics when one is broken.
#[derive(Debug)]
pub(crate) struct ExecutionModel {
    pub(crate) phase: ExecutionPhase,
    policy: ExecutionPolicy,
    /// The agent's decisions about failed attempts.
    retry_policy: RetryPolicy,
    retry_history: RetryHistory,
    pub(crate) state: ExecutionState,
    claims: Vec<AttemptId>,
    pub(crate) settle_count: usize,
    /// True from the start of the work until it ends or is abandoned.
    is_alive: bool,
    is_superseded: bool,
}

impl ExecutionModel {
    pub(crate) fn new(access: Access) -> Self {
        let (retry, deferral) = (RetrySpec::default(), DeferralPolicy::default());
        Self {
            phase: ExecutionPhase::Idle,
            policy: policy(),
            retry_policy: RetryPolicy { retry, deferral_policy: deferral, access },
            retry_history: RetryHistory::default(),
            state: ExecutionState::Idle,
            claims: Vec::new(),
            settle_count: 0,
            is_alive: false,
            is_superseded: false,
        }
    }

    pub(crate) fn apply(&mut self, event: ExecutionEvent) -> Vec<ExecutionEffect> {
        let phase_before = self.phase.clone();
        let (phase, effects) = apply_event(phase_before.clone(), event.clone(), &self.policy);
        self.expect_late_events_ignored(&phase_before, &event, &phase, &effects);
        self.update_liveness(&phase_before, &event);
        if matches!(
            (&phase_before, &event),
            (ExecutionPhase::Claiming { attempt_id, .. }, ExecutionEvent::Claimed { attempt_id: claimed_id }) if attempt_id == claimed_id
        ) {
            self.change_state(self.state, ExecutionState::Starting);
        }
        for effect in &effects {
            self.apply_effect(effect);
        }
        self.phase = phase;
        effects
    }

    fn expect_late_events_ignored(
        &self,
        phase_before: &ExecutionPhase,
        event: &ExecutionEvent,
        phase_after: &ExecutionPhase,
        effects: &[ExecutionEffect],
    ) {
        let is_late = attempt_of_event(event).is_some_and(|event_attempt_id| {
            attempt_of_phase(phase_before) != Some(event_attempt_id)
        });
        let is_settled = self.settle_count > 0
            && !matches!(event, ExecutionEvent::Settled | ExecutionEvent::CleanUpCompleted { .. });
        if is_late || is_settled {
            assert_eq!(phase_before, phase_after, "changed by {event:?}");
            assert_eq!(effects, [ExecutionEffect::Ignore { event: event.clone() }]);
        }
    }

    fn update_liveness(&mut self, phase_before: &ExecutionPhase, event: &ExecutionEvent) {
        let is_current = attempt_of_event(event).is_some()
            && attempt_of_event(event) == attempt_of_phase(phase_before);
        let is_abandoned = matches!(phase_before, ExecutionPhase::Stopping { .. })
            && matches!(
                event,
                ExecutionEvent::DeadlinePassed { deadline: ExecutionDeadline::Stop, .. }
            );
        let has_ended = match event {
            ExecutionEvent::Ended { .. }
            | ExecutionEvent::FailedWithRetryAfter { .. }
            | ExecutionEvent::Suspended { .. } => true,
            ExecutionEvent::NeedsInput { .. } => {
                !matches!(phase_before, ExecutionPhase::Starting { .. })
            }
            _ => false,
        };
        if is_current && (has_ended || is_abandoned) {
            self.is_alive = false;
        }
        self.is_superseded |= *event == ExecutionEvent::SettledElsewhere;
    }

    fn apply_effect(&mut self, effect: &ExecutionEffect) {
        match effect {
            ExecutionEffect::Claim { attempt_id, from } => {
                assert_eq!(*from, self.state, "the claim leaves the present state");
                self.claim(*attempt_id);
            }
            ExecutionEffect::ResumeAttempt { .. } => {
                assert!(!self.is_alive, "resumed while it runs");
            }
            ExecutionEffect::StartAttempt { attempt_id } => {
                assert_eq!(self.state, ExecutionState::Starting);
                assert_eq!(self.claims.last(), Some(attempt_id), "what starts was claimed");
                assert!(!self.is_alive, "two attempts at once");
                self.is_alive = true;
            }
            ExecutionEffect::RecordTransition { from, to, .. } => self.change_state(*from, *to),
            ExecutionEffect::RecordInputRequest { .. } => {
                self.change_state(ExecutionState::Running, ExecutionState::Waiting);
            }
            ExecutionEffect::Settle { ending, .. } => {
                assert!(!self.is_alive, "settled while the work lives");
                assert_eq!(self.state, ExecutionState::Cleanup, "settled with its moves");
                assert_eq!(ending.outcome == Outcome::Completed, ending.failure.is_none());
                self.settle_count += 1;
                assert_eq!(self.settle_count, 1, "settled twice");
            }
            ExecutionEffect::CleanUp { .. } => {
                assert!(!self.is_alive, "cleaned while the work lives");
            }
            ExecutionEffect::ReportFailure { .. } => {
                assert!(!self.is_alive, "a failure of work that lives");
            }
            ExecutionEffect::Defer { .. } => assert_eq!(self.state, ExecutionState::Failed),
            ExecutionEffect::Finish => {
                assert!(self.settle_count == 1 || self.is_superseded, "finishes without an end");
            }
            ExecutionEffect::StopWork => assert!(self.is_alive, "stopped what does not live"),
            ExecutionEffect::CheckSilence { .. }
            | ExecutionEffect::ReadUsage { .. }
            | ExecutionEffect::RecordDeadlineWarning { .. } => {
                assert!(self.is_alive, "nothing lives");
            }
            ExecutionEffect::SendLater { .. }
            | ExecutionEffect::RetryClaim { .. }
            | ExecutionEffect::RecordFailedAttempt { .. }
            | ExecutionEffect::StopActorAfterCleanUp
            | ExecutionEffect::Ignore { .. } => {}
        }
    }

    /// Claims an attempt. The numbers are 1, 2, 3 in each turn; a repeated claim of a busy slot has the same number.
    fn claim(&mut self, attempt_id: AttemptId) {
        let expected = match self.claims.last() {
            None => vec![AttemptId::FIRST],
            Some(last) => vec![*last, last.next_attempt(), last.next_turn()],
        };
        assert!(expected.contains(&attempt_id), "{attempt_id:?} after {:?}", self.claims);
        self.claims.push(attempt_id);
    }

    fn change_state(&mut self, from: ExecutionState, to: ExecutionState) {
        assert_eq!(from, self.state, "the move to {to} does not follow");
        assert!(from.may_become(to), "{from} -> {to} is not in the table");
        self.state = to;
    }

    /// Decides about a failed attempt as the agent's actor does.
    fn decide_next_attempt(&mut self, attempt: FailedAttempt, failure: &Failure) -> NextAttempt {
        let RetryPolicy { retry, deferral_policy: deferral, .. } = self.retry_policy;
        match decide_retry(&self.retry_policy, self.retry_history, attempt, failure) {
            RetryDecision::GiveUp => NextAttempt::None,
            RetryDecision::Retry(_) => {
                let max = retry.max_retries + self.retry_history.deferrals;
                assert!(attempt.number <= max, "retried after {} attempts", attempt.number);
                NextAttempt::AfterPause
            }
            RetryDecision::Defer(wait, cause) => {
                assert!(wait <= deferral.max_wait, "deferred for too long");
                let end_and_cause = (DateTime::UNIX_EPOCH + wait, cause);
                let next_deferral =
                    self.retry_history.record_deferral(attempt.number, failure, end_and_cause);
                assert!(next_deferral.times <= deferral.max_deferrals, "deferred too often");
                NextAttempt::AfterDeferral(next_deferral)
            }
        }
    }

    /// Answers an effect so that everything comes at last.
    pub(crate) fn respond_to_effect(
        &mut self,
        effect: ExecutionEffect,
        result: &Result<(), Failure>,
        never_ends: bool,
    ) -> Vec<ExecutionEvent> {
        match effect {
            ExecutionEffect::ReportFailure {
                attempt_id,
                failure,
                retry_after,
                may_have_received_input: had_input,
            } => {
                let number = attempt_id.attempt;
                let attempt =
                    FailedAttempt { number, may_have_received_input: had_input, retry_after };
                let next_attempt = self.decide_next_attempt(attempt, &failure);
                vec![ExecutionEvent::NextAttemptDecided { attempt_id, next_attempt }]
            }
            ExecutionEffect::StopActorAfterCleanUp | ExecutionEffect::Defer { .. } => {
                match self.phase {
                    ExecutionPhase::Paused { attempt_id } => {
                        vec![ExecutionEvent::RetryDue { attempt_id }]
                    }
                    _ => Vec::new(),
                }
            }
            effect => respond_without_agent(effect, result, never_ends),
        }
    }
}

/// Answers an effect that the agent's actor has no part in.
fn respond_without_agent(
    effect: ExecutionEffect,
    result: &Result<(), Failure>,
    never_ends: bool,
) -> Vec<ExecutionEvent> {
    match effect {
        ExecutionEffect::Claim { attempt_id, .. } => vec![ExecutionEvent::Claimed { attempt_id }],
        ExecutionEffect::StartAttempt { attempt_id }
        | ExecutionEffect::ResumeAttempt { attempt_id } => {
            let mut events = vec![ExecutionEvent::Started { attempt_id }];
            if !never_ends {
                events.push(ExecutionEvent::Ended { attempt_id, result: result.clone() });
            }
            events
        }
        ExecutionEffect::SendLater { event, .. } => vec![event],
        ExecutionEffect::RetryClaim { attempt_id, .. } => {
            vec![ExecutionEvent::ClaimRetryDue { attempt_id }]
        }
        ExecutionEffect::CheckSilence { attempt_id, .. } => {
            vec![ExecutionEvent::SilenceMeasured { attempt_id, silence: Duration::from_secs(60) }]
        }
        ExecutionEffect::CleanUp { attempt_id, .. } => {
            vec![ExecutionEvent::CleanUpCompleted { attempt_id }]
        }
        ExecutionEffect::Settle { .. } => vec![ExecutionEvent::Settled],
        ExecutionEffect::StopWork
        | ExecutionEffect::ReadUsage { .. }
        | ExecutionEffect::RecordDeadlineWarning { .. }
        | ExecutionEffect::RecordTransition { .. }
        | ExecutionEffect::RecordInputRequest { .. }
        | ExecutionEffect::ReportFailure { .. }
        | ExecutionEffect::RecordFailedAttempt { .. }
        | ExecutionEffect::StopActorAfterCleanUp
        | ExecutionEffect::Defer { .. }
        | ExecutionEffect::Finish
        | ExecutionEffect::Ignore { .. } => Vec::new(),
    }
}
