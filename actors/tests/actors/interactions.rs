//! Questions of agents to people: answers, timeouts, withdrawals, and losses by a crash, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::WorkerSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::record::PublicState;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{
    AnswerValue, Interaction, InteractionFilter, InteractionState,
};
use algonius_actors::model::permission::{
    DecisionFilter, PermissionPolicy, PermissionRule, PermissionVerdict, TimeoutAction,
};
use algonius_actors::ports::interaction_store::InteractionStore;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{
    ScriptedAttempt, TestTree, answer_question, record_answer_without_service,
};

async fn tree_with_policy(policy: PermissionPolicy) -> TestTree {
    TestTree::with_tuned_agent(|spec| {
        if let WorkerSpec::Program(program) = &mut spec.worker {
            program.permission_policy = Some(Arc::new(policy));
        }
    })
    .await
}

/// Waits until an execution has open questions, and returns them, oldest first.
async fn wait_for_questions(tree: &TestTree, id: ExecutionId, count: usize) -> Vec<Interaction> {
    loop {
        let filter = InteractionFilter {
            execution: Some(id),
            state: Some(InteractionState::Open),
            ..InteractionFilter::default()
        };
        let mut questions = tree.ledger.interactions(filter).await.unwrap();
        if questions.len() == count {
            questions.reverse();
            return questions;
        }
        // In virtual time: a poll of the ledger, which notifies nobody, lets the actors run.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until an execution has ended. A caller's wait would return at a question.
async fn wait_until_ended(tree: &TestTree, id: ExecutionId) {
    while tree.record(id).await.unwrap().outcome.is_none() {
        // In virtual time: a poll of the ledger, which notifies nobody, lets the actors run.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn delivered_answers(tree: &TestTree) -> Vec<String> {
    let recorded_work = tree.driver.recorded_work();
    let without_execution_id =
        |answer: &String| answer.split_once(' ').unwrap_or_default().1.to_owned();
    recorded_work.delivered_answers.iter().map(without_execution_id).collect()
}

async fn interaction_states(tree: &TestTree, id: ExecutionId) -> Vec<InteractionState> {
    let filter = InteractionFilter { execution: Some(id), ..InteractionFilter::default() };
    let interactions = tree.ledger.interactions(filter).await.unwrap();
    interactions.iter().rev().map(|one| one.state).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_agent_once() {
    let tree = tree_with_policy(PermissionPolicy::default()).await;
    tree.script("work", [ScriptedAttempt::ok(1).with_question("0", "touch a")]);
    let id = tree.submit("work").await.unwrap();
    let question = wait_for_questions(&tree, id, 1).await.remove(0);
    let public_state = tree.record(id).await.unwrap().public_state();
    assert_eq!(public_state, PublicState::InputRequired);
    assert_eq!(answer_question(&tree, question.id, AnswerValue::Allow).await, Ok(()));
    assert_eq!(answer_question(&tree, question.id, AnswerValue::Allow).await, Ok(()), "once more");
    let denied = AnswerValue::Deny { reason: None };
    assert_eq!(answer_question(&tree, question.id, denied).await, Err(Code::InteractionClosed));
    wait_until_ended(&tree, id).await;
    assert_eq!(delivered_answers(&tree), ["0:allow"]);
    assert_eq!(interaction_states(&tree, id).await, [InteractionState::Answered]);
    let events = tree.ledger.events(id, 0).await.unwrap();
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventKind::InteractionOpened { .. } => Some("opened"),
            EventKind::InteractionClosed { .. } => Some("closed"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["opened", "closed"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_answers_without_a_person() {
    let rule = |command: &str, verdict| PermissionRule {
        command_patterns: vec![command.to_owned()],
        verdict: Some(verdict),
        ..PermissionRule::default()
    };
    let rules =
        vec![rule("cargo test*", PermissionVerdict::Allow), rule("rm *", PermissionVerdict::Deny)];
    let tree = tree_with_policy(PermissionPolicy { rules, ..PermissionPolicy::default() }).await;
    tree.script(
        "work",
        [ScriptedAttempt::ok(1).with_question("0", "cargo test").with_question("1", "rm -r x")],
    );
    let id = tree.submit("work").await.unwrap();
    wait_until_ended(&tree, id).await;
    assert_eq!(delivered_answers(&tree), ["0:allow", "1:deny"]);
    let decisions = tree.ledger.decisions(DecisionFilter::default()).await.unwrap();
    let verdicts: Vec<_> = decisions.iter().map(|(_, one)| one.verdict).collect();
    assert_eq!(verdicts, [PermissionVerdict::Allow, PermissionVerdict::Deny]);
    assert_eq!(interaction_states(&tree, id).await, []);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_is_denied_or_ends_the_turn() {
    for (on_timeout, answers, outcome) in [
        (TimeoutAction::Deny, &["0:deny"][..], "completed"),
        (TimeoutAction::Cancel, &[], "cancelled"),
    ] {
        let tree =
            tree_with_policy(PermissionPolicy { on_timeout, ..PermissionPolicy::default() }).await;
        tree.script("work", [ScriptedAttempt::ok(1).with_question("0", "touch a")]);
        let id = tree.submit("work").await.unwrap();
        wait_until_ended(&tree, id).await;
        assert_eq!(delivered_answers(&tree), answers);
        assert!((300..303).contains(&tree.elapsed_seconds()), "second {}", tree.elapsed_seconds());
        assert_eq!(interaction_states(&tree, id).await, [InteractionState::Expired]);
        let record = tree.record(id).await.unwrap();
        assert_eq!(record.outcome.unwrap().state().as_str(), outcome);
        tree.end().await;
    }
}

/// The run deadline of the agent is 300 s, and so is the timeout of the question.
#[tokio::test(start_paused = true)]
async fn the_run_deadline_pauses_while_a_person_is_asked() {
    let tree = tree_with_policy(PermissionPolicy::default()).await;
    tree.script("work", [ScriptedAttempt::ok(200).with_question("0", "touch a")]);
    let id = tree.submit("work").await.unwrap();
    let question = wait_for_questions(&tree, id, 1).await.remove(0);
    tree.advance_to(250).await;
    answer_question(&tree, question.id, AnswerValue::Allow).await.unwrap();
    wait_until_ended(&tree, id).await;
    let record = tree.record(id).await.unwrap();
    assert_eq!(record.outcome.unwrap().state().as_str(), "completed", "{:?}", record.failure);
    assert!(tree.elapsed_seconds() >= 450, "the work ran for 200 s after the answer");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_withdraws_its_questions() {
    let tree = tree_with_policy(PermissionPolicy::default()).await;
    tree.script("work", [ScriptedAttempt::ok(1).with_question("0", "a").with_question("1", "b")]);
    let id = tree.submit("work").await.unwrap();
    let questions = wait_for_questions(&tree, id, 2).await;
    tree.cancel(id).await.unwrap();
    wait_until_ended(&tree, id).await;
    assert_eq!(interaction_states(&tree, id).await, [InteractionState::Withdrawn; 2]);
    let late = answer_question(&tree, questions[0].id, AnswerValue::Allow).await;
    assert_eq!(late, Err(Code::InteractionClosed));
    tree.end().await;
}

/// Returns a tree whose process was killed while a question was open. The driver holds the work.
async fn tree_killed_at_question() -> (TestTree, ExecutionId, Interaction) {
    let mut tree = tree_with_policy(PermissionPolicy::default()).await;
    tree.script("work", [ScriptedAttempt::ok(1).with_question("0", "touch a")]);
    let id = tree.submit("work").await.unwrap();
    let question = wait_for_questions(&tree, id, 1).await.remove(0);
    tree.driver.preserve_over_restart(id);
    tree.kill().await;
    (tree, id, question)
}

/// The process of the service ends while a question is open; the held work asks again, under the same id.
#[tokio::test(start_paused = true)]
async fn an_open_question_survives_the_loss_of_the_process() {
    for is_answered_meanwhile in [false, true] {
        let (mut tree, id, question) = tree_killed_at_question().await;
        if is_answered_meanwhile {
            record_answer_without_service(&tree, question.id, AnswerValue::Allow).await;
        }
        tree.start().await;
        if !is_answered_meanwhile {
            let open_question = wait_for_questions(&tree, id, 1).await.remove(0);
            assert_eq!((open_question.id, open_question.due_at), (question.id, question.due_at));
            answer_question(&tree, question.id, AnswerValue::Allow).await.unwrap();
        }
        wait_until_ended(&tree, id).await;
        assert_eq!(
            delivered_answers(&tree),
            ["0:allow"],
            "answered meanwhile: {is_answered_meanwhile}"
        );
        assert_eq!(interaction_states(&tree, id).await, [InteractionState::Answered]);
        tree.end().await;
    }
}

/// The process of the service ends after an answer is written to the agent, and before that is recorded.
#[tokio::test(start_paused = true)]
async fn a_delivery_before_a_crash_is_recorded_after_it() {
    let (mut tree, id, question) = tree_killed_at_question().await;
    record_answer_without_service(&tree, question.id, AnswerValue::Allow).await;
    tree.driver.add_delivered_answer(id, "0:allow");
    tree.start().await;
    wait_until_ended(&tree, id).await;
    assert_eq!(delivered_answers(&tree), ["0:allow"]);
    let interaction = tree.ledger.interaction(question.id).await.unwrap().unwrap();
    assert_eq!(interaction.state, InteractionState::Answered);
    assert!(interaction.delivered_at.is_some());
    tree.end().await;
}

/// The ledger has only the redacted text of a delivered answer, which the agent must not receive.
#[tokio::test(start_paused = true)]
async fn a_delivered_answer_is_never_sent_again() {
    let (mut tree, id, question) = tree_killed_at_question().await;
    let denied = AnswerValue::Deny { reason: Some("[redacted]".to_owned()) };
    record_answer_without_service(&tree, question.id, denied).await;
    tree.ledger.record_answer_delivery(question.id, question.opened_at).await.unwrap();
    tree.start().await;
    wait_until_ended(&tree, id).await;
    assert_eq!(delivered_answers(&tree), ["0:cancelled"]);
    assert_eq!(interaction_states(&tree, id).await, [InteractionState::Answered]);
    let events = tree.ledger.events(id, 0).await.unwrap();
    let is_warning = |event: &&_| matches!(event, EventKind::Warning { message } if message.contains("was lost"));
    assert_eq!(events.iter().map(|event| &event.data).filter(is_warning).count(), 1);
    tree.end().await;
}

/// The question is closed before the pause, so that nobody answers a process that has ended.
#[tokio::test(start_paused = true)]
async fn a_failed_attempt_loses_its_open_question() {
    let tree = tree_with_policy(PermissionPolicy::default()).await;
    let failing_attempt = ScriptedAttempt::fail(5, Code::TransientFailure);
    let attempts = [
        failing_attempt.with_question("0", "touch a").with_open_question_at_end(),
        ScriptedAttempt::ok(1),
    ];
    tree.script("work", attempts);
    let id = tree.submit("work").await.unwrap();
    wait_for_questions(&tree, id, 1).await;
    tree.advance_to(5).await;
    tokio::time::sleep(Duration::from_millis(500)).await; // Virtual time: in the pause.
    assert_eq!(tree.record(id).await.unwrap().state, ExecutionState::Failed);
    assert_eq!(interaction_states(&tree, id).await, [InteractionState::Lost]);
    wait_until_ended(&tree, id).await;
    assert_eq!((tree.describe_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 7));
    tree.end().await;
}
