//! Actions of a random run, and their generation.

use proptest::prelude::*;

/// Action of a random run. Numbers select among what exists at that time.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Open {
        conversation_selector: u8,
        has_mode: bool,
        should_resume: bool,
    },
    Prompt(u8),
    Cancel(u8),
    Close(u8),
    SetMode(u8),
    Answer {
        request_selector: u8,
        answer_selector: u8,
    },
    /// Response to an open request of the client.
    RespondToClient {
        request_selector: u8,
        kind: u8,
    },
    /// Permission request or form.
    RequestFromAgent {
        session: u8,
        id: u8,
        kind: u8,
    },
    UpdateFromAgent {
        session: u8,
        kind: u8,
    },
    WithdrawRequest(u8),
    /// Line that no agent should write.
    UnexpectedLine(u8),
}

pub(super) fn any_action() -> impl Strategy<Value = Action> {
    let byte = any::<u8>;
    prop_oneof![
        2 => (byte(), any::<bool>(), any::<bool>())
            .prop_map(|(conversation_selector, has_mode, should_resume)| Action::Open { conversation_selector, has_mode, should_resume }),
        4 => byte().prop_map(Action::Prompt),
        1 => byte().prop_map(Action::Cancel),
        1 => byte().prop_map(Action::Close),
        1 => byte().prop_map(Action::SetMode),
        4 => (byte(), byte()).prop_map(|(request_selector, answer_selector)| Action::Answer { request_selector, answer_selector }),
        8 => (byte(), byte()).prop_map(|(request_selector, kind)| Action::RespondToClient { request_selector, kind }),
        6 => (byte(), byte(), byte()).prop_map(|(session, id, kind)| Action::RequestFromAgent { session, id, kind }),
        4 => (byte(), byte()).prop_map(|(session, kind)| Action::UpdateFromAgent { session, kind }),
        1 => byte().prop_map(Action::WithdrawRequest),
        1 => byte().prop_map(Action::UnexpectedLine),
    ]
}
