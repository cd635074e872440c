-- Work at set times. A schedule that is removed leaves what happened at its times.
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    owner BLOB NOT NULL,
    origin TEXT NOT NULL, -- JSON: where it comes from.
    spec TEXT NOT NULL, -- JSON: what it says.
    paused INTEGER NOT NULL,
    cursor INTEGER NOT NULL, -- Up to when each of its times is decided.
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was decided about each time. The key is what makes it happen once.
CREATE TABLE occurrences (
    schedule TEXT NOT NULL,
    planned_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT,
    times INTEGER NOT NULL, -- How many times the row stands for.
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
