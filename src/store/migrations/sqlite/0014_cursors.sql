-- How far each schedule has come stands apart from what it says: it changes at each of its times, and one page
-- has room for that of a hundred.
CREATE TABLE cursors (
    schedule TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL -- Up to when each of its times is decided.
) STRICT, WITHOUT ROWID;

INSERT INTO cursors (schedule, cursor) SELECT id, cursor FROM schedules;

ALTER TABLE schedules DROP COLUMN cursor;
