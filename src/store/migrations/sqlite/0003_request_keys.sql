-- The further keys under which an execution is known: of the messages that answered its questions,
-- and those by which callers named their requests themselves. The key of the message that began an
-- execution is in its row.
ALTER TABLE answers RENAME TO request_keys;
DROP INDEX answers_by_execution;
CREATE INDEX request_keys_by_execution ON request_keys (execution);
