-- What the caller chose for the latest request of an execution: JSON.
ALTER TABLE executions ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}';
