-- In which session its program remembers a conversation. The id is sealed under a key of this instance.
-- It goes with the execution that used it last, and so with the last of its conversation.
CREATE TABLE sessions (
    owner BLOB NOT NULL,
    agent TEXT NOT NULL,
    context TEXT NOT NULL,
    execution BLOB NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    sealed BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    counted TEXT NOT NULL, -- JSON: numbers that its program counts since it began
    PRIMARY KEY (owner, agent, context)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_execution ON sessions (execution);
