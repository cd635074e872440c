-- The folder that the latest attempt may change alone, while it starts or runs: its path as bytes.
ALTER TABLE executions ADD COLUMN workspace BLOB;

CREATE INDEX executions_holding_workspaces ON executions (id)
    WHERE workspace IS NOT NULL AND outcome IS NULL AND state IN ('starting', 'running');
