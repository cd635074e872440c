-- Who is told about an execution, and how far. The address and the credentials are sealed under a
-- key of this instance.
CREATE TABLE push_targets (
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    registration BLOB NOT NULL UNIQUE,
    owner BLOB NOT NULL,
    version TEXT NOT NULL,
    sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    delivered INTEGER NOT NULL, -- The number of the last event that it knows.
    failures INTEGER NOT NULL,
    failing_since INTEGER,
    due_at INTEGER NOT NULL,
    stage TEXT NOT NULL,
    PRIMARY KEY (execution, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX push_targets_open ON push_targets (owner, due_at) WHERE stage = 'open';
