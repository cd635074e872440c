-- Step from version 3 of the tables to version 4: notes of cognitive agents.

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

CREATE VIRTUAL TABLE note_words USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
