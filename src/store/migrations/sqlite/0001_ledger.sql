-- Times are microseconds since the epoch. Ids are UUIDs of 16 bytes; those of version 7 sort by
-- the time they were made. What is called JSON is text.

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
    seeded INTEGER NOT NULL, -- Whether it comes from the configuration.
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
    origin TEXT NOT NULL, -- JSON: what made it.
    access TEXT NOT NULL, -- JSON
    state TEXT NOT NULL,
    outcome TEXT,
    failure TEXT, -- JSON
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    params TEXT NOT NULL, -- JSON
    replayable INTEGER NOT NULL,
    answered INTEGER NOT NULL, -- Whether its question was answered and the next turn has not begun.
    accepted_at INTEGER NOT NULL,
    started_at INTEGER,
    changed_at INTEGER NOT NULL,
    ended_at INTEGER,
    pid INTEGER,
    exit_code INTEGER,
    last_event INTEGER NOT NULL,
    failure_code TEXT GENERATED ALWAYS AS (failure ->> '$.code') VIRTUAL,
    -- The public state: `Record::shown_state` in SQL. A test compares the two in every case.
    shown TEXT GENERATED ALWAYS AS (
        CASE
            WHEN outcome = 'completed' THEN 'completed'
            WHEN outcome = 'cancelled' THEN 'canceled'
            WHEN outcome = 'failed' AND failure_code IN ('queue-timeout', 'agent-rejected')
                THEN 'rejected'
            WHEN outcome IS NOT NULL THEN 'failed'
            WHEN state = 'idle' THEN 'submitted'
            WHEN state = 'waiting' AND NOT answered THEN 'input-required'
            ELSE 'working'
        END
    ) VIRTUAL,
    -- Since when it is there: `Record::status_at`.
    status_at INTEGER GENERATED ALWAYS AS (COALESCE(ended_at, changed_at)) VIRTUAL,
    UNIQUE (owner, agent, request_key)
) STRICT, WITHOUT ROWID;

-- Messages that answered a question; the message that began an execution is in its row.
CREATE TABLE answers (
    owner BLOB NOT NULL,
    agent TEXT NOT NULL,
    request_key BLOB NOT NULL,
    digest BLOB NOT NULL,
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, agent, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_execution ON answers (execution);

CREATE INDEX executions_by_agent ON executions (agent, id);
CREATE INDEX executions_by_owner ON executions (owner, id);
-- Pages are read in the order of these; none is sorted.
CREATE INDEX executions_by_status ON executions (agent, status_at, id);
CREATE INDEX executions_by_status_of_owner ON executions (agent, owner, status_at, id);
CREATE INDEX executions_by_status_in_context ON executions (agent, context, status_at, id);
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
    body TEXT NOT NULL, -- JSON: the whole fact.
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;

-- With rowids: rows of up to 64 KiB do not belong into the tree of a key.
CREATE TABLE chunks (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    channel TEXT NOT NULL,
    number INTEGER NOT NULL,
    start INTEGER NOT NULL, -- Where it starts in the text of its channel, in bytes.
    text TEXT NOT NULL,
    PRIMARY KEY (execution, turn, attempt, channel, number)
) STRICT;
