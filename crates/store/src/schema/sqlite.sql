-- Tables of the ledger in SQLite. Times are microseconds since 1970-01-01T00:00:00Z.

CREATE TABLE instance (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    id BLOB NOT NULL,
    key BLOB NOT NULL
) STRICT;

CREATE TABLE principals (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id BLOB PRIMARY KEY,
    principal BLOB NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    hash BLOB NOT NULL UNIQUE,
    scope TEXT NOT NULL, -- JSON
    expires_at INTEGER,
    seeded INTEGER NOT NULL, -- Whether the configuration contains it.
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_principal ON tokens (principal);

CREATE TABLE executions (
    id BLOB PRIMARY KEY,
    agent TEXT NOT NULL,
    owner BLOB NOT NULL,
    message TEXT NOT NULL,
    request_key BLOB NOT NULL,
    digest BLOB NOT NULL,
    context TEXT NOT NULL,
    origin TEXT NOT NULL, -- JSON: what created it.
    access TEXT NOT NULL, -- JSON
    state TEXT NOT NULL,
    outcome TEXT,
    failure TEXT, -- JSON
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    params TEXT NOT NULL, -- JSON
    replayable INTEGER NOT NULL,
    answered INTEGER NOT NULL, -- Whether its question is answered and the next turn has not started.
    accepted_at INTEGER NOT NULL,
    started_at INTEGER,
    changed_at INTEGER NOT NULL,
    ended_at INTEGER,
    pid INTEGER,
    exit_code INTEGER,
    last_event INTEGER NOT NULL,
    failure_code TEXT GENERATED ALWAYS AS (failure ->> '$.code') VIRTUAL,
    status_at INTEGER GENERATED ALWAYS AS (COALESCE(ended_at, changed_at)) VIRTUAL,
    overrides TEXT NOT NULL DEFAULT '{}', -- JSON
    content_key BLOB, -- Key of the content, for duplicate detection.
    workspace BLOB, -- Key of the folder that it may change.
    told TEXT GENERATED ALWAYS AS (COALESCE(outcome, state)) VIRTUAL,
    made_by TEXT GENERATED ALWAYS AS (
        CASE
            WHEN json_type(origin) = 'text' THEN origin ->> '$'
            WHEN origin -> '$.hop' IS NOT NULL THEN 'hop'
            ELSE 'schedule'
        END
    ) VIRTUAL,
    schedule TEXT GENERATED ALWAYS AS (
        COALESCE(origin ->> '$.schedule.id', origin ->> '$.schedule.schedule')
    ) VIRTUAL,
    trace TEXT,
    parked TEXT, -- JSON: the deferral.
    spent TEXT, -- JSON: what its attempts have used.
    interruption TEXT,
    asks INTEGER NOT NULL DEFAULT 0, -- Number of open interactions.
    -- The public state: `Record::shown_state` in SQL. A test compares the two in every case.
    shown TEXT GENERATED ALWAYS AS (
        CASE
            WHEN outcome = 'completed' THEN 'completed'
            WHEN outcome = 'cancelled' THEN 'canceled'
            WHEN outcome = 'failed' AND failure_code IN ('queue-timeout', 'agent-rejected')
                THEN 'rejected'
            WHEN outcome IS NOT NULL THEN 'failed'
            WHEN state = 'idle' THEN 'submitted'
            WHEN state = 'running' AND asks > 0 THEN 'input-required'
            WHEN state = 'waiting' AND NOT answered AND interruption = 'auth-required'
                THEN 'auth-required'
            WHEN state = 'waiting' AND NOT answered THEN 'input-required'
            ELSE 'working'
        END
    ) VIRTUAL,
    parent TEXT GENERATED ALWAYS AS (origin ->> '$.hop.parent') VIRTUAL,
    UNIQUE (owner, agent, request_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_keys (
    owner BLOB NOT NULL,
    agent TEXT NOT NULL,
    request_key BLOB NOT NULL,
    digest BLOB NOT NULL,
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, agent, request_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_by_agent ON executions (agent, id);
CREATE INDEX executions_by_owner ON executions (owner, id);
CREATE INDEX executions_by_status ON executions (agent, status_at, id);
CREATE INDEX executions_by_status_of_owner ON executions (agent, owner, status_at, id);
CREATE INDEX executions_by_status_in_context ON executions (agent, context, status_at, id);
CREATE INDEX executions_by_parent ON executions (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX executions_unfinished ON executions (id) WHERE outcome IS NULL;
CREATE INDEX executions_holding_slots ON executions (agent)
    WHERE outcome IS NULL AND state IN ('starting', 'running');

CREATE TABLE events (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON: the data of the event.
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE chunks (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    channel TEXT NOT NULL,
    number INTEGER NOT NULL,
    start INTEGER NOT NULL, -- Offset in the text of its channel, in bytes.
    text TEXT NOT NULL,
    PRIMARY KEY (execution, turn, attempt, channel, number)
) STRICT;

CREATE TABLE push_targets (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    registration BLOB NOT NULL UNIQUE,
    owner BLOB NOT NULL,
    version TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    delivered INTEGER NOT NULL, -- Number of the last event that was delivered.
    failures INTEGER NOT NULL,
    failing_since INTEGER,
    due_at INTEGER NOT NULL,
    stage TEXT NOT NULL,
    PRIMARY KEY (execution, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_targets_open ON push_targets (owner, due_at) WHERE stage = 'open';
CREATE INDEX request_keys_by_execution ON request_keys (execution);
CREATE INDEX executions_by_content ON executions (content_key, id) WHERE content_key IS NOT NULL;
CREATE INDEX executions_holding_workspaces ON executions (id)
    WHERE workspace IS NOT NULL AND outcome IS NULL AND state IN ('starting', 'running');

CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    origin TEXT NOT NULL, -- JSON: the configuration or the API.
    spec TEXT NOT NULL, -- JSON
    paused INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    sealed BLOB -- The texts that redaction changes, encrypted.
) STRICT, WITHOUT ROWID;

CREATE TABLE occurrences (
    schedule TEXT NOT NULL,
    planned_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT,
    times INTEGER NOT NULL, -- Number of due times that the row represents.
    decided_at INTEGER NOT NULL,
    agent TEXT NOT NULL,
    owner BLOB NOT NULL,
    fired_at INTEGER,
    execution BLOB,
    deadline_at INTEGER,
    outcome TEXT,
    code TEXT,
    recovered INTEGER NOT NULL DEFAULT 0,
    ended_at INTEGER,
    PRIMARY KEY (schedule, planned_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX occurrences_open ON occurrences (schedule, planned_at)
    WHERE verdict = 'pending' OR (verdict = 'fired' AND outcome IS NULL);
CREATE INDEX occurrences_by_time ON occurrences (planned_at, schedule);
CREATE INDEX occurrences_by_owner ON occurrences (owner, planned_at, schedule);
CREATE INDEX executions_by_context ON executions (context, id);
CREATE INDEX executions_by_state ON executions (told, id);
CREATE INDEX executions_by_failure ON executions (failure_code, id) WHERE failure_code IS NOT NULL;
CREATE INDEX executions_by_schedule ON executions (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX executions_ended ON executions (ended_at, id) WHERE outcome IS NOT NULL;

CREATE TABLE sessions (
    owner BLOB NOT NULL,
    agent TEXT NOT NULL,
    context TEXT NOT NULL,
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    sealed BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    counted TEXT NOT NULL, -- JSON: cumulative counters of its program.
    PRIMARY KEY (owner, agent, context)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_execution ON sessions (execution);

CREATE TABLE spending (
    agent TEXT NOT NULL,
    day TEXT NOT NULL, -- ISO 8601
    turns INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    PRIMARY KEY (agent, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_by_day ON spending (day);

CREATE TABLE cursors (
    schedule TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL -- All due times up to this time are decided.
) STRICT, WITHOUT ROWID;

CREATE TABLE sealed_inputs (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (execution, number)
) STRICT;

CREATE TABLE interactions (
    id BLOB PRIMARY KEY,
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    wire TEXT NOT NULL, -- Id of the request in the protocol of the agent.
    owner BLOB NOT NULL,
    agent TEXT NOT NULL,
    context TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON: the question.
    terms TEXT NOT NULL, -- JSON: the conditions of an answer.
    digest TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    closed TEXT, -- JSON: the end, with the redacted answer.
    sealed BLOB, -- The end with the raw answer, encrypted, until its delivery.
    delivered_at INTEGER,
    UNIQUE (execution, turn, attempt, wire)
) STRICT;
CREATE INDEX interactions_open ON interactions (due_at) WHERE state = 'open';
CREATE INDEX interactions_open_by_id ON interactions (id) WHERE state = 'open';
CREATE INDEX interactions_by_owner ON interactions (owner, id);
CREATE INDEX interactions_sealed ON interactions (execution) WHERE sealed IS NOT NULL;

-- Runs of teams above the execution of an interaction. The run that sent the request has depth 1.
CREATE TABLE interaction_runs (
    run BLOB NOT NULL,
    interaction BLOB NOT NULL REFERENCES interactions (id) ON DELETE CASCADE,
    agent TEXT NOT NULL, -- Agent of the run.
    depth INTEGER NOT NULL,
    PRIMARY KEY (run, interaction)
) STRICT, WITHOUT ROWID;
CREATE INDEX interaction_runs_by_interaction ON interaction_runs (interaction, depth);

-- Rows are appended and never changed. They outlive their executions, so they refer to none.
CREATE TABLE permission_decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    agent TEXT NOT NULL,
    owner BLOB NOT NULL,
    execution BLOB NOT NULL,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    interaction BLOB,
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    verdict TEXT NOT NULL,
    source TEXT NOT NULL, -- JSON
    waited_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX permission_decisions_by_time ON permission_decisions (at);
CREATE INDEX permission_decisions_by_execution ON permission_decisions (execution);

-- Notes of cognitive agents, redacted. They outlive their executions, so they refer to none. A later note has a greater
-- id, also after a clock change.
CREATE TABLE notes (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    execution BLOB NOT NULL,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (execution, step)
) STRICT;
CREATE INDEX notes_by_agent ON notes (agent, id);

-- Word index of the notes, under the same ids.
CREATE VIRTUAL TABLE note_words USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
