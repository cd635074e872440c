-- The key of what was asked, where an equal request may take the result. One that found
-- another to be equal has none, whether it took the result or not: results are not handed on.
ALTER TABLE executions ADD COLUMN content_key BLOB;

CREATE INDEX executions_by_content ON executions (content_key, id) WHERE content_key IS NOT NULL;
